"""Levels above the episodes: which of them become a day, which days a week, which weeks a month."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from enum import IntEnum

from mnemosyned.domain.instants import in_zone, shift, shift_months
from mnemosyned.domain.memory import Detail


class Level(IntEnum):
    """How far above the originals a summary stands."""

    EPISODE = 0
    DAY = 1
    WEEK = 2
    MONTH = 3


FOLD_MIN = 3
"""Fewer children are not summarized anew. Source: the consolidation tutorial, `len(items) < 3`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Child:
    """A summary that can be folded into the next level, without its words."""

    id: str
    covers_from: datetime
    """Where what it covers begins, aware: for an episode its first original, for a day, week or
    month the beginning of that period."""
    item_count: int = 1
    """Originals under it, at whatever depth."""
    details: tuple[Detail, ...] = ()
    parent: str | None = None
    """The summary of the next level that it already went into."""
    chars: int = 0


@dataclass(frozen=True, slots=True)
class Period:
    """A day, week or month with what is to be folded into it, oldest first."""

    level: Level
    begins: datetime
    members: tuple[Child, ...]

    @property
    def key(self) -> str:
        """`2026-03-14`, `2026-W11` or `2026-03`."""
        return key_of(self.level, self.begins)

    @property
    def ends(self) -> datetime:
        """The first instant after it."""
        return end_of(self.level, self.begins)

    @property
    def ids(self) -> tuple[str, ...]:
        return tuple(member.id for member in self.members)

    @property
    def item_count(self) -> int:
        """Originals under it, at whatever depth."""
        return sum(member.item_count for member in self.members)

    @property
    def chars(self) -> int:
        return sum(member.chars for member in self.members)

    @property
    def details(self) -> tuple[Detail, ...]:
        """The exact values of all members, each once."""
        return distinct(detail for member in self.members for detail in member.details)


def periods(
    children: Iterable[Child],
    *,
    to_level: int,
    minimum: int = FOLD_MIN,
    reopened: frozenset[str] = frozenset(),
) -> list[Period]:
    """The periods of a level that have enough children, the oldest period first.

    A child belongs to the UTC day, ISO week or month in which what it covers begins, and so to
    exactly one. Children that already have a parent are left out, unless that parent is
    `reopened`. Source: the consolidation tutorial, daily to weekly to monthly.
    """
    level = Level(to_level)
    together: dict[datetime, list[Child]] = {}
    for child in children:
        if child.parent is None or child.parent in reopened:
            together.setdefault(begin_of(level, child.covers_from), []).append(child)
    return [
        Period(
            level, begins, tuple(sorted(members, key=lambda child: child.covers_from))
        )
        for begins, members in sorted(together.items())
        if len(members) >= minimum
    ]


def distinct(details: Iterable[Detail]) -> tuple[Detail, ...]:
    """Each kind and value once, where it stood first."""
    first: dict[tuple[str, str], Detail] = {}
    for detail in details:
        first.setdefault((detail.kind, detail.value), detail)
    return tuple(first.values())


def begin_of(level: Level, moment: datetime) -> datetime:
    """The first instant of the UTC day, ISO week or month that a moment lies in."""
    day = in_zone(moment, UTC).replace(hour=0, minute=0, second=0, microsecond=0)
    if level is Level.WEEK:
        # Not a difference of days: the first week of year 1 would begin before time does.
        back = min(day.weekday(), (day - datetime.min.replace(tzinfo=UTC)).days)
        return day - timedelta(days=back)
    return day.replace(day=1) if level is Level.MONTH else day


def end_of(level: Level, begins: datetime) -> datetime:
    """The first instant after the period that begins then; the last instant there is, at most."""
    if level is Level.MONTH:
        return shift_months(begins, 1)
    return shift(begins, timedelta(days=7 if level is Level.WEEK else 1))


def edge(level: Level, closed_by: datetime) -> datetime:
    """Periods of the level that begin before this are over, and all under them, by an instant.

    A month is over only with the last week that begins in it.
    """
    if level is Level.MONTH:
        closed_by = begin_of(Level.WEEK, closed_by)
    return begin_of(level, closed_by)


def key_of(level: Level, begins: datetime) -> str:
    """What a person calls the period: `2026-03-14`, `2026-W11` or `2026-03`."""
    if level is Level.WEEK:
        year, week, _ = begins.isocalendar()
        return f"{year:04}-W{week:02}"
    return begins.date().isoformat()[: 7 if level is Level.MONTH else 10]


def parts(texts: Sequence[int], *, chars_max: int) -> list[tuple[int, int]]:
    """Part texts of these lengths into runs of at most so many characters, at least one each."""
    found: list[tuple[int, int]] = []
    begin = total = 0
    for at, chars in enumerate(texts):
        if at > begin and total + chars > chars_max:
            found.append((begin, at))
            begin, total = at, 0
        total += chars
    if begin < len(texts):
        found.append((begin, len(texts)))
    return found
