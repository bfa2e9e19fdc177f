"""OpenAI Codex: its command line, editor extension and desktop program share one configuration."""

from __future__ import annotations

from pathlib import Path

from mnemosyned.setup.documents.paths import value_at
from mnemosyned.setup.machine import Machine
from mnemosyned.setup.parts import NAME, Part
from mnemosyned.setup.target import Site, Target
from mnemosyned.setup.targets.codex_trust import untrusted
from mnemosyned.setup.targets.shapes import (
    CLAUDE_EVENTS,
    Parts,
    grouped_hooks,
    server,
    settings_of,
)

EVENTS = {**CLAUDE_EVENTS, "SessionEnd": 3}
VARIABLES = ("XDG_RUNTIME_DIR", "MNEMOSYNE_SOCKET")
"""Codex starts servers without these unless they are named; they lead to the daemon's socket."""


def _folder(machine: Machine) -> Path:
    return machine.folder("CODEX_HOME", machine.home / ".codex")


def _parts(site: Site, folder: Path) -> Parts:
    entry: Part = server(
        folder / "config.toml",
        site.programs,
        section="mcp_servers",
        env_vars=[*VARIABLES],
    )
    return [entry, *grouped_hooks(folder / "hooks.json", site.programs, EVENTS)]


def _plugins(machine: Machine) -> list[str]:
    plugins = settings_of(_folder(machine) / "config.toml").get("plugins")
    names = plugins if isinstance(plugins, dict) else {}
    return [name for name in names if name.split("@")[0] == NAME]


def _switched_off(machine: Machine) -> list[str]:
    folder = _folder(machine)
    settings = settings_of(folder / "config.toml")
    if value_at(settings, ("features", "hooks")) is False:
        return ["features.hooks is false in config.toml: no hook runs"]
    if events := untrusted(machine, folder):
        skipped = ", ".join(events)
        return [f"not trusted yet, and skipped: {skipped}; open /hooks in Codex once"]
    return []


TARGET = Target(
    name="codex",
    title="Codex",
    programs=("codex",),
    folders=lambda machine: [_folder(machine)],
    parts=lambda site: _parts(site, _folder(site.machine)),
    project_parts=lambda site: _parts(
        site, (site.project or site.machine.directory) / ".codex"
    ),
    steps=(
        "open /hooks in Codex once and trust the hooks: until then it skips them in silence",
    ),
    unconfirmed=("which variables Codex hands to servers by default",),
    listing=("mcp", "get", NAME),
    plugins=_plugins,
    switched_off=_switched_off,
    clients=("codex",),
    transcripts=(".codex/sessions/*/*/*/*.jsonl",),
)
