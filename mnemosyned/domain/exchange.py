"""Records of an export: each thing that is kept, without reference to a table."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

Outcome = bool | str | None
"""Whether a record was stored; the reason where something else has its place; None where neither."""
OTHER_WORDS = "something else has its id here, which was kept"
WORDS_PRUNED = "its words were pruned, and the summary of them is not here"


@dataclass(frozen=True, slots=True, kw_only=True)
class ExportFilter:
    """The filter of an export; it holds everything where nothing is set."""

    sessions: tuple[str, ...] = ()
    sources: tuple[str, ...] = ()
    tags: tuple[str, ...] = ()
    since: datetime | None = None
    until: datetime | None = None

    @property
    def is_of_memories(self) -> bool:
        """Whether it chooses by what only memories have."""
        return bool(self.sessions or self.sources or self.tags)

    @property
    def is_whole(self) -> bool:
        """Whether nothing is left out."""
        return self == ExportFilter()


@dataclass(frozen=True, slots=True, kw_only=True)
class ExportedEpisode:
    """A summary of any level."""

    id: str
    seq: int
    """Its place in the order of storing; kept where an import finds it free."""
    session: str
    source: str | None = None
    level: int
    content: str
    item_count: int
    covers_from: datetime
    covers_until: datetime
    summarizer: str
    created_at: datetime
    period_from: datetime | None = None
    index_terms: str = ""
    stale: bool = False
    """Whether it waits to be composed again."""
    emptied: bool = False
    """Whether it was emptied, and waits to be written again."""
    originals: int = 0
    """How many originals follow it, at level 0."""
    summary_of: tuple[str, ...] = ()
    """Above level 0, the summaries it was made of."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ExportedRevision:
    """A memory as it was before it was edited."""

    changed_at: datetime
    content: str | None = None
    """None where the words stayed, or were to be dropped."""
    content_hash: int
    fields: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class ExportedMemory:
    """A memory of the working tier or the archive; without words where it was pruned."""

    id: str
    seq: int
    """Its place in the order of storing; kept where an import finds it free."""
    session: str
    source: str | None = None
    role: str = ""
    content: str
    content_hash: int | None = None
    """Of the words before they were pruned."""
    importance: float = 0.5
    pinned: bool = False
    metadata: Mapping[str, Any] = field(default_factory=dict)
    tags: tuple[str, ...] = ()
    created_at: datetime
    episode: str | None = None
    """The summary it went into; None in working memory."""
    valid_until: datetime | None = None
    superseded_at: datetime | None = None
    pruned_at: datetime | None = None
    held_until: datetime | None = None
    """Until when an undo keeps it in working memory."""
    future_since: datetime | None = None
    """Since when its time is known to lie ahead of the clock."""
    details: tuple[tuple[str, str, bool], ...] = ()
    """Exact values in it: kind, value, and whether it is a secret."""
    revisions: tuple[ExportedRevision, ...] = ()
    """What it was before, the oldest first."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ExportedSupersession:
    """A memory, and the newer one that took its place."""

    memory: str
    superseded_by: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ExportedCompaction:
    """The ids of what a compaction took out of a conversation, in order."""

    id: str
    session: str
    source: str | None = None
    policy: str
    text_hash: int
    created_at: datetime
    parts: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class ForgottenCapture:
    """The id of a captured message that was forgotten: it is not to be read again."""

    id: str


@dataclass(frozen=True, slots=True, kw_only=True)
class RestoreConflict:
    """A record that was not restored, as something else has its place."""

    kind: str
    id: str
    reason: str


@dataclass(slots=True, kw_only=True)
class Restored:
    """The outcome of restoring records."""

    stored: dict[str, int] = field(default_factory=dict)
    """By kind of record."""
    known: dict[str, int] = field(default_factory=dict)
    """Records that were there already, by kind."""
    working: int = 0
    """Originals put into working memory, as their summary could not be restored."""
    left_out: int = 0
    """Summaries that the next sleep writes, as some of what they were made of is not here."""
    conflicts: list[RestoreConflict] = field(default_factory=list)

    def count(self, kind: str, id: str, outcome: Outcome) -> None:
        """Count what became of a record."""
        if isinstance(outcome, str):
            conflict = RestoreConflict(kind=kind, id=id, reason=outcome)
            self.conflicts.append(conflict)
        elif outcome is not None:
            counts = self.stored if outcome else self.known
            counts[kind] = counts.get(kind, 0) + 1


def known_memory(memory: ExportedMemory, content: str | None) -> Outcome:
    """Tell whether it is the memory that is here; one of both may have been pruned."""
    was_pruned = content is not None and "" in (content, memory.content)
    return False if content == memory.content or was_pruned else OTHER_WORDS
