"""The parts of a search that both engines do alike: memories of a time, and what is above a summary."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Collection, Sequence
from datetime import datetime
from typing import NamedTuple

from mnemosyned.memory.periods import Level
from mnemosyned.search.finding import (
    ORDERED_MAX,
    SearchIndex,
    TimedMemory,
    asked_time,
)
from mnemosyned.search.query import BEGINNING, Query
from mnemosyned.storage.common.episodes import ancestors
from mnemosyned.storage.common.session import EngineSession
from mnemosyned.text.dates.spans import TimeSpan
from mnemosyned.text.languages.tables import TimeOrder


class TimeWalk(NamedTuple):
    """How the memories of a period are read, in words of SQL."""

    since: datetime
    until: datetime
    compare: str
    """Comparison with the end."""
    direction: str
    """In which memories are read."""
    episodes: str
    """Direction in which episodes are read."""
    order: str
    """Order of the memories of one source."""


class CommonIndex(SearchIndex):
    """The part of a `SearchIndex` that is alike in both engines."""

    _session: EngineSession

    def memories_of_time(
        self, query: Query, span: TimeSpan, *, limit: int
    ) -> Sequence[TimedMemory]:
        """Return the memories of a time span that pass the filters, up to `limit` of each source.

        The most important and then the longest of a source come first. They are read up to the end
        of the time, from the latest episodes that had begun.
        """
        order = "importance DESC, length(text) DESC"
        walk = TimeWalk(span.since, span.until, "<", "ASC", "DESC", order)
        return self._first_of_each_source(query, walk, limit=limit)

    def first_in_order(self, query: Query) -> set[int]:
        """Return the row numbers of the newest or oldest memories of the sources in the question."""
        direction = "ASC" if query.order is TimeOrder.EARLIEST else "DESC"
        order = f"created_at {direction}"
        walk = TimeWalk(BEGINNING, asked_time(query), "<=", direction, direction, order)
        memories = self._first_of_each_source(query, walk, limit=ORDERED_MAX)
        return {memory.position for memory in memories}

    @abstractmethod
    def _first_of_each_source(
        self, query: Query, walk: TimeWalk, *, limit: int
    ) -> Sequence[TimedMemory]:
        """Return up to `limit` memories of each source in a period, the first in the walk's order."""

    def summary_of_period(self, level: Level, begins: datetime) -> int | None:
        """Return the row number of the summary of a period, or None if it is missing or stale."""
        seq: int | None = self._session.scalar(
            "SELECT seq FROM episode WHERE owner = %(owner)s AND level = %(level)s "
            "AND period_from = %(begins)s AND NOT stale",
            level=int(level),
            begins=begins,
        )
        return seq

    def rollups_above(self, episodes: Collection[int]) -> dict[int, int]:
        """Map summaries, and all roll-ups above them, to their parents; all are row numbers."""
        return ancestors(self._session, episodes)
