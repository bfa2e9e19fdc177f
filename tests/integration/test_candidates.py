"""Which memories the store hands to the ranking, against a plain look at every one of them."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import chain, combinations, pairwise
from random import Random
from typing import Any

import pytest
from hypothesis import given, strategies as st
from support.fakes import NOON, memory, remember_batch

from mnemosyned.memory.values import Tier
from mnemosyned.search.query import Query, SearchCandidates
from mnemosyned.search.words import WEIGHTS
from mnemosyned.storage.sqlite import filters
from mnemosyned.storage.sqlite.search import GAP_MIN, STRETCHES_MAX, covering_ranges
from mnemosyned.storage.sqlite.store import SqliteStore
from mnemosyned.text.terms import parse_terms

COMMON = {"amber": 0.005, "birch": 0.03, "cobalt": 0.1, "delta": 0.4, "ember": 0.7}
"""Words, and the share of all texts that have each."""
QUESTIONS = [*chain.from_iterable(combinations(COMMON, count) for count in range(1, 6))]


@pytest.fixture
def texts(store: SqliteStore) -> dict[int, str]:
    """Memories by their position in the store, no two alike, nor alike but for figures."""
    rng = Random(3)
    said = [
        " ".join(
            [
                *(word for word, share in COMMON.items() if rng.random() < share),
                _name(at),
            ]
        )
        for at in range(400)
    ]
    remember_batch(
        store,
        *(
            memory(str(at), text, session=f"talk {at % 7}", source=f"app {at % 2}")
            for at, text in enumerate(said)
        ),
    )
    return dict(enumerate(said, 1))


def _name(at: int) -> str:
    """A word of letters for each number."""
    return "note" + "".join(chr(ord("a") + int(figure)) for figure in str(at))


def found(
    store: SqliteStore,
    *words: str,
    limit: int,
    **where: Any,  # noqa: ANN401
) -> SearchCandidates:
    return store.search.candidates(
        Query(terms=parse_terms(" ".join(words)), limit=limit, **where)
    )


def left(worths: Mapping[int, float], whole: float, limit: int) -> set[int]:
    """What there is room for: the rule, applied to all memories with any of the words."""
    ranked = sorted(((worth, at) for at, worth in worths.items()), reverse=True)
    most = ranked[0][0]
    kept = (2 if most == pytest.approx(whole) else 4) * limit
    return {
        position
        for place, (worth, position) in enumerate(ranked[: WEIGHTS.min_total])
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

        matched = {
            match.position: match.score for match in answer.memories if match.score
        }
        assert {at: round(worth, 9) for at, worth in matched.items()} == {
            at: worths[at] for at in expected
        }, words


@pytest.mark.usefixtures("texts")
def test_a_question_asked_again_has_the_same_candidates(store: SqliteStore) -> None:
    for words in QUESTIONS:
        assert found(store, *words, limit=5) == found(store, *words, limit=5)


@pytest.mark.usefixtures("texts")
def test_beside_one_that_has_every_word_fewer_are_kept(store: SqliteStore) -> None:
    remember_batch(store, memory("both", "zeppelin delta"))

    def count(*words: str) -> int:
        return sum(match.score > 0 for match in found(store, *words, limit=5).memories)

    assert count("delta") == WEIGHTS.min_total
    assert count("zeppelin", "delta") == 5
    assert count("birch", "cobalt", "zeppelin") > 10


@pytest.mark.usefixtures("texts")
@pytest.mark.parametrize(
    "where",
    [
        {"sessions": ("talk 3",)},
        {"sessions": ("talk 1", "talk 2")},
        {"sessions": ("talk 5",), "sources": ("app 1",)},
        {"sessions": ("talk 5",), "tier": Tier.WORKING},
        {"sessions": ("talk 5",), "tier": Tier.ARCHIVE},
        {"sessions": ("talk 5",), "since": NOON},
        {"sessions": ("nobody",)},
    ],
)
def test_rows_named_beforehand_narrow_as_the_filters_do(
    store: SqliteStore, monkeypatch: pytest.MonkeyPatch, where: dict[str, Any]
) -> None:
    named = [found(store, *words, limit=5, **where) for words in QUESTIONS]

    monkeypatch.setattr(filters, "FEW_MAX", -1)

    assert [found(store, *words, limit=5, **where) for words in QUESTIONS] == named


@given(st.sets(st.integers(1, 60_000), min_size=1, max_size=60))
def test_few_stretches_hold_all_rows_and_leave_out_the_widest_gaps(
    rows: set[int],
) -> None:
    ordered = sorted(rows)

    found = covering_ranges(ordered)

    assert len(found) <= STRETCHES_MAX
    assert all(any(first <= row <= last for first, last in found) for row in rows)
    gaps = [after - last for (_, last), (after, _) in pairwise(found)]
    inside = [
        later - row
        for first, last in found
        for row, later in pairwise(at for at in ordered if first <= at <= last)
    ]
    assert min(gaps, default=GAP_MIN) >= GAP_MIN
    if len(found) < STRETCHES_MAX:
        assert max(inside, default=0) < GAP_MIN
    else:
        assert max(inside, default=0) <= min(gaps)
