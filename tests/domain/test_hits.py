"""Places made into hits, and the snippets that show why."""

from datetime import timedelta
from time import process_time
from typing import Any
from unicodedata import normalize

import pytest
from hypothesis import given, strategies as st
from support.cases import each_case
from support.fakes import NOON, memory

from mnemosyned.memory.consolidation import make_episode
from mnemosyned.memory.values import Hit, MemoryRecord, Tier
from mnemosyned.search import scoring as reading
from mnemosyned.search.query import (
    Corpus,
    Documents,
    Query,
    RankedResult,
    ScoreBreakdown,
)
from mnemosyned.search.ranking import make_hits
from mnemosyned.search.scoring import PLACES_MAX, TermReader
from mnemosyned.text.terms import SNIPPET_CHARS, cut_snippet, parse_terms

EPISODE = make_episode(
    [memory("1"), memory("2")],
    id="e",
    content="the bike was stolen",
    summarizer="fake",
    now=NOON,
)


def query(text: str = "bike", *, explain: bool = False) -> Query:
    return Query(terms=parse_terms(text), limit=10, explain=explain)


# ---------------------------------------------------------------------- hits


def hits_of(
    *places: RankedResult,
    memory: MemoryRecord | None = None,
    **asked: Any,  # noqa: ANN401
) -> list[Hit]:
    """The hits of places where the memory has the position 1, and the episode 5."""
    known = Documents({1: memory} if memory else {}, {5: EPISODE})
    return make_hits(query(**asked), places, known)


def hit_of(said: MemoryRecord, question: str = "bike") -> Hit:
    return hits_of(RankedResult(1.0, memory=1), memory=said, text=question)[0]


def test_a_hit_tells_where_and_when_it_was_said() -> None:
    hit = hit_of(memory("1", session="s", source="chat", role="user", hours_ago=2))

    assert (hit.id, hit.tier, hit.score) == ("1", Tier.WORKING, 1.0)
    assert (hit.session, hit.source, hit.role) == ("s", "chat", "user")
    assert hit.created_at == NOON - timedelta(hours=2)


def test_an_episode_is_shown_by_its_match_or_its_own_words() -> None:
    original = memory("1", "the bike is in the cellar", role="user")
    by_line = RankedResult(1.0, episode=5, lines=((1, 0.5),))

    (hit,) = hits_of(by_line, memory=original)
    (alone,) = hits_of(RankedResult(1.0, episode=5))

    assert (hit.snippet, hit.content) == (original.content, "the bike was stolen")
    assert hit.summary_of == ("1", "2")
    assert [(each.id, each.role, each.score) for each in hit.lines] == [
        ("1", "user", 0.5)
    ]
    assert (alone.snippet, alone.lines) == ("the bike was stolen", ())


def test_a_memory_forgotten_after_the_search_is_left_out() -> None:
    answer = hits_of(
        RankedResult(2.0, memory=1),
        RankedResult(1.5, episode=4),
        RankedResult(1.0, episode=5, lines=((2, 1.0),)),
    )

    assert [(hit.id, hit.lines) for hit in answer] == [("e", ())]


def test_a_hit_explains_its_score_on_request() -> None:
    place = RankedResult(1.5, memory=1, parts=ScoreBreakdown(words=1.0, time=0.5))

    explained, plain = (
        hits_of(place, memory=memory("1", "the bike"), explain=explain)[0].explanation
        for explain in (True, False)
    )

    assert (explained, plain) == ({"words": 1.0, "time": 0.5}, None)


# ------------------------------------------------------------------ snippets


BIKE = "lorem ipsum " * 60 + "the stolen bike was found " + "dolor sit " * 60
LISBON = "lorem ipsum " * 60 + "then she moved to Lisbon " + "dolor sit " * 60
PIANO = "lorem ipsum " * 60 + "the ｐｉａｎｏ is upstairs" + " dolor sit" * 60
ELEVATOR = normalize("NFD", "가나다 라마바 " * 60 + "승강기 점검 ") + "dolor sit " * 300
FILE = "ﬁ ﬂ ﬀ " * 200 + "then the ﬁlament " + "dolor sit " * 60
SERVER = "bananas " * 60 + "サーバーはnginxです" + " and so on" * 60


@each_case(("text", "question", "shown"), [
    (BIKE, "stolen bikes", "stolen bike"),
    *((LISBON, word, "moved to Lisbon") for word in ("moved", "moving", "moves", "move")),
    (SERVER, "nginx", "nginx"),
    (PIANO, "piano", "the ｐｉａｎｏ is"),
    (ELEVATOR, "승강기", normalize("NFD", "승강기 점검")),
    (FILE, "filament", "the ﬁlament"),
    (SERVER, "nginx nana", "nginx"),
    ("a bike and " * 250 + BIKE, "stolen bike", "stolen bike"),
])  # fmt: skip
def test_a_snippet_shows_the_place_that_matches(
    text: str, question: str, shown: str
) -> None:
    hit = hit_of(memory("1", text), question)

    assert shown in hit.snippet
    assert hit.snippet[0] == hit.snippet[-1] == "…"
    assert hit.content == text
    assert cut_snippet("short", parse_terms(question)) == "short"


@given(st.text(min_size=1, max_size=1_000), st.text(max_size=30))
def test_a_snippet_is_a_short_part_of_its_text(content: str, question: str) -> None:
    part = hit_of(memory("1", content), question).snippet

    assert len(part) <= SNIPPET_CHARS + 2
    assert any(each in content for each in (part, part[1:], part[:-1], part[1:-1]))


@each_case("letter", ["x", "1"])
def test_the_time_of_a_snippet_follows_the_length_of_its_text(letter: str) -> None:
    text = f"needle {letter * 999_000}"

    began = process_time()
    hit = hit_of(memory("1", text), text[:4_000])
    took_s = process_time() - began

    assert "needle" in hit.snippet
    assert took_s < 1  # 0.05; once 3.3


# ------------------------------------------ what a text says of a question's words


def reader(question: str) -> TermReader:
    asked = parse_terms(question)
    known = dict.fromkeys(asked.words, 2)
    return TermReader(asked, Corpus(count=10, average_chars=200, frequencies=known))


@each_case(("text", "close"), [
    ("the ant met a bee", True),
    ("ant " * 90 + "bee", True),
    ("a bee " * 300 + "ant", False),
    ("bee " * 300 + "ant and then one two three four bee", False),
    ("ants were there, and the bees came", False),
    ("bee ant, ants beekeeper bees", True),
])  # fmt: skip
def test_words_count_more_where_one_follows_another(*, text: str, close: bool) -> None:
    assert (reader("ant bee").read(text).phrase > 0) is close


def test_a_word_is_looked_for_at_few_places(monkeypatch: pytest.MonkeyPatch) -> None:
    looked: list[int] = []
    look = reading._FormMatcher.weights_at  # noqa: SLF001 it is counted

    def counted(
        self: reading._FormMatcher, text: str, at: int
    ) -> list[tuple[int, float]]:
        looked.append(at)
        return look(self, text, at)

    monkeypatch.setattr(reading._FormMatcher, "weights_at", counted)  # noqa: SLF001

    said = reader("1%1%1%1 ant").read("1%" * 1_900 + " ant" * 20)

    assert len(looked) <= 2 * PLACES_MAX
    assert all(score > 0 for score in said.scores)
