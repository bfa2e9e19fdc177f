"""How sure a hit is, and the reason it gives."""

from datetime import timedelta
from typing import Any

from support.fakes import NOON

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
from mnemosyned.text.dates.spans import TimeSpan
from mnemosyned.text.languages.tables import TimeOrder
from mnemosyned.text.terms import parse_terms

NO_HIT = Hit(
    id="1",
    tier=Tier.WORKING,
    score=1.0,
    snippet="",
    content="",
    session="s",
    source=None,
    created_at=NOON,
    confidence=0.1,
)


def query(text: str, **changes: Any) -> Query:  # noqa: ANN401
    return Query(terms=parse_terms(text), limit=10, **changes)


def judge(
    asked: Query, *texts: str, cosine: float | None = None, **parts: float
) -> tuple[float, str]:
    """The judgement on the first of the texts; the others are next to it."""
    found = SearchCandidates(
        [Match(number, 1.0, "s", content=text) for number, text in enumerate(texts, 1)],
        beside={1: [(number, number - 1) for number in range(2, len(texts) + 1)]},
        corpus=Corpus(count=1_000, frequencies=dict.fromkeys(asked.terms.words, 10)),
        nearness=Nearness({} if cosine is None else {1: cosine}),
    )
    result = RankedResult(1.0, memory=1, parts=ScoreBreakdown(**parts))
    return ResultJudge(asked, found).judge(result, texts[0])


def test_more_of_the_questions_keywords_make_a_hit_surer() -> None:
    asked = query("when does the boiler service expire")

    few, _ = judge(asked, "the boiler is in the cellar")
    many, why = judge(asked, "the boiler service expires in May")

    assert 0 < few < many < 1
    assert why == "words: boiler, service, expire"


def test_words_without_content_say_nothing() -> None:
    asked = query("what did they get for the boiler")

    assert judge(asked, "they get it")[0] < judge(asked, "a boiler")[0]


def test_similarity_makes_a_hit_surer_and_is_named() -> None:
    asked = query("boiler")

    far, why_far = judge(asked, "heating", cosine=0.1)
    near, why_near = judge(asked, "heating", cosine=0.7)

    assert near > far + 0.3
    assert (why_far, why_near) == ("nearest in meaning", "meaning")


def test_a_word_of_the_line_before_counts_for_the_answer() -> None:
    asked = query("how do we name branches")

    alone, _ = judge(asked, "team-ticket-slug")
    answer, why = judge(asked, "team-ticket-slug", "how do we name branches?")

    assert answer > alone
    assert why == "words next to it: branches"


def test_a_long_text_needs_less_similarity_than_a_short_one() -> None:
    asked = query("which valve does the boiler need")
    text = "the boiler got its service today"

    short, _ = judge(asked, text, cosine=0.32)
    long, _ = judge(asked, f"{text}, {'and more was said, ' * 40}", cosine=0.32)

    assert short < 0.4 < long


def test_the_length_of_a_text_without_the_words_says_nothing() -> None:
    asked = query("which valve does the boiler need")
    text = "the heating got its service today"

    short, _ = judge(asked, text, cosine=0.1)
    long, _ = judge(asked, f"{text}, {'and more was said, ' * 200}", cosine=0.1)

    assert long == short


def test_the_length_of_a_text_alone_makes_no_hit_sure() -> None:
    asked = query("which valve does the boiler need in winter")
    text = f"a valve, {'and more was said, ' * 200}of the boiler"

    confidence, _ = judge(asked, text, cosine=0.2)

    assert 0.4 < confidence < 0.6


def test_the_lines_of_an_episode_are_judged_alike_in_any_order() -> None:
    asked = query("which valve does the boiler need")
    lines = [
        Match(1, 1.0, "s", content=f"well, {'and more was said, ' * 40}"),
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


def test_a_text_about_somebody_else_is_less_sure() -> None:
    asked = query("which breed is Otto")

    other, _ = judge(asked, "Minka is a cat of a breed", cosine=0.4)
    named, _ = judge(asked, "Otto is of a breed with long ears", cosine=0.4)

    assert other < named


def test_a_name_alone_answers_no_question_about_its_bearer() -> None:
    asked = query("what medicine does Otto take")

    alone, _ = judge(asked, "Otto slid off the table", cosine=0.4)
    without, _ = judge(query("what medicine does he take"), "He slid", cosine=0.4)

    assert alone < without


def test_a_name_alone_is_enough_where_its_bearer_speaks() -> None:
    asked = query("what medicine does Otto take")
    result = RankedResult(1.0, memory=1)

    def confidence(role: str, text: str) -> float:
        line = Match(1, 1.0, "s", role=role, content=text)
        corpus = Corpus(count=1_000, frequencies=dict.fromkeys(asked.terms.words, 10))
        found = SearchCandidates([line], corpus=corpus, nearness=Nearness({1: 0.4}))
        return ResultJudge(asked, found).judge(result, text)[0]

    assert confidence("Otto", "two of the pills") > confidence("Ida", "Otto sleeps")


def test_a_question_for_what_is_current_is_no_list() -> None:
    unsure = [NO_HIT]

    current = split_by_confidence(query("rent", order=TimeOrder.CURRENT), unsure)
    latest = split_by_confidence(query("rent", order=TimeOrder.LATEST), unsure)

    assert current == ([], unsure)
    assert latest == (unsure, [])


def test_a_memory_of_the_only_time_asked_for_is_sure() -> None:
    day = TimeSpan(NOON, NOON + timedelta(hours=1))
    asked = query("what happened", spans=(day,), only_then=True, now=NOON)

    confidence, why = judge(asked, "the bike was stolen", time=1.0)

    assert confidence > 0.8
    assert why.startswith("time: ")
