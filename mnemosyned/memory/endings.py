"""Endings: which statement of an older memory a newer one ended, and why; their store."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime

from mnemosyned.memory.values import EndedStatement, MemoryRecord
from mnemosyned.text.endings.statements import list_sentences


@dataclass(frozen=True, slots=True, kw_only=True)
class EndingRecord:
    """A stored ending, without any words: once both memories are forgotten, it says nothing about them."""

    older: str
    """The id of the memory that has the ended statement."""
    newer: str
    """The id of the memory that ended it."""
    reason: str
    """The kind of the cue, as in `text.endings`."""
    older_place: int
    """The number of the ended sentence in its memory, from 0."""
    newer_place: int
    """The number of the sentence that ended it, in its own memory."""
    found_at: datetime
    undone: bool = False
    """Whether a person said that the older statement still applies."""


def remove_ended_sentences(
    memories: Sequence[MemoryRecord], ended: Mapping[str, Sequence[EndedStatement]]
) -> list[MemoryRecord]:
    """Return the memories without their `ended` sentences; leave out memories without other sentences."""
    current: list[MemoryRecord] = []
    for memory in memories:
        gone = {statement.sentence for statement in ended.get(memory.id, ())}
        if not gone:
            current.append(memory)
            continue
        left = [text for text in list_sentences(memory.content) if text not in gone]
        if left:
            current.append(replace(memory, content=" ".join(left)))
    return current
