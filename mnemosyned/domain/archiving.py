"""A conversation's messages as memories, word for word, and back again."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

from mnemosyned.domain.memory import Memory
from mnemosyned.domain.messages import Message, PartKind, parts, when

REST = "message"
"""The key of the metadata under which stands what role and content do not hold."""
NAMELESS_CALL = "tool"


def as_memory(
    message: Message, *, id: str, said: datetime, session: str, source: str | None
) -> Memory:
    """The memory of a message; `as_message` gives the message back."""
    role, content = message.get("role"), message.get("content")
    kept: dict[str, str] = {}
    if isinstance(role, str) and "\0" not in role:
        kept["role"] = role
    if isinstance(content, str) and "\0" not in content:
        kept["content"] = content
    rest = {key: value for key, value in message.items() if key not in kept}
    return Memory(
        id=id,
        content=kept.get("content", words(message)),
        created_at=said,
        session=session,
        source=source,
        role=kept.get("role", ""),
        metadata={REST: rest} if rest else {},
    )


def as_message(memory: Memory) -> dict[str, Any]:
    """The message that a memory was made of; that of any other memory is its role and content."""
    rest = memory.metadata.get(REST)
    plain = {"role": memory.role, "content": memory.content}
    return {**plain, **rest} if isinstance(rest, Mapping) else plain


def words(message: Message) -> str:
    """Everything in a message that can be read, as a memory can be: without NUL."""
    return "\n".join(_lines(message)).replace("\0", "\N{REPLACEMENT CHARACTER}")


def times(messages: Sequence[Message], *, now: datetime) -> list[datetime]:
    """When each was said; one that does not tell was said when the one before it was.

    What lies in the future, by another clock, was said now.
    """
    told = [_instant(message) for message in messages]
    last = next((said for said in told if said), now)
    found: list[datetime] = []
    for said in told:
        last = said or last
        found.append(min(last, now))
    return found


def _instant(message: Message) -> datetime | None:
    said = when(message)
    try:
        instant = said.astimezone(UTC) if said else None
    except OverflowError:  # outside the calendar
        return None
    return instant if instant and instant.year > 1 else None


def _lines(message: Message) -> Iterator[str]:
    for part in parts(message):
        if part.kind is PartKind.CALL:
            yield f"calls {part.name or NAMELESS_CALL} {part.text}".rstrip()
        elif part.kind is PartKind.MEDIA:
            yield "[media]"
        elif part.text:
            yield part.text
