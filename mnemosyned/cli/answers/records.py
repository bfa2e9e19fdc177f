"""Answers that are lists: their records, each with an id and the cells of a line."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from mnemosyned.domain.instants import in_zone
from mnemosyned.terminal import level_name

if TYPE_CHECKING:  # the record of an answer has brought its own class
    from datetime import datetime

    from mnemosyned.domain.learnings.learning import Learning
    from mnemosyned.domain.listing import SessionTotals, SourceTotals
    from mnemosyned.domain.memory import Episode, MemoryRecord
    from mnemosyned.domain.search.results import Hit
    from mnemosyned.domain.sleep.cycles import LogEntry

LISTS: dict[str, tuple[str, ...]] = {
    "Recalled": ("hits",),
    "Listed": ("memories", "episodes"),
    "PeriodView": ("records",),
    "SessionList": ("sessions",),
    "SourceList": ("sources",),
    "LearningList": ("learnings",),
    "Logged": ("rows",),
}
"""By the name of a result's class: its fields with records, in the order in which they are shown."""


def records_of(result: object) -> list[Any] | None:
    """The records of a list; None for an answer of another kind."""
    fields = LISTS.get(type(result).__name__)
    if fields is None:
        return None
    return [record for field in fields for record in getattr(result, field)]


def id_of(record: object) -> str:
    """The name of a record in other commands: mostly its id; empty if it has none."""
    names = _NAMES.get(type(record).__name__, ("id",))
    return next(
        (str(value) for name in names if (value := getattr(record, name, None))), ""
    )


def ids_of(result: object) -> list[str]:
    """The ids in an answer; of an answer about one thing, its id."""
    records = records_of(result)
    if records is not None:
        return [id for record in records if (id := id_of(record))]
    parts = (getattr(result, name, None) for name in ("memory", "episode", "learning"))
    things = [result, *(part for part in parts if part is not None)]
    return [id for id in map(id_of, things) if id][:1]


def cells_of(record: object) -> list[str]:
    """The cells of a record on a line of its own."""
    cells = _CELLS.get(type(record).__name__)
    return cells(record) if cells else [id_of(record)]


def _hit(hit: Hit) -> list[str]:
    shown = " ".join(line.content for line in hit.lines) if hit.summary_of else ""
    text = shown or (hit.content if hit.summary_of else hit.snippet)
    return [
        hit.id,
        _time(hit.created_at),
        hit.tier.value,
        hit.session,
        hit.source or "",
        hit.role,
        text,
        *_explained(hit),
    ]


def _explained(hit: Hit) -> list[str]:
    """The parts of a score, where they were asked for."""
    if hit.explanation is None:
        return []
    parts = " ".join(f"{name} {part:+.2f}" for name, part in hit.explanation.items())
    return [f"score {hit.score:.2f} = {parts}"]


def _memory(memory: MemoryRecord) -> list[str]:
    return [
        memory.id,
        _time(memory.created_at),
        memory.tier.value,
        memory.session,
        memory.source or "",
        memory.role,
        memory.content,
    ]


def _episode(episode: Episode) -> list[str]:
    return [
        episode.id,
        _time(episode.covers_until),
        level_name(episode.level),
        episode.session,
        episode.source or "",
        "",
        episode.content,
    ]


def _learning(learning: Learning) -> list[str]:
    return [
        learning.id,
        _time(learning.created_at),
        learning.kind.value,
        learning.session,
        learning.source or "",
        learning.text,
    ]


def _log_entry(entry: LogEntry) -> list[str]:
    return [
        entry.episode or "",
        entry.cycle,
        _time(entry.created_at),
        entry.session,
        entry.source or "",
        str(entry.status),
        str(entry.items_consolidated),
        entry.summarizer,
        entry.error or entry.summary_preview,
    ]


def _session(totals: SessionTotals) -> list[str]:
    sources = ", ".join(totals.sources)
    first, last = _time(totals.first), _time(totals.last)
    return [totals.session, str(totals.count), first, last, sources, totals.project]


def _source(totals: SourceTotals) -> list[str]:
    first, last = _time(totals.first), _time(totals.last)
    return [
        totals.source or "",
        str(totals.count),
        first,
        last,
        str(totals.sessions),
    ]


def _time(moment: datetime | None) -> str:
    """Local time with its zone, to the second: it can be read back anywhere."""
    return in_zone(moment, None).isoformat(timespec="seconds") if moment else ""


_CELLS: dict[str, Callable[[Any], list[str]]] = {
    "Hit": _hit,
    "MemoryRecord": _memory,
    "Episode": _episode,
    "Learning": _learning,
    "LogEntry": _log_entry,
    "SessionTotals": _session,
    "SourceTotals": _source,
}
_NAMES = {
    "LogEntry": ("episode",),
    "SessionTotals": ("session",),
    "SourceTotals": ("source",),
}
"""The field that names a record, where it has no id."""
