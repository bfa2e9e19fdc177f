"""Lists in words: memories and summaries by day, sessions, sources."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import datetime

import click

from mnemosyned.domain.instants import in_zone
from mnemosyned.domain.memory import Episode, MemoryRecord
from mnemosyned.terminal import counted, cut, level_name, table, when, width
from mnemosyned.verbs.listing import Listed, SessionList, SourceList

NO_SOURCE = "(none)"
NAME_CHARS = 28
"""Room for the name of a session or a project in a table."""
TEXT_CHARS_MIN = 20


def listed(result: Listed, first: int = 1) -> str:
    """Memories under their days, a line each; summaries with their times."""
    memories = _by_day(result.memories, first)
    summaries = _summaries(result.episodes, first + len(result.memories))
    return "\n".join([*memories, *summaries])


def _by_day(memories: Sequence[MemoryRecord], first: int) -> Iterator[str]:
    day = ""
    for number, memory in enumerate(memories, first):
        moment = in_zone(memory.created_at, None)
        title = f"{moment:%A} {moment.day} {moment:%B %Y}"
        if title != day:
            yield click.style(title, bold=True)
            day = title
        yield memory_line(memory, number=number)


def memory_line(memory: MemoryRecord, *, number: int) -> str:
    """A memory on one line: its number, time and origin, and as much of it as fits."""
    head = f"{number:>3}  {in_zone(memory.created_at, None):%H:%M}  "
    origin = " · ".join(filter(None, [memory.session, memory.source, memory.role]))
    room = width() - len(head) - len(origin) - 2
    text = "(pruned)" if memory.pruned_at else memory.content
    mark = _mark(memory)
    shown = cut(f"{mark}{text}", max(room, TEXT_CHARS_MIN))
    return f"{click.style(head, dim=True)}{click.style(origin, dim=True)}  {shown}"


def _mark(memory: MemoryRecord) -> str:
    """What sets a memory apart."""
    if memory.superseded_at:
        return "(superseded) "
    return "(pinned) " if memory.pinned else ""


def _summaries(episodes: Sequence[Episode], first: int) -> Iterator[str]:
    for number, episode in enumerate(episodes, first):
        head = f"{number:>3}  {level_name(episode.level):<7}  {period(episode)}"
        yield click.style(head, bold=True)
        yield f"     {cut(episode.content, max(width() - 5, TEXT_CHARS_MIN))}"


def period(episode: Episode) -> str:
    """The times that a summary covers."""
    return f"{when(episode.covers_from)} to {when(episode.covers_until)}"


def on_listed(result: Listed) -> str:
    """What the page leaves out."""
    if not len(result):
        return "nothing matches"
    return f"more follow: --after {result.next}" if result.next else ""


def session_list(result: SessionList) -> str:
    """A table of sessions."""
    if not result.sessions:
        return ""
    rows: list[tuple[str, ...]] = [
        (
            cut(total.session, NAME_CHARS),
            ", ".join(total.sources),
            f"{total.count:,}",
            _day(total.first),
            when(total.last),
            cut(total.project, NAME_CHARS),
        )
        for total in result.sessions
    ]
    headers = ["session", "source", "memories", "first", "last", "project"]
    if not any(total.project for total in result.sessions):
        headers, rows = headers[:-1], [row[:-1] for row in rows]
    return table(headers, rows)


def on_session_list(result: SessionList) -> str:
    """How many sessions the table leaves out."""
    return _left_out(len(result), result.total, "session")


def source_list(result: SourceList) -> str:
    """A table of sources."""
    if not result.sources:
        return ""
    rows = [
        (
            cut(total.source or NO_SOURCE, NAME_CHARS),
            f"{total.count:,}",
            f"{total.sessions:,}",
            _day(total.first),
            when(total.last),
        )
        for total in result.sources
    ]
    return table(("source", "memories", "sessions", "first", "last"), rows)


def on_source_list(result: SourceList) -> str:
    """How many sources the table leaves out."""
    return _left_out(len(result), result.total, "source")


def _left_out(shown: int, total: int, noun: str) -> str:
    if not total:
        return f"there are no {noun}s"
    return (
        f"{shown:,} of {counted(total, noun)}; --limit shows more"
        if shown < total
        else ""
    )


def _day(moment: datetime) -> str:
    return when(moment)[:10]
