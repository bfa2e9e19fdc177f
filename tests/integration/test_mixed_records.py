"""Recall over a year of mixed records, beside plain bm25 over the same."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from statistics import mean
from typing import Any

import pytest
from support.datasets.mixed_year import NOW, MixedYear, Question, Record, mixed_year
from support.fakes import memory, remember_batch

from mnemosyned.memory.ports import MemoryStore
from mnemosyned.memory.values import DEFAULT_SESSION
from mnemosyned.paths import shipped
from mnemosyned.search.query import Query, SearchCandidates
from mnemosyned.search.ranking import rank
from mnemosyned.search.scoring import READ_CHARS_MAX
from mnemosyned.search.weights import BM25_WEIGHTS, WEIGHTS, RankingWeights
from mnemosyned.storage.sqlite.store import open_store
from mnemosyned.text.dates.questions import parse_times
from mnemosyned.text.terms import parse_terms

pytestmark = pytest.mark.thorough

SESSIONS: dict[str, Callable[[Record], str]] = {
    "no sessions": lambda _: DEFAULT_SESSION,
    "a session for each source": lambda record: record.source,
    "a session for each source and day": lambda record: (
        f"{record.source} {record.created_at:%F}"
    ),
}


@pytest.fixture(scope="module")
def past() -> MixedYear:
    whole = mixed_year(per_day=6)
    return MixedYear(whole.records, whole.questions[::2])


@dataclass(frozen=True, slots=True)
class Case:
    """A question with its candidates, which no part of the ranking changes."""

    query: Query
    found: SearchCandidates
    answer: int

    def place(self, weights: RankingWeights) -> int:
        """Where among ten the answer is shown, counted from 1; 0 where it is not."""
        for number, result in enumerate(rank(self.query, self.found, weights), 1):
            lines = (position for position, _ in result.lines)
            if self.answer in (result.memory, *lines):
                return number
        return 0


@pytest.fixture(scope="module", params=SESSIONS)
def cases(
    request: pytest.FixtureRequest,
    past: MixedYear,
    tmp_path_factory: pytest.TempPathFactory,
) -> list[Case]:
    session = SESSIONS[request.param]
    said = [
        memory(
            each.id,
            each.content,
            source=each.source,
            role=each.role,
            created_at=each.created_at,
            session=session(each),
        )
        for each in past.records
    ]
    database = tmp_path_factory.mktemp("mixed") / "memory.db"
    with open_store(database, migrations=shipped("migrations")) as store:
        remember_batch(store, *said)
        return [case(store, past, asked) for asked in past.questions]


def case(store: MemoryStore, past: MixedYear, asked: Question) -> Case:
    said = parse_times(asked.text, NOW)
    query = Query(
        terms=parse_terms(said.remaining_text), limit=10, spans=said.spans, now=NOW
    )
    found = store.search.candidates(query)
    contents = {record.id: record.content for record in past.records}
    content = contents[asked.answer][:READ_CHARS_MAX]
    positions = [each.position for each in found.memories if each.content == content]
    return Case(query, found, positions[0] if positions else -1)


@pytest.fixture(scope="module")
def whole(cases: list[Case]) -> tuple[float, float]:
    """The shares with every part of the score at work."""
    return shares(cases)


def shares(
    cases: Sequence[Case], weights: RankingWeights = WEIGHTS
) -> tuple[float, float]:
    """The shares of questions whose answer is among ten, and first."""
    places = [case.place(weights) for case in cases]
    return mean(place > 0 for place in places), mean(place == 1 for place in places)


def plain_shares(past: MixedYear) -> tuple[float, float]:
    """The same for plain bm25."""
    database = sqlite3.connect(":memory:")
    database.execute("CREATE VIRTUAL TABLE f USING fts5(id UNINDEXED, content, role)")
    rows = [(record.id, record.content, record.role) for record in past.records]
    database.executemany("INSERT INTO f VALUES (?, ?, ?)", rows)
    places = []
    for asked in past.questions:
        match = " OR ".join(f'"{word}"' for word in parse_terms(asked.text).words)
        cursor = database.execute(
            "SELECT id FROM f WHERE f MATCH ? ORDER BY rank LIMIT 10", (match,)
        )
        found = [id_ for (id_,) in cursor]
        places.append(found.index(asked.answer) + 1 if asked.answer in found else 0)
    database.close()
    return mean(place > 0 for place in places), mean(place == 1 for place in places)


def test_more_is_found_than_by_plain_bm25(
    whole: tuple[float, float], past: MixedYear
) -> None:
    among_ten, first = whole
    plain_among_ten, plain_first = plain_shares(past)

    assert among_ten >= max(0.95, plain_among_ten)
    assert first >= plain_first + 0.1


@pytest.mark.parametrize(
    "without",
    [
        {"neighbors": (0.0, 0.0)},
        {"session": 0.0},
        {"speaker": 0.0},
        {"named_by_others": 1.0},
        {"speaker_idf": 0.0},
        {"phrase": 0.0},
        {"asks": 0.0},
        {"time": 0.0},
        {"recency": 0.0},
        {"bm25": replace(BM25_WEIGHTS, passage=0.0)},
    ],
    ids=lambda without: next(iter(without)),
)
def test_no_part_of_the_score_does_harm(
    cases: list[Case], whole: tuple[float, float], without: dict[str, Any]
) -> None:
    among_ten, _ = shares(cases, replace(WEIGHTS, **without))

    assert whole[0] >= among_ten - 0.01
