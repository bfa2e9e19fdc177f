"""What a person asks of a year of records by hand, before and after a sleep, beside plain bm25."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from statistics import mean
from weakref import finalize

import pytest
from support.datasets.written_year import NOW, Question, WrittenYear, written_year
from support.fakes import FakeClock

from mnemosyned.assembly.build import open_memory
from mnemosyned.config import load_config
from mnemosyned.memory.values import Tier
from mnemosyned.search.hits import Hit
from mnemosyned.service.service import MemoryService
from mnemosyned.text.terms import parse_content_terms
from mnemosyned.verbs.memories import Recall, Remember, RememberMany
from mnemosyned.verbs.upkeep import Sleep

pytestmark = pytest.mark.slow
"""A year is filled and slept on."""

PLACES = 10
Shown = list[frozenset[str]]
"""The ids that each place puts before the reader."""


@pytest.fixture(scope="module")
def past() -> WrittenYear:
    return written_year(per_day=5)


@contextmanager
def remembering(past: WrittenYear, database: Path) -> Iterator[MemoryService]:
    settings = {"database": str(database), "auto_sleep": False, "wm_max": 1_000_000}
    config = load_config(environ={}, overrides=settings)
    memories = [
        Remember(
            content=record.content,
            id=record.id,
            source=record.source,
            role=record.role,
            created_at=record.created_at,
            session=f"{record.source} {record.created_at:%F}",
        )
        for record in past.records
    ]
    with open_memory(config, clock=FakeClock(NOW)) as memory:
        for at in range(0, len(memories), 1_000):
            memory.service.call(RememberMany(memories[at : at + 1_000]))
        yield memory.service


@pytest.fixture(
    scope="module", params=[False, True], ids=["before sleep", "after sleep"]
)
def service(
    request: pytest.FixtureRequest,
    past: WrittenYear,
    tmp_path_factory: pytest.TempPathFactory,
) -> Iterator[MemoryService]:
    with remembering(past, tmp_path_factory.mktemp("life") / "memory.db") as service:
        if request.param:
            service.call(Sleep(force=True))
        yield service


def shown(hit: Hit) -> frozenset[str]:
    own = [] if hit.tier is Tier.EPISODIC else [hit.id]
    return frozenset([*own, *(line.id for line in hit.lines)])


def ask(service: MemoryService, text: str) -> Shown:
    recalled = service.call(Recall(text, limit=PLACES, asked_at=NOW))
    return [shown(hit) for hit in recalled.hits]


def found(
    answers: Sequence[Shown], questions: Sequence[Question]
) -> tuple[float, float]:
    """The share of the evidence among ten places, and of first places that hold some."""
    pairs = list(zip(answers, questions, strict=True))
    among = [
        len(asked.evidence & frozenset().union(*places)) / len(asked.evidence)
        for places, asked in pairs
    ]
    return mean(among), mean(
        bool(places and places[0] & asked.evidence) for places, asked in pairs
    )


@pytest.fixture(scope="module")
def answers(service: MemoryService, past: WrittenYear) -> dict[str, Shown]:
    return {asked.text: ask(service, asked.text) for asked in past.questions}


def of_kind(past: WrittenYear, *kinds: str) -> list[Question]:
    return [asked for asked in past.questions if asked.kind in kinds]


def plain(past: WrittenYear) -> Callable[[str], Shown]:
    """Plain bm25 with a stemmer, the sender's name in the text and no stop words."""
    database = sqlite3.connect(":memory:")
    database.execute(
        "CREATE VIRTUAL TABLE f USING fts5(id UNINDEXED, content, tokenize=porter)"
    )
    rows = [(record.id, f"{record.role} {record.content}") for record in past.records]
    database.executemany("INSERT INTO f VALUES (?, ?)", rows)

    def search(text: str) -> Shown:
        match = (
            " OR ".join(f'"{word}"' for word in parse_content_terms(text).words) or '""'
        )
        select = "SELECT id FROM f WHERE f MATCH ? ORDER BY rank LIMIT ?"
        return [frozenset(row) for row in database.execute(select, (match, PLACES))]

    finalize(search, database.close)
    return search


def test_more_is_found_than_by_plain_bm25(
    answers: dict[str, Shown], past: WrittenYear
) -> None:
    among, first = found([answers[one.text] for one in past.questions], past.questions)
    search = plain(past)
    bare_among, bare_first = found(
        [search(one.text) for one in past.questions], past.questions
    )

    assert among >= max(0.93, bare_among + 0.1)
    assert first >= max(0.8, bare_first + 0.12)


@pytest.mark.parametrize(
    ("kinds", "level", "first"),
    [
        (("direct", "paraphrase", "inflect"), 0.91, 0.76),
        (("person",), 0.95, 0.75),
        (("source",), 0.97, 0.97),
        (("time", "date"), 0.7, 0.55),
        (("code",), 1.0, 1.0),
        (("long",), 0.9, 0.85),
        (("crowd",), 0.97, 0.8),
        (("lang",), 0.97, 0.95),
        (("multi", "neighbour", "update", "typo"), 0.95, 0.5),
    ],
    ids=lambda value: value[0] if isinstance(value, tuple) else "",
)
def test_every_kind_of_question_keeps_its_level(
    answers: dict[str, Shown],
    past: WrittenYear,
    *,
    kinds: tuple[str, ...],
    level: float,
    first: float,
) -> None:
    questions = of_kind(past, *kinds)

    among, ahead = found([answers[one.text] for one in questions], questions)

    assert among >= level
    assert ahead >= first


def test_questions_about_unknown_things_have_no_answer(service: MemoryService) -> None:
    for nonsense in (
        "glorp snazzwick fnord",
        "Quetzalcoatl",
        "QX-99117-Z",
        "zzkx 4471-OO",
    ):
        assert ask(service, nonsense) == []
