"""Memories as rows under their day and their origin."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import date, datetime, timedelta

import click

from mnemosyned.domain.instants import in_zone
from mnemosyned.domain.memory import MemoryRecord
from mnemosyned.domain.text.cells import cell_count
from mnemosyned.terminal import cut, width

TEXT_CELLS_MIN = 20
"""Cells that a text keeps, however narrow the terminal is."""


def day_title(day: date) -> str:
    """A day as a title: `Monday 23 November 2026`."""
    return f"{day:%A} {day.day} {day:%B} {day.year:04}"


def period_name(unit: str, first: date) -> str:
    """The name of a day, a week or a month by its first day."""
    if unit == "day":
        return day_title(first)
    if unit == "month":
        return f"{first:%B} {first.year:04}"
    last = first + timedelta(days=6)
    begin = f"{first.day}"
    if first.month != last.month:
        begin += f" {first:%B}"
    if first.year != last.year:
        begin += f" {first.year:04}"
    number = first.isocalendar().week
    return f"{begin} to {last.day} {last:%B} {last.year:04} (week {number})"


def local_day(moment: datetime) -> date:
    """The day of an instant on this machine's calendar."""
    return in_zone(moment, None).date()


def rows_by_day(memories: Sequence[MemoryRecord], first: int) -> Iterator[str]:
    """Rows of memories, under a title for each day."""
    start = 0
    for index in range(len(memories) + 1):
        day = local_day(memories[start].created_at) if memories else None
        ends = index == len(memories)
        if memories and (ends or local_day(memories[index].created_at) != day):
            if day:
                yield click.style(day_title(day), bold=True)
            yield from rows_by_origin(memories[start:index], first + start)
            start = index


def rows_by_origin(memories: Sequence[MemoryRecord], first: int) -> Iterator[str]:
    """Rows of memories, under their session and source where these change."""
    before: str | None = None
    for number, memory in enumerate(memories, first):
        origin = origin_of(memory.session, memory.source)
        if origin != before:
            yield click.style(f"  {cut(origin, max(width() - 2, 1))}", dim=True)
            before = origin
        yield memory_row(memory, number)


def origin_of(session: str, source: str | None) -> str:
    """Session and source as one text."""
    return f"{session} · {source}" if source else session


def memory_row(memory: MemoryRecord, number: int) -> str:
    """A memory on one line: its number, its time, and as much of it as fits."""
    head = f"{number:>4}  {in_zone(memory.created_at, None):%H:%M}  "
    speaker = f"{memory.role}: " if memory.role else ""
    text = "(its words were pruned)" if memory.pruned_at else memory.content
    shown = cut(f"{_mark(memory)}{speaker}{text}", room_after(head))
    return f"{click.style(head, dim=True)}{shown}"


def room_after(head: str) -> int:
    """The cells that are left on a line."""
    return max(width() - cell_count(head), TEXT_CELLS_MIN)


def _mark(memory: MemoryRecord) -> str:
    """The mark of a memory that is pinned or archived."""
    if memory.superseded_at:
        return "(superseded) "
    return "(pinned) " if memory.pinned else ""
