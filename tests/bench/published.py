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
    label, figure, target = _row(page, "`make bench-locomo`")
    after, slept, _ = _row(page, "the same after sleep")
    bare, peer = _ratios(label, "bare FTS5"), _ratios(label, "mnemosyne-memory 3.15.1")
    return bars(
        "Evidence found among the first 10 results, LoCoMo",
        y_label="recall@10",
        groups=["asked within the conversation", "over all ten conversations"],
        series=[
            Series("bare FTS5", bare),
            Series("mnemosyne-memory", peer),
            Series("mnemosyne-memory, slept", _ratios(after, "the peer")),
            Series("mnemosyned", _numbers(figure)),
            Series("mnemosyned, slept", _numbers(slept)),
        ],
        targets=_numbers(target),
    )


def _recall(page: str) -> str:
    _, small, target = _row(page, "`make bench-recall`")
    _, large, _ = _row(page, "the same at 100,000")
    by_question = zip(_numbers(small), _numbers(large), strict=True)
    names = ("person and code", "question", "six common words")
    return bars(
        "Time of a recall against the bare FTS5 query, p95",
        y_label="times the bare query; lower is better",
        groups=["10,000 memories", "100,000 memories"],
        series=[
            Series(name, values)
            for name, values in zip(names, by_question, strict=True)
        ],
        targets=_numbers(target) * 2,
    )


def _write(page: str) -> str:
    _, figure, target = _row(page, "`make bench-write`")
    runs = [_numbers(part) for part in figure.split("/")]
    return bars(
        "Memories stored in the same time, against bare SQLite",
        y_label="share of bare SQLite",
        groups=["batches over the socket", "one by one, embedded"],
        series=[
            Series("lowest run", [low for low, _ in runs]),
            Series("highest run", [high for _, high in runs]),
        ],
        targets=_numbers(target),
    )


def _row(page: str, beginning: str) -> tuple[str, str, str]:
    """Return label, figure and target of the row whose label begins so."""
    for line in page.splitlines():
        cells = [cell.strip() for cell in line.strip("|").split(" | ")]
        if line.startswith(f"| {beginning}") and len(cells) == 3:
            return cells[0], cells[1], cells[2]
    raise ValueError(f"docs/benchmarks.md has no row that begins with {beginning}")


def _numbers(text: str) -> list[float]:
    """Return the numbers in a cell."""
    return [float(number) for number in NUMBER.findall(text)]


def _ratios(label: str, name: str) -> list[float]:
    """Return the two figures that a label names after a competitor's name."""
    match = re.search(rf"{re.escape(name)}: (\.\d+) / (\.\d+)", label)
    if match is None:
        raise ValueError(f"docs/benchmarks.md names no figures of {name} in {label!r}")
    return [float(match[1]), float(match[2])]


if __name__ == "__main__":
    for name, svg in charts(BENCHMARKS.read_text("utf-8")).items():
        (CHARTS / f"{name}.svg").write_text(svg, "utf-8")
