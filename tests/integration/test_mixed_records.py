"""Recall over a year of mixed records, with each part of the score and without it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from statistics import mean
from typing import Any

import pytest
from support.datasets.mixed_year import NOW, MixedYear, Question, Record, mixed_year
from support.fakes import memory, remember_batch
from support.stores import open_store

from mnemosyned.memory.ports import MemoryStore
from mnemosyned.memory.values import DEFAULT_SESSION
from mnemosyned.search import ranking, scoring
from mnemosyned.search.query import Query, SearchCandidates
from mnemosyned.search.ranking import rank
from mnemosyned.search.scoring import READ_CHARS_MAX
from mnemosyned.search.weights import BM25_WEIGHTS, WEIGHTS, RankingWeights
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

    def is_found(self) -> bool:
        """Whether the answer is among ten."""
        return any(
            self.answer in (result.memory, *(position for position, _ in result.lines))
            for result in rank(self.query, self.found)
        )


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
    with open_store(database) as store:
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
def whole(cases: list[Case]) -> float:
    """The share with every part of the score at work."""
    return share(cases)


def share(cases: Sequence[Case], weights: RankingWeights = WEIGHTS) -> float:
    """The share of questions whose answer is among ten."""
    with pytest.MonkeyPatch.context() as patch:
        for module in (ranking, scoring):
            patch.setattr(module, "WEIGHTS", weights)
        return mean(case.is_found() for case in cases)


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
def test_answers_are_found_and_no_part_of_the_score_does_harm(
    cases: list[Case], whole: float, without: dict[str, Any]
) -> None:
    assert whole >= 0.95
    assert whole >= share(cases, replace(WEIGHTS, **without)) - 0.01
