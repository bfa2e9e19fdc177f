"""Messages and session identity in the transcripts of each agent's format."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import PurePath
from typing import Any, Literal

import msgspec

from mnemosyned.memory.capture import CAPTURED_PREFIX

MESSAGE_ID_CHARS = 32

Role = Literal["user", "assistant"]


@dataclass(frozen=True, slots=True, kw_only=True)
class TranscriptMessage:
    """A message of a person or an agent, as the transcript has it."""

    role: Role
    text: str
    created_at: datetime | None = None
    unique_id: str = ""
    """The tool's own id of the message."""
    is_copied: bool = False
    """Whether that id is unique everywhere, and the same in copies of the conversation."""
    before_tool: bool = False
    """Whether the agent called a tool right after it."""


def memory_ids(message: TranscriptMessage, conversation: str) -> tuple[str, ...]:
    """Return the ids that the message may be stored under, the one to store it under first.

    The last is made of the words: a payload has no other, and a transcript without ids neither.
    """
    words = " ".join(message.text.split())
    by_words = _id("words", conversation, message.role, words)
    if message.unique_id:
        place = "" if message.is_copied else conversation
        return _id("message", place, message.unique_id), by_words
    return (by_words,)


def moment_of(value: object) -> datetime | None:
    """Return an instant that a tool wrote as text or in milliseconds; None for anything else."""
    try:
        if isinstance(value, str):
            moment = datetime.fromisoformat(value)
            return moment if moment.tzinfo else moment.replace(tzinfo=UTC)
        if isinstance(value, int | float) and value > 0:
            return datetime.fromtimestamp(value / 1000, tz=UTC)
    except (ValueError, OverflowError, OSError):
        return None
    return None


def _id(*parts: str) -> str:
    text = "\0".join(parts).encode("utf-8", "replace")
    return CAPTURED_PREFIX + hashlib.sha256(text).hexdigest()[:MESSAGE_ID_CHARS]


TranscriptLine = Mapping[str, Any]
ROLES: Mapping[str, Role] = {
    "user": "user",
    "assistant": "assistant",
    "gemini": "assistant",
    "model": "assistant",
    "user_message": "user",
    "agent_message": "assistant",
    "user.message": "user",
    "assistant.message": "assistant",
    "USER_EXPLICIT": "user",
    "MODEL": "assistant",
}
TEXT_KINDS = (None, "text", "input_text", "output_text")
TOOL_KINDS = frozenset(
    {"tool_use", "function_call", "custom_tool_call", "local_shell_call"}
)
CLAUDE_NOT_SAID = ("isMeta", "isSidechain", "isCompactSummary", "isApiErrorMessage")


@dataclass(frozen=True, slots=True)
class Parsed:
    """Content of one line: messages, or a tool call, or neither."""

    messages: tuple[TranscriptMessage, ...] = ()
    calls_tool: bool = False
    is_copy: bool = False
    """Whether the same words are written once more, as something that was said."""


@dataclass(frozen=True, slots=True)
class Head:
    """Facts of the whole transcript, from its first line."""

    conversation: str = ""
    """The conversation that this one began as a copy of, or itself."""
    by_subagent: bool = False


NOTHING = Parsed()


def head_of(line: TranscriptLine) -> Head:
    """Read the first line of a transcript."""
    payload = line.get("payload")
    if line.get("type") == "session_meta" and isinstance(payload, Mapping):
        source = payload.get("source")
        origin = payload.get("forked_from_id") or payload.get("id")
        return Head(_text(origin), isinstance(source, Mapping) and "subagent" in source)
    if line.get("kind") not in (None, "main") and "sessionId" in line:
        return Head(_text(line.get("sessionId")), by_subagent=True)
    return Head()


def parse_line(line: TranscriptLine) -> Parsed:
    """Read one line; nothing for one of an unknown kind."""
    for has_form, parse in _FORMATS:
        if has_form(line):
            return parse(line)
    return NOTHING


def parse_document(document: TranscriptLine) -> Iterator[TranscriptMessage]:
    """Yield the messages of a conversation that is one JSON object."""
    messages = document.get("messages")
    for line in messages if isinstance(messages, list) else ():
        if isinstance(line, Mapping):
            yield from parse_line(line).messages


def text_of(content: object) -> str:
    """Return the text of a message's content: a string, or parts of which some are text."""
    if isinstance(content, str):
        return content
    if isinstance(content, Mapping):
        content = [content]
    if not isinstance(content, Sequence):
        return ""
    return "\n".join(filter(None, map(_part_text, content)))


def _part_text(part: object) -> str:
    if isinstance(part, str):
        return part
    if not isinstance(part, Mapping) or part.get("thought"):
        return ""
    return _text(part.get("text")) if part.get("type") in TEXT_KINDS else ""


def _calls_tool(content: object) -> bool:
    parts = content if isinstance(content, list) else []
    return any(
        isinstance(part, Mapping)
        and (_text(part.get("type")) in TOOL_KINDS or "functionCall" in part)
        for part in parts
    )


# ------------------------------------------------------------------- formats


def _claude(line: TranscriptLine) -> Parsed:
    """Claude Code, and Qwen Code: one line for each block of a message."""
    if "toolUseResult" in line or any(line.get(mark) for mark in CLAUDE_NOT_SAID):
        return NOTHING
    message = line["message"]
    content = message.get("content", message.get("parts"))
    said = _message(
        line["type"],
        text_of(content),
        line.get("timestamp"),
        unique_id=_text(line.get("uuid")),
        is_copied=True,
    )
    return Parsed(said, calls_tool=_calls_tool(content))


def _cursor(line: TranscriptLine) -> Parsed:
    """Cursor: no ids and no times."""
    content = line["message"].get("content")
    said = _message(line["role"], text_of(content), line.get("timestamp"))
    return Parsed(said, calls_tool=_calls_tool(content))


def _codex(line: TranscriptLine) -> Parsed:
    """Codex: what was said is an event, and once more an item beside injected ones."""
    payload, kind = line["payload"], line.get("type")
    inner = payload.get("type")
    if kind == "event_msg":
        return Parsed(_message(inner, payload.get("message"), line.get("timestamp")))
    if kind != "response_item":
        return NOTHING
    if inner == "message":
        said = _message(
            payload.get("role"), text_of(payload.get("content")), line.get("timestamp")
        )
        return Parsed(said, is_copy=True)
    return Parsed(calls_tool=_text(inner) in TOOL_KINDS)


def _gemini(line: TranscriptLine) -> Parsed:
    """Gemini CLI: a message has its tool calls beside it."""
    said = _message(
        line["type"],
        text_of(line.get("content")),
        line.get("timestamp"),
        unique_id=_text(line.get("id")),
    )
    return Parsed(said, calls_tool=bool(line.get("toolCalls")))


def _gemini_change(line: TranscriptLine) -> Parsed:
    """Gemini CLI: all messages of a conversation, replaced."""
    messages = tuple(parse_document(line["$set"]))
    return Parsed(messages)


def _antigravity(line: TranscriptLine) -> Parsed:
    said = _message(
        line["source"], text_of(line.get("content")), line.get("created_at")
    )
    return Parsed(said, calls_tool=bool(line.get("tool_calls")))


def _copilot(line: TranscriptLine) -> Parsed:
    data = line["data"]
    said = _message(
        line["type"],
        text_of(data.get("content")),
        line.get("timestamp"),
        unique_id=_text(line.get("id")),
    )
    calls = line["type"].startswith("tool.") or bool(data.get("toolRequests"))
    return Parsed(said, calls_tool=calls)


def _message(
    kind: object,
    text: object,
    moment: object,
    *,
    unique_id: str = "",
    is_copied: bool = False,
) -> tuple[TranscriptMessage, ...]:
    role = ROLES.get(kind) if isinstance(kind, str) else None
    if role is None or not isinstance(text, str) or not text.strip():
        return ()
    created_at = moment_of(moment)
    message = TranscriptMessage(
        role=role,
        text=text,
        created_at=created_at,
        unique_id=unique_id,
        is_copied=is_copied,
    )
    return (message,)


def _text(value: object) -> str:
    return value if isinstance(value, str) else ""


def _is_claude(line: TranscriptLine) -> bool:
    is_talk = line.get("type") in ("user", "assistant")
    return is_talk and isinstance(line.get("message"), Mapping)


def _is_gemini(line: TranscriptLine) -> bool:
    return line.get("type") in ("user", "gemini") and "content" in line


def _is_antigravity(line: TranscriptLine) -> bool:
    return isinstance(line.get("source"), str) and "content" in line


def _is_copilot(line: TranscriptLine) -> bool:
    return isinstance(line.get("type"), str) and isinstance(line.get("data"), Mapping)


def _is_cursor(line: TranscriptLine) -> bool:
    return "role" in line and isinstance(line.get("message"), Mapping)


_FORMATS: tuple[
    tuple[Callable[[TranscriptLine], bool], Callable[[TranscriptLine], Parsed]], ...
] = (
    (lambda line: isinstance(line.get("payload"), Mapping), _codex),
    (_is_claude, _claude),
    (_is_cursor, _cursor),
    (_is_gemini, _gemini),
    (lambda line: isinstance(line.get("$set"), Mapping), _gemini_change),
    (_is_antigravity, _antigravity),
    (_is_copilot, _copilot),
)
"""The first form that fits is the line's; no two tools write lines that fit the same."""


_JsonLine = Mapping[str, Any]
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
class TranscriptIdentity:
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


def identity_of(path: str, head: bytes) -> TranscriptIdentity | None:
    """Tell a transcript by its first bytes and its path; None for another file."""
    if head[:1] == b"{" and path.endswith(".json"):
        return _of_document(path, head)
    lines = list(_head_lines(head))
    client = next(filter(None, map(_client_of_line, lines)), "")
    if not client:
        return None
    client = client_of_path(path) or client
    return TranscriptIdentity(
        client=client,
        conversation=_conversation_of(client, path, lines),
        directory=_first_found(lines, "cwd"),
    )


def _head_lines(head: bytes) -> Iterable[_JsonLine]:
    for text in head.split(b"\n")[:LINES_MAX]:
        try:
            yield _decode(text)
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
            continue


def _of_document(path: str, head: bytes) -> TranscriptIdentity | None:
    """Tell a conversation that is one JSON object, of Gemini CLI."""
    fields = dict(_FIELD.findall(head[:_FIELDS_BYTES].decode("utf-8", "replace")))
    if "sessionId" not in fields or b'"messages"' not in head:
        return None
    client = client_of_path(path) or "gemini"
    return TranscriptIdentity(client, fields["sessionId"])


_FIELD = re.compile(r'"(sessionId|projectHash)"\s*:\s*"([^"\\]{1,300})"')
_FIELDS_BYTES = 2_048


def _client_of_line(line: _JsonLine) -> str:
    """Return the tool that writes such lines; empty for those of nobody."""
    payload, kind = line.get("payload"), line.get("type")
    if isinstance(payload, Mapping) and _text_or_empty(kind) in _CODEX_KINDS:
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


def _conversation_of(client: str, path: str, lines: list[_JsonLine]) -> str:
    """Return the id that the tool gives its hooks: of the file, or within it."""
    name = PurePath(path).name.partition(".")[0]
    if client == "codex":
        begun = [line for line in lines if line.get("type") == "session_meta"]
        return _first_found(begun, "id") or name
    if client == "gemini":
        return _first_found(lines, "sessionId") or name
    return name or _first_found(lines, "sessionId")


def _first_found(lines: list[_JsonLine], key: str) -> str:
    """Return the first text under this key, in a line or its payload."""
    for line in lines:
        payload = line.get("payload")
        inner = payload.get(key) if isinstance(payload, Mapping) else None
        if text := _text_or_empty(line.get(key)) or _text_or_empty(inner):
            return text
    return ""


def _text_or_empty(value: object) -> str:
    """Return a name, which holds no NUL character."""
    return value if isinstance(value, str) and "\0" not in value else ""
