"""Port of roll-ups: summaries of days, weeks and months, and those to be rewritten."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Protocol

from mnemosyned.domain.keeping.retention import StaleSummary
from mnemosyned.domain.memory import Episode
from mnemosyned.domain.sleep.cycles import LogEntry
from mnemosyned.domain.sleep.rollup import Child, Level


@dataclass(frozen=True, slots=True)
class Rollup:
    """The summary of a day, week or month with its log row."""

    episode: Episode
    entry: LogEntry
    members: Mapping[str, str]
    """The summaries it was made of: ids, with the text that was read."""
    index_terms: str = ""
    """Terms that find it beside the words of its text."""


@dataclass(frozen=True, slots=True)
class PendingRollups:
    """Summaries that can be rolled up into one level."""

    children: Sequence[Child]
    """All members of each period in which something is new or was rewritten."""
    existing: Mapping[datetime, str]
    """The ids of roll-ups that exist already, by the beginning of their periods."""


class RollupStore(Protocol):
    """Roll-ups and stale summaries."""

    def pending(
        self,
        *,
        to_level: Level,
        before: datetime,
        limit: int,
        opened: Iterable[datetime] = (),
    ) -> PendingRollups:
        """Return summaries that began before an instant and wait for a roll-up, or a new one.

        `opened` are beginnings of periods that further summaries will join.
        """
        ...

    def write(self, rollup: Rollup) -> None:
        """Insert or replace the roll-up of a period, link its members, and log it.

        Raises `BatchChanged` if a member has changed since it was read.
        """
        ...

    def next_stale(self, *, highest: Level = Level.MONTH) -> StaleSummary | None:
        """Return the next stale summary up to a level with its members, lowest level first."""
        ...

    def index_terms(self, ids: Sequence[str]) -> dict[str, str]:
        """Return the terms that find these summaries beside their texts, by id."""
        ...

    def rewrite(self, token: int, episode: Episode, *, index_terms: str = "") -> None:
        """Give a stale summary its new text. Raises `BatchChanged` if it went stale again."""
        ...
