"""A conversation's messages as memories, word for word, and back again."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

from mnemosyned.domain.conversation.messages import (
    Message,
    PartKind,
    message_time,
    parts,
)
from mnemosyned.domain.instants import in_zone
from mnemosyned.domain.memory import MemoryRecord

REST, WHOLE = "rest_of_message", "message"
"""Metadata keys: fields of a message besides role and content, or the whole message."""
NAMELESS_CALL = "tool"
WORDLESS = "∅"
"""Content of the memory of a message without words, such as the result of `mkdir`.

An empty content would mean a pruned memory. No search finds the sign, as it is no word.
"""


def as_memory(
    message: Message, *, id: str, said: datetime, session: str, source: str | None
) -> MemoryRecord:
    """Return the memory of a message; `as_message` restores the message."""
    role, content = message.get("role"), message.get("content")
    plain = all(isinstance(one, str) and "\0" not in one for one in (role, content))
    shown = str(content) if plain else readable_text(message)
    wordless = not shown.strip()
    rest = {key: one for key, one in message.items() if key not in ("role", "content")}
    if wordless:
        rest = {"content": content, **rest}
    metadata = {REST: rest} if rest else {}
    return MemoryRecord(
        id=id,
        content=WORDLESS if wordless else shown,
        created_at=said,
        session=session,
        source=source,
        role=_speaker(role),
        metadata=metadata if plain else {WHOLE: dict(message)},
    )


def as_message(memory: MemoryRecord) -> dict[str, Any]:
    """Return the message a memory was made of; for any other memory, its role and content."""
    whole, rest = memory.metadata.get(WHOLE), memory.metadata.get(REST)
    if isinstance(whole, Mapping):
        return dict(whole)
    plain = {"role": memory.role, "content": memory.content}
    return {**plain, **rest} if isinstance(rest, Mapping) else plain


def as_original(memory: MemoryRecord) -> MemoryRecord:
    """Return the memory with the original content of its message, even one without words."""
    if memory.content != WORDLESS:
        return memory
    content = as_message(memory).get("content")
    return replace(memory, content=content) if isinstance(content, str) else memory


def readable_text(message: Message) -> str:
    """Return all readable text of a message, without NUL."""
    return "\n".join(_lines(message)).replace("\0", "\N{REPLACEMENT CHARACTER}")


def message_times(messages: Sequence[Message], *, now: datetime) -> list[datetime]:
    """Return the time of each message; without a timestamp, the time of the one before.

    A time in the future, by another clock, becomes `now`.
    """
    timestamps = [_instant(message) for message in messages]
    last = next(filter(None, timestamps), now)
    times: list[datetime] = []
    for timestamp in timestamps:
        last = timestamp or last
        times.append(min(last, now))
    return times


def _speaker(role: object) -> str:
    """Return the role without NUL."""
    return (
        role.replace("\0", "\N{REPLACEMENT CHARACTER}") if isinstance(role, str) else ""
    )


def _instant(message: Message) -> datetime | None:
    said = message_time(message)
    instant = in_zone(said, UTC) if said else None
    return (
        instant if instant and instant.year > 1 else None
    )  # Go's unset time is in year 1


def _lines(message: Message) -> Iterator[str]:
    for part in parts(message):
        if part.kind is PartKind.CALL:
            yield f"calls {part.name or NAMELESS_CALL} {part.text}".rstrip()
        elif part.kind is PartKind.MEDIA:
            yield "[media]"
        elif part.text:
            yield part.text
