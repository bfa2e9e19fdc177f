"""Tests by chance do the same in CI, and something else elsewhere, unless their seed is named."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from support.seeds import seed_of

TESTS = Path(__file__).parents[1]
BY_CHANCE = re.compile(r"random\.(seed|randrange|SystemRandom)\(|\bRandom\(\)")


def test_a_seed_is_the_same_in_ci(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("ANY_SEED", raising=False)
    monkeypatch.setenv("CI", "true")

    assert seed_of("ANY_SEED") == seed_of("ANY_SEED")


def test_a_seed_differs_elsewhere(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("ANY_SEED", raising=False)
    monkeypatch.delenv("CI", raising=False)

    assert len({seed_of("ANY_SEED") for _ in range(20)}) > 1


@pytest.mark.parametrize("ci", ["", "true"])
def test_a_seed_that_is_named_repeats_a_run(
    monkeypatch: pytest.MonkeyPatch, ci: str
) -> None:
    monkeypatch.setenv("CI", ci)
    monkeypatch.setenv("ANY_SEED", "895546")

    assert seed_of("ANY_SEED") == 895546


def test_no_test_has_a_seed_of_its_own_by_chance() -> None:
    own = [
        str(file.relative_to(TESTS))
        for file in TESTS.rglob("*.py")
        if file.name not in ("seeds.py", Path(__file__).name)
        and "bench" not in file.parts
        and BY_CHANCE.search(file.read_text("utf-8"))
    ]

    assert own == []
