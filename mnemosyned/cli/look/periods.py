"""Views of a day, a week or a month: its summary, and its memories or summaries."""

from __future__ import annotations

from datetime import UTC, date, datetime, time, timedelta
from typing import Literal

import msgspec

from mnemosyned.client.connection import Connection
from mnemosyned.domain.instants import in_zone
from mnemosyned.domain.listing import ListOrder
from mnemosyned.domain.memory import Episode, MemoryRecord
from mnemosyned.verbs.listing import ListMemories
from mnemosyned.verbs.times import local_now, read_period

Unit = Literal["day", "week", "month"]

MEMORIES_OF_A_DAY = 8
"""Memories shown of a day within a week or a month, where it has no summary."""
SUMMARIES_MAX = 100
ONE_DAY = timedelta(days=1)


class Part(msgspec.Struct, frozen=True):
    """A part of a period: a day or a week by its summary, or a day by its memories."""

    first: date
    last: date
    summary: Episode | None = None
    memories: list[MemoryRecord] = msgspec.field(default_factory=list)
    more: bool = False
    """Whether the day has more memories than are shown."""


class PeriodView(msgspec.Struct, frozen=True):
    """A day, week or month."""

    unit: str
    first: date
    last: date
    summary: Episode | None = None
    """Its own summary, once a sleep cycle has written one."""
    parts: list[Part] = msgspec.field(default_factory=list)
    narrowed: bool = False
    """Whether a filter narrows it: then summaries, which speak of everything, are left out."""

    @property
    def records(self) -> list[Episode | MemoryRecord]:
        """Everything that is shown, in order."""
        records: list[Episode | MemoryRecord] = []
        if self.summary:
            records.append(self.summary)
        for part in self.parts:
            records += [part.summary] if part.summary else []
            records += part.memories
        return records


class Reader:
    """Reads periods from the daemon; `fixed` narrows and bounds all that it asks for."""

    def __init__(self, client: Connection, fixed: ListMemories, limit: int) -> None:
        self._client = client
        self._fixed = fixed
        self._limit = limit
        self._narrowed = bool(fixed.session or fixed.source or fixed.role or fixed.tag)

    def read(self, when: str, unit: Unit) -> PeriodView:
        """Return the period in which a typed time lies. Raises `InvalidTime`."""
        now = local_now()
        span = read_period(when or "today", unit, now=now)
        first = in_zone(span.since, now.tzinfo).date()
        last = in_zone(span.until, now.tzinfo).date() - ONE_DAY
        today = now.date()
        if unit == "day":
            parts = [self._memories(first, self._limit)]
        else:
            parts = self._parts(first, min(last, max(today, first)), unit)
        return PeriodView(
            unit,
            first,
            last,
            self._summaries(unit, first, last).get(first),
            [part for part in parts if part.summary or part.memories],
            self._narrowed,
        )

    def _parts(self, first: date, last: date, unit: Unit) -> list[Part]:
        """The weeks and days of a period, each by the highest summary below the period's own."""
        weeks = self._summaries("week", first, last) if unit == "month" else {}
        days = self._summaries("day", first, last)
        parts: list[Part] = []
        day = first
        while day <= last:
            if summary := weeks.get(day):
                parts.append(Part(day, day + 6 * ONE_DAY, summary))
                day += 7 * ONE_DAY
                continue
            if summary := days.get(day):
                parts.append(Part(day, day, summary))
            else:
                parts.append(self._memories(day, MEMORIES_OF_A_DAY))
            day += ONE_DAY
        return parts

    def _summaries(self, unit: Unit, first: date, last: date) -> dict[date, Episode]:
        """Summaries of periods that begin within these days. They go by the UTC calendar.

        What a week covers may begin days after the week does.
        """
        if self._narrowed:
            return {}
        page = self._client.call(
            ListMemories(
                level=unit,
                since=datetime.combine(first, time(), UTC),
                until=datetime.combine(last + 7 * ONE_DAY, time(), UTC),
                order=ListOrder.OLDEST,
                limit=SUMMARIES_MAX,
                reveal=self._fixed.reveal,
            )
        )
        begun = {
            in_zone(episode.period_from, UTC).date(): episode
            for episode in page.episodes
            if episode.period_from
        }
        return {day: begun[day] for day in begun if first <= day <= last}

    def _memories(self, day: date, limit: int) -> Part:
        page = self._client.call(
            msgspec.structs.replace(
                self._fixed,
                since=_midnight(day),
                until=_midnight(day + ONE_DAY),
                order=ListOrder.OLDEST,
                limit=limit,
            )
        )
        return Part(day, day, None, page.memories, bool(page.next))


def _midnight(day: date) -> datetime:
    """The first instant of a day on this machine's calendar."""
    return in_zone(datetime.combine(day, time()), None)
