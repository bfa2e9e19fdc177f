"""Devin Desktop and its command line, and Windsurf, from which it came."""

from __future__ import annotations

from pathlib import Path

from mnemosyned.setup.machine import Machine
from mnemosyned.setup.parts import command_line
from mnemosyned.setup.target import Site, Target
from mnemosyned.setup.targets import claude_code
from mnemosyned.setup.targets.shapes import (
    CLAUDE_EVENTS,
    Parts,
    flat_hooks,
    grouped_hooks,
    has_hooks_of_ours,
    server,
)

EVENTS = {
    event: limit for event, limit in CLAUDE_EVENTS.items() if event != "PreCompact"
}
CASCADE_EVENTS = ("pre_user_prompt", "post_cascade_response")


def _devin_folder(machine: Machine) -> Path:
    return machine.config / "devin"


def _windsurf_folder(machine: Machine) -> Path:
    return machine.home / ".codeium" / "windsurf"


def _devin(site: Site) -> Parts:
    folder = _devin_folder(site.machine)
    parts: Parts = [server(folder / "mcp_config.json", site.programs)]
    claudes = claude_code.user_hooks(site.machine, site.programs)
    if not has_hooks_of_ours(claudes):
        parts += grouped_hooks(folder / "config.json", site.programs, EVENTS)
    return parts


def _windsurf(site: Site) -> Parts:
    folder = _windsurf_folder(site.machine)
    command = {"command": command_line(site.programs.hook), "show_output": False}
    return [
        server(folder / "mcp_config.json", site.programs),
        *flat_hooks(folder / "hooks.json", dict.fromkeys(CASCADE_EVENTS, command)),
    ]


def _user(site: Site) -> Parts:
    windsurf = _windsurf_folder(site.machine).is_dir()
    devin = _devin_folder(site.machine).is_dir() or not windsurf
    return [*(_devin(site) if devin else []), *(_windsurf(site) if windsurf else [])]


def _project(site: Site) -> Parts:
    root = site.project or site.machine.directory
    file = root / ".devin" / "hooks.v1.json"
    return [*grouped_hooks(file, site.programs, EVENTS, section=())]


TARGET = Target(
    name="devin",
    title="Devin and Windsurf",
    programs=("devin", "windsurf"),
    folders=lambda machine: [_devin_folder(machine), _windsurf_folder(machine)],
    parts=_user,
    project_parts=_project,
    notes=(
        "Devin runs Claude Code's hooks too, and then gets none of its own",
        "Windsurf's old hooks add nothing to a prompt",
    ),
    unconfirmed=(
        "whether Devin's command line reads mcp_config.json or only config.json",
    ),
    clients=("devin", "windsurf"),
)
