"""Archived messages: as memories, as parts of a compaction, and as truncated tool results."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

from mnemosyned.conversation import key_facts
from mnemosyned.conversation.messages import (
    SHORTENED,
    STUB,
    TOOL_ROLES,
    Message,
    PartKind,
    is_plain,
    message_id,
    message_parts,
    read_message_time,
    strip_truncation_mark,
)
from mnemosyned.conversation.summary_message import VALUE_SEPARATOR, VALUES
from mnemosyned.instants import in_zone
from mnemosyned.memory.values import MemoryRecord
from mnemosyned.text.details import SELF_EXPLANATORY_KINDS
from mnemosyned.text.exact_values import extract_details
from mnemosyned.text.frames import neutralize_line

REST, WHOLE = "rest_of_message", "message"
"""Metadata keys: fields of a message besides role and content, or the whole message."""
WORDLESS = "∅"
"""Content of the memory of a message without words, such as the result of `mkdir`.

An empty content would mean a pruned memory. No search finds the sign, as it is no word.
"""


def as_memory(
    message: Message, *, id: str, said: datetime, session: str, source: str | None
) -> MemoryRecord:
    """Return a message as a memory to be archived, from which `as_message` restores the message."""
    role, content = message.get("role"), message.get("content")
    plain = all(isinstance(text, str) and "\0" not in text for text in (role, content))
    shown = str(content) if plain else extract_readable_text(message)
    wordless = not shown.strip()
    rest = {key: message[key] for key in message if key not in ("role", "content")}
    if wordless:
        rest = {"content": content, **rest}
    metadata = {REST: rest} if rest else {}
    return MemoryRecord(
        id=id,
        content=WORDLESS if wordless else shown,
        created_at=said,
        session=session,
        source=source,
        role=role.replace("\0", "\N{REPLACEMENT CHARACTER}")
        if isinstance(role, str)
        else "",
        metadata=metadata if plain else {WHOLE: dict(message)},
    )


def as_message(memory: MemoryRecord) -> dict[str, Any]:
    """Return the message archived in a memory, or else a new message with the memory's text."""
    whole, rest = memory.metadata.get(WHOLE), memory.metadata.get(REST)
    if isinstance(whole, Mapping):
        return dict(whole)
    plain = {"role": memory.role, "content": memory.content}
    return {**plain, **rest} if isinstance(rest, Mapping) else plain


def as_original(memory: MemoryRecord) -> MemoryRecord:
    """Return a message's memory, with the message's own content in place of the placeholder `WORDLESS`."""
    if memory.content != WORDLESS:
        return memory
    content = as_message(memory).get("content")
    return replace(memory, content=content) if isinstance(content, str) else memory


def extract_readable_text(message: Message) -> str:
    """Return the text that a person can read in a message, without NUL characters."""
    lines: list[str] = []
    for part in message_parts(message):
        if part.kind is PartKind.CALL:
            lines.append(f"calls {part.name or 'tool'} {part.text}".rstrip())
        elif part.kind is PartKind.MEDIA:
            lines.append("[media]")
        elif part.text:
            lines.append(part.text)
    return "\n".join(lines).replace("\0", "\N{REPLACEMENT CHARACTER}")


def find_message_times(messages: Sequence[Message], *, now: datetime) -> list[datetime]:
    """Return the time of each message; one without a timestamp has the time of the previous message.

    Messages before the first timestamp get the first timestamp, or `now` if there is none. A time in
    the future, by another clock, becomes `now`.
    """
    timestamps = [
        in_zone(said, UTC) if (said := read_message_time(message)) else None
        for message in messages
    ]
    # Go's unset time is in year 1.
    timestamps = [said if said and said.year > 1 else None for said in timestamps]
    last = next(filter(None, timestamps), now)
    times: list[datetime] = []
    for timestamp in timestamps:
        last = timestamp or last
        times.append(min(last, now))
    return times


ABOUT = timedelta(hours=1)
"""Largest difference between an agent's clock and ours at which two messages count as the same."""


def list_archived_memory_ids(
    parts: Mapping[str, Sequence[str]], id: str
) -> Iterator[str]:
    """Yield the ids of the memories that the compaction `id` archived, in order.

    `parts` maps the id of each compaction to the ids of its parts: memories or other compactions. A
    compaction that is met again, as within itself, is yielded as if it were a memory.
    """
    opened = {id}
    waiting = list(reversed(parts.get(id, [])))
    while waiting:
        part = waiting.pop()
        if part in opened or part not in parts:
            yield part
        if part in parts and part not in opened:
            opened.add(part)
            waiting += reversed(parts[part])


STUBBED_CHARS_MIN = 800
"""Minimum length of a tool result that is truncated; the truncated form is never longer."""
ENDING_CHARS = 240
VALUES_CHARS = 160
_NAME = re.compile(r"[^\w.-]+")
_POINTER = re.compile(re.escape(STUB) + r"[^\n\]]{0,100}; expand ([^\s\]]{1,200})\]")


def truncate_results(
    message: Message, names: Mapping[str, str], *, archived: bool = True
) -> dict[str, Any] | None:
    """Return a message with its long tool results truncated; None if no result is long.

    A truncated result has the beginning, exact values and end of the original and, if `archived`, the
    original's id. `names` maps the ids of calls to names of tools.
    """
    if is_plain(message):
        return None
    long = [
        part
        for part in message_parts(message)
        if part.kind is PartKind.RESULT and len(part.text.strip()) > STUBBED_CHARS_MIN
    ]
    if not long:
        return None
    id = message_id(message) if archived else ""
    if message.get("role") in TOOL_ROLES:
        name = long[0].name or names.get(long[0].id, key_facts.NAMELESS)
        return {**message, "content": _truncate_result(long[0].text, name, id)}
    stubs = {
        part.id: _truncate_result(part.text, names.get(part.id, key_facts.NAMELESS), id)
        for part in long
    }
    content = [
        {**block, "content": stubs[block["tool_use_id"]]}
        if isinstance(block, Mapping) and block.get("tool_use_id") in stubs
        else block
        for block in message["content"]
    ]
    return {**message, "content": content}


def find_original_id(message: Message) -> str:
    """Return the id of the archived original that a truncated message names; empty for other messages."""
    if is_plain(message):
        return ""
    marks = (
        _POINTER.match(part.text)
        for part in message_parts(message)
        if part.kind is PartKind.RESULT
    )
    return next((mark[1] for mark in marks if mark), "")


def is_truncation_of(message: Message, original: Message) -> bool:
    """Return True if a message equals `original` with its long tool results truncated, apart from the marks."""
    stub = truncate_results(original, {})
    return stub is not None and _list_comparable_parts(
        message
    ) == _list_comparable_parts(stub)


def _list_comparable_parts(message: Message) -> list[tuple[PartKind, str, str]]:
    """Return (kind, text, id) of each part of a message, its text without the mark of a truncated result."""
    return [
        (
            part.kind,
            strip_truncation_mark(part.text)
            if part.kind is PartKind.RESULT
            else part.text,
            part.id,
        )
        for part in message_parts(message)
    ]


def _truncate_result(result: str, name: str, id: str) -> str:
    """Return the short form of a tool's result: a mark, its beginning, exact values and end."""
    result = result.strip()
    head = key_facts.excerpt_beginning(result)
    remainder = result[len(head) :].strip()
    end = key_facts.excerpt_highlights(remainder, chars=ENDING_CHARS)
    shown = (head, _write_values_line(result, shown=f"{head}\n{end}"), end)
    called = _NAME.sub("_", name)[:40]
    size = f"{len(result):,} characters"
    mark = (
        f"{STUB}{called}, {size}; expand {id}]"
        if id
        else f"{SHORTENED}{called}, {size}]"
    )
    return f"{mark} " + "\n…\n".join(filter(None, shown))


def _write_values_line(result: str, *, shown: str) -> str:
    """Return a line with exact values of a result that the text `shown` lacks; empty if there are none.

    The line has only values that explain themselves, such as URLs, no secrets, and at most `VALUES_CHARS`.
    """
    values: list[str] = []
    room = VALUES_CHARS
    for detail in extract_details(result):
        is_plain_value = detail.kind in SELF_EXPLANATORY_KINDS and not detail.sensitive
        if not is_plain_value or detail.value in shown:
            continue
        room -= len(detail.value) + len(VALUE_SEPARATOR)
        if room < 0:
            break
        values.append(detail.value)
    return VALUES + neutralize_line(VALUE_SEPARATOR.join(values)) if values else ""
