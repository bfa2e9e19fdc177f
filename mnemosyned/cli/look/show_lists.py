"""Lists in words: memories and summaries by day, sessions, sources."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import UTC, datetime

import click

from mnemosyned.cli.answers.table import table
from mnemosyned.cli.look.rows import period_name, room_after, rows_by_day
from mnemosyned.domain.instants import in_zone
from mnemosyned.domain.memory import Episode
from mnemosyned.terminal import (
    counted,
    cut,
    level_name,
    when,
    width,
)
from mnemosyned.verbs.listing import Listed, SessionList, SourceList

NO_SOURCE = "(none)"
TIMES_COLUMNS_MIN = 100
"""Columns from which a table has the first time next to the last."""
PROJECT_COLUMNS_MIN = 80
INDENT = " " * 6


def listed(result: Listed, first: int = 1) -> str:
    """Memories under their days, a line each; summaries with their times."""
    memories = rows_by_day(result.memories, first)
    summaries = _summaries(result.episodes, first + len(result.memories))
    return "\n".join([*memories, *summaries])


def _summaries(episodes: Sequence[Episode], first: int) -> Iterator[str]:
    for number, episode in enumerate(episodes, first):
        head = click.style(f"{number:>4}  {period(episode)}", bold=True)
        count = counted(episode.item_count, "memory")
        yield f"{head}  {click.style(f'{level_name(episode.level)}, {count}', dim=True)}"
        yield f"{INDENT}{cut(episode.content, room_after(INDENT))}"


def period(episode: Episode) -> str:
    """The day, week or month of a summary; of an episode, the times that it covers."""
    if episode.level and episode.period_from:
        first = in_zone(episode.period_from, UTC).date()
        return period_name(level_name(episode.level), first)
    start, end = when(episode.covers_from), when(episode.covers_until)
    if start == end:
        return start
    return f"{start} to {end[11:] if start[:10] == end[:10] else end}"


def on_listed(result: Listed) -> str:
    """Remarks on what the page leaves out."""
    if not len(result):
        return "nothing matches"
    if not result.next:
        return ""
    return f"more follow: add --all, a larger -n, or --after {result.next}"


def session_list(result: SessionList) -> str:
    """A table of sessions."""
    if not result.sessions:
        return ""
    headers = ["session", "source", "memories", "first", "last", "project"]
    rows = [
        [
            total.session,
            ", ".join(total.sources),
            f"{total.count:,}",
            *_times(total.first, total.last),
            "" if width() < PROJECT_COLUMNS_MIN else total.project,
        ]
        for total in result.sessions
    ]
    return table(*_without_empty(headers, rows))


def on_session_list(result: SessionList) -> str:
    """How many sessions the table leaves out."""
    return _left_out(len(result), result.total, "session")


def source_list(result: SourceList) -> str:
    """A table of sources."""
    if not result.sources:
        return ""
    rows = [
        [
            total.source or NO_SOURCE,
            f"{total.count:,}",
            f"{total.sessions:,}",
            *_times(total.first, total.last),
        ]
        for total in result.sources
    ]
    headers = ["source", "memories", "sessions", "first", "last"]
    return table(*_without_empty(headers, rows))


def on_source_list(result: SourceList) -> str:
    """How many sources the table leaves out."""
    return _left_out(len(result), result.total, "source")


def _without_empty(
    headers: Sequence[str], rows: Sequence[Sequence[str]]
) -> tuple[list[str], list[list[str]]]:
    """A table without the columns in which no row has anything."""
    kept = [index for index in range(len(headers)) if any(row[index] for row in rows)]
    return [headers[index] for index in kept], [
        [row[index] for index in kept] for row in rows
    ]


def _left_out(shown: int, total: int, noun: str) -> str:
    if not total:
        return f"no {noun} matches"
    if shown == total:
        return ""
    return f"{shown:,} of {counted(total, noun)}; -n shows more"


def _times(first: datetime, last: datetime) -> tuple[str, str]:
    """The first and the last time; where there is little room, the last day alone."""
    if width() < TIMES_COLUMNS_MIN:
        return "", when(last)[:10]
    return when(first)[:10], when(last)
