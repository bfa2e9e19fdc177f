"""Endings: which statement of an older memory a newer one ended, and why; their store."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Protocol

from mnemosyned.memory.values import EndedStatement, MemoryRecord
from mnemosyned.text.endings.statements import list_sentences


@dataclass(frozen=True, slots=True, kw_only=True)
class EndingRecord:
    """A stored ending. It holds no words, so that they are forgotten with the two memories."""

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
    """Return the memories without the sentences that newer ones ended, for a summary of what applies.

    `ended` has the ended statements by memory id. Memories without any other sentence are left out,
    unless nothing would be left at all.
    """
    current: list[MemoryRecord] = []
    for memory in memories:
        gone = {statement.sentence for statement in ended.get(memory.id, ())}
        if not gone:
            current.append(memory)
            continue
        left = [text for text in list_sentences(memory.content) if text not in gone]
        if left:
            current.append(replace(memory, content=" ".join(left)))
    return current or list(memories)


class EndingStore(Protocol):
    """Keeps endings, and how far memories were read for them."""

    def unread(self, *, limit: int) -> dict[int, MemoryRecord]:
        """Return up to `limit` memories that were not read for endings, by row number, ascending."""
        ...

    def memories_at(self, positions: Sequence[int]) -> dict[int, MemoryRecord]:
        """Return the memories at these row numbers; missing ones are left out."""
        ...

    def add(
        self, endings: Sequence[EndingRecord], *, read_up_to: int | None = None
    ) -> int:
        """Add endings that are not known yet; return how many were added.

        In the same transaction, all memories up to the row number `read_up_to` are marked as read,
        and summaries that may tell an ended statement are emptied, to be rewritten.
        """
        ...

    def read_again(self) -> None:
        """Mark all memories as not read; known endings stay."""
        ...

    def of(self, ids: Sequence[str]) -> dict[str, tuple[EndedStatement, ...]]:
        """Return the ended statements of these memories by id; memories without any are left out.

        Each statement comes once, with the memory that ended it first; undone endings do not count.
        """
        ...

    def sentences_of(self, ending: EndingRecord) -> tuple[str, str]:
        """Return the ended sentence and the one that ended it; empty where words were pruned."""
        ...

    def find(self, *, limit: int) -> list[EndingRecord]:
        """Return up to `limit` endings, the newest first, with those that were undone."""
        ...

    def undo(self, id: str, *, undone: bool = True) -> int:
        """Mark all endings of a memory as undone, or as in force again; return how many changed."""
        ...
