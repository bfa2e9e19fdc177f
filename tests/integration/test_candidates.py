"""Which memories the store hands to the ranking, against a plain look at every one of them."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import chain, combinations
from random import Random

import pytest
from fakes import keep, memory

from mnemosyned.domain.recall import Found, Query
from mnemosyned.domain.terms import terms
from mnemosyned.storage.sqlite.search import CANDIDATES_MIN
from mnemosyned.storage.sqlite.store import SqliteStore

COMMON = {"amber": 0.005, "birch": 0.03, "cobalt": 0.1, "delta": 0.4, "ember": 0.7}
"""Words, and the share of all texts that have each."""
QUESTIONS = [*chain.from_iterable(combinations(COMMON, count) for count in range(1, 6))]


@pytest.fixture
def texts(store: SqliteStore) -> dict[int, str]:
    """Memories by their position in the store, no two alike."""
    rng = Random(3)
    said = [
        " ".join([*(word for word, share in COMMON.items() if rng.random() < share), f"note{at}"])
        for at in range(400)
    ]
    keep(store, *(memory(str(at), text) for at, text in enumerate(said)))
    return dict(enumerate(said, 1))


def found(store: SqliteStore, *words: str, limit: int) -> Found:
    return store.search(Query(terms=terms(" ".join(words)), limit=limit))


def left(worths: Mapping[int, float], whole: float, limit: int) -> set[int]:
    """What there is room for: the rule, applied to all memories with any of the words."""
    ranked = sorted(((worth, at) for at, worth in worths.items()), reverse=True)
    most = ranked[0][0]
    kept = (2 if most == pytest.approx(whole) else 4) * limit
    return {
        position
        for place, (worth, position) in enumerate(ranked[:CANDIDATES_MIN])
        if place < limit or worth >= most / 2 or (place < kept and worth >= most / 4)
    }


@pytest.mark.parametrize("limit", [1, 3, 10])
def test_the_candidates_are_those_that_a_look_at_every_memory_would_leave(
    store: SqliteStore, texts: Mapping[int, str], limit: int
) -> None:
    for words in QUESTIONS:
        answer = found(store, *words, limit=limit)
        idf = {word: answer.corpus.idf(word) for word in words}
        worths = {
            at: round(sum(idf[word] for word in idf if word in text.split()), 9)
            for at, text in texts.items()
            if not idf.keys().isdisjoint(text.split())
        }

        expected = left(worths, sum(idf.values()), limit)

        assert {match.position for match in answer.memories} == expected, words
        assert {match.position: round(match.score, 9) for match in answer.memories} == {
            at: worths[at] for at in expected
        }


@pytest.mark.usefixtures("texts")
def test_a_question_asked_again_has_the_same_candidates(store: SqliteStore) -> None:
    for words in QUESTIONS:
        assert found(store, *words, limit=5) == found(store, *words, limit=5)


@pytest.mark.usefixtures("texts")
def test_beside_one_that_has_every_word_fewer_are_kept(store: SqliteStore) -> None:
    keep(store, memory("both", "zeppelin delta"))

    assert len(found(store, "delta", limit=5).memories) == CANDIDATES_MIN
    assert len(found(store, "zeppelin", "delta", limit=5).memories) == 5
    assert len(found(store, "birch", "cobalt", "zeppelin", limit=5).memories) > 10
