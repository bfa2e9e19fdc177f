"""Claude Code."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

from mnemosyned.setup.documents.paths import value_at
from mnemosyned.setup.machine import Machine, Programs
from mnemosyned.setup.parts import NAME, Entry, Hook
from mnemosyned.setup.target import Site, Target
from mnemosyned.setup.targets.shapes import (
    Parts,
    grouped_hooks,
    settings_of,
    stdio_server,
)


def folder(machine: Machine) -> Path:
    """The directory of its settings."""
    return machine.folder("CLAUDE_CONFIG_DIR", machine.home / ".claude")


def user_hooks(machine: Machine, programs: Programs) -> list[Hook]:
    """The hooks of the user, which Cursor, VS Code and Devin read too."""
    return grouped_hooks(folder(machine) / "settings.json", programs)


def _user(site: Site) -> Parts:
    machine = site.machine
    own = machine.environment.get("CLAUDE_CONFIG_DIR")
    entry = stdio_server(
        (Path(own) if own else machine.home) / ".claude.json", site.programs
    )
    return [_by_its_program(entry, machine), *user_hooks(machine, site.programs)]


def _by_its_program(entry: Entry, machine: Machine) -> Entry:
    """The entry, written by the tool's own program where that is here.

    Running sessions rewrite the file; the program takes the lock they use.
    """
    program = machine.program("claude")
    if program is None:
        return entry
    scope = ("--scope", "user", NAME)
    return replace(
        entry,
        add=(str(program), "mcp", "add-json", *scope, json.dumps(dict(entry.value))),
        take_out=(str(program), "mcp", "remove", *scope),
    )


def _project(site: Site) -> Parts:
    root = site.project or site.machine.directory
    return [
        stdio_server(root / ".mcp.json", site.programs),
        *grouped_hooks(root / ".claude" / "settings.local.json", site.programs),
    ]


def _plugins(machine: Machine) -> list[str]:
    home = folder(machine)
    installed = settings_of(home / "plugins" / "installed_plugins.json")
    names = [*(value_at(installed, ("plugins",)) or {})]
    skill = home / "skills" / NAME / ".claude-plugin"
    found = [name for name in names if name.split("@")[0] == NAME]
    return found + ([str(skill.parent)] if skill.is_dir() else [])


def _switched_off(machine: Machine) -> list[str]:
    settings = settings_of(folder(machine) / "settings.json")
    reasons = {
        "disableAllHooks": "its settings have disableAllHooks: no hook runs",
        "allowManagedHooksOnly": "its settings allow managed hooks only",
    }
    return [reason for key, reason in reasons.items() if settings.get(key) is True]


TARGET = Target(
    name="claude-code",
    title="Claude Code",
    programs=("claude",),
    folders=lambda machine: [folder(machine)],
    parts=_user,
    project_parts=_project,
    steps=("open a new session: running ones keep what they loaded",),
    listing=("mcp", "get", NAME),
    plugins=_plugins,
    switched_off=_switched_off,
    clients=("claude-code",),
    transcripts=(".claude/projects/*/*.jsonl",),
)
