"""How sure a hit is, and the reason it gives."""

from dataclasses import replace
from datetime import timedelta
from typing import Any

from support.cases import each_case
from support.fakes import NOON

from mnemosyned.conversation.sections import Relevance
from mnemosyned.memory.values import Hit, Tier
from mnemosyned.search.confidence import ResultJudge, split_by_confidence
from mnemosyned.search.query import (
    Corpus,
    Match,
    Nearness,
    Query,
    RankedResult,
    ScoreBreakdown,
    SearchCandidates,
)
from mnemosyned.text.dates.questions import QuestionTimes, TimeSpan
from mnemosyned.text.languages.tables import TimeOrder
from mnemosyned.text.terms import parse_terms

NO_HIT = Hit(
    id="1", tier=Tier.WORKING, score=1.0, snippet="", content="", session="s", source=None,
    created_at=NOON, confidence=0.1,
)  # fmt: skip


def test_a_hit_compared_by_its_vector_alone_needs_some_confidence() -> None:
    near = replace(NO_HIT, explanation={"meaning": 2.0})
    far = replace(near, id="2", confidence=0.05)
    relevance = Relevance("which carrier fetches the parcels?", QuestionTimes())

    assert relevance.select_relevant_hits([near, far, NO_HIT]) == [near]


def query(text: str, **changes: Any) -> Query:  # noqa: ANN401
    return Query(terms=parse_terms(text), limit=10, **changes)


def judge(
    asked: Query,
    *texts: str,
    cosine: float | None = None,
    role: str = "",
    **parts: float,
) -> tuple[float, str]:
    """The judgement on the first of the texts; the others are next to it."""
    found = SearchCandidates(
        [
            Match(at, 1.0, "s", content=text, role=role)
            for at, text in enumerate(texts, 1)
        ],
        beside={1: [(number, number - 1) for number in range(2, len(texts) + 1)]},
        corpus=Corpus(count=1_000, frequencies=dict.fromkeys(asked.terms.words, 10)),
        nearness=Nearness({} if cosine is None else {1: cosine}),
    )
    result = RankedResult(1.0, memory=1, parts=ScoreBreakdown(**parts))
    return ResultJudge(asked, found).judge(result, texts[0])


MORE = "and more was said, "


@each_case(("question", "less", "more"), [
    # More of the keywords of the question.
    ("when does the boiler service expire",
     (["the boiler is in the cellar"], None), (["the boiler service expires in May"], None)),
    # Words with content.
    ("what did they get for the boiler", (["they get it"], None), (["a boiler"], None)),
    # A word of the line before.
    ("how do we name branches",
     (["team-ticket-slug"], None), (["team-ticket-slug", "how do we name branches?"], None)),
    # A text about the person, and not about somebody else.
    ("which breed is Otto",
     (["Minka is a cat of a breed"], 0.4), (["Otto is of a breed with long ears"], 0.4)),
    # A text that is long enough to be near to few questions.
    ("dentist", (["Noté"], 0.37), (["Zahnarzt"], 0.37)),
])  # fmt: skip
def test_a_hit_is_surer_for(
    question: str,
    less: tuple[list[str], float | None],
    more: tuple[list[str], float | None],
) -> None:
    (few, few_cosine), (many, many_cosine) = less, more
    asked = query(question)

    unsure, _ = judge(asked, *few, cosine=few_cosine)
    sure, _ = judge(asked, *many, cosine=many_cosine)

    assert unsure < sure < 1


@each_case(("question", "texts", "cosine", "why"), [
    ("when does the boiler service expire", ["the boiler service expires in May"], None,
     "words: boiler, service, expire"),
    ("boiler", ["heating"], 0.1, "nearest in meaning"),
    ("boiler", ["heating"], 0.7, "meaning"),
    ("how do we name branches", ["team-ticket-slug", "how do we name branches?"], None,
     "words next to it: branches"),
])  # fmt: skip
def test_a_hit_names_its_reason(
    question: str, texts: list[str], cosine: float | None, why: str
) -> None:
    assert judge(query(question), *texts, cosine=cosine)[1] == why


def test_the_reason_of_an_episode_names_the_words_of_all_its_lines() -> None:
    asked = query("which aquarium did we visit")
    lines = [
        Match(1, 1.0, "s", content="a huge aquarium"),
        Match(2, 1.0, "s", content="East Lake"),
    ]
    found = SearchCandidates(lines, nearness=Nearness({1: 0.1, 2: 0.7}))

    _, why = ResultJudge(asked, found).judge(
        RankedResult(1.0, episode=9, lines=((1, 1.0), (2, 0.9))), ""
    )

    assert why == "words: aquarium; meaning"


def test_a_neighbor_of_a_hit_names_that_as_its_reason() -> None:
    heating = query("boiler")

    _, lent = judge(heating, "in May", neighbors=0.4)
    _, near = judge(heating, "in May", cosine=0.1, neighbors=0.2, meaning=0.4)

    assert (lent, near) == ("next to a hit", "nearest in meaning")


def test_similarity_and_length_make_a_hit_surer_but_never_length_alone() -> None:
    heating, valve = query("boiler"), query("which valve does the boiler need")
    winter = query("which valve does the boiler need in winter")
    some, none = "the boiler got its service today", "the heating got its service today"

    def sure(asked: Query, text: str, cosine: float) -> float:
        return judge(asked, text, cosine=cosine)[0]

    assert sure(heating, "heating", 0.7) > sure(heating, "heating", 0.1) + 0.3
    assert sure(valve, some, 0.32) < 0.4 < sure(valve, f"{some}, {MORE * 40}", 0.32)
    assert sure(valve, none, 0.1) == sure(valve, f"{none}, {MORE * 200}", 0.1)
    assert 0.4 < sure(winter, f"a valve, {MORE * 200}of the boiler", 0.2) < 0.6


def test_the_lines_of_an_episode_are_judged_alike_in_any_order() -> None:
    asked = query("which valve does the boiler need")
    lines = [
        Match(1, 1.0, "s", content=f"well, {MORE * 40}"),
        Match(2, 1.0, "s", content="the heating got its parts"),
    ]
    corpus = Corpus(count=1_000, frequencies=dict.fromkeys(asked.terms.words, 10))
    near = Nearness({1: 0.1, 2: 0.3})

    def confidence(*numbers: int) -> float:
        found = SearchCandidates(lines, corpus=corpus, nearness=near)
        shown = tuple((number, 0.0) for number in numbers)
        result = RankedResult(1.0, episode=1, lines=shown)
        return ResultJudge(asked, found).judge(result, "a day")[0]

    assert confidence(1, 2) == confidence(2, 1) == confidence(2)


def test_a_name_alone_answers_no_question_unless_its_bearer_speaks() -> None:
    asked, he = (
        query("what medicine does Otto take"),
        query("what medicine does he take"),
    )

    alone, _ = judge(asked, "Otto slid off the table", cosine=0.4)
    without, _ = judge(he, "He slid", cosine=0.4)
    speaking, _ = judge(asked, "two of the pills", cosine=0.4, role="Otto")
    named, _ = judge(asked, "Otto sleeps", cosine=0.4, role="Ida")

    assert alone < without
    assert speaking > named


def test_a_question_for_what_is_current_is_no_list() -> None:
    unsure = [NO_HIT]

    current = split_by_confidence(query("rent", order=TimeOrder.CURRENT), unsure)
    latest = split_by_confidence(query("rent", order=TimeOrder.LATEST), unsure)

    assert current == ([], unsure)
    assert latest == (unsure, [])


def test_only_a_memory_of_the_only_time_asked_for_is_sure() -> None:
    day = TimeSpan(NOON, NOON + timedelta(hours=1))
    asked = query("what happened", spans=(day,), only_then=True, now=NOON)

    confidence, why = judge(asked, "the bike was stolen", time=1.0)
    other, _ = judge(asked, "the bike was stolen", cosine=0.1)

    assert confidence > 0.8
    assert why.startswith("time: ")
    assert other < 0.5
