"""The tool and the conversation that a transcript belongs to, as its hooks name them."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import PurePath
from typing import Any

import msgspec

from mnemosyned.transcripts.formats import parse_line

Line = Mapping[str, Any]
LINES_MAX = 50
"""Lines at the beginning by which a transcript is known."""
_FOLDERS: tuple[tuple[str, re.Pattern[str]], ...] = tuple(
    (client, re.compile(pattern))
    for client, pattern in (
        ("antigravity", r"/\.gemini/antigravity|/brain/[^/]+/\.system_generated/"),
        ("gemini", r"/\.gemini/"),
        ("codex", r"/\.codex/|/rollout-\d{4}-"),
        ("cursor", r"/\.cursor/|/agent-transcripts/"),
        ("copilot", r"/\.copilot/|/session-state/"),
        ("vscode", r"/workspaceStorage/|/Code(?: - Insiders)?/User/"),
        ("qwen", r"/\.qwen/"),
        ("claude-code", r"/\.claude/|/projects/-[^/]*/[^/]+\.jsonl$"),
    )
)
"""The folder of the transcript shows the tool, where the payload's fields are the same."""
_decode = msgspec.json.Decoder(dict[str, Any]).decode


@dataclass(frozen=True, slots=True)
class Identity:
    """Whose transcript it is."""

    client: str
    conversation: str
    directory: str = ""

    @property
    def session(self) -> str:
        """The session of its memories."""
        return f"{self.client}:{self.conversation}"


def client_of_path(path: str) -> str:
    """Return the tool that keeps transcripts in this folder; empty for another folder."""
    for client, folder in _FOLDERS:
        if folder.search(path):
            return client
    return ""


def identity_of(path: str, head: bytes) -> Identity | None:
    """Tell a transcript by its first bytes and its path; None for another file."""
    if head[:1] == b"{" and path.endswith(".json"):
        return _of_document(path, head)
    lines = list(_lines(head))
    client = next(filter(None, map(_client_of_line, lines)), "")
    if not client:
        return None
    client = client_of_path(path) or client
    return Identity(
        client=client,
        conversation=_conversation(client, path, lines),
        directory=_first(lines, "cwd"),
    )


def _lines(head: bytes) -> Iterable[Line]:
    for text in head.split(b"\n")[:LINES_MAX]:
        try:
            yield _decode(text)
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
            continue


def _of_document(path: str, head: bytes) -> Identity | None:
    """Tell a conversation that is one JSON object, of Gemini CLI."""
    fields = dict(_FIELD.findall(head[:_FIELDS_BYTES].decode("utf-8", "replace")))
    if "sessionId" not in fields or b'"messages"' not in head:
        return None
    client = client_of_path(path) or "gemini"
    return Identity(client, fields["sessionId"])


_FIELD = re.compile(r'"(sessionId|projectHash)"\s*:\s*"([^"\\]{1,300})"')
_FIELDS_BYTES = 2_048


def _client_of_line(line: Line) -> str:
    """Return the tool that writes such lines; empty for those of nobody."""
    payload, kind = line.get("payload"), line.get("type")
    if isinstance(payload, Mapping) and _text(kind) in _CODEX_KINDS:
        return "codex"
    if "sessionId" in line and "kind" in line and "messages" not in line:
        return "gemini"
    if not parse_line(line).messages:
        return ""
    for client, keys in _KEYS:
        if keys <= line.keys():
            return client
    return ""


_CODEX_KINDS = frozenset({"session_meta", "event_msg", "response_item", "turn_context"})
_KEYS: tuple[tuple[str, frozenset[str]], ...] = (
    ("claude-code", frozenset({"message", "uuid", "sessionId"})),
    ("gemini", frozenset({"id", "timestamp", "type", "content"})),
    ("copilot", frozenset({"type", "data", "timestamp"})),
    ("cursor", frozenset({"role", "message"})),
    ("antigravity", frozenset({"source", "created_at", "content"})),
)


def _conversation(client: str, path: str, lines: list[Line]) -> str:
    """Return the id that the tool gives its hooks: of the file, or within it."""
    name = PurePath(path).name.partition(".")[0]
    if client == "codex":
        begun = [line for line in lines if line.get("type") == "session_meta"]
        return _first(begun, "id") or name
    if client == "gemini":
        return _first(lines, "sessionId") or name
    return name or _first(lines, "sessionId")


def _first(lines: list[Line], key: str) -> str:
    """Return the first text under this key, in a line or its payload."""
    for line in lines:
        payload = line.get("payload")
        inner = payload.get(key) if isinstance(payload, Mapping) else None
        if text := _text(line.get(key)) or _text(inner):
            return text
    return ""


def _text(value: object) -> str:
    """Return a name, which holds no NUL character."""
    return value if isinstance(value, str) and "\0" not in value else ""
