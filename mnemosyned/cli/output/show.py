"""Answers as words, lines or JSON: the renderer of each result, the records of lists, and printing."""

from __future__ import annotations

import dataclasses
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from enum import Enum
from importlib import import_module
from typing import TYPE_CHECKING, Any, TypeVar

import click
import msgspec

from mnemosyned.cli.ids import keep_list
from mnemosyned.cli.options import chosen_format, may_page
from mnemosyned.cli.output.terminal import (
    columns_of,
    folded,
    is_terminal,
    level_name,
    printing_to,
    say,
    say_json,
)
from mnemosyned.instants import in_zone
from mnemosyned.text.display import escape_invisible

if TYPE_CHECKING:
    from datetime import datetime

    from mnemosyned.memory.consolidation import LogEntry
    from mnemosyned.memory.learning import Learning
    from mnemosyned.memory.listing import SessionTotals, SourceTotals
    from mnemosyned.memory.values import Episode, MemoryRecord
    from mnemosyned.search.hits import Hit


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


T = TypeVar("T")

DEPTH_MAX = 50
"""Values nested deeper are shown as JSON."""
TEXTS = frozenset({"content", "snippet", "text", "system"})
"""Fields that may have several lines; names, ids and the like have one."""


def seen(value: T) -> T:
    """A result with every string in it as a person may see it, names and ids on one line."""
    clean: T = _seen(value, "", 0)
    return clean


def _seen(value: Any, name: str, depth: int) -> Any:  # noqa: ANN401 any part of a result
    if isinstance(value, Enum):
        return value
    if isinstance(value, str):
        return escape_invisible(value, one_line=name not in TEXTS)
    if isinstance(value, Mapping | list | tuple):
        return _seen_members(value, name, depth)
    if isinstance(value, msgspec.Struct):
        changed = _changed(value, value.__struct_fields__, depth)
        return msgspec.structs.replace(value, **changed)
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        names = [field.name for field in dataclasses.fields(value)]
        return dataclasses.replace(value, **_changed(value, names, depth))
    return value


def _seen_members(value: Any, name: str, depth: int) -> Any:  # noqa: ANN401
    if depth > DEPTH_MAX:
        return escape_invisible(msgspec.json.encode(value).decode())
    if isinstance(value, Mapping):
        return {
            _seen(key, "", depth): _seen(member, str(key), depth + 1)
            for key, member in value.items()
        }
    return type(value)([_seen(member, name, depth + 1) for member in value])


def _changed(value: object, names: Iterable[str], depth: int) -> dict[str, Any]:
    """The fields of a value that look otherwise to a person."""
    changed: dict[str, Any] = {}
    for name in names:
        member = getattr(value, name)
        clean = _seen(member, name, depth + 1)
        if clean is not member:
            changed[name] = clean
    return changed


def render(result: object, *, first: int = 1) -> str:
    """A result in words, with nothing in it that steers a terminal but our own styles.

    `first` is the number of a list's first entry, where it is a further page.
    """
    name = type(result).__name__
    function = _function(RENDERERS[name])
    return function(seen(result), first) if name in NUMBERED else function(seen(result))


def remarks(result: object) -> str:
    """Remarks on a result, for standard error; empty if there are none."""
    target = REMARKS.get(type(result).__name__)
    return _function(target)(result) if target else ""


def _function(target: str) -> Callable[..., str]:
    module, _, name = target.partition(":")
    function: Callable[..., str] = getattr(import_module(module), name)
    return function


RENDERERS = {
    "Acknowledged": "mnemosyned.cli.output.memories:acknowledged",
    "Recalled": "mnemosyned.cli.output.memories:recalled",
    "Got": "mnemosyned.cli.output.memories:got",
    "Expanded": "mnemosyned.cli.output.memories:expanded",
    "Listed": "mnemosyned.cli.output.listing:listed",
    "Glance": "mnemosyned.cli.commands.look:at_a_glance",
    "PeriodView": "mnemosyned.cli.commands.look:view",
    "SessionList": "mnemosyned.cli.output.listing:session_list",
    "SourceList": "mnemosyned.cli.output.listing:source_list",
    "CycleReport": "mnemosyned.cli.output.upkeep:cycle",
    "Logged": "mnemosyned.cli.output.upkeep:logged",
    "Forgotten": "mnemosyned.cli.output.retention:forgotten",
    "Edited": "mnemosyned.cli.output.memories:edited",
    "Tagged": "mnemosyned.cli.output.memories:tagged",
    "Pinned": "mnemosyned.cli.output.memories:pinned",
    "BackedUp": "mnemosyned.cli.output.retention:backed_up",
    "Restored": "mnemosyned.cli.output.retention:restored",
    "Pruned": "mnemosyned.cli.output.retention:pruned",
    "Learned": "mnemosyned.cli.output.conversation:learned",
    "LearningList": "mnemosyned.cli.output.conversation:learnings",
    "EditedLearning": "mnemosyned.cli.output.conversation:edited",
    "RemovedLearning": "mnemosyned.cli.output.conversation:removed",
    "Assembled": "mnemosyned.cli.output.conversation:assembled",
    "Shortened": "mnemosyned.cli.output.conversation:shortened",
    "Stats": "mnemosyned.cli.output.upkeep:stats",
    "Watching": "mnemosyned.cli.output.upkeep:watching",
}
"""By the name of a result's class: `module:function`."""
NUMBERED = {"Listed", "Logged", "PeriodView", "Recalled"}
"""Lists whose renderers take the number of their first entry."""
REMARKS = {
    "Edited": "mnemosyned.cli.output.memories:on_edited",
    "Acknowledged": "mnemosyned.cli.output.memories:on_acknowledged",
    "Recalled": "mnemosyned.cli.output.memories:on_recalled",
    "Listed": "mnemosyned.cli.output.listing:on_listed",
    "PeriodView": "mnemosyned.cli.commands.look:on_view",
    "SessionList": "mnemosyned.cli.output.listing:on_session_list",
    "SourceList": "mnemosyned.cli.output.listing:on_source_list",
    "Logged": "mnemosyned.cli.output.upkeep:on_logged",
    "Learned": "mnemosyned.cli.output.conversation:on_learned",
    "LearningList": "mnemosyned.cli.output.conversation:on_learnings",
    "EditedLearning": "mnemosyned.cli.output.conversation:on_purge",
    "RemovedLearning": "mnemosyned.cli.output.conversation:on_purge",
}
"""The same for remarks."""


AS_WRITTEN = {"Assembled", "Expanded", "Got", "Shortened"}
"""Answers with whole texts: their long lines are left to the terminal, so that they can be copied."""


class Answers:
    """Prints one answer or the pages of a list; entries are numbered through.

    A list of any length goes out as it comes: ask `is_over` whether anyone still reads.
    """

    def __init__(self, form: str) -> None:
        self._show = _FORMS[form]
        self._keeps_ids = form == "table"
        self.ids: list[str] = []
        self._remarks: list[str] = []
        self.is_over: Callable[[], bool] = lambda: False

    def show(self, result: object) -> None:
        """Print a result, or the next page of a list."""
        first = len(self.ids) + 1
        if type(result).__name__ in NUMBERED:
            self.ids += map(id_of, records_of(result) or ())
        self._show(result, first)
        if remark := remarks(result):
            self._remarks.append(remark)

    def close(self) -> None:
        """Print the remarks below the answer; keep the ids of a list that was shown with numbers."""
        for remark in self._remarks:
            say(click.style(remark, dim=True), err=True, styled=True)
        if self._keeps_ids and self.ids:
            keep_list(self.ids)


@contextmanager
def answers() -> Iterator[Answers]:
    """Print answers in the form that was chosen, at a terminal with a pager where they are long."""
    form = chosen_format()
    printer = Answers(form)
    try:
        with paged(printer):
            yield printer
    finally:
        printer.close()


@contextmanager
def paged(printer: Answers | None = None) -> Iterator[None]:
    """Send standard output through a pager once it is longer than the screen."""
    if not (is_terminal(sys.stdout) and may_page()):
        yield
        return
    # Loaded here: in a pipe there is no pager.
    from mnemosyned.cli.output.pager import (  # noqa: PLC0415
        Screen,
        chosen_pager,
    )

    pager = chosen_pager()
    if not pager:
        yield
        return
    with Screen(pager) as screen, printing_to(screen):
        if printer is not None:
            printer.is_over = lambda: screen.is_over
        yield


def show(result: object) -> None:
    """Print one result on standard output, and remarks about it on standard error."""
    with answers() as printer:
        printer.show(result)


def _show_table(result: object, first: int) -> None:
    text = render(result, first=first)
    if type(result).__name__ not in AS_WRITTEN:
        text = folded(text, columns_of(sys.stdout))
    if text:
        say(text, styled=True)


def _show_lines(result: object, first: int) -> None:
    """Print each record on a line, its cells parted by tabs; other answers as text."""
    records = records_of(result)
    if records is None:
        _show_table(result, first)
        return
    for record in records:
        cells = (escape_invisible(cell, one_line=True) for cell in cells_of(record))
        say("\t".join(cells))


def _show_json_lines(result: object, _first: int) -> None:
    records = records_of(result)
    for record in [result] if records is None else records:
        say_json(record)


def _show_json(result: object, _first: int) -> None:
    say_json(result)


def _show_ids(result: object, _first: int) -> None:
    for id in ids_of(result):
        say(escape_invisible(id, one_line=True))


_FORMS: dict[str, Callable[[object, int], None]] = {
    "table": _show_table,
    "tsv": _show_lines,
    "jsonl": _show_json_lines,
    "json": _show_json,
    "ids": _show_ids,
}
