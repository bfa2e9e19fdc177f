"""Summaries of records: items of one shape, from all memories of a group, become one line.

Imported only by a sleep: the rules take a tenth of the daemon's start.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from datetime import tzinfo
from itertools import chain

from mnemosyned.memory.values import MemoryRecord
from mnemosyned.summary.records.items import READERS, RecordItem
from mnemosyned.summary.records.lines import (
    RecordLine,
    RecordSummary,
    blank_values,
    end_sentence,
    group_by,
    select_record_terms,
    show_count,
)

CONTENT_CHARS_MAX = 400_000
"""Longer memories are prose to these rules; extraction cuts them to sentences."""

_SIGN = re.compile(r"[\d:{\[$#<>|]")
"""Characters of which each record of one line has at least one."""

Placed = tuple[int, RecordItem]
"""An item with the index of its memory."""


def summarize_records(
    memories: Sequence[MemoryRecord], *, zone: tzinfo
) -> RecordSummary:
    """Return lines about the memories that are records, and the rest of the memories, all prose.

    Lines are in the order of their first memories. Times are shown in `zone`.
    """
    placed: list[Placed] = []
    prose: list[MemoryRecord] = []
    for position, memory in enumerate(memories):
        items = _read_items(memory.content, zone)
        placed += [(position, item) for item in items]
        if not items:
            prose.append(memory)
    groups = group_by(
        placed, lambda pair: (pair[1].kind, pair[1].about, pair[1].is_alert)
    )
    lines = list(chain.from_iterable(map(_write_lines, groups.values())))
    lines.sort(key=lambda line: line.position)
    return RecordSummary(tuple(lines), tuple(prose))


def _read_items(content: str, zone: tzinfo) -> Sequence[RecordItem]:
    """Return the items of the first reader that takes a memory's text; empty for prose."""
    if len(content) > CONTENT_CHARS_MAX or not content.strip():
        return ()
    if "\n" not in content and not _SIGN.search(content):
        return ()
    for read in READERS:
        if items := read(content.strip("\n"), zone):
            return items
    return ()


def _write_lines(group: Sequence[Placed]) -> Iterator[RecordLine]:
    """Yield lines about items of one kind, each about a few shapes.

    If there are too many lines, those of the rarest shapes are left out, and the last line counts
    their items.
    """
    kind = group[0][1].kind
    shapes = list(group_by(group, lambda pair: blank_values(pair[1].text)).values())
    shown_max = kind.lines_max * kind.shapes_per_line
    if len(shapes) > shown_max:
        shapes.sort(key=len, reverse=True)
    hidden = list(chain.from_iterable(shapes[shown_max:]))
    for start in range(0, min(len(shapes), shown_max), kind.shapes_per_line):
        shown = shapes[start : start + kind.shapes_per_line]
        is_last = start + kind.shapes_per_line >= shown_max
        yield _write_line(shown, hidden if is_last else ())


def _write_line(
    shapes: Sequence[Sequence[Placed]], hidden: Sequence[Placed]
) -> RecordLine:
    """Return a line about items of one kind in lists by shape; `hidden` items are only counted."""
    pairs = [*chain.from_iterable(shapes), *hidden]
    items = [item for _, item in pairs]
    first, kind = items[0], items[0].kind
    parts = [_show_shape([item.text for _, item in shape]) for shape in shapes]
    if hidden:
        parts.append(f"and {len(hidden)} more")
    text = "; ".join(parts)
    if kind.is_named or len(parts) > 1:
        noun = kind.noun[0].upper() + kind.noun[1:]
        name = noun if len(items) == 1 else show_count(len(items), kind.noun)
        text = f"{name}{first.about}{_show_span(items)}: {text}"
    positions = [position for position, _ in pairs]
    return RecordLine(
        text=end_sentence(text),
        index_terms=select_record_terms("\n".join(item.source for item in items), text),
        position=min(positions),
        worth=kind.alert_worth if first.is_alert else kind.worth,
        memories=len(set(positions)),
    )


def _show_shape(texts: Sequence[str]) -> str:
    """Return the first and the last of texts of one shape, and how many there are."""
    first, last = texts[0].rstrip(".…"), texts[-1].rstrip(".")
    if len(texts) == 1:
        return last
    if len(set(texts)) == 1:
        return f"{first} ({len(texts)} times)"
    if len(texts) == 2:
        return f"{first}; {last}"
    return f"{first} … {last} ({len(texts)} alike)"


def _show_span(items: Sequence[RecordItem]) -> str:
    """Return the times of the first and the last item as text; empty for items without a time."""
    first, last = items[0].when, items[-1].when
    if not first or first == last:
        return f", {first}" if first else ""
    day, _, clock = last.rpartition(", ")
    return f", {first} to {clock if first.startswith(day) else last}"
