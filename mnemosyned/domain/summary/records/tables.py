"""Tables: rows and columns of Markdown, CSV and aligned output, with their first rows."""

from __future__ import annotations

import csv
import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from datetime import tzinfo
from itertools import chain

from mnemosyned.domain.memory import MemoryRecord
from mnemosyned.domain.summary.records.lines import Reading, Rule, Sentence, write_each
from mnemosyned.domain.summary.records.wording import (
    below_command,
    counted,
    full_stop,
    is_prose,
    lines_of,
    listed,
    phrase,
    plural,
    shorten,
)
from mnemosyned.domain.text.matching import first_match, first_reading

ROWS_READ_MAX = 20_000
ROWS_SHOWN_MAX = 3
COLUMNS_SHOWN_MAX = 8
CELL_CHARS_MAX = 48
CELL_MEAN_MAX = 32
NAME_CHARS_MAX = 40
COLUMNS_MAX = 60
WORTH = 0.5
SOURCE_ROWS_MAX = 60

_RULE_ROW = re.compile(r"\|?\s*:?-{2,}:?\s*(?:[|+]\s*:?-{2,}:?\s*)*\|?")
_FRAME = re.compile(r"[+\-=─━┌┬┐├┼┤└┴┘╭╮╰╯|│\s]+")
_GAP = re.compile(r"\s{2,}|\t")
_BETWEEN_ROWS = (_FRAME, _RULE_ROW, re.compile(r"\(\d+ rows?\)|\d+ rows? in set.*"))
_COLUMN_NAME = re.compile(r"\s*[^\s\d]")
_DIGIT = re.compile(r"\d")
_ENDING_MARK = (".", "!", "?", ":")

Grid = list[list[str]]


@dataclass(frozen=True, slots=True)
class Table:
    """A table: its columns and its rows."""

    columns: Sequence[str]
    rows: Sequence[Sequence[str]]


def read_table(memory: MemoryRecord) -> Table | None:
    """Return the table that the whole memory is."""
    if memory.content.count("\n") < 2:
        return None
    lines = lines_of(memory.content.strip("\n"))[:ROWS_READ_MAX]
    if len(lines) < 3:
        return None
    _, lines = below_command(lines)
    grid = first_reading(_READERS, lines)
    return Table(grid[0], grid[1:]) if grid else None


def _read_piped(lines: Sequence[str]) -> Grid | None:
    """Read Markdown tables and the frames that SQL shells draw."""
    if not _begins_piped(lines):
        return None
    barred = (line.strip().replace("│", "|") for line in lines)
    grid = [
        [cell.strip() for cell in line.strip("|").split("|")]
        for line in barred
        if not first_match(_BETWEEN_ROWS, line)
    ]
    return grid if len(grid) > 1 and _is_even(grid) else None


def _begins_piped(lines: Sequence[str]) -> bool:
    head = lines[0].replace("│", "|")
    is_ruled = "|" in head and _RULE_ROW.fullmatch(lines[1].strip())
    return bool(is_ruled or head.count("|") > 1 or _FRAME.fullmatch(head))


def _read_separated(lines: Sequence[str]) -> Grid | None:
    """Read CSV with commas, semicolons or tabs."""
    for separator in ("\t", ";", ","):
        grid = _separated(lines, separator)
        if grid and _is_even(grid) and _is_tabular(grid, lines):
            return [[cell.strip() for cell in row] for row in grid]
    return None


def _separated(lines: Sequence[str], separator: str) -> Grid:
    """Return the cells between separators; a single one takes more lines to be a sign."""
    count = lines[0].count(separator)
    if count == 0 or (count == 1 and len(lines) < 4):
        return []
    try:
        return list(csv.reader(lines, delimiter=separator))
    except csv.Error:
        return []


def _is_tabular(grid: Grid, lines: Sequence[str]) -> bool:
    """Tell a table from lines of prose that happen to have as many commas."""
    cells = list(chain.from_iterable(grid[:200]))
    spaced = sum(cell.startswith(" ") for cell in cells)
    mean = sum(map(len, cells)) / len(cells)
    named = all(map(_COLUMN_NAME.match, grid[0]))
    ended = any(line.endswith(_ENDING_MARK) for line in lines)
    return (
        named
        and not ended
        and mean <= CELL_MEAN_MAX
        and spaced <= len(cells) // 4
        and not any(map(is_prose, cells))
    )


def _read_aligned(lines: Sequence[str]) -> Grid | None:
    """Read columns aligned with blanks, as `df` and `kubectl get` print them."""
    header = lines[0].strip().replace("Mounted on", "Mounted")
    if _DIGIT.search(header) or header.endswith(_ENDING_MARK):
        return None
    rows = list(map(str.strip, lines[1:]))
    if not any(map(_DIGIT.search, rows)) or any(map(is_prose, lines)):
        return None
    for split in (_GAP.split, str.split):
        grid = list(map(split, (header, *rows)))
        if len(grid[0]) > 2 and _is_even(grid):
            return grid
    return None


def _is_even(grid: Grid) -> bool:
    """Tell whether all rows have as many cells as the first."""
    width = len(grid[0])
    return 2 <= width <= COLUMNS_MAX and all(len(row) == width for row in grid)


_READERS: tuple[Callable[[Sequence[str]], Grid | None], ...] = (
    _read_piped,
    _read_separated,
    _read_aligned,
)


def _sentences(reading: Reading[Table], _zone: tzinfo) -> Iterator[Sentence]:
    """Write a table by its size, its columns and its first rows."""
    table = reading.value
    names = [shorten(name, NAME_CHARS_MAX) or "unnamed" for name in table.columns]
    head = f"Table of {counted(len(table.rows), 'row')} with columns "
    head += listed(names, COLUMNS_SHOWN_MAX)
    rows = [_row(names, row) for row in table.rows[:ROWS_SHOWN_MAX]]
    label = plural(len(rows), "row")
    if len(table.rows) > len(rows):
        label = f"first {label}"
    shown = phrase(f"; {label}: ", "; ".join(filter(None, rows)))
    source = "\n".join(map(" ".join, table.rows[:SOURCE_ROWS_MAX]))
    yield Sentence(full_stop(head + shown), WORTH, source)


def _row(names: Sequence[str], row: Sequence[str]) -> str:
    cells = [
        phrase(f"{name} ", shorten(cell, CELL_CHARS_MAX))
        for name, cell in zip(names, row, strict=True)
    ]
    return ", ".join(list(filter(None, cells))[:COLUMNS_SHOWN_MAX])


TABLES = Rule("tables", read_table, write_each(_sentences))
