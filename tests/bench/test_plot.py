from __future__ import annotations

from xml.etree import ElementTree as ET

import pytest
from bench.plot import (
    CHAR,
    LEFT,
    RIGHT,
    WIDTH,
    Line,
    Series,
    bars,
    linear_ticks,
    lines,
    short,
    timeline,
)
from support.cases import each_case

SVG = "{http://www.w3.org/2000/svg}"


@each_case("highest", [0.003, 0.77, 1.0, 9.99, 21_600.0])
def test_an_axis_has_a_few_round_numbers_and_reaches_the_highest_value(
    highest: float,
) -> None:
    ticks = linear_ticks(highest)

    assert ticks[0] == 0
    assert ticks[-2] < highest <= ticks[-1] * 1.001
    assert 4 <= len(ticks) <= 8
    assert all(len(short(tick)) <= 5 for tick in ticks)


def test_a_bar_is_as_high_as_its_value_and_one_without_a_value_is_left_out() -> None:
    svg = bars(
        "Found & shown",
        y_label="share",
        groups=["within", "over all"],
        series=[Series("before", [0.5, 1.0]), Series("after", [0.25, None])],
        targets=[0.4, None],
    )

    drawn = ET.fromstring(svg)  # noqa: S314 our own text
    heights = [float(box.get("height", "0")) for box in drawn.iter(f"{SVG}rect")][3:]
    assert heights == [150.0, 75.0, 300.0]
    assert (
        len(
            [line for line in drawn.iter(f"{SVG}line") if line.get("class") == "target"]
        )
        == 1
    )


def test_bars_of_a_group_stand_together_where_some_are_missing() -> None:
    series = [
        Series("a", [1.0, 10.0]),
        Series("b", [None, 100.0]),
        Series("c", [1000.0, None]),
    ]

    svg = bars("Some", y_label="", groups=["x", "y"], series=series, logarithmic=True)

    boxes = list(ET.fromstring(svg).iter(f"{SVG}rect"))[4:]  # noqa: S314 our own text
    lefts = [float(box.get("x", "0")) for box in boxes]
    assert lefts[1] - lefts[0] == pytest.approx(lefts[3] - lefts[2])
    assert [float(box.get("height", "0")) for box in boxes] == [
        0.0,
        300.0,
        100.0,
        200.0,
    ]


def test_ten_times_as_much_is_the_same_step_everywhere_on_a_logarithmic_axis() -> None:
    points = [(10_000.0, 0.5), (100_000.0, 5.0), (1_000_000.0, 50.0)]

    svg = lines(
        "Latency",
        x_label="memories",
        y_label="ms",
        drawn=[Line(name="a", points=points)],
    )

    line = ET.fromstring(svg).find(f"{SVG}polyline")  # noqa: S314 our own text
    assert line is not None
    (x1, y1), (x2, y2), (x3, y3) = (
        map(float, point.split(",")) for point in line.get("points", "").split()
    )
    assert x2 - x1 == pytest.approx(x3 - x2, abs=0.2)
    assert y1 - y2 == pytest.approx(y2 - y3, abs=0.2)


def test_a_long_legend_takes_further_rows_and_stays_inside() -> None:
    series = [Series(f"the series of number {number}", [1.0]) for number in range(9)]

    svg = bars("Many", y_label="", groups=["one"], series=series)

    for words in ET.fromstring(svg).iter(f"{SVG}text"):  # noqa: S314 our own text
        if words.get("text-anchor") == "start":
            start = float(words.get("x", "0"))
            assert start >= LEFT - 2 * RIGHT
            assert start + CHAR * len(words.text or "") <= WIDTH


def test_a_timeline_stays_inside_and_is_highest_where_its_value_is() -> None:
    points = [(0.0, 40.0), (15.0, 130.0), (30.0, 60.0)]

    svg = timeline(
        "Memory", x_label="minutes", y_label="MB", points=points, limit=120.0
    )

    line = ET.fromstring(svg).find(f"{SVG}polyline")  # noqa: S314 our own text
    assert line is not None
    (x1, y1), (x2, y2), (x3, y3) = (
        map(float, point.split(",")) for point in line.get("points", "").split()
    )
    assert LEFT == x1 < x2 < x3 <= WIDTH - RIGHT
    assert x2 - x1 == pytest.approx(x3 - x2, abs=0.2)
    assert y2 < y3 < y1
