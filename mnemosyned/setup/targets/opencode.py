"""OpenCode, whose hooks are a plugin in JavaScript."""

from __future__ import annotations

import json
from importlib.resources import files
from pathlib import Path

from mnemosyned.setup.machine import Machine
from mnemosyned.setup.parts import NAME, Entry, OwnFile
from mnemosyned.setup.target import Site, Target
from mnemosyned.setup.targets.shapes import ARGUMENTS, Parts

LISTING_MS = 5_000
MARK = "mnem setup opencode"
PLACEHOLDER = '"mnem-hook"'


def _folder(machine: Machine) -> Path:
    return machine.folder(
        "OPENCODE_CONFIG_DIR",
        machine.folder("XDG_CONFIG_HOME", machine.home / ".config") / "opencode",
    )


def plugin_text(hook: str) -> str:
    """The plugin, with the program that it starts."""
    template = files("mnemosyned.setup.targets") / "opencode_plugin.js"
    return template.read_text("utf-8").replace(PLACEHOLDER, json.dumps(hook), 1)


def _parts(site: Site, configurations: Path, plugins: Path) -> Parts:
    names = ("opencode.jsonc", "opencode.json")
    present = [name for name in names if (configurations / name).exists()]
    file = configurations / (present or ["opencode.json"])[0]
    entry = {
        "type": "local",
        "command": [str(site.programs.mnem), *ARGUMENTS],
        "enabled": True,
        "timeout": LISTING_MS,
    }
    return [
        Entry(file, ("mcp", NAME), entry),
        OwnFile(
            plugins / f"{NAME}.js",
            plugin_text(str(site.programs.hook)),
            MARK,
        ),
    ]


def _user(site: Site) -> Parts:
    folder = _folder(site.machine)
    return _parts(site, folder, folder / "plugins")


def _project(site: Site) -> Parts:
    root = site.project or site.machine.directory
    return _parts(site, root, root / ".opencode" / "plugins")


TARGET = Target(
    name="opencode",
    title="OpenCode",
    programs=("opencode",),
    folders=lambda machine: [_folder(machine)],
    parts=_user,
    project_parts=_project,
    clients=("opencode",),
    transcripts=(".local/share/opencode/opencode.db",),
)
