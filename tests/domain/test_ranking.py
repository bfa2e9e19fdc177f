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
    Nearness,
    Query,
    RankedResult,
    SearchCandidates,
    expected_answer,
)
from mnemosyned.search.ranking import ALIKE_MAX, are_crowded, best_level_only, rank
from mnemosyned.search.scoring import question_share
from mnemosyned.search.weights import WEIGHTS
from mnemosyned.text.dates.questions import TimeSpan
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
    dull = far(2, "bike", score=0.0)
    assert order("bike", long, dull, frequencies={"bike": 1}) == [1]


# ---------------------------------------------------------------- neighbors


@each_case(("why", "text", "loser", "winner", "beside_winner"), [
    ("who speaks", "Ann's bike", far(1, "I have a bike", role="Bob"), far(2, "I have a bike", role="Ann"), []),
    ("no question", "bike", far(2, "a red bike?"), far(1, "a red bike."), []),
    ("words of its own", "kayak",
     far(2, "Yeah, a kayak, that does sound great! Let me know how it was."),
     far(1, "Rented a kayak in Leipzig, at the lake, for two days in June."), []),
    ("importance", "stolen bike", far(2, "my bike", importance=0.0), far(1, importance=1.0), []),
    ("words before importance", "stolen bike",
     far(1, importance=1.0), far(2, "the stolen bike", importance=0.0), []),
    ("a neighbor", "stolen bike",
     far(100, "was stolen today"), match(2, "stolen yesterday"), [match(1, "my bike")]),
    ("its sitting", "stolen bike", far(100, "a bike"), match(1, "my bike"), [match(50, "stolen")]),
    ("the question before", "bike",
     beside(1, "hello there"), beside(3, "in the cellar"), [match(2, "where is the bike?")]),
])  # fmt: skip
def test_a_memory_ranks_higher_for(
    why: str, text: str, loser: Match, winner: Match, beside_winner: list[Match]
) -> None:
    found = sorted([loser, *beside_winner, winner], key=lambda one: one.position)

    places = order(text, *found)

    assert places.index(winner.position) < places.index(loser.position), why


def test_an_answer_beside_the_question_is_found_without_a_word_of_it() -> None:
    answers = beside(2, "yes"), beside(3, "no"), beside(4)

    assert order("bike", match(1), *answers) == [1, 2, 3]


@each_case(("changes", "of_both"), [
    ({"session": "other"}, {}),
    ({"source": "other"}, {}),
    ({"created_at": NOON + timedelta(hours=3)}, {}),
    ({}, {"session": DEFAULT_SESSION}),  # without a session, memories are no talk
])  # fmt: skip
def test_an_unrelated_neighbor_adds_no_score(
    changes: dict[str, Any], of_both: dict[str, Any]
) -> None:
    stranger = beside(2)._replace(**changes, **of_both)

    assert order("bike", match(1, **of_both), stranger) == [1]


@pytest.mark.parametrize("role", ["", "user", "Ann"])
def test_what_is_said_next_to_a_similar_line_is_more_similar(role: str) -> None:
    asking, answer = match(1, "Where is it?", role=role), beside(2, "Here")
    near = Nearness({1: 0.6, 2: 0.3, 9: 0.3}, vector_only_min=0.2)
    corpus = Corpus(count=COUNT, frequencies={"bike": 5})
    lines = [asking, answer, far(9, "Over")]

    places = rank(query(), SearchCandidates(lines, corpus=corpus, nearness=near))

    meaning = {place.memory: place.parts.meaning for place in places}
    assert (meaning[2] > meaning[9]) == (role == "Ann")


def test_a_chinese_line_is_no_shorter_than_its_translation() -> None:
    near = Nearness({1: 0.3, 2: 0.29}, vector_only_min=0.2)
    lines = [
        far(1, "Lisa and her neighbor planted flowers"),
        far(2, "莉莎和邻居老李一起在社区花园里种了花"),
    ]
    corpus = Corpus(count=COUNT, frequencies={"bike": 5})

    english, chinese = rank(
        query(), SearchCandidates(lines, corpus=corpus, nearness=near)
    )

    meaning = {place.memory: place.parts.meaning for place in (english, chinese)}
    assert meaning[2] > 0.95 * meaning[1]


def test_the_store_says_who_stands_beside_whom() -> None:
    asked = query()
    corpus = Corpus(count=COUNT, frequencies={"bike": 5})
    found = SearchCandidates([match(1), beside(9)], beside={1: [(9, 1)]}, corpus=corpus)

    assert [place.memory for place in rank(asked, found)] == [1, 9]


# -------------------------------------------------------------------- priors


@each_case(("text", "share"), [
    ("", 0.0),
    ("A red bike.", 0.0),
    ("Is it red?", 1.0),
    ("Is it red? It is.", 0.0),
    ("买了吗？", 1.0),
    ("???", 0.0),
])  # fmt: skip
def test_a_text_asks_if_it_ends_in_a_question(text: str, share: float) -> None:
    assert question_share(text) == share


@pytest.mark.parametrize(("text", "loses"), [
    ("A bike, yes, I know! That is so nice of you, thank you!", True),
    ("The bikes are what they are, I guess.", True),
    ("Jonas has the bike", False),
    ("bike 自行车在车库里", False),
    ("bike lock: brass, blue cap, key hung behind cellar door beside fuse box", False),
    ("bike " + "so " * 100, False),
], ids=["chatter", "other form", "short fact", "unspaced", "substance", "long"])  # fmt: skip
def test_only_chatter_says_little(text: str, *, loses: bool) -> None:
    [result] = ranked(query(), far(1, text))

    assert (result.parts.little < 0) == loses


def test_a_fact_before_a_request_keeps_most_of_its_score() -> None:
    bike = "has a flat rear tire"
    fact = far(1, f"My bike {bike} since the ride to the lake. Can you help?")
    question = far(2, f"Does the bike in question {bike}, or the one there?")

    asks = {
        place.memory: place.parts.asks
        for place in ranked(query("flat tire bike"), fact, question)
    }

    assert 0 > 2 * asks[1] > asks[2]


@each_case(("question", "loser", "winner"), [
    ("which bike", far(2, role="assistant"), far(1, role="user")),
    ("which bike did you suggest", far(1, role="user"), far(2, role="assistant")),
    ("which bike", far(2, role="assistant"), far(1, role="")),
    ("which bike", far(2, "is a bike stolen?", role="user"), far(1, "a bike stolen")),
    ("which bike", far(2, "bike stolen?"), far(1, "they came for the bike")),
    ("when was the bike stolen", far(2, "the bike was stolen in a very bad way"),
     far(1, "the bike was stolen there last Friday")),
])  # fmt: skip
def test_what_is_expected_ranks_first(
    question: str, loser: Match, winner: Match
) -> None:
    """The user's or the assistant's words, or a time."""
    expected = expected_answer(question)
    asked = Query(terms=parse_terms("bike stolen"), limit=10, expected=expected)

    assert ranked(asked, loser, winner)[0].memory == winner.position


def test_a_very_long_sitting_lends_less() -> None:
    def lent(other: str) -> float:
        talk = match(1, "my bike"), match(50, other)
        places = ranked(query("stolen bike"), *talk)
        return next(place.parts.session for place in places if place.memory == 1)

    assert lent("stolen") > lent("stolen" + " and so on" * 2_000) > 0


def dated(position: int, when: datetime, content: str = "a bike") -> Match:
    return far(position, content, created_at=when)


@each_case(("text", "source"), [
    ("which photo shows the bike", "photos"),
    ("a picture of the bike", "photos"),
    ("who called about the bike", "call-log"),
    ("the Signal message about a bike", "signal"),
    ("welches Foto zeigt das bike", "photos"),
])  # fmt: skip
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
    ago = NOON - timedelta(days=300)
    old, new = dated(2, ago, "my bike"), dated(1, NOON)
    better = dated(3, ago, "the stolen bike")

    assert [place.memory for place in ranked(asked, old, new, better)] == [3, 1, 2]


WORDS = st.lists(
    st.sampled_from(["bike", "stolen", "red", "moon", "?"]), max_size=6
).map(" ".join)


@given(
    contents=st.lists(WORDS, min_size=1, max_size=12),
    episodes=st.lists(st.sampled_from([None, 7, 8]), min_size=12, max_size=12),
)
def test_a_score_is_its_parts(contents: list[str], episodes: list[int | None]) -> None:
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


# -------------------------------------------------------------------- places


def test_duplicates_share_one_position_and_a_count() -> None:
    same = [far(at, "Battery low: bike", source="phone") for at in range(50)]

    places = ranked(query(), *same, far(100, "my bike"))

    assert [(place.memory, place.duplicates) for place in places] == [
        (100, 0),
        (49, 49),
    ]


def test_the_same_words_from_elsewhere_keep_their_place() -> None:
    assert len(order("bike", far(1, source="a"), far(2, source="b"))) == 2
    assert len(order("bike", far(1, role="Ann"), far(2, role="Bob"))) == 2


def test_texts_that_differ_only_in_numbers_yield_to_other_hits() -> None:
    many = [far(at, f"bike at {at} percent") for at in range(50)]
    other = far(
        100, "there is another rusty old bike in the cellar, behind the boxes, I think"
    )

    places = ranked(query(limit=5), *many, other)

    assert [place.memory for place in places][-1] == 100
    assert places[0].duplicates == 50 - ALIKE_MAX - 1
    assert len(places) == 5


def test_texts_that_differ_in_numbers_are_shown_if_there_is_room() -> None:
    assert len(order("bike", *(far(at, f"bike {at}") for at in range(8)))) == 8


# ------------------------------------------------------------------ episodes


def test_an_episode_has_one_place_with_its_best_lines_under_it() -> None:
    originals = [
        match(at * 10, "bike " * at + "x" * at, episode=5) for at in range(1, 6)
    ]

    places = ranked(query(limit=1), *originals)

    assert [place.episode for place in places] == [5]
    assert len(places[0].lines) == WEIGHTS.lines_max


def test_lines_with_places_before_a_sleep_are_shown_after_it() -> None:
    awake = [match(at * 10, "bike " * at + "x" * at) for at in range(1, 9)]
    asleep = [one._replace(episode=5) for one in awake]

    before = [place.memory for place in ranked(query(limit=6), *awake)]
    (place,) = ranked(query(limit=6), *asleep)

    assert [position for position, _ in place.lines] == before


def test_an_exact_original_outranks_a_summary_and_both_add_to_an_episode() -> None:
    best, further = match(10, episode=5), match(90, "the bike", episode=5)

    def best_of(summaries: dict[int, float], *matches: Match) -> RankedResult:
        found = SearchCandidates(matches, summaries, corpus=Corpus(count=COUNT))
        return rank(query(), found)[0]

    alone = best_of({}, best)
    assert best_of({6: 4.0}, best).episode == 5
    assert best_of({}, best, further).score > alone.score
    assert best_of({5: 1.0}, best).score > alone.score


def test_asked_for_episodes_only_their_own_words_count() -> None:
    found = SearchCandidates([match(1, episode=5)], {6: 1.0})

    assert [place.episode for place in rank(query(tier=Tier.EPISODIC), found)] == [6]


def test_asked_for_the_archive_each_original_has_its_own_place() -> None:
    originals = match(1, "my bike", episode=5), match(9, "her bike", episode=5)

    places = ranked(query(tier=Tier.ARCHIVE), *originals)

    assert {(place.memory, place.episode) for place in places} == {(1, None), (9, None)}


def test_a_repeat_is_counted_however_far_behind_and_in_whatever_case() -> None:
    others = [far(at, f"bike {'abcde'[at]}", importance=0.5) for at in range(5)]
    repeats = [far(6, "A BIKE ", importance=0.0), far(7, "a bikes", importance=0.0)]

    places = ranked(query(limit=2), far(8, "a bike", importance=1.0), *others, *repeats)

    assert [(place.memory, place.duplicates) for place in places] == [(8, 1), (4, 0)]


EPISODE, OTHER, DAY, NEXT_DAY, WEEK = 1, 2, 10, 11, 20
ABOVE = {EPISODE: DAY, OTHER: DAY, DAY: WEEK, NEXT_DAY: WEEK}


def place(score: float, episode: int, *, told: bool = False) -> RankedResult:
    return RankedResult(score, episode=episode, lines=((99, score),) if told else ())


@each_case(("places", "left"), [
    ([place(9, WEEK), place(5, DAY), place(1, EPISODE, told=True)], [EPISODE]),
    ([place(9, DAY), place(5, EPISODE), place(4, OTHER), place(3, WEEK)], [DAY]),
    ([place(9, EPISODE), place(5, DAY), place(4, OTHER)], [EPISODE, OTHER]),
    ([place(9, DAY), place(5, NEXT_DAY), place(4, OTHER, told=True)], [NEXT_DAY, OTHER]),
    ([place(9, DAY), place(5, NEXT_DAY)], [DAY, NEXT_DAY]),
    ([RankedResult(3.0, memory=7), place(2, DAY)], [None, DAY]),
])  # fmt: skip
def test_exact_words_or_else_the_best_level_answer_for_a_line_of_descent(
    places: list[RankedResult], left: list[int | None]
) -> None:
    found = best_level_only(places, ABOVE)

    assert [one.episode for one in found] == left
    assert set(found) <= set(places)
