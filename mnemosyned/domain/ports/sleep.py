"""Port of consolidation: pending memories, promoted groups and the consolidation log."""

from __future__ import annotations

from collections.abc import Callable, Sequence, Set as AbstractSet
from contextlib import AbstractContextManager
from dataclasses import dataclass
from datetime import datetime
from typing import Protocol

from mnemosyned.domain.memory import Episode
from mnemosyned.domain.sleep.consolidation import Activity, Pending, Selection
from mnemosyned.domain.sleep.cycles import LogEntry


@dataclass(frozen=True, slots=True)
class Promotion:
    """An episode with its log row: the change that one summary makes."""

    episode: Episode
    entry: LogEntry
    spoken: frozenset[str] = frozenset()
    """Originals that the summary mentions: none may be superseded meanwhile."""
    index_terms: str = ""
    """Terms that find the episode beside the words of its text."""
    revision: int | None = None
    """The last edit before the originals were read: none of them may be edited meanwhile."""


class SleepStore(Protocol):
    """The working tier as a sleep cycle reads it, and the changes that a cycle writes."""

    def activity(self, *, fresh: datetime, now: datetime, limit: int) -> Activity:
        """Summarize the state of working memory from its first `limit` rows.

        `by_source` counts memories created before `fresh`. Memories that an undo holds back beyond
        `now` are not movable.
        """
        ...

    def claim(self) -> AbstractContextManager[Callable[[], bool]]:
        """Keep other processes from consolidating these memories while the block runs.

        Raises `SleepInProgress` where one does. Yields a check whether the claim still holds: a
        process that lost it is to end its cycle, as another may have begun one.
        """
        ...

    def newest_revision(self) -> int:
        """Return the number of the last edit of a memory."""
        ...

    def pending(self, selection: Selection, *, limit: int) -> list[Pending]:
        """Return the selected unpinned working memories, oldest first, up to `limit`.

        With `selection.now`, memories dated in the future are counted in if that was known before
        `selection.before`.
        """
        ...

    def count_due(self, selection: Selection, *, limit: int) -> int:
        """Count pending memories, up to a limit."""
        ...

    def ids_excluded_from_summaries(self) -> AbstractSet[str]:
        """Return the ids of working memories that no summary may mention."""
        ...

    def chars_per_s(self, summarizer: str) -> float | None:
        """Return how fast this summarizer read recently; None if it wrote nothing."""
        ...

    def consolidate(
        self, groups: Sequence[Sequence[Promotion]], *, durable: bool = True
    ) -> list[Exception | None]:
        """Promote, evict and log groups, each all or nothing and independent of the others.

        Returns None or the error for each, `BatchChanged` if one of its memories has moved.
        Without `durable`, a power failure may undo the groups as a whole until the next durable
        write or `flush`.
        """
        ...

    def record_failure(self, entry: LogEntry) -> None:
        """Write the log row of a group that failed."""
        ...

    def log(
        self, *, limit: int, session: str | None = None, cycle: str | None = None
    ) -> list[LogEntry]:
        """Return rows of the consolidation log, newest first."""
        ...
