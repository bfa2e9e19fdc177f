"""Visual Studio Code."""

from __future__ import annotations

from pathlib import Path

from mnemosyned.setup.machine import Machine
from mnemosyned.setup.target import Site, Target
from mnemosyned.setup.targets import claude_code, copilot
from mnemosyned.setup.targets.shapes import Parts, has_hooks_of_ours, stdio_server

EDITIONS = ("Code", "Code - Insiders", "VSCodium")


def _folders(machine: Machine) -> list[Path]:
    return [machine.applications / edition for edition in EDITIONS]


def _user(site: Site) -> Parts:
    folders = _folders(site.machine)
    used = [folder for folder in folders if folder.is_dir()] or folders[:1]
    parts: Parts = [
        stdio_server(folder / "User" / "mcp.json", site.programs, section="servers")
        for folder in used
    ]
    claudes = claude_code.user_hooks(site.machine, site.programs)
    if not has_hooks_of_ours(claudes):
        parts += copilot.hooks(site)
    return parts


def _project(site: Site) -> Parts:
    root = site.project or site.machine.directory
    return [
        stdio_server(root / ".vscode" / "mcp.json", site.programs, section="servers")
    ]


TARGET = Target(
    name="vscode",
    title="VS Code",
    programs=("code", "code-insiders", "codium"),
    folders=_folders,
    parts=_user,
    project_parts=_project,
    steps=("VS Code asks once whether it may start the server mnem",),
    notes=("VS Code runs the hooks of Claude Code's settings and of ~/.copilot/hooks",),
    unconfirmed=("what VS Code's hooks, a preview, add to a prompt",),
    clients=("vscode",),
)
