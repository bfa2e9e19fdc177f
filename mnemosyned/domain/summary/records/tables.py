"""Tables: rows and columns of Markdown, CSV and aligned output, with their first rows."""

from __future__ import annotations

import csv
import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from datetime import tzinfo

from mnemosyned.domain.memory import MemoryRecord
from mnemosyned.domain.summary.records.lines import (
    Reading,
    RecordLine,
    Rule,
    Sentence,
    merge_equal,
)
from mnemosyned.domain.summary.records.wording import (
    counted,
    is_prose,
    lines_of,
    listed,
    shorten,
)

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
_DIGIT = re.compile(r"\d")
_ENDING_MARK = (".", "!", "?", ":")

Grid = list[list[str]]


@dataclass(frozen=True, slots=True)
class Table:
    """A table: its columns and its rows."""

    columns: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]


def read_table(memory: MemoryRecord) -> Table | None:
    """Return the table that the whole memory is."""
    if memory.content.count("\n") < 2:
        return None
    lines = lines_of(memory.content.strip("\n"))[:ROWS_READ_MAX]
    if len(lines) < 3:
        return None
    if lines[0].startswith("$ "):
        lines = lines[1:]
    for reader in _READERS:
        if grid := reader(lines):
            return _table(grid)
    return None


def _read_piped(lines: Sequence[str]) -> Grid | None:
    """Read Markdown tables and the frames that SQL shells draw."""
    framed = _FRAME.fullmatch(lines[0]) or lines[0].count("|") + lines[0].count("│") > 1
    ruled = "|" in lines[0] and _RULE_ROW.fullmatch(lines[1].strip())
    if not framed and not ruled:
        return None
    grid: Grid = []
    for line in lines:
        bare = line.strip().replace("│", "|")
        if _FRAME.fullmatch(bare) or _RULE_ROW.fullmatch(bare):
            continue
        if re.fullmatch(r"\(\d+ rows?\)|\d+ rows? in set.*", bare):
            continue
        if "|" not in bare:
            return None
        grid.append([cell.strip() for cell in bare.strip("|").split("|")])
    return grid if len(grid) > 1 and _is_even(grid) else None


def _read_separated(lines: Sequence[str]) -> Grid | None:
    """Read CSV with commas, semicolons or tabs."""
    for separator in ("\t", ";", ","):
        count = lines[0].count(separator)
        if not count or (count < 2 and len(lines) < 4):
            continue
        try:
            grid = [list(row) for row in csv.reader(lines, delimiter=separator)]
        except csv.Error:
            continue
        if _is_even(grid) and _is_tabular(grid, lines):
            return [[cell.strip() for cell in row] for row in grid]
    return None


def _is_tabular(grid: Grid, lines: Sequence[str]) -> bool:
    """Tell a table from lines of prose that happen to have as many commas."""
    cells = [cell for row in grid[:200] for cell in row]
    spaced = sum(cell.startswith(" ") for cell in cells)
    mean = sum(map(len, cells)) / max(len(cells), 1)
    named = all(cell.strip() and not cell.strip()[0].isdigit() for cell in grid[0])
    ended = any(line.rstrip().endswith(_ENDING_MARK) for line in lines)
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
    for split in (_GAP.split, str.split):
        grid = [split(header), *(split(line.strip()) for line in lines[1:])]
        if len(grid[0]) > 2 and _is_even(grid):
            break
    else:
        return None
    has_values = any(_DIGIT.search(line) for line in lines[1:])
    return grid if has_values and not any(map(is_prose, lines)) else None


def _is_even(grid: Grid) -> bool:
    """Tell whether all rows have as many cells as the first."""
    width = len(grid[0])
    return 2 <= width <= COLUMNS_MAX and all(len(row) == width for row in grid)


def _table(grid: Grid) -> Table:
    return Table(tuple(grid[0]), tuple(tuple(row) for row in grid[1:]))


_READERS: tuple[Callable[[Sequence[str]], Grid | None], ...] = (
    _read_piped,
    _read_separated,
    _read_aligned,
)


def write_tables(
    readings: Sequence[Reading[Table]], _zone: tzinfo
) -> Iterator[RecordLine]:
    """Write each table by its size, its columns and its first rows."""
    return merge_equal(
        (reading.position, _sentence(reading.value)) for reading in readings
    )


def _sentence(table: Table) -> Sentence:
    names = [shorten(name, NAME_CHARS_MAX) or "unnamed" for name in table.columns]
    head = f"Table of {counted(len(table.rows), 'row')} with columns "
    head += listed(names, COLUMNS_SHOWN_MAX)
    rows = [_row(names, row) for row in table.rows[:ROWS_SHOWN_MAX]]
    shown = "; ".join(row for row in rows if row)
    label = "first rows" if len(table.rows) > ROWS_SHOWN_MAX else "rows"
    text = (
        f"{head}; {label if len(rows) > 1 else 'row'}: {shown}."
        if shown
        else f"{head}."
    )
    source = "\n".join(" ".join(row) for row in table.rows[:SOURCE_ROWS_MAX])
    return Sentence(text.replace("….", "…"), WORTH, source)


def _row(names: Sequence[str], row: Sequence[str]) -> str:
    pairs = [
        f"{name} {text}"
        for name, cell in zip(names, row, strict=True)
        if (text := shorten(cell, CELL_CHARS_MAX))
    ]
    return ", ".join(pairs[:COLUMNS_SHOWN_MAX])


TABLES = Rule("tables", read_table, write_tables)
