import time

import pytest
from bench.token_texts import texts
from hypothesis import given, strategies as st
from support.cases import each_case

from mnemosyned.text.token_counts import (
    MARGIN,
    Chars4,
    CounterWithMargin,
    TokenEstimator,
)


@each_case(("text", "count"), [("", 1), ("abc", 1), ("abcdefg", 1), ("a" * 400, 100)])
def test_four_characters_are_a_token_and_every_text_is_one(
    text: str, count: int
) -> None:
    assert Chars4().count(text) == count


@each_case(("text", "real"), [
    ("The ferry to the island leaves twice a day.", 10),
    ("島へ向かうフェリーは一日に二便出る。", 22),
    ('{"id":4711,"tags":["a","b"],"ok":true}', 16),
    ("9f86d081884c7d659a2feaa0c55ad015", 19),
    ("Паром на остров отходит дважды в день.", 17),
    ("🎉🎉 Party 🥳", 10),
])  # fmt: skip
def test_the_estimate_is_near_what_cl100k_finds(text: str, real: int) -> None:
    assert TokenEstimator().count(text) == pytest.approx(real, rel=0.25, abs=2)


@given(st.text())
def test_any_text_that_shows_anything_is_at_least_a_token(text: str) -> None:
    estimate = TokenEstimator().count(text)

    assert TokenEstimator().count("") == 0
    assert estimate >= bool(text.strip())
    assert estimate <= 6 * len(text.encode(errors="replace")) + 1


@given(st.text(max_size=40), st.text(max_size=40))
def test_a_text_costs_about_as_much_as_its_parts(one: str, two: str) -> None:
    whole = TokenEstimator().count(one + "\n" + two)

    assert whole <= 3 * (TokenEstimator().count(one) + TokenEstimator().count(two)) + 4


def test_every_unit_that_is_measured_has_a_weight() -> None:
    written = "\n".join(text for of_kind in texts().values() for text in of_kind)

    assert TokenEstimator().count(written) > 0  # a unit without a weight is an error


@each_case("unit", ["Ab", "a", " ", "\x0b", "+/a1", "中", "Aa1/", "\n ", "=", "_"])
def test_an_endless_run_is_estimated_in_no_time(unit: str) -> None:
    text = unit * 50_000

    began = time.process_time()
    TokenEstimator().count(text)

    assert time.process_time() - began < 1


def test_a_margin_goes_on_top_and_into_the_name() -> None:
    counter = CounterWithMargin(Chars4())

    assert counter.count("a" * 400) == round(100 * (1 + MARGIN))
    assert counter.name == "chars4+20%"
