from datetime import timedelta
from typing import Any

import pytest
from fakes import NOON, memory
from hypothesis import given
from hypothesis import strategies as st

from mnemosyned.domain.consolidation import make_episode
from mnemosyned.domain.memory import Episode, Memory, Tier
from mnemosyned.domain.recall import (
    LINES_MAX,
    SNIPPET_CHARS,
    Found,
    Match,
    Query,
    rank,
    snippet,
)
from mnemosyned.domain.terms import terms


def query(text: str = "bike", *, limit: int = 10, tier: Tier | None = None) -> Query:
    return Query(terms=terms(text), limit=limit, tier=tier)


def archived(id: str, *, episode: str = "e", content: str = "") -> Memory:
    return memory(id, content, tier=Tier.ARCHIVE, episode=episode)


def episode(id: str = "e", content: str = "the bike was stolen") -> Episode:
    return make_episode([memory("1")], id=id, content=content, summarizer="fake", now=NOON)


def found(*scored: tuple[Memory, float], apart: int = 10) -> Found:
    """Matches that stand too far from one another to lend each other their worth."""
    return Found(matches(*scored, apart=apart))


def matches(*scored: tuple[Memory, float], apart: int = 10) -> list[Match]:
    return [Match(memory, score, at * apart) for at, (memory, score) in enumerate(scored)]


def order(found: Found, asked: Query | None = None) -> list[str]:
    return [hit.id for hit in rank(asked or query(), found)]


def test_nothing_found_gives_no_hits() -> None:
    assert rank(query(), Found()) == []


def test_the_best_score_comes_first() -> None:
    assert order(found((memory("1"), 1.0), (memory("2"), 3.0), (memory("3"), 2.0))) == [*"231"]


def test_equal_scores_have_a_stable_order() -> None:
    equals = [(memory(id), 1.0) for id in "cab"]

    assert order(found(*equals)) == [*"abc"]
    assert order(found(*equals[::-1])) == [*"abc"]


def test_importance_decides_between_equals_but_is_never_a_match() -> None:
    plain, important = memory("1", importance=0.0), memory("2", importance=1.0)

    assert order(found((plain, 1.0), (important, 1.0))) == [*"21"]
    assert order(found((plain, 1.2), (important, 1.0))) == [*"12"]


def test_a_match_gains_from_a_better_match_beside_it() -> None:
    beside = [(memory("1"), 3.0), (memory("2"), 1.0)]
    alone = (memory("3"), 1.5)

    close = Found([*matches(*beside, apart=1), Match(*alone, 100)])
    far = found(*beside, alone)

    assert order(close) == [*"123"]
    assert order(far) == [*"132"]


@pytest.mark.parametrize("elsewhere", [{"session": "other"}, {"source": "other"}])
def test_neighbours_of_another_session_or_source_lend_nothing(elsewhere: dict[str, Any]) -> None:
    one, other = memory("1"), memory("2", **elsewhere)

    scores = {hit.id: hit.score for hit in rank(query(), found((one, 1), (other, 9), apart=1))}

    assert scores == {"1": 1, "2": 9}


def test_the_limit_is_respected() -> None:
    many = found(*((memory(str(at)), 1.0) for at in range(20)))

    assert len(rank(query(limit=7), many)) == 7


def test_an_episode_has_one_place_with_its_best_lines_under_it() -> None:
    originals = matches(*((archived(str(at)), float(at)) for at in range(1, 6)))

    hits = rank(query(), Found(originals, {"e": episode()}, {"e": 1.0}))

    assert [hit.id for hit in hits] == ["e"]
    assert [line.id for line in hits[0].lines] == ["5", "4", "3"]
    assert len(hits[0].lines) == LINES_MAX


def test_an_episode_is_found_by_its_originals_alone() -> None:
    hits = rank(query(), Found(matches((archived("1"), 2.0)), {"e": episode()}))

    assert [(hit.id, hit.tier) for hit in hits] == [("e", Tier.EPISODIC)]


def test_an_exact_original_outranks_a_summary_alone() -> None:
    both = {"e": episode(), "other": episode("other")}

    assert order(Found(matches((archived("1"), 2.0)), both, {"other": 2.0})) == ["e", "other"]


def test_further_lines_and_the_summary_add_to_an_episode() -> None:
    best, further = (archived("1"), 2.0), (archived("2"), 2.0)
    one = Found(matches(best), {"e": episode()})
    two = Found(matches(best, further), {"e": episode()})
    summary_too = Found(matches(best), {"e": episode()}, {"e": 2.0})

    scores = [rank(query(), found)[0].score for found in (one, two, summary_too)]

    assert scores[0] < scores[1]
    assert scores[0] < scores[2]


def test_asked_for_episodes_only_their_own_words_count() -> None:
    both = {"e": episode(), "f": episode("f")}

    asked = query(tier=Tier.EPISODIC)

    assert order(Found(matches((archived("1"), 2.0)), both, {"f": 1.0}), asked) == ["f"]


def test_an_episode_is_shown_by_the_line_that_matched() -> None:
    original = archived("1", content="the bike is in the cellar")

    hit = rank(query(), Found(matches((original, 1.0)), {"e": episode()}))[0]

    assert hit.snippet == "the bike is in the cellar"
    assert hit.content == "the bike was stolen"
    assert hit.created_at == NOON
    assert hit.lines[0].created_at == NOON


def test_a_snippet_shows_the_place_that_matches() -> None:
    text = "lorem ipsum " * 60 + "the stolen bike was found " + "dolor sit " * 60
    hit = rank(query("stolen bikes"), found((memory("1", text), 1.0)))[0]

    assert "stolen bike" in hit.snippet
    assert hit.snippet.startswith("…")
    assert hit.snippet.endswith("…")
    assert hit.content == text


@pytest.mark.parametrize("word", ["moved", "moving", "moves", "move"])
def test_a_snippet_finds_a_word_in_its_other_forms(word: str) -> None:
    text = "lorem ipsum " * 60 + "then she moved to Lisbon " + "dolor sit " * 60

    hit = rank(query(word), found((memory("1", text), 1.0)))[0]

    assert "moved to Lisbon" in hit.snippet


def test_a_short_text_is_its_own_snippet() -> None:
    assert snippet("short", None) == "short"


@given(st.text(max_size=1_000), st.text(max_size=30))
def test_a_snippet_is_a_short_part_of_its_text(content: str, question: str) -> None:
    hit = rank(query(question), found((memory("1", content or "x"), 1.0)))[0]

    part = hit.snippet
    assert len(part) <= SNIPPET_CHARS + 2
    assert part in hit.content or part.strip("…") in hit.content


def test_a_hit_tells_where_and_when_it_was_said() -> None:
    said = memory("1", session="s", source="chat", role="user", hours_ago=2)

    hit = rank(query(), found((said, 1.0)))[0]

    assert (hit.session, hit.source, hit.role) == ("s", "chat", "user")
    assert hit.created_at == NOON - timedelta(hours=2)
    assert hit.tier is Tier.WORKING
