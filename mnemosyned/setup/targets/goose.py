"""Goose."""

from __future__ import annotations

from pathlib import Path

from mnemosyned.setup.parts import NAME, Entry
from mnemosyned.setup.target import Site, Target
from mnemosyned.setup.targets.shapes import (
    ARGUMENTS,
    CLAUDE_EVENTS,
    Parts,
    grouped_hooks,
    own_json,
)
from mnemosyned.version import __version__

EVENTS = {
    event: limit for event, limit in CLAUDE_EVENTS.items() if event != "PreCompact"
}
LIMIT_S = 300
MANIFEST = {
    "name": NAME,
    "version": __version__,
    "description": "Remembers what was said in a session.",
}


def _plugin(site: Site, root: Path) -> Parts:
    folder = root / ".agents" / "plugins" / NAME
    return [
        own_json(folder / "plugin.json", MANIFEST, f'"name": "{NAME}"'),
        *grouped_hooks(folder / "hooks" / "hooks.json", site.programs, EVENTS),
    ]


def _user(site: Site) -> Parts:
    extension = {
        "enabled": True,
        "type": "stdio",
        "name": NAME,
        "cmd": str(site.programs.mnem),
        "args": [*ARGUMENTS],
        "timeout": LIMIT_S,
    }
    file = site.machine.config / "goose" / "config.yaml"
    entry = Entry(file, ("extensions", NAME), extension)
    return [entry, *_plugin(site, site.machine.home)]


TARGET = Target(
    name="goose",
    title="Goose",
    programs=("goose",),
    folders=lambda machine: [machine.config / "goose"],
    parts=_user,
    project_parts=lambda site: _plugin(site, site.project or site.machine.directory),
    notes=("Goose's hooks only observe: the model recalls by the tools",),
    clients=("goose",),
)
