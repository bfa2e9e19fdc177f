"""Charts as SVG without a library: grouped bars, and lines between logarithmic axes."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from html import escape
from typing import Literal

WIDTH, PLOT_HEIGHT = 760, 300
LEFT, RIGHT, BOTTOM, TITLE = 64, 20, 56, 40
LEGEND_ROW = 20
TICKS = 5
CHAR = 8.4
"""The width of a character at 12 pixels in a wide font, so that names in a legend keep apart."""
GROUP_SHARE = 0.8
WIDE_ENOUGH = 40
"""A bar as wide as this has room for three digits."""
COLORS = ("#4c8dff", "#e8853d", "#35a763", "#b07cf2", "#d64f77", "#8b949e")
"""Each stands out on white and on near black."""

STYLE = """
.paper { fill: #ffffff } .ink { fill: #24292f } .axis { stroke: #57606a }
.grid { stroke: #d8dee4 } .target { stroke: #24292f }
text { font: 12px system-ui, sans-serif } .title { font-size: 15px; font-weight: 600 }
.value { font-size: 11px }
@media (prefers-color-scheme: dark) {
.paper { fill: #0d1117 } .ink { fill: #e6edf3 } .axis { stroke: #8b949e }
.grid { stroke: #30363d } .target { stroke: #e6edf3 }
}
"""

Anchor = Literal["start", "middle", "end"]
Mark = Literal["box", "line", "dashed", "target"]


@dataclass(frozen=True, slots=True)
class Series:
    """One bar in every group; None where there is nothing to show."""

    name: str
    values: Sequence[float | None]


@dataclass(frozen=True, slots=True, kw_only=True)
class Line:
    """Points joined by a line. Lines of one name share a colour and a place in the legend."""

    name: str
    points: Sequence[tuple[float, float]]
    dashed: bool = False


def bars(
    title: str,
    *,
    y_label: str,
    groups: Sequence[str],
    series: Sequence[Series],
    targets: Sequence[float | None] = (),
    logarithmic: bool = False,
) -> str:
    """Grouped bars with their values on top; a target is drawn across its group."""
    legend: list[tuple[str, Mark]] = [(one.name, "box") for one in series]
    if any(target is not None for target in targets):
        legend.append(("target", "target"))
    frame = _Frame(title, y_label, legend)
    values = [
        value
        for one in series
        for value in (*one.values, *targets)
        if value is not None
    ]
    ticks = log_ticks(values) if logarithmic else linear_ticks(max(values))

    def y(value: float) -> float:
        share = _share(value, ticks[0], ticks[-1]) if logarithmic else value / ticks[-1]
        return frame.bottom - PLOT_HEIGHT * share

    marks = list(frame.grid([(tick, y(tick)) for tick in ticks]))
    step = (WIDTH - LEFT - RIGHT) / len(groups)
    width = step * GROUP_SHARE / len(series)
    digits = 3 if width > WIDE_ENOUGH else 2
    for number, group in enumerate(groups):
        middle = LEFT + step * (number + 0.5)
        marks.append(text(middle, frame.bottom + 20, group, "middle"))
        drawn = [(n, one.values[number]) for n, one in enumerate(series)]
        present = [(place, value) for place, value in drawn if value is not None]
        left = middle - width * len(present) / 2
        for slot, (place, value) in enumerate(present):
            x, top = left + width * slot, y(value)
            marks.append(_bar(x, top, frame.bottom, width, place))
            label = short(value, digits)
            marks.append(text(x + width / 2, top - 4, label, "middle", kind="value"))
    for number, target in enumerate(targets):
        if target is not None:
            start = LEFT + step * number
            marks.append(
                stroke(start + 4, y(target), start + step - 4, y(target), "target")
            )
    return frame.document(marks)


def lines(
    title: str, *, x_label: str, y_label: str, drawn: Sequence[Line], note: str = ""
) -> str:
    """Lines between two logarithmic axes; `note` says what the dashed ones are."""
    names = list(dict.fromkeys(line.name for line in drawn))
    legend: list[tuple[str, Mark]] = [(name, "line") for name in names]
    if note:
        legend.append((note, "dashed"))
    frame = _Frame(title, y_label, legend)
    xs = sorted({x for line in drawn for x, _ in line.points})
    ticks = log_ticks([y for line in drawn for _, y in line.points])

    def place(x: float, y: float) -> tuple[float, float]:
        across = _share(x, xs[0], xs[-1]) * (WIDTH - LEFT - RIGHT - 2 * RIGHT)
        return LEFT + RIGHT + across, frame.bottom - PLOT_HEIGHT * _share(
            y, ticks[0], ticks[-1]
        )

    marks = list(frame.grid([(tick, place(xs[0], tick)[1]) for tick in ticks]))
    marks += [text(place(x, 1)[0], frame.bottom + 20, short(x), "middle") for x in xs]
    marks.append(text((LEFT + WIDTH - RIGHT) / 2, frame.bottom + 44, x_label, "middle"))
    for line in drawn:
        color = COLORS[names.index(line.name) % len(COLORS)]
        points = [place(x, y) for x, y in line.points]
        path = " ".join(f"{x:.1f},{y:.1f}" for x, y in points)
        dash = ' stroke-dasharray="5 4"' if line.dashed else ""
        marks.append(
            f'<polyline points="{path}" fill="none" stroke="{color}" stroke-width="2"{dash}/>'
        )
        marks += [
            f'<circle cx="{x:.1f}" cy="{y:.1f}" r="3" fill="{color}"/>'
            for x, y in points
        ]
    return frame.document(marks)


def timeline(
    title: str,
    *,
    x_label: str,
    y_label: str,
    points: Sequence[tuple[float, float]],
    limit: float,
) -> str:
    """One value over time between linear axes, and the limit that it must stay below."""
    frame = _Frame(title, y_label, [("bar to stay below", "target")])
    ticks = linear_ticks(max(limit, *(y for _, y in points)))
    ends = linear_ticks(max(x for x, _ in points) or 1.0)
    width = WIDTH - LEFT - RIGHT

    def place(x: float, y: float) -> tuple[float, float]:
        return LEFT + width * x / ends[-1], frame.bottom - PLOT_HEIGHT * y / ticks[-1]

    marks = list(frame.grid([(tick, place(0, tick)[1]) for tick in ticks]))
    marks += [text(place(x, 0)[0], frame.bottom + 20, short(x), "middle") for x in ends]
    marks.append(text(LEFT + width / 2, frame.bottom + 44, x_label, "middle"))
    marks.append(
        stroke(LEFT, place(0, limit)[1], WIDTH - RIGHT, place(0, limit)[1], "target")
    )
    path = " ".join("{:.1f},{:.1f}".format(*place(x, y)) for x, y in points)
    marks.append(
        f'<polyline points="{path}" fill="none" stroke="{COLORS[0]}" stroke-width="2"/>'
    )
    return frame.document(marks)


# -------------------------------------------------------------------- numbers


def short(value: float, digits: int = 3) -> str:
    """A number as a label: 0.05, 12, 3.4k, 1M."""
    value = float(f"{value:.{digits}g}")
    for unit, letter in ((1_000_000, "M"), (1_000, "k")):
        if abs(value) >= unit:
            return f"{value / unit:g}{letter}"
    return f"{value:g}"


def linear_ticks(highest: float) -> list[float]:
    """Round numbers from zero to at least `highest`, about five of them."""
    rough = highest / TICKS
    magnitude: float = 10 ** math.floor(math.log10(rough))
    step = next(
        magnitude * m for m in (1, 2, 2.5, 5, 10) if magnitude * m >= rough * 0.999
    )
    count = math.ceil(highest / step * 0.999)
    return [step * number for number in range(count + 1)]


def log_ticks(values: Sequence[float]) -> list[float]:
    """Powers of ten around the values."""
    low, high = math.floor(math.log10(min(values))), math.ceil(math.log10(max(values)))
    return [10.0**power for power in range(low, max(high, low + 1) + 1)]


def _share(value: float, low: float, high: float) -> float:
    """How far along a logarithmic axis a value is; the middle, where the axis has one value."""
    return math.log(value / low) / math.log(high / low) if high > low else 0.5


# -------------------------------------------------------------------- drawing


class _Frame:
    """Title, legend and the axes' place; the legend takes as many rows as it needs."""

    def __init__(
        self, title: str, y_label: str, legend: Sequence[tuple[str, Mark]]
    ) -> None:
        self._marks = [text(LEFT, 24, title, "start", kind="title")]
        x, row = float(LEFT), 0
        for place, (name, mark) in enumerate(legend):
            room = 24 + CHAR * len(name) + 16
            if x + room > WIDTH and x > LEFT:
                x, row = float(LEFT), row + 1
            y = TITLE + LEGEND_ROW * row
            self._marks += [
                _legend_mark(x, y, mark, place),
                text(x + 24, y + 10, name, "start"),
            ]
            x += room
        top = TITLE + LEGEND_ROW * (row + 1)
        self._marks.append(text(LEFT - 8, top + 10, y_label, "start"))
        self.bottom = top + 30 + PLOT_HEIGHT

    def grid(self, ticks: Sequence[tuple[float, float]]) -> Iterator[str]:
        for value, y in ticks:
            kind = "axis" if y == self.bottom else "grid"
            yield stroke(LEFT, y, WIDTH - RIGHT, y, kind)
            yield text(LEFT - 8, y + 4, short(value), "end")

    def document(self, marks: Sequence[str]) -> str:
        height = self.bottom + BOTTOM
        opening = (
            f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height}" '
            f'width="{WIDTH}" height="{height}" role="img">'
        )
        paper = f'<rect class="paper" width="{WIDTH}" height="{height}" rx="6"/>'
        style = f"<style>{STYLE}</style>"
        return "\n".join([opening, style, paper, *self._marks, *marks, "</svg>", ""])


def _legend_mark(x: float, y: float, mark: Mark, place: int) -> str:
    color = COLORS[place % len(COLORS)]
    if mark == "box":
        return f'<rect x="{x}" y="{y}" width="16" height="11" fill="{color}"/>'
    if mark == "line":
        return f'<path d="M{x} {y + 6}h18" stroke="{color}" stroke-width="3"/>'
    dash = ' stroke-dasharray="5 4"' if mark == "dashed" else ""
    return f'<path class="target" d="M{x} {y + 6}h18" stroke-width="2"{dash}/>'


def _bar(x: float, top: float, bottom: float, width: float, place: int) -> str:
    color = COLORS[place % len(COLORS)]
    size = f'width="{width - 2:.1f}" height="{bottom - top:.1f}"'
    return f'<rect x="{x + 1:.1f}" y="{top:.1f}" {size} fill="{color}"/>'


def text(x: float, y: float, words: str, anchor: Anchor, *, kind: str = "label") -> str:
    place = f'x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}"'
    return f'<text class="ink {kind}" {place}>{escape(words)}</text>'


def stroke(x1: float, y1: float, x2: float, y2: float, kind: str) -> str:
    ends = f'x1="{x1:.1f}" y1="{y1:.1f}" x2="{x2:.1f}" y2="{y2:.1f}"'
    return f'<line class="{kind}" {ends}/>'
