from datetime import timedelta
from typing import Any

import pytest
from fakes import NOON, memory
from hypothesis import given
from hypothesis import strategies as st

from mnemosyned.domain.consolidation import make_episode
from mnemosyned.domain.memory import Memory, Tier
from mnemosyned.domain.recall import (
    LINES_MAX,
    SNIPPET_CHARS,
    Found,
    Hit,
    Match,
    Place,
    Query,
    Shown,
    hits,
    rank,
    snippet,
)
from mnemosyned.domain.terms import Terms, terms

EPISODE = make_episode(
    [memory("1"), memory("2")], id="e", content="the bike was stolen", summarizer="fake", now=NOON
)


def query(text: str = "bike", *, limit: int = 10, tier: Tier | None = None) -> Query:
    return Query(terms=terms(text), limit=limit, tier=tier)


def match(position: int, score: float = 1.0, **changes: Any) -> Match:  # noqa: ANN401
    return Match(position, score, **{"session": "s", **changes})


def order(*matches: Match) -> list[int | None]:
    return [place.memory for place in rank(query(), Found(matches))]


# ------------------------------------------------------------------- ranking


def test_nothing_found_has_no_place() -> None:
    assert rank(query(), Found()) == []


def test_the_best_score_comes_first() -> None:
    assert order(match(10, 1.0), match(20, 3.0), match(30, 2.0)) == [20, 30, 10]


def test_equal_scores_have_a_stable_order() -> None:
    assert order(match(30), match(10), match(20)) == [10, 20, 30]


def test_importance_decides_between_equals_but_is_never_a_match() -> None:
    important = match(20, 1.0, importance=1.0)

    assert order(match(10, 1.0, importance=0.0), important) == [20, 10]
    assert order(match(10, 1.2, importance=0.0), important) == [10, 20]


def test_a_match_gains_from_a_better_match_beside_it() -> None:
    alone = match(100, 1.5)

    assert order(match(1, 3.0), match(2, 1.0), alone) == [1, 2, 100]
    assert order(match(1, 3.0), match(9, 1.0), alone) == [1, 100, 9]


def test_neighbours_of_another_session_lend_nothing() -> None:
    places = rank(query(), Found([match(1, 1.0), match(2, 9.0, session="other")]))

    assert {place.memory: place.score for place in places} == {1: 1.0, 2: 9.0}


def test_the_limit_is_respected() -> None:
    found = Found([match(at) for at in range(20)])

    assert len(rank(query(limit=7), found)) == 7


def test_an_episode_has_one_place_with_its_best_lines_under_it() -> None:
    originals = [match(at * 10, float(at), episode=5) for at in range(1, 6)]

    places = rank(query(), Found(originals, {5: 1.0}))

    assert [place.episode for place in places] == [5]
    assert [position for position, _ in places[0].lines] == [50, 40, 30]
    assert len(places[0].lines) == LINES_MAX


def test_an_episode_is_found_by_its_originals_alone() -> None:
    places = rank(query(), Found([match(1, 2.0, episode=5)]))

    assert places == [Place(2.0, episode=5, lines=((1, 2.0),))]


def test_an_exact_original_outranks_a_summary_alone() -> None:
    places = rank(query(), Found([match(1, 2.0, episode=5)], {6: 2.0}))

    assert [place.episode for place in places] == [5, 6]


def test_further_lines_and_the_summary_add_to_an_episode() -> None:
    best, further = match(10, 2.0, episode=5), match(20, 2.0, episode=5)

    alone = rank(query(), Found([best]))[0].score

    assert rank(query(), Found([best, further]))[0].score > alone
    assert rank(query(), Found([best], {5: 2.0}))[0].score > alone


def test_asked_for_episodes_only_their_own_words_count() -> None:
    found = Found([match(1, 2.0, episode=5)], {6: 1.0})

    assert [place.episode for place in rank(query(tier=Tier.EPISODIC), found)] == [6]


def test_asked_for_the_archive_each_original_has_its_own_place() -> None:
    originals = Found([match(1, 2.0, episode=5), match(9, 1.0, episode=5)])

    places = rank(query(tier=Tier.ARCHIVE), originals)

    assert [(place.memory, place.episode) for place in places] == [(1, None), (9, None)]


# ---------------------------------------------------------------------- hits


def hit_of(said: Memory, question: str = "bike") -> Hit:
    return hits(query(question), [Place(1.0, memory=1)], Shown({1: said}, {}))[0]


def test_a_hit_tells_where_and_when_it_was_said() -> None:
    hit = hit_of(memory("1", session="s", source="chat", role="user", hours_ago=2))

    assert (hit.id, hit.tier, hit.score) == ("1", Tier.WORKING, 1.0)
    assert (hit.session, hit.source, hit.role) == ("s", "chat", "user")
    assert hit.created_at == NOON - timedelta(hours=2)


def test_an_episode_is_shown_by_the_line_that_matched() -> None:
    original = memory("1", "the bike is in the cellar", role="user")
    place = Place(1.0, episode=5, lines=((7, 0.5),))

    hit = hits(query(), [place], Shown({7: original}, {5: EPISODE}))[0]

    assert hit.snippet == "the bike is in the cellar"
    assert hit.content == "the bike was stolen"
    assert hit.summary_of == ("1", "2")
    assert [(line.id, line.role, line.score) for line in hit.lines] == [("1", "user", 0.5)]


def test_an_episode_that_matched_itself_is_shown_by_its_own_words() -> None:
    hit = hits(query(), [Place(1.0, episode=5)], Shown({}, {5: EPISODE}))[0]

    assert hit.snippet == "the bike was stolen"
    assert hit.lines == ()


def test_what_was_forgotten_meanwhile_is_left_out() -> None:
    places = [Place(2.0, memory=1), Place(1.5, episode=4), Place(1.0, episode=5, lines=((2, 1.0),))]

    answer = hits(query(), places, Shown({}, {5: EPISODE}))

    assert [(hit.id, hit.lines) for hit in answer] == [("e", ())]


# ------------------------------------------------------------------ snippets


def test_a_snippet_shows_the_place_that_matches() -> None:
    text = "lorem ipsum " * 60 + "the stolen bike was found " + "dolor sit " * 60

    hit = hit_of(memory("1", text), "stolen bikes")

    assert "stolen bike" in hit.snippet
    assert hit.snippet.startswith("…")
    assert hit.snippet.endswith("…")
    assert hit.content == text


@pytest.mark.parametrize("word", ["moved", "moving", "moves", "move"])
def test_a_snippet_finds_a_word_in_its_other_forms(word: str) -> None:
    text = "lorem ipsum " * 60 + "then she moved to Lisbon " + "dolor sit " * 60

    assert "moved to Lisbon" in hit_of(memory("1", text), word).snippet


def test_a_short_text_is_its_own_snippet() -> None:
    assert snippet("short", Terms((), ())) == "short"


@given(st.text(min_size=1, max_size=1_000), st.text(max_size=30))
def test_a_snippet_is_a_short_part_of_its_text(content: str, question: str) -> None:
    part = hit_of(memory("1", content), question).snippet

    assert len(part) <= SNIPPET_CHARS + 2
    assert part in content or part[1:] in content or part[:-1] in content or part[1:-1] in content
