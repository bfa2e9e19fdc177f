"""What nearness adds: it re-weighs what words found, and adds what is near enough."""

import pytest
from hypothesis import example, given, strategies as st

from mnemosyned.search.query import Nearness, ScoreBreakdown
from mnemosyned.search.scoring import add_similarity, embedding_text
from mnemosyned.search.weights import WEIGHTS


def blended(
    scores: dict[int, ScoreBreakdown], nearness: Nearness
) -> dict[int, ScoreBreakdown]:
    return add_similarity(scores, nearness, WEIGHTS)


def order(worth: dict[int, ScoreBreakdown]) -> list[int]:
    return sorted(worth, key=lambda position: -sum(worth[position]))


def test_without_a_vector_nothing_changes() -> None:
    worth = {1: ScoreBreakdown(words=3.0), 2: ScoreBreakdown(words=1.0, session=0.5)}

    assert blended(worth, Nearness()) == worth


def test_similarity_decides_between_equal_word_scores() -> None:
    worth = {1: ScoreBreakdown(words=3.0), 2: ScoreBreakdown(words=2.9)}

    scores = blended(worth, Nearness({1: 0.2, 2: 0.6}))

    assert order(scores) == [2, 1]
    assert scores[2].meaning == pytest.approx(WEIGHTS.meaning * 3.0)


def test_a_match_by_meaning_alone_ranks_below_the_best_by_words() -> None:
    nearness = Nearness({1: 0.1, 2: 0.9, 3: 0.3}, vector_only_min=0.4)

    scores = blended({1: ScoreBreakdown(words=3.0)}, nearness)

    assert order(scores) == [1, 2]


def test_without_a_matching_word_only_similar_memories_are_hits() -> None:
    nearness = Nearness({1: 0.39, 2: 0.41, 3: 0.8}, vector_only_min=0.4)

    assert order(blended({}, nearness)) == [3, 2]
    assert blended({}, Nearness({1: 0.39}, vector_only_min=0.4)) == {}


def test_a_memory_without_a_vector_keeps_its_rank() -> None:
    worth = {
        1: ScoreBreakdown(words=3.0),
        2: ScoreBreakdown(words=2.5),
        3: ScoreBreakdown(words=2.0),
    }

    scores = blended(worth, Nearness({1: 0.5, 3: 0.5}))

    assert order(scores) == [1, 2, 3]


def test_nearness_below_nothing_takes_nothing_away() -> None:
    worth = {1: ScoreBreakdown(words=3.0), 2: ScoreBreakdown(words=2.0)}

    assert blended(worth, Nearness({1: -0.4, 2: -0.1})) == worth


@given(
    st.dictionaries(st.integers(0, 30), st.floats(0.01, 50), min_size=1),
    st.dictionaries(st.integers(0, 60), st.floats(-1, 1)),
)
@example(worth={0: 2.0}, cosines={1: 5e-309})
def test_nothing_of_much_less_worth_passes_the_best_by_words(
    worth: dict[int, float], cosines: dict[int, float]
) -> None:
    given = {position: ScoreBreakdown(words=value) for position, value in worth.items()}
    best = max(worth, key=worth.__getitem__)

    scores = blended(given, Nearness(cosines, vector_only_min=0.0))

    slack = 1e-9 * worth[best]
    for position, parts in scores.items():
        if worth.get(position, 0.0) < (1 - WEIGHTS.meaning) * worth[best]:
            assert sum(parts) <= sum(scores[best]) + slack


def test_who_speaks_is_part_of_what_is_meant() -> None:
    assert embedding_text("Anna", "I paint.") == "Anna: I paint."
    assert embedding_text("", "a note") == "a note"
