"""What a text says of a question's words, whatever the text repeats."""

from __future__ import annotations

import pytest
from support.cases import each_case

from mnemosyned.search import scoring as reading
from mnemosyned.search.query import Corpus
from mnemosyned.search.scoring import PLACES_MAX, TermReader
from mnemosyned.text.terms import parse_terms


def reader(question: str) -> TermReader:
    asked = parse_terms(question)
    return TermReader(
        asked,
        Corpus(count=10, average_chars=200, frequencies=dict.fromkeys(asked.words, 2)),
    )


@each_case(("text", "close"), [
    ("the ant met a bee", True),
    ("ant " * 90 + "bee", True),
    ("a bee " * 300 + "ant", False),
    ("bee " * 300 + "ant and then one two three four bee", False),
    ("ants were there, and the bees came", False),
    ("bee ant, ants beekeeper bees", True),
])  # fmt: skip
def test_neighboring_words_count_where_one_follows_the_other_closely(
    *, text: str, close: bool
) -> None:
    assert (reader("ant bee").read(text).phrase > 0) is close


def test_a_word_is_looked_for_at_a_limited_number_of_places(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    looked: list[int] = []
    look = reading._FormMatcher.weights_at  # noqa: SLF001 it is counted

    def counted(
        self: reading._FormMatcher, text: str, at: int
    ) -> list[tuple[int, float]]:
        looked.append(at)
        return look(self, text, at)

    monkeypatch.setattr(reading._FormMatcher, "weights_at", counted)  # noqa: SLF001

    said = reader("1%1%1%1 ant").read("1%" * 1_900 + " ant" * 20)

    assert len(looked) <= 2 * PLACES_MAX
    assert all(score > 0 for score in said.scores)
