"""Hostile texts: each verb takes time by their length, whatever they repeat."""

from __future__ import annotations

from math import inf

import pytest
from bench.bench_hostile import BAR_MS, TIMES, beside_many, whole
from bench.hostile import PATTERNS, Pattern

DANGEROUS = (
    "codes: '1%1%'",
    "data: '0,0,0,0\\n'", "secrets: 'token='", "secrets: 'key='", "secrets: 'eyJ-'",
    "made: counted instructions", "made: counted passwords and sums", "made: one Greek word",
    "made: b before a", "made: nested quotations", "scripts: '鑫'", "separators: '1 '",
    "separators: '1,'",
)  # fmt: skip
"""Each was slow once, or is of a kind with one that was."""
SMALL, LARGE = 10_000, 40_000
GROWTH_MAX = 3
"""A kilobyte of a longer text may take three times as long: the machine does other work."""
LONG_MS = GROWTH_MAX * BAR_MS


def test_there_are_patterns_of_many_kinds() -> None:
    names = {str(pattern) for pattern in PATTERNS}

    assert len(names) == len(PATTERNS) > 237
    assert names.issuperset(DANGEROUS)
    for pattern in PATTERNS:
        assert 990 <= len(pattern.text(1_000).encode()) <= 1_000


@pytest.mark.fault
@pytest.mark.parametrize("name", DANGEROUS)
def test_the_time_of_each_verb_grows_as_the_text_does(name: str) -> None:
    (pattern,) = (pattern for pattern in PATTERNS if str(pattern) == name)

    large = _least(pattern, LARGE)
    long = {verb for verb, ms in large.items() if ms > LONG_MS}

    # What a shorter text takes matters only where the longer one takes long.
    small = _least(pattern, SMALL) if long else {}
    slower = {
        verb: large[verb] for verb in long if large[verb] > GROWTH_MAX * small[verb]
    }
    assert slower == {}


@pytest.mark.fault
@pytest.mark.parametrize("name", DANGEROUS[:2])
def test_a_question_of_the_kind_over_many_such_texts_is_answered_in_time(
    name: str,
) -> None:
    (pattern,) = (pattern for pattern in PATTERNS if str(pattern) == name)

    slow = [
        timing
        for timing in beside_many(pattern, enough_ms=LONG_MS)
        if timing.ms_per_kb > LONG_MS
    ]

    assert slow == []


def _least(pattern: Pattern, size: int) -> dict[str, float]:
    """The least of several times of each verb, as some can be done but once in a memory."""
    least: dict[str, float] = {}
    for _ in range(TIMES):
        for timing in whole(pattern, size, enough_ms=LONG_MS):
            least[timing.verb] = min(timing.ms_per_kb, least.get(timing.verb, inf))
        if max(least.values()) <= LONG_MS:
            break
    return least
