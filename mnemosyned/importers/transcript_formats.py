"""Messages and session identity in the transcripts of each agent's format."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import PurePath
from typing import Any, Literal

import msgspec

from mnemosyned.importers.importer import moment_from, stable_id, text_in
from mnemosyned.memory.capture import CAPTURED_PREFIX

Role = Literal["user", "assistant"]


@dataclass(frozen=True, slots=True, kw_only=True)
class TranscriptMessage:
    """A message of a person or an agent in a transcript."""

    role: Role
    text: str
    created_at: datetime | None = None
    unique_id: str = ""
    """The tool's own id of the message."""
    is_copied: bool = False
    """Whether `unique_id` is unique everywhere, and the same in copies of the conversation."""
    before_tool: bool = False
    """Whether the agent called a tool right after it."""


def memory_ids(message: TranscriptMessage, conversation: str) -> tuple[str, ...]:
    """Return the ids under which a message may be stored; the first is for storing it.

    The last id is made of the words, the only identity in payloads and in transcripts without ids.
    """
    words = " ".join(message.text.split())
    by_words = stable_id(
        "words", conversation, message.role, words, prefix=CAPTURED_PREFIX
    )
    if not message.unique_id:
        return (by_words,)
    place = "" if message.is_copied else conversation
    by_id = stable_id("message", place, message.unique_id, prefix=CAPTURED_PREFIX)
    return by_id, by_words


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
class ParsedLine:
    """Content of one line: messages, a tool call, or neither."""

    messages: tuple[TranscriptMessage, ...] = ()
    calls_tool: bool = False
    is_copy: bool = False
    """Whether the same words follow once more as a message."""


@dataclass(frozen=True, slots=True)
class TranscriptHead:
    """Facts about a whole transcript, from its first line."""

    conversation: str = ""
    """The conversation itself, or the original of a copied one."""
    by_subagent: bool = False


NOTHING = ParsedLine()


def head_of(line: TranscriptLine) -> TranscriptHead:
    """Return the conversation and subagent mark in a transcript's first line."""
    payload = line.get("payload")
    if line.get("type") == "session_meta" and isinstance(payload, Mapping):
        source = payload.get("source")
        origin = payload.get("forked_from_id") or payload.get("id")
        return TranscriptHead(
            text_in(origin), isinstance(source, Mapping) and "subagent" in source
        )
    if line.get("kind") not in (None, "main") and "sessionId" in line:
        return TranscriptHead(text_in(line.get("sessionId")), by_subagent=True)
    return TranscriptHead()


def parse_line(line: TranscriptLine) -> ParsedLine:
    """Return the messages or the tool call in one line; empty for other kinds.

    The first form that fits is the line's; no two tools write lines that fit the same.
    """
    kind, message, time = line.get("type"), line.get("message"), line.get("timestamp")
    if isinstance(line.get("payload"), Mapping):
        return _parse_codex(line)
    if kind in ("user", "assistant") and isinstance(message, Mapping):
        return _parse_claude(line, message)
    if "role" in line and isinstance(message, Mapping):  # Cursor: no ids and no times
        content = message.get("content")
        said = _parse_message(line["role"], text_of(content), time)
        return ParsedLine(said, calls_tool=_calls_tool(content))
    if kind in ("user", "gemini") and "content" in line:  # tool calls beside the text
        said = _parse_message(kind, text_of(line["content"]), time, id=line.get("id"))
        return ParsedLine(said, calls_tool=bool(line.get("toolCalls")))
    if isinstance(line.get("$set"), Mapping):  # Gemini CLI replaces all messages
        return ParsedLine(tuple(parse_document(line["$set"])))
    if isinstance(line.get("source"), str) and "content" in line:  # Antigravity
        text = text_of(line["content"])
        said = _parse_message(line["source"], text, line.get("created_at"))
        return ParsedLine(said, calls_tool=bool(line.get("tool_calls")))
    data = line.get("data")
    if isinstance(kind, str) and isinstance(data, Mapping):  # Copilot
        said = _parse_message(
            kind, text_of(data.get("content")), time, id=line.get("id")
        )
        calls = kind.startswith("tool.") or bool(data.get("toolRequests"))
        return ParsedLine(said, calls_tool=calls)
    return NOTHING


def _parse_claude(line: TranscriptLine, message: TranscriptLine) -> ParsedLine:
    """Parse a line of Claude Code or Qwen Code; `message` is the line's message object."""
    if "toolUseResult" in line or any(line.get(mark) for mark in CLAUDE_NOT_SAID):
        return NOTHING
    content = message.get("content", message.get("parts"))
    said = _parse_message(
        line["type"],
        text_of(content),
        line.get("timestamp"),
        id=line.get("uuid"),
        is_copied=True,
    )
    return ParsedLine(said, calls_tool=_calls_tool(content))


def _parse_codex(line: TranscriptLine) -> ParsedLine:
    """Parse a line of Codex.

    Codex writes a message as an event, and once more as an item beside injected ones.
    """
    payload, kind, time = line["payload"], line.get("type"), line.get("timestamp")
    inner = payload.get("type")
    if kind == "event_msg":
        return ParsedLine(_parse_message(inner, payload.get("message"), time))
    if kind != "response_item":
        return NOTHING
    if inner == "message":
        said = _parse_message(
            payload.get("role"), text_of(payload.get("content")), time
        )
        return ParsedLine(said, is_copy=True)
    return ParsedLine(calls_tool=text_in(inner) in TOOL_KINDS)


def parse_document(document: TranscriptLine) -> Iterator[TranscriptMessage]:
    """Yield the messages of a transcript that is one JSON object."""
    messages = document.get("messages")
    for line in messages if isinstance(messages, list) else ():
        if isinstance(line, Mapping):
            yield from parse_line(line).messages


_OBJECT_DECODER = msgspec.json.Decoder(dict[str, Any])


def decode_object(text: bytes) -> dict[str, Any] | None:
    """Return the JSON object in these bytes; None if they hold anything else."""
    try:
        return _OBJECT_DECODER.decode(text)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return None


def text_of(content: object) -> str:
    """Return the text in a message's content: a text, or the text parts joined by line ends."""
    if isinstance(content, str):
        return content
    parts = [content] if isinstance(content, Mapping) else content
    texts: list[str] = []
    for part in parts if isinstance(parts, Sequence) else ():
        if isinstance(part, str):
            texts.append(part)
        elif isinstance(part, Mapping) and not part.get("thought"):
            is_text = part.get("type") in TEXT_KINDS
            texts.append(text_in(part.get("text")) if is_text else "")
    return "\n".join(filter(None, texts))


def _calls_tool(content: object) -> bool:
    """Return True if the content has a part that calls a tool."""
    parts = content if isinstance(content, list) else []
    return any(
        isinstance(part, Mapping)
        and (text_in(part.get("type")) in TOOL_KINDS or "functionCall" in part)
        for part in parts
    )


def _parse_message(
    kind: object,
    text: object,
    moment: object,
    *,
    id: object = None,
    is_copied: bool = False,
) -> tuple[TranscriptMessage, ...]:
    """Return a tuple with the message; empty without text, or if the kind is no role's."""
    role = ROLES.get(kind) if isinstance(kind, str) else None
    if role is None or not isinstance(text, str) or not text.strip():
        return ()
    message = TranscriptMessage(
        role=role,
        text=text,
        created_at=moment_from(moment, zone=UTC),
        unique_id=text_in(id),
        is_copied=is_copied,
    )
    return (message,)


# ------------------------------------------------------------------- identity

LINES_MAX = 50
"""Lines at the beginning that identify a transcript."""
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


@dataclass(frozen=True, slots=True)
class TranscriptIdentity:
    """The tool and conversation of a transcript."""

    client: str
    conversation: str
    directory: str = ""

    @property
    def session(self) -> str:
        """Session id of the transcript's memories, `client:conversation`."""
        return f"{self.client}:{self.conversation}"


def client_of_path(path: str) -> str:
    """Return the tool whose transcripts are kept in the path's folder; empty for none."""
    for client, folder in _FOLDERS:
        if folder.search(path):
            return client
    return ""


def identify_transcript(path: str, head: bytes) -> TranscriptIdentity | None:
    """Return tool and conversation of a transcript, from path and first bytes.

    None for other files.
    """
    if head[:1] == b"{" and path.endswith(".json"):
        return _identify_document(path, head)
    texts = head.split(b"\n")[:LINES_MAX]
    lines = [line for line in map(decode_object, texts) if line is not None]
    client = next(filter(None, map(_recognize_client, lines)), "")
    if not client:
        return None
    client = client_of_path(path) or client
    return TranscriptIdentity(
        client=client,
        conversation=_find_conversation_id(client, path, lines),
        directory=_find_first_text(lines, "cwd"),
    )


def _identify_document(path: str, head: bytes) -> TranscriptIdentity | None:
    """Return tool and conversation of a transcript in one JSON object; None for others."""
    fields = dict(_FIELD.findall(head[:_FIELDS_BYTES].decode("utf-8", "replace")))
    if "sessionId" not in fields or b'"messages"' not in head:
        return None
    client = client_of_path(path) or "gemini"
    return TranscriptIdentity(client, fields["sessionId"])


_FIELD = re.compile(r'"(sessionId|projectHash)"\s*:\s*"([^"\\]{1,300})"')
_FIELDS_BYTES = 2_048


def _recognize_client(line: TranscriptLine) -> str:
    """Return the tool that writes lines of this form; empty if there is none."""
    payload, kind = line.get("payload"), line.get("type")
    if isinstance(payload, Mapping) and _name_or_empty(kind) in _CODEX_KINDS:
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


def _find_conversation_id(
    client: str, path: str, lines: Sequence[TranscriptLine]
) -> str:
    """Return the conversation's id as the tool's hooks name it.

    Depending on the tool, it is an id in the lines or the file's name.
    """
    name = PurePath(path).name.partition(".")[0]
    if client == "codex":
        begun = [line for line in lines if line.get("type") == "session_meta"]
        return _find_first_text(begun, "id") or name
    if client == "gemini":
        return _find_first_text(lines, "sessionId") or name
    return name or _find_first_text(lines, "sessionId")


def _find_first_text(lines: Sequence[TranscriptLine], key: str) -> str:
    """Return the first text under this key in a line or its payload; empty without one."""
    for line in lines:
        payload = line.get("payload")
        inner = payload.get(key) if isinstance(payload, Mapping) else None
        if text := _name_or_empty(line.get(key)) or _name_or_empty(inner):
            return text
    return ""


def _name_or_empty(value: object) -> str:
    """Return the value if it is a text without NUL characters, else an empty text."""
    return value if isinstance(value, str) and "\0" not in value else ""
