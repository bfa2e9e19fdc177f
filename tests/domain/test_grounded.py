"""What is kept of a larger model's answer that was refused twice."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime
from functools import partial

import pytest

from mnemosyned.summary.chunking import Piece
from mnemosyned.summary.grounding.check import (
    SummaryProblem,
    check_grounding,
    is_confirmed,
    select_grounded_sentences,
)

WHEN = datetime(2023, 5, 8, 13, 56, tzinfo=UTC)
SOURCES = [
    Piece("1", "I bought a green kayak in Oslo. I never sold the canoe.", WHEN, "Ana"),
    Piece("2", "I rented a cabin near Bergen for the summer.", WHEN, "Ben"),
]


def problems(text: str) -> Sequence[SummaryProblem]:
    return check_grounding(text, SOURCES, chars_max=400)


salvaged = partial(select_grounded_sentences, judge=problems, sources=SOURCES)


def test_only_the_invented_sentence_is_dropped() -> None:
    answer = "Ana bought a green kayak in Oslo. She paid 900 euros. Ben rented a cabin."

    assert salvaged(answer) == "Ana bought a green kayak in Oslo. Ben rented a cabin."


def test_an_answer_is_cut_where_it_begins_to_repeat() -> None:
    answer = "Ben rented a cabin. Ana bought a kayak. Ben rented a cabin. Ana sold it."

    assert salvaged(answer) == "Ben rented a cabin. Ana bought a kayak."


def test_an_answer_without_a_fault_in_a_sentence_gains_nothing() -> None:
    assert salvaged("Ana bought a green kayak in Oslo.") == ""


@pytest.mark.parametrize(
    "sentence",
    [
        "Ben bought a green kayak.",
        "Ana sold the canoe.",
        "Ana never bought a green kayak.",
        "Ana bought a green kayak for her brother.",
        "Ben rented a kayak near Bergen in the summer.",
        "They talked.",
    ],
)
def test_what_nobody_said_is_in_doubt(sentence: str) -> None:
    assert not is_confirmed(sentence, SOURCES)


def test_what_somebody_said_may_be_told_of_them() -> None:
    assert is_confirmed("Ana never sold the canoe.", SOURCES)
    assert is_confirmed("Ben rented a cabin near Bergen.", SOURCES)
