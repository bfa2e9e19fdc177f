"""Tables in words: columns aligned within the terminal, or a block for each row where they do not fit."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence

import click

from mnemosyned.domain.text.cells import cell_count
from mnemosyned.terminal import CELLS_MIN, cut, pairs, width

GAP = "  "
_NUMBER = re.compile(r"(?:about )?[-+]?[\d,.]+%?")


def table(
    headers: Iterable[str],
    rows: Iterable[Iterable[object]],
    *,
    optional: Sequence[str] = (),
    room: Mapping[str, int] | None = None,
) -> str:
    """Rows under their headers, columns aligned, within the columns of the terminal.

    Where they do not fit, `optional` columns are left out, the first one first; then the widest
    are cut. Where even that does not fit, each row is a block with a line for each column. `room`
    is what columns of long texts can do with before others are left out for them.
    """
    texts = (map(str, row) for row in rows)
    columns: list[tuple[str, ...]] = list(zip(headers, *texts, strict=True))
    columns = _without_optional(columns, optional, room or {})
    minima = [min(_cells(column[0]), CELLS_MIN) for column in columns]
    sizes = _fitted(_sizes(columns), minima)
    names, *cells = (list(row) for row in zip(*columns, strict=True))
    if sizes is None:
        return "\n\n".join(pairs(zip(names, row, strict=True)) for row in cells)
    right = [_is_numeric(column[1:]) for column in columns]
    lines = [list(map(cut, row, sizes)) for row in (names, *cells)]
    lines.insert(1, ["-" * size for size in sizes])
    return "\n".join(_aligned(line, sizes, right) for line in lines)


def _without_optional(
    columns: list[tuple[str, ...]], optional: Sequence[str], room: Mapping[str, int]
) -> list[tuple[str, ...]]:
    """Leave out optional columns until the others fit."""
    for name in optional:
        if _surplus(_least(columns, room)) > 0:
            columns = [column for column in columns if column[0] != name]
    return columns


def _sizes(columns: Iterable[Iterable[str]]) -> list[int]:
    return [max(map(_cells, column)) for column in columns]


def _least(columns: Sequence[Sequence[str]], room: Mapping[str, int]) -> list[int]:
    """The sizes of columns, those of long texts as small as they may be."""
    return [
        min(size, room.get(column[0], size))
        for size, column in zip(_sizes(columns), columns, strict=True)
    ]


def _surplus(sizes: Sequence[int]) -> int:
    """The cells that a line of such columns has beyond the terminal's."""
    return sum(sizes) + len(GAP) * (len(sizes) - 1) - width()


def _fitted(wanted: Sequence[int], headers: Sequence[int]) -> list[int] | None:
    """The columns' sizes, the widest cut first; None where the table does not fit."""
    sizes = list(wanted)
    for _ in range(max(_surplus(sizes), 0)):
        widest = max(range(len(sizes)), key=sizes.__getitem__)
        if sizes[widest] <= max(CELLS_MIN, headers[widest]):
            return None
        sizes[widest] -= 1
    return sizes


def _aligned(cells: Sequence[str], sizes: Sequence[int], right: Sequence[bool]) -> str:
    parts: list[str] = []
    for cell, size, is_right in zip(cells, sizes, right, strict=True):
        blanks = " " * max(size - _cells(cell), 0)
        parts.append(blanks + cell if is_right else cell + blanks)
    return GAP.join(parts).rstrip()


def _is_numeric(cells: Sequence[str]) -> bool:
    """Whether a column has numbers alone, which are easier to compare at the right."""
    return any(cells) and all(_NUMBER.fullmatch(cell) for cell in cells if cell)


def _cells(text: str) -> int:
    return cell_count(click.unstyle(text) if "\x1b" in text else text)
