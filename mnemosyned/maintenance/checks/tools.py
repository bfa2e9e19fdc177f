"""The agents' tools that were given memory."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

from mnemosyned.maintenance.findings import Finding, Installation, ok, warning
from mnemosyned.paths import state_dir
from mnemosyned.setup.check import check_tool
from mnemosyned.setup.journal import Journal
from mnemosyned.setup.machine import Machine, Programs
from mnemosyned.setup.target import Site
from mnemosyned.setup.targets import TARGETS


def check_tools(installation: Installation) -> Iterator[Finding]:
    """Findings of `mnem setup --check` for each tool that was set up."""
    machine = Machine.present()
    site = Site(machine=machine, programs=Programs.of(machine, Path(sys.argv[0])))
    journal = Journal(state_dir() / "setup")
    reports = installation.status.agents if installation.status else None
    checks = [check_tool(target, site, journal, reports) for target in TARGETS.values()]
    set_up = [check for check in checks if check.set_up]
    if not set_up:
        return
    if site.programs.missing:
        text = f"{site.programs.missing[0]} cannot be run, and tools start it"
        yield warning("tools", text, "make install")
    for check in set_up:
        for text in check.problems:
            yield warning("tools", f"{check.title}: {text}", f"mnem setup {check.tool}")
        if not check.problems:
            yield ok("tools", f"{check.title} has memory")
