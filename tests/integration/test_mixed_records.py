"""Recall over a year of mixed records, beside plain bm25 over the same."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from statistics import mean

import pytest
from support.datasets.mixed_year import NOW, MixedYear, Question, Record, mixed_year

from mnemosyned.domain.dates.questions import parse_times
from mnemosyned.domain.memory import DEFAULT_SESSION, MemoryRecord
from mnemosyned.domain.ports.records import Draft
from mnemosyned.domain.ports.store import MemoryStore
from mnemosyned.domain.search import bm25 as reading, ranking
from mnemosyned.domain.search.bm25 import READ_CHARS_MAX
from mnemosyned.domain.search.query import Query, SearchCandidates
from mnemosyned.domain.search.ranking import rank
from mnemosyned.domain.text.terms import terms
from mnemosyned.paths import shipped
from mnemosyned.storage.sqlite import open_store

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

    def place(self) -> int:
        """Where among ten the answer is shown, counted from 1; 0 where it is not."""
        for at, place in enumerate(rank(self.query, self.found), 1):
            if self.answer in (
                place.memory,
                *(position for position, _ in place.lines),
            ):
                return at
        return 0


@pytest.fixture(scope="module", params=SESSIONS)
def cases(
    request: pytest.FixtureRequest,
    past: MixedYear,
    tmp_path_factory: pytest.TempPathFactory,
) -> list[Case]:
    session = SESSIONS[request.param]
    drafts = [
        Draft(
            MemoryRecord(
                id=record.id,
                content=record.content,
                source=record.source,
                role=record.role,
                created_at=record.created_at,
                session=session(record),
            )
        )
        for record in past.records
    ]
    database = tmp_path_factory.mktemp("mixed") / "memory.db"
    with open_store(database, migrations=shipped("migrations")) as store:
        store.memories.remember(drafts)
        return [case(store, past, asked) for asked in past.questions]


def case(store: MemoryStore, past: MixedYear, asked: Question) -> Case:
    said = parse_times(asked.text, NOW)
    query = Query(terms=terms(said.remaining_text), limit=10, spans=said.spans, now=NOW)
    found = store.search.candidates(query)
    content = next(
        record.content for record in past.records if record.id == asked.answer
    )
    answer = next(
        (m.position for m in found.memories if m.content == content[:READ_CHARS_MAX]),
        -1,
    )
    return Case(query, found, answer)


@pytest.fixture(scope="module")
def whole(cases: list[Case]) -> tuple[float, float]:
    """The shares with every part of the score at work."""
    return shares(cases)


def shares(cases: Sequence[Case]) -> tuple[float, float]:
    """The shares of questions whose answer is among ten, and first."""
    places = [case.place() for case in cases]
    return mean(place > 0 for place in places), mean(place == 1 for place in places)


def plain_shares(past: MixedYear) -> tuple[float, float]:
    """The same for plain bm25."""
    database = sqlite3.connect(":memory:")
    database.execute("CREATE VIRTUAL TABLE f USING fts5(id UNINDEXED, content, role)")
    rows = [(record.id, record.content, record.role) for record in past.records]
    database.executemany("INSERT INTO f VALUES (?, ?, ?)", rows)
    places = []
    for asked in past.questions:
        match = " OR ".join(f'"{word}"' for word in terms(asked.text).words)
        cursor = database.execute(
            "SELECT id FROM f WHERE f MATCH ? ORDER BY rank LIMIT 10", (match,)
        )
        found = [id_ for (id_,) in cursor]
        places.append(found.index(asked.answer) + 1 if asked.answer in found else 0)
    return mean(place > 0 for place in places), mean(place == 1 for place in places)


def test_more_is_found_than_by_plain_bm25(
    whole: tuple[float, float], past: MixedYear
) -> None:
    among_ten, first = whole
    plain_among_ten, plain_first = plain_shares(past)

    assert among_ten >= max(0.95, plain_among_ten)
    assert first >= plain_first + 0.1


@pytest.mark.parametrize(
    ("module", "part", "value"),
    [
        (ranking, "NEIGHBOR_SHARES", (0.0, 0.0)),
        (ranking, "SESSION_SHARE", 0.0),
        (ranking, "SPEAKER_SHARE", 0.0),
        (ranking, "SPOKEN_TO", 1.0),
        (ranking, "ROLE_WEIGHT", 0.0),
        (ranking, "PHRASE_SHARE", 0.0),
        (ranking, "ASKING_SHARE", 0.0),
        (ranking, "TIME_SHARE", 0.0),
        (ranking, "RECENCY_SHARE", 0.0),
        (reading, "PASSAGE_SHARE", 0.0),
    ],
)
def test_no_part_of_the_score_does_harm(
    cases: list[Case],
    whole: tuple[float, float],
    monkeypatch: pytest.MonkeyPatch,
    *,
    module: object,
    part: str,
    value: object,
) -> None:
    monkeypatch.setattr(module, part, value)

    without, _ = shares(cases)
    assert whole[0] >= without - 0.01
