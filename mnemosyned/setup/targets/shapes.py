"""The forms that several tools share: entries of MCP servers, and hooks."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path

from mnemosyned.setup.documents.edits import Document
from mnemosyned.setup.documents.errors import NotEditable, Unreadable
from mnemosyned.setup.documents.paths import Json
from mnemosyned.setup.machine import Programs
from mnemosyned.setup.parts import NAME, Entry, Hook, OwnFile, Part, command_line

ARGUMENTS = ("mcp",)
FILE_BYTES_MAX = 64 << 20
"""A configuration file larger than this is not read."""
Parts = list[Part | OwnFile]

CLAUDE_EVENTS = {
    "SessionStart": 10,
    "UserPromptSubmit": 5,
    "Stop": 10,
    "PreCompact": 10,
    "SessionEnd": 5,
}
"""The hooks of Claude Code and of tools that took its form, with their limits in seconds."""


def server(
    file: Path,
    programs: Programs,
    *,
    section: str = "mcpServers",
    **more: Json,
) -> Entry:
    """An entry with `command` and `args`, as most tools have it."""
    value = {"command": str(programs.mnem), "args": [*ARGUMENTS], **more}
    return Entry(file, (section, NAME), value)


def stdio_server(
    file: Path, programs: Programs, *, section: str = "mcpServers"
) -> Entry:
    """An entry that also names its transport."""
    entry = server(file, programs, section=section)
    return Entry(file, entry.path, {"type": "stdio", **entry.value})


def grouped_hooks(
    file: Path,
    programs: Programs,
    events: Mapping[str, int] = CLAUDE_EVENTS,
    *,
    section: tuple[str, ...] = ("hooks",),
    **more: Json,
) -> list[Hook]:
    """Hooks in groups, as Claude Code has them."""
    return [
        Hook(
            file,
            (*section, event),
            {"hooks": [{**more, **_command(programs), "timeout": limit}]},
            label=f"hook {event}",
        )
        for event, limit in events.items()
    ]


def _command(programs: Programs) -> dict[str, Json]:
    return {"type": "command", "command": command_line(programs.hook)}


def flat_hooks(
    file: Path, events: Mapping[str, Mapping[str, Json]], *section: str
) -> list[Hook]:
    """Hooks without groups, each with its own members."""
    return [
        Hook(file, (*(section or ("hooks",)), event), value, label=f"hook {event}")
        for event, value in events.items()
    ]


def own_json(file: Path, content: Json, mark: str) -> OwnFile:
    """A file of ours in JSON."""
    return OwnFile(file, json.dumps(content, indent=2) + "\n", mark)


def settings_of(file: Path) -> Json:
    """The data of a configuration file; empty where it cannot be read."""
    try:
        if file.stat().st_size > FILE_BYTES_MAX:
            return {}
        return Document(file, file.read_text("utf-8")).data
    except (OSError, UnicodeDecodeError, Unreadable, NotEditable):
        return {}


def has_hooks_of_ours(hooks: list[Hook]) -> bool:
    """Whether the first of these hooks is in its file, whatever its path."""
    first = hooks[0]
    try:
        document = Document(first.file, first.file.read_text("utf-8"))
    except (OSError, UnicodeDecodeError, Unreadable, NotEditable):
        return False
    return first.state(document) in ("current", "stale")
