"""GitHub Copilot's command line."""

from __future__ import annotations

from pathlib import Path

from mnemosyned.setup.machine import Machine
from mnemosyned.setup.parts import NAME, Heading, command_line
from mnemosyned.setup.target import Site, Target
from mnemosyned.setup.targets.shapes import (
    CLAUDE_EVENTS,
    Parts,
    flat_hooks,
    server,
)


def _folder(machine: Machine) -> Path:
    return machine.folder("COPILOT_HOME", machine.home / ".copilot")


def hooks(site: Site) -> Parts:
    """The file of hooks, which VS Code reads too."""
    file = _folder(site.machine) / "hooks" / f"{NAME}.json"
    command = command_line(site.programs.hook)
    events = {
        event: {"type": "command", "bash": command, "timeoutSec": limit}
        for event, limit in CLAUDE_EVENTS.items()
    }
    return [Heading(file, ("version",), 1), *flat_hooks(file, events)]


def _parts(site: Site) -> Parts:
    file = _folder(site.machine) / "mcp-config.json"
    entry = server(file, site.programs, type="local", tools=["*"])
    return [entry, *hooks(site)]


TARGET = Target(
    name="copilot",
    title="Copilot CLI",
    programs=("copilot",),
    folders=lambda machine: [_folder(machine)],
    parts=_parts,
    listing=("mcp", "get", NAME),
    unconfirmed=("whether Copilot shows the model what SessionStart's hook adds",),
    clients=("copilot",),
    transcripts=(".copilot/session-state/*/events.jsonl",),
)
