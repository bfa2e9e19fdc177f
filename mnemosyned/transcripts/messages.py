"""A message of a transcript, with an id that is the same wherever the message is read again."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Literal

from mnemosyned.domain.ports.surroundings.agents import CAPTURED_PREFIX

ID_CHARS = 32

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
    return CAPTURED_PREFIX + hashlib.sha256(text).hexdigest()[:ID_CHARS]
