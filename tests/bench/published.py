"""The charts of docs/benchmarks.md, drawn from the figures of its own tables.

`make bench-plots` writes them, and a test compares: a chart cannot show other figures than its table.
Each benchmark also draws its own run into `build/bench`.
"""

from __future__ import annotations

import re
from pathlib import Path

from bench.plot import Series, bars

BENCHMARKS = Path(__file__).parents[2] / "docs" / "benchmarks.md"
CHARTS = Path(__file__).with_name("plots")
NUMBER = re.compile(r"\d*\.\d+|\d+")


def charts(page: str) -> dict[str, str]:
    """Return the SVG of each chart by its name, from the text of the page."""
    return {"locomo": _locomo(page), "recall": _recall(page), "write": _write(page)}


def _locomo(page: str) -> str:
    before, after = (
        [
            _row(page, f"searched {where}, {when} a sleep")
            for where in ("within their conversation", "in all ten conversations")
        ]
        for when in ("before", "after")
    )
    return bars(
        "Evidence found among the first 10 results, LoCoMo",
        y_label="recall@10",
        groups=["asked within the conversation", "over all ten conversations"],
        series=[
            Series("bare FTS5", _column(before, 2)),
            Series("mnemosyne-memory", _column(before, 3)),
            Series("mnemosyne-memory, slept", _column(after, 3)),
            Series("mnemosyned", _column(before, 1)),
            Series("mnemosyned, slept", _column(after, 1)),
        ],
        targets=_column(before, 4),
    )


def _recall(page: str) -> str:
    rows = [
        _row(page, label)
        for label in ("a person and a code", "a question", "six common words")
    ]
    return bars(
        "Time of a recall against the bare FTS5 query, p95",
        y_label="times the bare query; lower is better",
        groups=["10,000 memories", "100,000 memories"],
        series=[
            Series(name, [_numbers(cell)[0] for cell in row[1:3]])
            for name, row in zip(
                ("person and code", "question", "six common words"), rows, strict=True
            )
        ],
        targets=_column(rows, 3)[:1] * 2,
    )


def _write(page: str) -> str:
    rows = [
        _row(page, f"{label}, against bare SQLite")
        for label in ("batches over the socket", "one by one, embedded in a program")
    ]
    return bars(
        "Memories stored in the same time, against bare SQLite",
        y_label="share of bare SQLite",
        groups=["batches over the socket", "one by one, embedded"],
        series=[
            Series("lowest run", _column(rows, 1)),
            Series("highest run", [_numbers(row[1])[1] for row in rows]),
        ],
        targets=_column(rows, 2),
    )


def _row(page: str, label: str) -> list[str]:
    """Return the cells of the first row with this label."""
    for line in page.splitlines():
        cells = [cell.strip() for cell in line.strip("|").split(" | ")]
        if line.startswith("| ") and cells[0] == label:
            return cells
    raise ValueError(f"docs/benchmarks.md has no row {label!r}")


def _column(rows: list[list[str]], column: int) -> list[float]:
    """Return the first number of a column of each row."""
    return [_numbers(row[column])[0] for row in rows]


def _numbers(text: str) -> list[float]:
    """Return the numbers in a cell."""
    return [float(number) for number in NUMBER.findall(text)]


if __name__ == "__main__":
    for name, svg in charts(BENCHMARKS.read_text("utf-8")).items():
        (CHARTS / f"{name}.svg").write_text(svg, "utf-8")
