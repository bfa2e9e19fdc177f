"""What a candidate is worth: each part of the score, and one place for what says the same."""

from datetime import datetime, timedelta
from typing import Any

import pytest
from hypothesis import given, strategies as st
from support.cases import each_case
from support.fakes import NOON

from mnemosyned.memory.values import DEFAULT_SESSION, Tier
from mnemosyned.search.query import (
    Corpus,
    Match,
    Query,
    RankedResult,
    SearchCandidates,
    expected_answer,
)
from mnemosyned.search.ranking import are_crowded, rank
from mnemosyned.search.scoring import question_share
from mnemosyned.text.dates.spans import TimeSpan
from mnemosyned.text.terms import parse_terms

COUNT = 10_000


def query(text: str = "bike", *, limit: int = 10, tier: Tier | None = None) -> Query:
    return Query(terms=parse_terms(text), limit=limit, tier=tier)


def match(position: int, content: str = "a bike", **changes: Any) -> Match:  # noqa: ANN401
    """A candidate whose text says everything, seconds after the one before it."""
    when = NOON + timedelta(seconds=position)
    return Match(
        position,
        **{
            "score": 1.0,
            "session": "s",
            "content": content,
            "created_at": when,
            **changes,
        },
    )


def far(position: int, content: str = "a bike", **changes: Any) -> Match:  # noqa: ANN401
    """A candidate of a session of its own: nothing lends it anything."""
    return match(position, content, **{"session": str(position), **changes})


def beside(position: int, content: str = "no such word") -> Match:
    """What stands beside a match and has no word of the question."""
    return match(position, content, score=0.0)


def ranked(
    asked: Query, *matches: Match, frequencies: dict[str, int] | None = None
) -> list[RankedResult]:
    known = dict.fromkeys(asked.terms.words, 100) | (frequencies or {})
    corpus = Corpus(count=COUNT, average_chars=20, frequencies=known)
    return rank(asked, SearchCandidates(matches, corpus=corpus))


def order(text: str, *matches: Match, **known: Any) -> list[int | None]:  # noqa: ANN401
    return [place.memory for place in ranked(query(text), *matches, **known)]


# --------------------------------------------------------------------- words


def test_nothing_found_has_no_place() -> None:
    assert rank(query(), SearchCandidates()) == []


@each_case(
    ("why", "text", "worse", "better"),
    [
        ("more words of the question", "stolen bike", "a bike", "the bike was stolen"),
        ("a short text", "bike", "bike " + "and so on " * 50, "my bike"),
        ("another form of a word", "buying a car", "a car", "bought a car"),
        ("another form of a word", "the child's car", "a car", "children and a car"),
        ("another form of a word", "cars moved", "a car", "moving a car"),
        ("a word as typed", "meetings", "one meeting", "two meetings"),
        ("a code without its stem", "error x4s", "error x4", "error x4s"),
        (
            "words that stand together as asked",
            "black mill",
            "peter said that the mill is closed and that ann will not black it out",
            "peter said that the black mill is closed and ann will not take it out",
        ),
        ("the later of equals", "bike", "bike red", "bike tan"),
    ],
)
def test_a_text_ranks_higher_for(why: str, text: str, worse: str, better: str) -> None:
    assert order(text, far(1, worse), far(2, better)) == [2, 1], why


def test_a_rare_word_counts_for_more_than_a_common_one() -> None:
    matches = far(1, "the red one"), far(2, "the bike one")

    assert order("red bike", *matches, frequencies={"red": 3_000, "bike": 3}) == [2, 1]
    assert order("red bike", *matches, frequencies={"red": 3, "bike": 3_000}) == [1, 2]


def test_what_stands_beyond_what_is_read_counts_as_in_a_long_text() -> None:
    long = far(1, "and so on " * 500, score=9.0)

    assert order("bike", long, far(2, "bike")) == [2, 1]
    assert order("bike", long, far(2, "bike", score=0.0), frequencies={"bike": 1}) == [
        1
    ]


# ---------------------------------------------------------------- neighbors


def test_a_match_gains_from_what_stands_beside_it() -> None:
    talk = match(1, "my bike"), match(2, "stolen yesterday")
    alone = far(100, "was stolen today")

    places = order("stolen bike", *talk, alone)

    assert places.index(2) < places.index(100)


def test_an_answer_beside_the_question_is_found_without_a_word_of_it() -> None:
    assert order("bike", match(1), beside(2, "yes"), beside(3, "no"), beside(4)) == [
        1,
        2,
        3,
    ]


@each_case(
    "changes",
    [
        {"session": "other"},
        {"source": "other"},
        {"created_at": NOON + timedelta(hours=3)},
    ],
)
def test_an_unrelated_neighbor_adds_nothing_to_a_score(
    changes: dict[str, Any],
) -> None:
    stranger = beside(2)._replace(**changes)

    assert order("bike", match(1), stranger) == [1]


def test_memories_without_a_session_are_no_talk() -> None:
    matches = [match(at)._replace(session=DEFAULT_SESSION) for at in (1,)]

    assert order("bike", *matches, beside(2)._replace(session=DEFAULT_SESSION)) == [1]


def test_the_store_says_who_stands_beside_whom() -> None:
    asked = query()
    corpus = Corpus(count=COUNT, frequencies={"bike": 5})
    found = SearchCandidates([match(1), beside(9)], beside={1: [(9, 1)]}, corpus=corpus)

    assert [place.memory for place in rank(asked, found)] == [1, 9]


def test_a_sitting_that_speaks_of_all_of_it_lifts_its_lines() -> None:
    sitting = match(1, "my bike"), match(50, "stolen")
    alone = far(100, "a bike")

    places = order("stolen bike", *sitting, alone)

    assert places.index(1) < places.index(100)


# -------------------------------------------------------------------- priors


def test_the_one_asked_about_counts_when_speaking() -> None:
    said = [far(1, "I have a bike", role="Bob"), far(2, "I have a bike", role="Ann")]

    assert order("Ann's bike", *said) == [2, 1]


def test_a_line_that_asks_is_seldom_the_answer() -> None:
    assert order("bike", far(2, "a red bike?"), far(1, "a red bike.")) == [1, 2]


@each_case(
    ("text", "share"),
    [
        ("", 0.0),
        ("A red bike.", 0.0),
        ("Is it red?", 1.0),
        ("Is it red? It is.", 0.0),
        ("买了吗？", 1.0),
        ("???", 0.0),
    ],
)
def test_a_text_asks_if_it_ends_in_a_question(text: str, share: float) -> None:
    assert question_share(text) == share


def test_what_adds_nothing_to_the_question_is_seldom_the_answer() -> None:
    agreement = far(2, "Yeah, a kayak, that does sound great! Let me know how it was.")
    answer = far(1, "Rented a kayak in Leipzig, at the lake, for two days in June.")

    assert order("kayak", agreement, answer) == [1, 2]


@pytest.mark.parametrize(("text", "loses"), [
    ("A bike, yes, I know! That is so nice of you, thank you!", True),
    ("The bikes are what they are, I guess.", True),
    ("Jonas has the bike", False),
    ("bike 自行车在车库里", False),
    ("bike lock: brass, blue cap, key hung behind cellar door beside fuse box", False),
    ("bike " + "so " * 100, False),
], ids=["chatter", "other form", "short fact", "unspaced", "substance", "long"])  # fmt: skip
def test_only_chatter_without_words_of_its_own_says_little(
    text: str, *, loses: bool
) -> None:
    [result] = ranked(query(), far(1, text))

    assert (result.parts.little < 0) == loses


def test_a_fact_before_a_request_keeps_most_of_its_score() -> None:
    fact = far(
        1, "My bike has a flat rear tire since the ride to the lake. Can you help?"
    )
    question = far(
        2, "Does the bike in question have a flat rear tire, or the one there?"
    )

    by_position = {
        place.memory: place.parts
        for place in ranked(query("flat tire bike"), fact, question)
    }

    assert 2 * by_position[1].asks > by_position[2].asks
    assert by_position[1].asks < 0


def test_the_line_after_a_question_gains_more_than_the_line_before_it() -> None:
    asked = match(2, "where is the bike?")
    before, after = beside(1, "hello there"), beside(3, "in the cellar")

    places = order("bike", before, asked, after)

    assert places.index(3) < places.index(1)


@each_case(
    ("text", "first"),
    [("which bike", "user"), ("which bike did you suggest", "assistant")],
)
def test_the_user_or_the_assistant_ranks_first_as_asked(text: str, first: str) -> None:
    expected = expected_answer(text)
    asked = Query(terms=parse_terms("bike"), limit=10, expected=expected)
    said = [far(1, role="user"), far(2, role="assistant")]

    roles = [said[(place.memory or 0) - 1].role for place in ranked(asked, *said)]

    assert roles[0] == first


def test_a_line_with_a_time_ranks_first_for_when() -> None:
    expected = expected_answer("when was the bike stolen")
    asked = Query(terms=parse_terms("bike stolen"), limit=10, expected=expected)
    plain = far(2, "the bike was stolen in a very bad way")
    dated = far(1, "the bike was stolen there last Friday")

    assert ranked(asked, plain, dated)[0].memory == 1


def test_a_very_long_sitting_lends_less() -> None:
    short = match(1, "my bike"), match(50, "stolen")
    long = match(1, "my bike"), match(50, "stolen" + " and so on" * 2_000)

    lent = [ranked(query("stolen bike"), *sitting) for sitting in (short, long)]
    shares = [
        place.parts.session for places in lent for place in places if place.memory == 1
    ]

    assert shares[0] > shares[1] > 0


def test_importance_decides_between_equals_but_is_never_a_match() -> None:
    dull, important = far(2, "my bike", importance=0.0), far(1, importance=1.0)
    better = far(2, "the stolen bike", importance=0.0)

    assert order("stolen bike", dull, important) == [1, 2]
    assert order("stolen bike", better, important) == [2, 1]


def dated(position: int, when: datetime, content: str = "a bike") -> Match:
    return far(position, content, created_at=when)


@each_case(
    ("text", "source"),
    [
        ("which photo shows the bike", "photos"),
        ("a picture of the bike", "photos"),
        ("who called about the bike", "call-log"),
        ("the Signal message about a bike", "signal"),
        ("welches Foto zeigt das bike", "photos"),
    ],
)
def test_the_source_named_in_the_question_ranks_first(text: str, source: str) -> None:
    assert order(text, far(1, source=source), far(2, source="git")) == [1, 2]


def test_many_that_differ_in_figures_alone_leave_no_room_to_others() -> None:
    notices = [f"parcel {number} was delivered" for number in range(40)]

    assert are_crowded(notices, 10)
    assert are_crowded(["the same"] * 40, 10)
    assert not are_crowded(
        [*notices, *(f"{word} is late" for word in "abcdefghij")], 10
    )


def test_the_time_named_in_the_question_ranks_first() -> None:
    span = TimeSpan(NOON - timedelta(days=9), NOON - timedelta(days=8))
    asked = Query(terms=parse_terms("bike"), limit=10, spans=(span,), now=NOON)
    before, then, after, late = (
        dated(at, NOON - timedelta(days=days), f"bike {at * 'x'}")
        for at, days in enumerate((30, 8.5, 7.5, 0), 1)
    )

    answer = [place.memory for place in ranked(asked, before, then, after, late)]

    assert answer[:2] == [2, 3]


def test_the_recent_comes_first_among_equals_and_never_before_a_better_match() -> None:
    asked = Query(terms=parse_terms("stolen bike"), limit=10, now=NOON)
    old, new = dated(2, NOON - timedelta(days=300), "my bike"), dated(1, NOON)
    better = dated(3, NOON - timedelta(days=300), "the stolen bike")

    assert [place.memory for place in ranked(asked, old, new, better)] == [3, 1, 2]


WORDS = st.lists(
    st.sampled_from(["bike", "stolen", "red", "moon", "?"]), max_size=6
).map(" ".join)


@given(
    contents=st.lists(WORDS, min_size=1, max_size=12),
    episodes=st.lists(st.sampled_from([None, 7, 8]), min_size=12, max_size=12),
)
def test_the_parts_of_a_score_add_up_to_it(
    contents: list[str], episodes: list[int | None]
) -> None:
    span = TimeSpan(NOON, NOON + timedelta(seconds=5))
    asked = Query(
        terms=parse_terms("stolen red bike"), limit=10, spans=(span,), now=NOON
    )
    matches = [
        match(at, content, episode=episode, importance=0.9)
        for at, (content, episode) in enumerate(zip(contents, episodes, strict=False))
    ]

    for place in ranked(asked, *matches):
        assert place.score == pytest.approx(sum(place.parts))
