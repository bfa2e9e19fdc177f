"""What nearness adds: it re-weighs what words found, and leads where no words do."""

from datetime import datetime, timedelta
from typing import Any

from hypothesis import example, given, strategies as st
from support.cases import each_case
from support.fakes import NOON

from mnemosyned.search.query import (
    Corpus,
    Match,
    Nearness,
    Query,
    RankedResult,
    ScoreBreakdown,
    SearchCandidates,
)
from mnemosyned.search.ranking import _lift_nearest, _order_results, rank
from mnemosyned.search.scoring import add_similarity, embedding_text
from mnemosyned.search.weights import WEIGHTS
from mnemosyned.text.dates.questions import TimeSpan
from mnemosyned.text.terms import parse_terms

LONG = WEIGHTS.meaning_chars
LONG_AGO = NOON - timedelta(days=900)


def blended(
    scores: dict[int, ScoreBreakdown],
    nearness: Nearness,
    *,
    covered: float = 1.0,
    chars: int = LONG,
) -> dict[int, ScoreBreakdown]:
    """The scores for a question that a text with all its words answers with 3.0."""
    lengths = dict.fromkeys([*scores, *nearness.cosines], chars)
    return add_similarity(scores, nearness, lengths, possible=3.0, covered=covered)


def by_words(*scores: float) -> dict[int, ScoreBreakdown]:
    return {
        number: ScoreBreakdown(words=score) for number, score in enumerate(scores, 1)
    }


def order(scores: dict[int, ScoreBreakdown]) -> list[int]:
    return sorted(scores, key=lambda position: -sum(scores[position]))


def test_without_a_vector_or_below_nothing_nearness_changes_nothing() -> None:
    scores = {1: ScoreBreakdown(words=3.0), 2: ScoreBreakdown(words=1.0, session=0.5)}

    assert blended(scores, Nearness()) == scores
    assert blended(scores, Nearness({1: -0.4, 2: -0.1})) == scores
    assert blended({}, Nearness({1: 0.39}, vector_only_min=0.4)) == {}


@each_case(("words", "cosines", "vector_only_min", "covered", "places"), [
    ((3.0, 2.9), {1: 0.2, 2: 0.6}, None, 1.0, [2, 1]),  # between equals it decides
    ((3.0,), {1: 0.1, 2: 0.9, 3: 0.3}, 0.4, 1.0, [1, 2]),  # words that cover the question lead
    ((0.9,), {1: 0.1, 2: 0.6}, 0.2, 0.1, [2, 1]),  # it leads where no memory has the words
    ((), {1: 0.39, 2: 0.41, 3: 0.8}, 0.4, 1.0, [3, 2]),  # without words, the similar alone are hits
    ((3.0, 2.5, 2.0), {1: 0.5, 3: 0.5}, None, 1.0, [1, 2, 3]),  # one without a vector keeps its rank
])  # fmt: skip
def test_similarity_and_words_share_the_order(
    words: tuple[float, ...],
    cosines: dict[int, float],
    vector_only_min: float | None,
    covered: float,
    places: list[int],
) -> None:
    least = {} if vector_only_min is None else {"vector_only_min": vector_only_min}

    scores = blended(by_words(*words), Nearness(cosines, **least), covered=covered)

    assert order(scores) == places


def lifted(
    words: str,
    *texts: str,
    near: dict[int, float],
    episodes: dict[int, int] | None = None,
    spans: tuple[TimeSpan, ...] = (),
    at: dict[int, datetime] | None = None,
) -> list[int]:
    """The memories shown by the results of a question, of the texts with numbers from 1 on."""
    asked = Query(terms=parse_terms(words), limit=10, spans=spans, now=NOON)
    found = [
        Match(
            number,
            3.0 if set(words.split()) & set(text.split()) else 0.0,
            f"session {number}",
            content=text.ljust(LONG, "."),
            episode=(episodes or {}).get(number),
            created_at=(at or {}).get(number, LONG_AGO),
        )
        for number, text in enumerate(texts, 1)
    ]
    corpus = Corpus(
        count=1_000, frequencies=dict.fromkeys(asked.terms.words, 10), average_chars=60
    )
    cosines = dict.fromkeys(range(1, len(texts) + 1), 0.1) | near
    nearness = Nearness(cosines, vector_only_min=0.2)
    results = rank(asked, SearchCandidates(found, corpus=corpus, nearness=nearness))
    return [result.positions[0] for result in results]


ACCIDENTAL = tuple(f"the boiler of house number {street}" for street in "abcdefg")


ASKED = "boiler lifetime valve"
NEAREST = (*ACCIDENTAL, "heating", "warm water")
DAY = TimeSpan(NOON, NOON + timedelta(hours=1))


def test_the_nearest_come_among_the_first_where_words_cover_little() -> None:
    near = {8: 0.25, 9: 0.24}

    covered = lifted("boiler", *NEAREST, near=near)
    uncovered = lifted(ASKED, *NEAREST, near=near)
    nearer = lifted(ASKED, *NEAREST, near={uncovered[0]: 0.3, **near})

    assert not {8, 9} & set(covered[:5])
    assert {8, 9} <= set(uncovered[:5])
    assert nearer[0] == uncovered[0]  # and takes no place from the next nearest
    assert {8, 9} <= set(nearer[:5])


@each_case(("near", "given", "is_among_the_first"), [
    ({8: 0.25}, {"episodes": {number: 100 + number for number in range(1, 9)}}, True),
    ({8: 0.25}, {"spans": (DAY,)}, True),
    ({8: 0.25}, {"spans": (DAY,), "at": {1: NOON}}, False),
    ({**dict.fromkeys(range(1, 8), 0.5), 8: 0.3}, {}, False),
])  # fmt: skip
def test_the_nearest_comes_first_unless_time_or_a_nearer_one_with_words_is_found(
    near: dict[int, float], given: dict[str, Any], *, is_among_the_first: bool
) -> None:
    shown = lifted(ASKED, *ACCIDENTAL, "heating", near=near, **given)

    assert (8 in shown[:5]) is is_among_the_first


def test_no_memory_gets_a_place_for_its_meaning_where_none_is_near() -> None:
    unlike = lifted(ASKED, *NEAREST, near=dict.fromkeys(range(1, 10), -0.1))

    assert unlike[:5] == lifted("boiler", *NEAREST, near={})[:5]


def test_a_memory_behind_an_episode_is_not_lowered_to_its_place() -> None:
    results = [RankedResult(10.0 - number, number) for number in range(8)]
    scores = {
        number: ScoreBreakdown(words=10.0 - number, meaning=0.1) for number in range(8)
    }
    hidden = {9: ScoreBreakdown(words=8.0, meaning=5.0)}
    low = {10: ScoreBreakdown(words=0.5, meaning=4.0)}

    lifted = _lift_nearest(results, scores | hidden | low, 0.0)

    assert 10 in lifted
    assert 9 not in lifted


def test_an_episode_does_not_raise_a_lifted_memory_further() -> None:
    scores = {1: ScoreBreakdown(words=10.0), 2: ScoreBreakdown(words=1.0, meaning=8.9)}
    matches = {
        number: Match(number, 1.0, "talk", episode=100 + number) for number in scores
    }
    asked = Query(terms=parse_terms(ASKED), limit=10)
    found = SearchCandidates(list(matches.values()), episodes={102: 40.0})

    likest, _ = _order_results(asked, found, scores, matches)
    first, lifted = _order_results(asked, found, scores, matches, {2})

    assert (likest.episode, first.episode, lifted.score) == (102, 101, 9.9)


def test_a_text_of_a_few_characters_is_near_by_chance() -> None:
    nearness = Nearness({1: 0.5})

    short = blended(by_words(1.0), nearness, chars=LONG // 4)[1].meaning
    long = blended(by_words(1.0), nearness)[1].meaning

    assert 0 < short < long
    assert long == blended(by_words(1.0), nearness, chars=4 * LONG)[1].meaning


@given(
    st.dictionaries(st.integers(0, 30), st.floats(0.01, 50), min_size=1),
    st.dictionaries(st.integers(0, 60), st.floats(-1, 1)),
)
@example(words={0: 2.0}, cosines={1: 5e-309})
def test_nothing_of_much_less_worth_passes_a_text_with_all_words(
    words: dict[int, float], cosines: dict[int, float]
) -> None:
    given = {position: ScoreBreakdown(words=value) for position, value in words.items()}
    best = max(words, key=words.__getitem__)
    given[best] = ScoreBreakdown(words=max(3.0, words[best]))

    scores = blended(given, Nearness(cosines, vector_only_min=0.0))

    slack = 1e-9 * sum(given[best])
    for position, parts in scores.items():
        own = sum(given.get(position, ScoreBreakdown()))
        if own < (1 - WEIGHTS.meaning) * sum(given[best]):
            assert sum(parts) <= sum(scores[best]) + slack


def test_who_speaks_is_part_of_what_is_meant() -> None:
    assert embedding_text("Anna", "I paint.") == "Anna: I paint."
    assert embedding_text("", "a note") == "a note"
    assert embedding_text("user", "I paint.") == "I paint."
