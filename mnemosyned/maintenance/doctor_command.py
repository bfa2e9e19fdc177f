"""`mnem doctor`: what is wrong with this installation, and what mends it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

import click

from mnemosyned.maintenance.doctor import examine, present_installation
from mnemosyned.maintenance.findings import Finding, Severity
from mnemosyned.maintenance.repair import repair
from mnemosyned.terminal import counted, hanging, say, say_json

EXIT_FOUND = 1
INDENT_CELLS = 21
"""Cells of a finding before its text."""
_STYLES: dict[Severity, dict[str, Any]] = {
    Severity.OK: {"dim": True},
    Severity.NOTE: {},
    Severity.WARNING: {"bold": True},
    Severity.PROBLEM: {"fg": "red"},
}


@click.command()
@click.option("--repair", "mends", is_flag=True, help="Mend what is safe to mend.")
@click.option("--deep", is_flag=True, help="Also check what takes long.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
def doctor(*, mends: bool, deep: bool, as_json: bool) -> int:
    """Check the installation, and say what mends each fault.

    It changes nothing and needs no daemon. With --repair it mends what is safe: permissions, a
    dead socket, indexes, counts, rows that belong to nothing. The database is backed up before it
    is touched. The exit code is 1 while something is wrong.
    """
    findings = examine(present_installation(deep=deep))
    done: list[str] = []
    if mends:
        done = list(repair(findings, present_installation(deep=deep)))
        findings = examine(present_installation(deep=deep))
    if as_json:
        say_json({"findings": [asdict(each) for each in findings], "repairs": done})
    else:
        for line in done:
            say(f"repair: {line}")
        _show(findings)
    return EXIT_FOUND if any(each.severity.is_bad for each in findings) else 0


def _show(findings: Sequence[Finding]) -> None:
    # The gravest come last, next to the prompt.
    for finding in sorted(
        findings, key=lambda each: list(Severity).index(each.severity)
    ):
        severity = click.style(
            f"{finding.severity.value:<9}", **_STYLES[finding.severity]
        )
        text = finding.text.replace(f"{Path.home()}/", "~/")
        head = f"{severity}{finding.check:<12}"
        say(hanging(head, text, INDENT_CELLS), styled=True)
        if finding.command:
            say(f"{'':<{INDENT_CELLS}}{finding.command}")
    bad = [finding for finding in findings if finding.severity.is_bad]
    mended = [finding for finding in bad if finding.remedy]
    if not bad:
        say("nothing is wrong")
        return
    hint = "; mnem doctor --repair mends what is safe" if mended else ""
    say(f"{counted(len(bad), 'finding')}{hint}")
