"""Figures of the live view: read back from the page, and what they say of the last minute."""

from __future__ import annotations

from dataclasses import replace

import pytest
from support.cases import each_case

from mnemosyned.cli.commands.top_view import (
    GROUPS,
    SAMPLES_MAX,
    Figures,
    LastMinute,
    percentile,
    read_figures,
)
from mnemosyned.daemon.metrics import Histogram, Sample, render, samples_by

INFINITE = float("inf")


def page(*durations: tuple[float, str, str], memories: int = 0) -> str:
    """The daemon's page after these requests: duration, verb and status of each."""
    histogram = Histogram(
        "mnemosyned_request_duration_seconds",
        ("verb", "status"),
        bounds=(0.001, 0.01, 0.1),
    )
    for seconds, verb, status in durations:
        histogram.observe(seconds, verb, status)
    tiers = {"working": memories, "archive": 1, "episodic": 100}
    return render(
        [
            *histogram.samples(),
            *samples_by("mnemosyned_memories", "tier", tiers),
            Sample("process_start_time_seconds", 17.5),
            Sample("process_resident_memory_bytes", 64_000_000),
        ],
        {},
    )


def test_a_page_is_read_by_group() -> None:
    figures = read_figures(
        page(
            (0.0005, "remember", "200"),
            (0.05, "remember_many", "400"),
            (0.05, "/hooks", "200"),
            (0.05, "status", "200"),
            memories=7,
        ),
        moment=3.0,
    )

    assert figures.requests == {"remember": 2, "hooks": 1}
    assert figures.failures["remember"] == 1
    assert figures.failures["hooks"] == 0
    assert figures.buckets["remember"] == {0.001: 1, 0.01: 1, 0.1: 2, INFINITE: 2}
    assert (figures.memories, figures.started_at) == (8, 17.5)
    assert figures.resident_bytes == 64_000_000


@each_case("garbage", ["", "not a page\n\x00", "mnemosyned_memories{tier=} 1"])
def test_what_is_no_page_gives_no_figures(garbage: str) -> None:
    figures = read_figures(garbage, moment=1.0)

    assert not figures.requests
    assert not any(figures.buckets.values())


def test_rates_are_of_the_last_seconds_and_latencies_of_the_last_minute() -> None:
    minute = LastMinute()
    requests = [(0.005, "recall", "200")]
    for second in range(10):
        minute.add(read_figures(page(*requests * second), moment=float(second)))

    recalls = next(row for row in minute.rows() if row.name == "recall")

    assert recalls.per_s == 1.0
    assert recalls.total == 9
    assert recalls.p50_s == pytest.approx(0.0055)
    assert [row.name for row in minute.rows()] == list(GROUPS)


def test_memories_that_are_forgotten_count_as_less() -> None:
    minute = LastMinute()
    minute.add(Figures(0.0, started_at=1.0, memories=10))
    minute.add(Figures(2.0, started_at=1.0, memories=6))

    assert minute.memories_per_s() == -2.0


def test_a_restart_begins_another_minute() -> None:
    minute = LastMinute()
    before = read_figures(page(*[(0.5, "recall", "200")] * 100), moment=0.0)
    minute.add(before)
    minute.add(replace(read_figures(page(), moment=1.0), started_at=99.0))

    recalls = next(row for row in minute.rows() if row.name == "recall")

    assert (recalls.per_s, recalls.total, recalls.p50_s) == (0.0, 0, None)


def test_only_a_minute_is_kept() -> None:
    minute = LastMinute()
    slow = page(*[(0.5, "recall", "200")] * 100)
    for second in range(SAMPLES_MAX * 2):
        minute.add(read_figures(slow, moment=float(second)))

    assert next(row for row in minute.rows() if row.name == "recall").p50_s is None


def test_without_a_sample_all_is_zero() -> None:
    assert not any(row.total for row in LastMinute().rows())
    assert LastMinute().memories_per_s() == 0.0


@each_case(
    ("buckets", "share", "value"),
    [
        ({}, 0.5, None),
        ({1.0: 0, INFINITE: 0}, 0.5, None),
        ({1.0: 10, INFINITE: 10}, 0.5, 0.5),
        ({1.0: 10, 2.0: 20, INFINITE: 20}, 0.95, 1.9),
        ({1.0: 0, 2.0: 4, INFINITE: 4}, 0.5, 1.5),
        ({1.0: 1, INFINITE: 100}, 0.95, 1.0),
    ],
)
def test_a_percentile_lies_within_its_bucket(
    buckets: dict[float, int], share: float, value: float | None
) -> None:
    assert percentile(buckets, share) == (
        None if value is None else pytest.approx(value)
    )
