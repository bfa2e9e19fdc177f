"""Periods for roll-ups: the days, weeks and months into which summaries are combined.

Days begin at midnight in the zone of the process. A period is named by its first day, at midnight UTC.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta, tzinfo
from enum import IntEnum

from mnemosyned.instants import calendar_time, in_zone, shift, shift_months
from mnemosyned.text.details import Detail


class Level(IntEnum):
    """The level of a summary above the original memories."""

    EPISODE = 0
    DAY = 1
    WEEK = 2
    MONTH = 3


PERIOD_DAYS = {1: Level.DAY, 7: Level.WEEK} | dict.fromkeys(range(28, 32), Level.MONTH)
"""The level of a period by its length."""
ROLLUP_MIN = 3
"""Minimum number of episodes of a day that is shortened; a shorter day keeps all statements if they are few."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Child:
    """A summary that can be rolled up into the next level, without its text."""

    id: str
    covers_from: datetime
    """For an episode, the calendar time of its first original; else the beginning of its period. Aware."""
    item_count: int = 1
    """Originals below it, at any depth."""
    parent: str | None = None
    """The summary of the next level that already includes it."""
    chars: int = 0


@dataclass(frozen=True, slots=True)
class Period:
    """A day, week or month with the summaries to roll up into it, oldest first."""

    level: Level
    begins: datetime
    members: tuple[Child, ...]

    @property
    def key(self) -> str:
        """The name of the period, such as `2026-03-14`, `2026-W11` or `2026-03`."""
        return key_of(self.level, self.begins)

    @property
    def ends(self) -> datetime:
        """The beginning of the next period."""
        if self.level is Level.MONTH:
            return shift_months(self.begins, 1)
        days = 7 if self.level is Level.WEEK else 1
        return shift(self.begins, timedelta(days=days))

    @property
    def ids(self) -> tuple[str, ...]:
        """The ids of the member summaries, the oldest first."""
        return tuple(member.id for member in self.members)

    @property
    def item_count(self) -> int:
        """The number of original memories below the period, at any depth."""
        return sum(member.item_count for member in self.members)

    @property
    def chars(self) -> int:
        """The total number of characters in the texts of the member summaries."""
        return sum(member.chars for member in self.members)


def group_into_periods(
    children: Iterable[Child],
    *,
    to_level: int,
    minimum: int = ROLLUP_MIN,
    reopened: Mapping[str, datetime] = {},
) -> list[Period]:
    """Return the days, weeks or months (`to_level`) with at least `minimum` summaries, oldest first.

    A summary belongs to the day, ISO week or month in which its coverage begins. `reopened` has the beginnings
    of roll-ups by id: a summary with a parent belongs to the parent's period, or is left out if the parent is
    not there.
    """
    level = Level(to_level)
    together: dict[datetime, list[Child]] = {}
    for child in sorted(children, key=lambda child: child.covers_from):
        own = begin_of(level, child.covers_from)
        if begins := reopened.get(child.parent) if child.parent else own:
            together.setdefault(begins, []).append(child)
    return [
        Period(level, begins, tuple(members))
        for begins, members in together.items()
        if len(members) >= minimum
    ]


def distinct_details(details: Iterable[Detail]) -> tuple[Detail, ...]:
    """Return the first exact value of each kind and value, in the given order."""
    first: dict[tuple[str, str], Detail] = {}
    for detail in details:
        first.setdefault((detail.kind, detail.value), detail)
    return tuple(first.values())


def begin_of(level: Level, moment: datetime) -> datetime:
    """Return the beginning of the day, ISO week or month of a calendar time, as a calendar time."""
    day = in_zone(moment, UTC).replace(hour=0, minute=0, second=0, microsecond=0)
    if level is Level.WEEK:
        # Not a difference of days: the first week of year 1 would begin before time does.
        back = min(day.weekday(), (day - datetime.min.replace(tzinfo=UTC)).days)
        return day - timedelta(days=back)
    return day.replace(day=1) if level is Level.MONTH else day


def open_from(level: Level, closed_by: datetime) -> datetime:
    """Return the beginning of the first period of a level that has not ended at the instant `closed_by`.

    A month ends with the last week that begins in it, so that its shorter periods have ended, too.
    """
    closed_by = calendar_time(closed_by)
    if level is Level.MONTH:
        closed_by = begin_of(Level.WEEK, closed_by)
    return begin_of(level, closed_by)


def period_of(
    since: datetime, until: datetime, zone: tzinfo | None
) -> tuple[Level, datetime] | None:
    """Return the level and the beginning of the day, week or month from `since` until `until` in a zone.

    Return None for any other span of time.
    """
    days = round((until - since) / timedelta(days=1))
    level = PERIOD_DAYS.get(days)
    if level is None:
        return None
    shown = in_zone(since, zone).replace(tzinfo=UTC)
    begins = begin_of(level, shown)
    is_whole = shown - begins < timedelta(days=1)
    return (level, begins) if is_whole else None


def key_of(level: Level, begins: datetime) -> str:
    """Return the name of a period: `2026-03-14`, `2026-W11` or `2026-03`."""
    if level is Level.WEEK:
        year, week, _ = begins.isocalendar()
        return f"{year:04}-W{week:02}"
    return begins.date().isoformat()[: 7 if level is Level.MONTH else 10]
