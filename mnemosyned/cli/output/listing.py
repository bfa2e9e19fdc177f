"""Lists of memories, sessions and sources in words, and the line of one memory in any list."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, date, datetime, timedelta
from itertools import pairwise

import click

from mnemosyned.cli.output.show import CELLS, RENDERERS, Renderer, page_remark
from mnemosyned.cli.output.terminal import count_of, cut_text, local_time, table, width
from mnemosyned.instants import in_zone
from mnemosyned.memory.listing import SessionTotals, SourceTotals
from mnemosyned.memory.values import Episode, MemoryRecord
from mnemosyned.text.display import cell_count
from mnemosyned.verbs import listing

TEXT_CELLS_MIN = 20
"""Minimum cells for a text, even on the narrowest terminal."""


def day_title(day: date) -> str:
    """Return a day as a title: `Monday 23 November 2026`."""
    return f"{day:%A} {day.day} {day:%B} {day.year:04}"


def period_name(unit: str, first: date) -> str:
    """Return the title of a day, week or month (`unit`) that begins on `first`."""
    if unit == "day":
        return day_title(first)
    if unit == "month":
        return f"{first:%B} {first.year:04}"
    last = first + timedelta(days=6)
    begin = f"{first.day}"
    begin += f" {first:%B}" if first.month != last.month else ""
    begin += f" {first.year:04}" if first.year != last.year else ""
    number = first.isocalendar().week
    return f"{begin} to {last.day} {last:%B} {last.year:04} (week {number})"


def local_day(moment: datetime) -> date:
    """Return the date of a time in the local zone."""
    return in_zone(moment, None).date()


ORIGIN_CELLS = 24
"""Cells of session and source at the beginning of a line."""


def memory_rows(
    memories: Sequence[MemoryRecord],
    first: int,
    ended: Mapping[str, datetime],
    *,
    with_days: bool = False,
) -> Iterator[str]:
    """Yield a numbered line for each memory, with headings where session or source change.

    If these change often, each line begins with them instead. `first` is the first number, `ended` maps the
    ids of memories to the times when their statements ended, and `with_days` adds a title for each day.
    """
    day: date | None = None
    origin = ""
    origins = [origin_of(memory.session, memory.source) for memory in memories]
    changes = sum(before != after for before, after in pairwise(origins))
    is_mixed = 2 * changes > len(origins)
    for number, memory in enumerate(memories, first):
        if with_days and local_day(memory.created_at) != day:
            day, origin = local_day(memory.created_at), ""
            yield click.style(day_title(day), bold=True)
        present = origin_of(memory.session, memory.source)
        if present != origin and not is_mixed:
            origin = present
            yield click.style(f"  {cut_text(origin, max(width() - 2, 1))}", dim=True)
        head = f"{number:>4}  {in_zone(memory.created_at, None):%H:%M}  "
        if is_mixed:
            head += f"{cut_text(present, ORIGIN_CELLS)}  "
        speaker = f"{memory.role}: " if memory.role else ""
        text = "(its words were pruned)" if memory.pruned_at else memory.content
        mark = "(pinned) " if memory.pinned else ""
        if memory.id in ended:
            mark = f"(until {local_day(ended[memory.id])}) "
        if memory.superseded_at:
            mark = "(superseded) "
        shown = cut_text(f"{mark}{speaker}{text}", room_after(head))
        yield f"{click.style(head, dim=True)}{shown}"


def origin_of(session: str, source: str | None) -> str:
    """Return `session · source`, or the session alone if the source is missing or the same."""
    return f"{session} · {source}" if source not in (None, "", session) else session


def room_after(head: str) -> int:
    """Return the number of cells left on a line after `head`, at least `TEXT_CELLS_MIN`."""
    return max(width() - cell_count(head), TEXT_CELLS_MIN)


TIMES_COLUMNS_MIN = 100
"""Minimum columns of a terminal at which tables show the first time next to the last."""
INDENT = " " * 6


def _list_text(result: listing.Listed, first: int) -> str:
    """Return memories by day, then summaries with their periods, numbered from `first`."""
    lines = list(memory_rows(result.memories, first, result.ended, with_days=True))
    for number, episode in enumerate(result.episodes, first + len(result.memories)):
        head = click.style(f"{number:>4}  {_covered_period(episode)}", bold=True)
        count = count_of(episode.item_count, "memory")
        kind = click.style(f"{listing.LEVELS[episode.level]}, {count}", dim=True)
        lines += [
            f"{head}  {kind}",
            f"{INDENT}{cut_text(episode.content, room_after(INDENT))}",
        ]
    return "\n".join(lines)


def _covered_period(episode: Episode) -> str:
    """Return the title of a summary's day, week or month, or the time that an episode covers."""
    if episode.level and episode.period_from:
        first = in_zone(episode.period_from, UTC).date()
        return period_name(listing.LEVELS[episode.level], first)
    start, end = local_time(episode.covers_from), local_time(episode.covers_until)
    if start == end:
        return start
    return f"{start} to {end[11:] if start[:10] == end[:10] else end}"


def _sessions_table(result: listing.SessionList) -> str:
    """Return a table of sessions: sources, number of memories, first and last times, project."""
    headers = ["session", "source", "memories", "first", "last", "project"]
    rows = [
        [
            *(total.session, ", ".join(total.sources), f"{total.count:,}"),
            *_first_and_last_cells(total.first, total.last),
            "" if width() < 80 else total.project,
        ]
        for total in result.sessions
    ]
    return table(headers, rows, without_empty=True)


def _sources_table(result: listing.SourceList) -> str:
    """Return a table of sources: numbers of memories and sessions, and first and last times."""
    rows = [
        [
            *(total.source or "(none)", f"{total.count:,}", f"{total.sessions:,}"),
            *_first_and_last_cells(total.first, total.last),
        ]
        for total in result.sources
    ]
    headers = ["source", "memories", "sessions", "first", "last"]
    return table(headers, rows, without_empty=True)


def _projects_table(result: listing.ProjectList) -> str:
    """Return a table of projects: numbers of memories and sessions, and the time last seen."""
    rows = [
        [each.project, f"{each.count:,}", f"{each.sessions:,}", local_time(each.last)]
        for each in result.projects
    ]
    return table(["project", "memories", "sessions", "last"], rows, without_empty=True)


def _days_table(result: listing.DayList) -> str:
    """Return a table with a row for each day, hour or month: what was stored, given and recalled."""
    unit = "month" if result.by == "month" else "day"
    rows = [
        [
            period_name(unit, total.day)
            + (f" {total.hour:02}:00" if total.hour is not None else ""),
            *(f"{total.memories:,}", f"{total.given:,}"),
            "" if total.recalls is None else f"{total.recalls:,}",
            *(
                f"{each:,g}" if each else ""
                for each in (total.recall_p50_ms, total.recall_p95_ms)
            ),
            f"{total.bytes_on_disk / 1e6:,.1f} MB" if total.bytes_on_disk else "",
        ]
        for total in result.days
    ]
    headers = [result.by, "memories", "given", "recalls", "p50 ms", "p95 ms", "on disk"]
    further = ("p95 ms", "p50 ms", "on disk")  # left out first where there is no room
    return table(headers, rows, optional=further, without_empty=True)


def _totals_remark(shown: int, total: int, noun: str) -> str:
    """Return `50 of 120 sessions`, or that nothing matches; empty if all are shown."""
    if not total:
        return f"no {noun} matches"
    if shown == total:
        return ""
    return f"{shown:,} of {count_of(total, noun)}; -n shows more"


def _first_and_last_cells(first: datetime, last: datetime) -> tuple[str, str]:
    """Return the cells of a first and a last time; a narrow terminal has only the last day."""
    if width() < TIMES_COLUMNS_MIN:
        return "", local_time(last)[:10]
    return local_time(first)[:10], local_time(last)


RENDERERS[listing.Listed] = Renderer(
    _list_text,
    lambda result: page_remark(
        result, "nothing matches", options="add --all, a larger -n, or --after"
    ),
    lambda result: [*result.memories, *result.episodes],
    is_numbered=True,
)
RENDERERS[listing.SessionList] = Renderer(
    _sessions_table,
    lambda result: _totals_remark(len(result), result.total, "session"),
    lambda result: result.sessions,
)
RENDERERS[listing.SourceList] = Renderer(
    _sources_table,
    lambda result: _totals_remark(len(result), result.total, "source"),
    lambda result: result.sources,
)
RENDERERS[listing.ProjectList] = Renderer(
    _projects_table,
    lambda result: "" if result.projects else "no agent was seen in a project yet",
)
RENDERERS[listing.DayList] = Renderer(_days_table)
CELLS[MemoryRecord] = "id created_at tier session source role content".split()
CELLS[Episode] = [
    *("id", "covers_until", lambda episode: listing.LEVELS[episode.level]),
    *("session", "source", lambda _: "", "content"),
]
CELLS[SessionTotals] = "session count first last sources project".split()
CELLS[SourceTotals] = "source count first last sessions".split()
