"""What is left out before a row is read could not have been shown."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st

from mnemosyned.domain.recall import Found, Match, Query, rank, shortlist
from mnemosyned.domain.terms import terms

POSITIONS = st.integers(1, 60)
SCORES = st.dictionaries(POSITIONS, st.floats(0.001, 30), min_size=1, max_size=40)


@settings(deadline=None)
@given(
    scores=SCORES,
    limit=st.integers(1, 10),
    sessions=st.lists(st.sampled_from("ab"), min_size=61, max_size=61),
    importance=st.lists(st.sampled_from([0.0, 0.5, 1.0]), min_size=61, max_size=61),
)
def test_the_shortlist_leaves_out_nothing_that_would_be_shown(
    scores: dict[int, float], limit: int, sessions: list[str], importance: list[float]
) -> None:
    query = Query(terms=terms("anything"), limit=limit)

    def answer(positions: set[int]) -> list[float]:
        matches = [Match(at, scores[at], sessions[at], importance[at]) for at in sorted(positions)]
        return [round(place.score, 9) for place in rank(query, Found(matches))]

    assert answer(shortlist(scores, places=limit)) == answer(set(scores))
