"""A year of memory, slept on four times a day; and what a person asks of it."""

import itertools
import sqlite3
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from statistics import mean
from weakref import finalize

import pytest
from bench.corpus import Corpus
from support.datasets.written_year import NOW, Question, WrittenYear, written_year
from support.fakes import FakeClock
from support.settings import config_by_words

from mnemosyned.assembly.build import open_memory
from mnemosyned.config.settings import SleepConfig
from mnemosyned.memory.consolidation import CycleReport, CycleStatus, Trigger
from mnemosyned.memory.periods import Level, begin_of, open_from
from mnemosyned.memory.values import Hit, Tier
from mnemosyned.service.service import MemoryService
from mnemosyned.sleep.context import CycleRequest
from mnemosyned.text.terms import parse_content_terms
from mnemosyned.verbs.memories import Recall, Remember, RememberMany
from mnemosyned.verbs.upkeep import Sleep, Status

pytestmark = pytest.mark.slow


BEGINS = datetime(2025, 1, 1, tzinfo=UTC)
DAYS = 365
A_DAY = 200
QUARTERS = 4
CAP = 400
BYTES_PER_BYTE = 5.0
FOUND_BY_EPISODES = 0.95


@dataclass(frozen=True, slots=True)
class Year:
    """What is left of it."""

    database: Path
    service: MemoryService
    ended: datetime
    fullest: int
    """The most that working memory held after any cycle."""
    text_bytes: int
    reports: list[CycleReport]


def texts() -> Iterator[str]:
    """Notes without end, made from a seed."""
    corpus = Corpus(DAYS * A_DAY, newest=BEGINS)
    return (corpus.content(number) for number in itertools.count(1, 2))


@contextmanager
def opened(database: Path, clock: FakeClock, *, cap: int) -> Iterator[MemoryService]:
    config = config_by_words(database, wm_max=cap)
    with open_memory(config, clock=clock) as memory:
        yield memory.service


def code(day: int) -> str:
    """A value that no other day has."""
    return f"ZQ-{day * 7919 % 100_000:05d}"


def quarter(day: int, part: int, notes: Iterator[str]) -> list[Remember]:
    """What is remembered in six hours: notes of three sources, and once a day the day's code."""
    begins = BEGINS + timedelta(days=day, hours=6 * part)
    size = A_DAY // QUARTERS
    planted = day % size if part == day % QUARTERS else -1
    return [
        Remember(
            content=f"The locker at the station opens with {code(day)} today."
            if at == planted
            else next(notes),
            session=f"day-{day}-{at % 3}",
            source=("chat", "mail", "shell")[at % 3],
            created_at=begins + timedelta(minutes=7 * at),
        )
        for at in range(size)
    ]


@pytest.fixture(scope="module")
def year(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Year]:
    database = tmp_path_factory.mktemp("year") / "memory.db"
    clock = FakeClock(BEGINS)
    notes = texts()
    fullest = text_bytes = 0
    reports = []
    with opened(database, clock, cap=CAP) as service:
        for day, part in itertools.product(range(DAYS), range(QUARTERS)):
            said = quarter(day, part, notes)
            clock.moment = BEGINS + timedelta(days=day, hours=6 * (part + 1))
            service.call(RememberMany(said))
            scheduled = CycleRequest(trigger=Trigger.SCHEDULE)
            reports.append(service.sleeper.cycle.run(scheduled))
            text_bytes += sum(len(one.content.encode()) for one in said)
            held = service.call(Status()).tiers[Tier.WORKING].count
            fullest = max(fullest, held)
        yield Year(database, service, clock.moment, fullest, text_bytes, reports)


def summaries(year: Year, level: int) -> list[tuple[str, str | None, str, int, str]]:
    """Period, parent's period, beginning of what it covers, originals and id, oldest first."""
    with closing(sqlite3.connect(year.database)) as connection:
        return connection.execute(
            "SELECT ifnull(e.period_from, ''), p.period_from, e.covers_from, e.item_count, e.id "
            "FROM episodic_memory AS e LEFT JOIN episodic_memory AS p ON p.id = e.parent_id "
            "WHERE e.level = ? ORDER BY e.covers_from",
            (level,),
        ).fetchall()


def found(year: Year, tier: Tier | None) -> float:
    """The share of the days whose code stands within the first five places."""

    def shown(hit: Hit) -> str:
        return "\n".join([hit.content, *(line.content for line in hit.lines)])

    days = range(DAYS)
    asked = [
        year.service.call(Recall(f"locker {code(day)}", tier=tier, limit=5))
        for day in days
    ]
    answered = [
        any(code(day) in shown(hit) for hit in answer.hits)
        for day, answer in zip(days, asked, strict=True)
    ]
    return sum(answered) / DAYS


def test_working_memory_stays_under_its_cap_every_day(year: Year) -> None:
    assert 0 < year.fullest <= CAP
    assert {report.status for report in year.reports} <= {
        CycleStatus.DONE,
        CycleStatus.NOTHING_TO_DO,
    }


@pytest.mark.parametrize("level", [Level.DAY, Level.WEEK, Level.MONTH])
def test_every_period_that_is_over_is_covered_once(year: Year, level: Level) -> None:
    over = open_from(level, SleepConfig().rollup_cutoff(year.ended))
    below = summaries(year, level - 1)
    inside = [row for row in below if begin_of(level, _begins(row)) < over]
    expected = {begin_of(level, _begins(row)) for row in inside}

    periods = [_begins(row) for row in summaries(year, level)]

    assert len(periods) == len(set(periods)), "none twice"
    assert set(periods) == expected, "none left out"
    assert [row[1] and datetime.fromisoformat(row[1]) for row in inside] == [
        begin_of(level, _begins(row)) for row in inside
    ], "each has gone into its own period"
    assert sum(row[3] for row in summaries(year, level)) == sum(
        row[3] for row in inside
    )


def _begins(row: tuple[str, str | None, str, int, str]) -> datetime:
    return datetime.fromisoformat(row[0] or row[2])


def test_the_year_has_its_days_weeks_and_months(year: Year) -> None:
    counts = [len(summaries(year, level)) for level in Level]

    assert counts[0] > counts[1]
    assert counts[1] in (DAYS - 1, DAYS)
    assert counts[2] in (52, 53)
    assert counts[3] in (12, 13)


def test_the_code_of_every_day_is_found(year: Year) -> None:
    assert found(year, None) == 1


def test_most_codes_are_found_in_the_summaries_alone(year: Year) -> None:
    assert found(year, Tier.EPISODIC) >= FOUND_BY_EPISODES


def test_the_file_is_a_small_multiple_of_the_text(year: Year) -> None:
    # As closing it would, which also removes the shared memory beside the file.
    with closing(sqlite3.connect(year.database)) as connection:
        connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")

    assert year.database.stat().st_size / year.text_bytes <= BYTES_PER_BYTE


# What a person asks of a year of records by hand, before and after a sleep, beside plain bm25.

PLACES = 10
Shown = list[frozenset[str]]
"""The ids that each place puts before the reader."""


@pytest.fixture(scope="module")
def past() -> WrittenYear:
    return written_year(per_day=5)


@pytest.fixture(
    scope="module", params=[False, True], ids=["before sleep", "after sleep"]
)
def service(
    request: pytest.FixtureRequest,
    past: WrittenYear,
    tmp_path_factory: pytest.TempPathFactory,
) -> Iterator[MemoryService]:
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
    database = tmp_path_factory.mktemp("life") / "memory.db"
    with opened(database, FakeClock(NOW), cap=1_000_000) as service:
        for at in range(0, len(memories), 1_000):
            service.call(RememberMany(memories[at : at + 1_000]))
        if request.param:
            service.call(Sleep(force=True))
        yield service


def shown(hit: Hit) -> frozenset[str]:
    own = [] if hit.tier is Tier.EPISODIC else [hit.id]
    return frozenset([*own, *(line.id for line in hit.lines)])


def ask(service: MemoryService, text: str) -> Shown:
    recalled = service.call(Recall(text, limit=PLACES, asked_at=NOW))
    return [shown(hit) for hit in recalled.hits]


def found_shares(
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
    among, first = found_shares(
        [answers[one.text] for one in past.questions], past.questions
    )
    search = plain(past)
    bare_among, bare_first = found_shares(
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

    among, ahead = found_shares([answers[one.text] for one in questions], questions)

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
