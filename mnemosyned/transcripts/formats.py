"""The lines of transcripts: which tool wrote one, and what was said in it."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from mnemosyned.transcripts.messages import Role, TranscriptMessage, moment_of

Line = Mapping[str, Any]
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


def head_of(line: Line) -> Head:
    """Read the first line of a transcript."""
    payload = line.get("payload")
    if line.get("type") == "session_meta" and isinstance(payload, Mapping):
        source = payload.get("source")
        origin = payload.get("forked_from_id") or payload.get("id")
        return Head(_text(origin), isinstance(source, Mapping) and "subagent" in source)
    if line.get("kind") not in (None, "main") and "sessionId" in line:
        return Head(_text(line.get("sessionId")), by_subagent=True)
    return Head()


def parse_line(line: Line) -> Parsed:
    """Read one line; nothing for one of an unknown kind."""
    for has_form, parse in _FORMATS:
        if has_form(line):
            return parse(line)
    return NOTHING


def parse_document(document: Line) -> Iterator[TranscriptMessage]:
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


def _claude(line: Line) -> Parsed:
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


def _cursor(line: Line) -> Parsed:
    """Cursor: no ids and no times."""
    content = line["message"].get("content")
    said = _message(line["role"], text_of(content), line.get("timestamp"))
    return Parsed(said, calls_tool=_calls_tool(content))


def _codex(line: Line) -> Parsed:
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


def _gemini(line: Line) -> Parsed:
    """Gemini CLI: a message has its tool calls beside it."""
    said = _message(
        line["type"],
        text_of(line.get("content")),
        line.get("timestamp"),
        unique_id=_text(line.get("id")),
    )
    return Parsed(said, calls_tool=bool(line.get("toolCalls")))


def _gemini_change(line: Line) -> Parsed:
    """Gemini CLI: all messages of a conversation, replaced."""
    messages = tuple(parse_document(line["$set"]))
    return Parsed(messages)


def _antigravity(line: Line) -> Parsed:
    said = _message(
        line["source"], text_of(line.get("content")), line.get("created_at")
    )
    return Parsed(said, calls_tool=bool(line.get("tool_calls")))


def _copilot(line: Line) -> Parsed:
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


def _is_claude(line: Line) -> bool:
    is_talk = line.get("type") in ("user", "assistant")
    return is_talk and isinstance(line.get("message"), Mapping)


def _is_gemini(line: Line) -> bool:
    return line.get("type") in ("user", "gemini") and "content" in line


def _is_antigravity(line: Line) -> bool:
    return isinstance(line.get("source"), str) and "content" in line


def _is_copilot(line: Line) -> bool:
    return isinstance(line.get("type"), str) and isinstance(line.get("data"), Mapping)


def _is_cursor(line: Line) -> bool:
    return "role" in line and isinstance(line.get("message"), Mapping)


_FORMATS: tuple[tuple[Callable[[Line], bool], Callable[[Line], Parsed]], ...] = (
    (lambda line: isinstance(line.get("payload"), Mapping), _codex),
    (_is_claude, _claude),
    (_is_cursor, _cursor),
    (_is_gemini, _gemini),
    (lambda line: isinstance(line.get("$set"), Mapping), _gemini_change),
    (_is_antigravity, _antigravity),
    (_is_copilot, _copilot),
)
"""The first form that fits is the line's; no two tools write lines that fit the same."""
