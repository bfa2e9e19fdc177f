"""Cursor: the editor and its command line."""

from __future__ import annotations

from pathlib import Path

from mnemosyned.setup.machine import Machine, Programs
from mnemosyned.setup.parts import NAME, Heading, Hook, command_line
from mnemosyned.setup.target import Site, Target
from mnemosyned.setup.targets.shapes import Parts, flat_hooks, stdio_server

EVENTS = {
    "sessionStart": 10,
    "beforeSubmitPrompt": 5,
    "stop": 10,
    "preCompact": 10,
    "sessionEnd": 5,
}


def hooks(file: Path, programs: Programs) -> list[Heading | Hook]:
    """Its file of hooks."""
    command = command_line(programs.hook)
    events = {
        event: {"command": command, "timeout": limit} for event, limit in EVENTS.items()
    }
    return [Heading(file, ("version",), 1), *flat_hooks(file, events)]


def _parts(site: Site, folder: Path) -> Parts:
    return [
        stdio_server(folder / "mcp.json", site.programs),
        *hooks(folder / "hooks.json", site.programs),
    ]


def _plugins(machine: Machine) -> list[str]:
    folder = machine.home / ".cursor" / "plugins" / "local" / NAME
    return [str(folder)] if folder.is_dir() else []


TARGET = Target(
    name="cursor",
    title="Cursor",
    programs=("cursor", "cursor-agent"),
    folders=lambda machine: [machine.home / ".cursor"],
    parts=lambda site: _parts(site, site.machine.home / ".cursor"),
    project_parts=lambda site: _parts(
        site, (site.project or site.machine.directory) / ".cursor"
    ),
    steps=("switch the server mnem on in Cursor's settings, under MCP",),
    notes=("Cursor runs Claude Code's hooks too, and the same command only once",),
    unconfirmed=("whether Cursor shows the model what a prompt's hook adds",),
    plugins=_plugins,
    clients=("cursor",),
    transcripts=(
        ".cursor/projects/*/agent-transcripts/*.jsonl",
        ".cursor/projects/*/agent-transcripts/*/*.jsonl",
    ),
)
