"""Gemini CLI, and Antigravity, which follows it."""

from __future__ import annotations

from pathlib import Path

from mnemosyned.setup.machine import Machine
from mnemosyned.setup.parts import NAME, Entry, command_line
from mnemosyned.setup.target import Site, Target
from mnemosyned.setup.targets.shapes import Parts, grouped_hooks, server, settings_of

EVENTS = {
    "SessionStart": 10_000,
    "BeforeAgent": 5_000,
    "AfterAgent": 10_000,
    "PreCompress": 10_000,
    "SessionEnd": 5_000,
}
"""The hooks of Gemini CLI, with their limits in milliseconds."""


def _folder(machine: Machine) -> Path:
    return machine.home / ".gemini"


def _gemini(site: Site, folder: Path) -> Parts:
    file = folder / "settings.json"
    return [
        server(file, site.programs),
        *grouped_hooks(file, site.programs, EVENTS, name=NAME),
    ]


def _extensions(machine: Machine) -> list[str]:
    folder = _folder(machine) / "extensions" / NAME
    return [str(folder)] if folder.is_dir() else []


def _switched_off(machine: Machine) -> list[str]:
    settings = settings_of(_folder(machine) / "settings.json")
    sections = [settings.get("hooksConfig"), settings.get("hooks")]
    off = any(
        section.get("enabled") is False
        for section in sections
        if isinstance(section, dict)
    )
    return ["its settings switch hooks off"] if off else []


GEMINI = Target(
    name="gemini",
    title="Gemini CLI",
    programs=("gemini",),
    folders=lambda machine: [_folder(machine) / "tmp"],
    parts=lambda site: _gemini(site, _folder(site.machine)),
    project_parts=lambda site: _gemini(
        site, (site.project or site.machine.directory) / ".gemini"
    ),
    notes=("in a folder you have not trusted, Gemini CLI starts no servers",),
    plugins=_extensions,
    switched_off=_switched_off,
    clients=("gemini",),
    transcripts=(".gemini/tmp/*/chats/session-*",),
)


def _antigravity_folders(machine: Machine) -> list[Path]:
    return [
        _folder(machine) / name for name in ("config", "antigravity-cli", "antigravity")
    ]


def _antigravity(site: Site) -> Parts:
    folders = _antigravity_folders(site.machine)
    used = [folder for folder in folders if (folder / "mcp_config.json").exists()]
    command = {
        "type": "command",
        "command": command_line(site.programs.hook),
        "timeout": 10,
    }
    events = {"PreInvocation": [command], "Stop": [command]}
    return [
        *(
            server(folder / "mcp_config.json", site.programs)
            for folder in used or folders[:1]
        ),
        Entry(folders[0] / "hooks.json", (NAME,), events, label="hooks"),
    ]


ANTIGRAVITY = Target(
    name="antigravity",
    title="Antigravity",
    programs=("agy", "antigravity"),
    folders=_antigravity_folders,
    parts=_antigravity,
    project_parts=lambda site: [
        server(
            (site.project or site.machine.directory) / ".agents" / "mcp_config.json",
            site.programs,
        )
    ],
    unconfirmed=(
        "which of its mcp_config.json files a version reads",
        "which hook events a version runs, and what Stop tells them",
    ),
    clients=("antigravity",),
    transcripts=(
        ".gemini/antigravity*/brain/*/.system_generated/logs/transcript.jsonl",
    ),
)
