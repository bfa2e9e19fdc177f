"""Port of compactions: which messages a compaction took out of a conversation."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Protocol

from mnemosyned.domain.memory import MemoryRecord
from mnemosyned.domain.ports.records import Draft


@dataclass(frozen=True, slots=True, kw_only=True)
class CompactionRecord:
    """A compaction of a conversation, by the id that its summary names."""

    id: str
    session: str
    source: str | None
    policy: str
    created_at: datetime


@dataclass(frozen=True, slots=True)
class ArchivedMessage:
    """A message taken out of a conversation, as a memory."""

    draft: Draft
    may_reuse: bool
    """Whether a memory with the same text, session, source and speaker may stand in for it."""
    has_timestamp: bool
    """Whether the message has a time of its own: then such a memory must be within the hour."""


@dataclass(frozen=True, slots=True)
class NewCompaction:
    """A compaction to be stored."""

    record: CompactionRecord
    text: str
    """The summary as it appears in the conversation, which identifies it later."""
    parts: tuple[ArchivedMessage | str, ...]
    """Messages and ids of earlier compactions that it includes, in conversation order."""

    def part_ids(self, places: Mapping[str, str]) -> list[str]:
        """Return the ids of its parts; of a message, that of the memory which holds it."""
        return [
            places[part.draft.memory.id] if isinstance(part, ArchivedMessage) else part
            for part in self.parts
        ]


def archived_messages(
    compactions: Iterable[NewCompaction],
) -> Iterable[ArchivedMessage]:
    """Return the messages that were taken out, each once."""
    messages: dict[str, ArchivedMessage] = {}
    for compaction in compactions:
        for part in compaction.parts:
            if isinstance(part, ArchivedMessage):
                messages[part.draft.memory.id] = part
    return messages.values()


def places_of(
    compactions: Iterable[NewCompaction],
    home_of: Callable[[ArchivedMessage], str | None],
) -> tuple[dict[str, str], list[Draft]]:
    """Return the memory of each message by its id, and those that are to be stored.

    `home_of` finds the memory that holds a message already.
    """
    places: dict[str, str] = {}
    drafts: list[Draft] = []
    for message in archived_messages(compactions):
        id = message.draft.memory.id
        home = home_of(message)
        if home is None:
            drafts.append(message.draft)
        places[id] = home or id
    return places, drafts


class CompactionStore(Protocol):
    """Keeps the messages that compactions replaced by a summary."""

    def add(self, compactions: Sequence[NewCompaction]) -> list[str]:
        """Store compactions with their messages, or none; returns the ids of the memories.

        Messages stored before are not stored twice.
        """
        ...

    def get(self, id: str) -> tuple[CompactionRecord, list[MemoryRecord]] | None:
        """Return a compaction and its remaining messages, in conversation order."""
        ...

    def find_by_summary(
        self, text: str, *, session: str, source: str | None
    ) -> str | None:
        """Return the id of the session's compaction with this summary, if any."""
        ...
