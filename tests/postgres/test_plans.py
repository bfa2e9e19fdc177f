"""What the server does for a request, also of an owner whom its statistics do not know."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

import msgspec
import psycopg
import pytest
from support.engines import new_database
from support.fakes import NOON, FakeClock, promotion
from support.postgres import open_store, rows, run
from support.twins import service_over, sleep_all

from mnemosyned.memory.engine_ports import LOCAL_OWNER
from mnemosyned.memory.values import MemoryFilter
from mnemosyned.service.service import MemoryService
from mnemosyned.storage.postgres import pool
from mnemosyned.storage.postgres.pool import (
    CHECKED_FROM,
    OwnerGrowth,
    refresh_statistics,
)
from mnemosyned.storage.postgres.session import PostgresSession
from mnemosyned.storage.postgres.store import PostgresStore
from mnemosyned.verbs.facade import VERBS
from mnemosyned.verbs.listing import ListMemories
from mnemosyned.verbs.memories import (
    BATCH_MAX,
    EditMemory,
    Get,
    Recall,
    Remember,
    RememberMany,
)
from mnemosyned.verbs.request import Request
from mnemosyned.verbs.retention import Forget, Restore
from mnemosyned.verbs.upkeep import Sleep

pytestmark = pytest.mark.postgres

MEMORIES, ASLEEP, LONG = 6_000, 3_000, 2_000
QUESTIONS = ("green7 harbor9 word41", "QX-4821 harbor3", "where is word41 green2")
EXPLAINED = re.compile(r"(SELECT|WITH|UPDATE|DELETE|INSERT|DECLARE)\b")
NOT_EXPLAINED = re.compile(
    r"set_config|advisory|FOR UPDATE|pg_|clock_timestamp|SELECT 1$"
)
NAMES = "AS n WHERE NOT"
"""Part of the statement for names of the log that no memory has: it reads all once for a request."""
Opened = tuple[PostgresStore, MemoryService]


@dataclass(frozen=True, slots=True)
class Statement:
    sql: str
    plan: dict[str, Any]

    def nodes(self, plan: dict[str, Any] | None = None) -> Iterator[dict[str, Any]]:
        plan = plan or self.plan
        yield plan
        for part in plan.get("Plans", []):
            yield from self.nodes(part)

    def scans(self, relation: str) -> list[dict[str, Any]]:
        return [each for each in self.nodes() if each.get("Relation Name") == relation]

    def uses(self, index: str) -> bool:
        return any(each.get("Index Name") == index for each in self.nodes())

    def reads_whole(self, *relations: str) -> bool:
        scanned = [each for name in relations for each in self.scans(name)]
        return any(each["Node Type"] == "Seq Scan" for each in scanned)

    @property
    def rows(self) -> float:
        """All rows that it handled, those it threw away included."""
        return float(
            sum(
                node["Actual Loops"] * value
                for node in self.nodes()
                for name, value in node.items()
                if name == "Actual Rows" or name.startswith("Rows Removed")
            )
        )


@contextmanager
def planned(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[Statement]]:
    """The statements that are sent meanwhile, each carried out once before for its plan."""
    seen: list[Statement] = []
    send = PostgresSession._send  # noqa: SLF001 the one place that all statements pass

    def explain(self: PostgresSession, sql: str, values: Any, **how: Any) -> Any:  # noqa: ANN401 as it is
        connection: psycopg.Connection[Any] = self._connection
        if EXPLAINED.match(sql) and not NOT_EXPLAINED.search(sql):
            connection.execute("SAVEPOINT explained")
            text = f"EXPLAIN (ANALYZE, TIMING OFF, FORMAT JSON) {sql}".encode()
            row = connection.execute(text, {"owner": self.owner, **values}).fetchone()
            connection.execute("ROLLBACK TO explained")
            assert row
            seen.append(Statement(sql, row[0][0]["Plan"]))
        return send(self, sql, values, **how)

    with monkeypatch.context() as patched:
        patched.setattr(PostgresSession, "_send", explain)
        yield seen


@contextmanager
def opened(
    dsn: str, owner: int = LOCAL_OWNER, *, grace_hours: float = 24
) -> Iterator[Opened]:
    with open_store(dsn, owner=owner, guarded=owner != LOCAL_OWNER) as store:
        # It comes when it likes, and of a table that it made smaller other plans are right.
        for table in ("memory", "fresh", "placed"):
            run(dsn, f"ALTER TABLE {table} SET (autovacuum_enabled = off)")
        yield store, service_over(store, FakeClock(), grace_hours)


def dsn_of(store: PostgresStore) -> str:
    return str(store.pool._dsn)  # noqa: SLF001 no part of it tells


def tell(
    service: MemoryService,
    count: int,
    mark: str = "m",
    *,
    batch: int = BATCH_MAX,
    **fields: Any,  # noqa: ANN401 of a memory
) -> None:
    """Remember so many, which share their words; a field may be a function of the number."""
    memories = [
        Remember(
            content=f"{mark}{at} green{at % 40} harbor{at % 60} word{at % 700} QX-{at}",
            id=f"{mark}{at}",
            created_at=NOON - timedelta(minutes=count - at),
            **{
                name: value(at) if callable(value) else value
                for name, value in fields.items()
            },
        )
        for at in range(count)
    ]
    for start in range(0, count, batch):
        service.remember_many(RememberMany(memories[start : start + batch]))


def talk(at: int) -> str:
    return f"talk {at % 20}"


@pytest.fixture(scope="module")
def awake() -> Iterator[Opened]:
    """A memory of which all is in working memory."""
    with opened(new_database(), grace_hours=0) as (store, service):
        tell(service, MEMORIES, session=talk, tags=["said"])
        yield store, service


@pytest.mark.parametrize("analyzed", [False, True])
def test_a_question_reads_no_table_from_end_to_end(
    awake: Opened, monkeypatch: pytest.MonkeyPatch, *, analyzed: bool
) -> None:
    store, service = awake
    if analyzed:
        run(dsn_of(store), "VACUUM ANALYZE")
    with store.pool.reading(LOCAL_OWNER) as session:
        assert session.scalar("SHOW jit") == "off"
    with planned(monkeypatch) as statements:
        for text in QUESTIONS:
            assert service.recall(Recall(query=text)).hits

    assert len(statements) > 3 * len(QUESTIONS)
    assert any(each.uses("memory_words") for each in statements)
    for each in statements:
        assert not each.reads_whole("memory", "fresh"), each
        # A word's postings beside the whole key of the table take twice as long.
        assert "BitmapAnd" not in {node["Node Type"] for node in each.nodes()}, each


def test_lines_around_are_read_alone(dsn: str, monkeypatch: pytest.MonkeyPatch) -> None:
    with opened(dsn, grace_hours=0) as (_, service):
        # Every other one is in one session, and each other in one of its own.
        tell(service, LONG, session=lambda at: "long" if at % 2 else f"talk {at}")
        run(dsn, "VACUUM ANALYZE")
        with planned(monkeypatch) as statements:
            assert service.recall(Recall(query="green7 harbor9")).hits

    (around,) = [each for each in statements if "near.position" in each.sql]
    assert around.uses("memory_pkey")
    assert not around.uses("memory_session")


def test_questions_of_few_words_are_not_planned_anew(dsn: str) -> None:
    with opened(dsn, grace_hours=0) as (store, service):
        tell(service, LONG // 10, session=talk)
        sleep_all(service)
        run(dsn, "VACUUM ANALYZE")
        for at in range(20):
            assert service.recall(Recall(query=f"green{at} harbor{at}")).hits
        with store.pool.reading(LOCAL_OWNER) as session:
            planned_anew = session.column(
                "SELECT statement FROM pg_prepared_statements "
                "WHERE statement LIKE '%%WITH ORDINALITY%%' AND custom_plans > 5"
            )

    assert planned_anew == []


@pytest.mark.parametrize(
    "request_",
    [Recall(query=QUESTIONS[0], tag=["said"]), ListMemories(tag=["said"])],
    ids=lambda request_: type(request_).__name__,
)
def test_a_tag_of_many_is_looked_up_row_by_row(
    awake: Opened, monkeypatch: pytest.MonkeyPatch, request_: Request[Any]
) -> None:
    with planned(monkeypatch) as statements:
        assert len(awake[1].call(request_))

    # The first statement sees that they are many.
    held = [each for each in statements if "EXISTS (SELECT 1 FROM tag" in each.sql]
    looks = [look for each in held for look in each.scans("tag")]
    assert looks
    assert all(look["Actual Rows"] <= 1 for look in looks)


def test_words_are_looked_for_among_few_memories_that_are_read_once(
    awake: Opened, monkeypatch: pytest.MonkeyPatch
) -> None:
    awake[1].recall(Recall(query=QUESTIONS[-1]))  # how frequent its words are is known
    with planned(monkeypatch) as statements:
        asked = Recall(query="where is word41 green2 harbor2", session=["talk 2"])
        assert awake[1].recall(asked).hits
    having = [each for each in statements if "m.words &&" in each.sql]
    within = [each for each in having if "AS MATERIALIZED" in each.sql]

    assert within
    for each in within:
        loops = [scan["Actual Loops"] for scan in each.scans("memory")]
        assert loops == [1], each
    # Compounds are looked for among all memories, each by the index of words.
    for each in having:
        assert each in within or each.uses("memory_words"), each


def test_a_preview_reads_its_lines_together(
    awake: Opened, monkeypatch: pytest.MonkeyPatch
) -> None:
    with planned(monkeypatch) as statements:
        lines = awake[1].call(Forget(session=["talk 2"], dry_run=True)).lines

    assert len(lines) == MEMORIES // 20
    assert len(statements) < 20


def test_a_group_that_falls_asleep_is_read_by_its_ids(
    awake: Opened, monkeypatch: pytest.MonkeyPatch
) -> None:
    store, _ = awake
    run(dsn_of(store), "VACUUM ANALYZE")
    ids = [f"m{at}" for at in range(1_000)]
    with planned(monkeypatch) as statements:
        assert len(store.memories.working(ids)) == len(ids)

    (read,) = [each for each in statements if "m.content" in each.sql]
    assert read.uses("memory_owner_id_key")
    assert not read.reads_whole("memory", "fresh"), read


# ------------------------------------------------------------------------- ids


@pytest.fixture(scope="module")
def slept() -> Iterator[Opened]:
    """A memory of which half is in the archive, and whose statistics are true."""
    with opened(new_database(), grace_hours=0) as (store, service):
        for tier in ("old", "new"):
            sleep_all(service)
            tell(service, ASLEEP, tier, session=talk)
        run(dsn_of(store), "VACUUM ANALYZE")
        yield store, service


def test_a_question_reads_the_rows_of_its_other_terms_in_one_statement(
    slept: Opened, monkeypatch: pytest.MonkeyPatch
) -> None:
    _, service = slept

    with planned(monkeypatch) as statements:
        assert service.recall(Recall(query=QUESTIONS[0])).hits

    reading = [each.sql for each in statements if "memory_index AS m" in each.sql]
    grams = [sql for sql in reading if "m.grams" in sql]
    assert len(grams) == 1
    assert "e.words" in grams[0]
    assert "e.grams" in grams[0]
    summaries = [each.sql for each in statements if "episode_index" in each.sql]
    assert summaries == grams


@pytest.mark.parametrize(
    "request_",
    [
        Get(id="old7", history=True),
        EditMemory(id=["old8"], text="what is said now"),
        EditMemory(id=["old8"], session="another talk"),
        Remember(content="what is said now", id="newest", supersedes="old9"),
        Restore(id="old10"),
        Forget(id=["old11", "new11"]),
    ],
    ids=lambda request_: type(request_).__name__,
)
def test_a_memory_is_reached_by_its_id(
    slept: Opened, monkeypatch: pytest.MonkeyPatch, request_: Request[Any]
) -> None:
    with planned(monkeypatch) as statements:
        slept[1].call(request_)
    check_reached(statements)


def test_a_group_that_falls_asleep_leaves_by_its_ids(
    slept: Opened, monkeypatch: pytest.MonkeyPatch
) -> None:
    store, _ = slept
    run(dsn_of(store), "VACUUM ANALYZE")  # as in the fixture; requests came since
    ids = [f"new{at}" for at in range(100, 120)]
    episode = promotion("e", *store.memories.existing(ids)).episode
    with planned(monkeypatch) as statements, store.pool.writing(1) as session:
        assert store.sleep._archive_originals(session, {1: episode}) == 20  # noqa: SLF001 one step of a sleep
    check_reached(statements)


def check_reached(statements: list[Statement]) -> None:
    found = [each for each in statements if NAMES not in each.sql]
    assert any("memory" in each.sql for each in found)
    for each in found:
        assert not each.reads_whole("memory", "fresh", "placed"), each


# The cost of requests of an owner whom the server's statistics do not know: a few rows for each memory.

KNOWN, NEW = 7, 8
NEW_OWNER_MEMORIES = 800
"""In the archive, and as many in working memory."""
ROWS_MAX = 100
"""Rows that a statement may read for each memory of the owner: a table of few pages is read whole."""
REQUESTS: tuple[tuple[str, dict[str, object]], ...] = (
    ("list", {"limit": 100}),
    ("list", {"limit": 100, "tag": ["work"]}),
    ("list", {"limit": 100, "tier": "archive"}),
    ("recall", {"query": "green7 harbor9 QX-12", "history": True}),
    ("recall", {"query": "green7", "tag": ["work"], "limit": 100}),
    ("status", {}),
    ("sessions", {}),
    ("context", {"message": {"role": "user", "content": "green7 harbor?"}}),
    ("get", {"id": "old5", "history": True}),
    ("pin", {"query": "green7"}),
    ("unpin", {"tag": ["work"]}),
    ("tag", {"tag": ["work"], "tags": ["also"]}),
    ("forget", {"person": "Ada"}),
    ("forget", {"tag": ["also"], "session": ["s4"]}),
    ("edit", {"of_session": ["s3"], "session": "s9"}),
    ("undo", {}),
    ("sleep", {"force": True}),
)
FILTERS = (
    MemoryFilter(),
    MemoryFilter(tags=("work",)),
    MemoryFilter(sessions=("s1", "s2")),
    MemoryFilter(since=NOON - timedelta(hours=3)),
)


def fill(service: MemoryService, count: int, mark: str) -> None:
    tell(
        service,
        count,
        mark,
        batch=50,
        session=lambda at: f"s{at % 8}",
        source=lambda at: ("chat", "mail", None)[at % 3],
        tags=lambda at: ["work"] if at % 4 == 0 else ["home"],
        supersedes=lambda at: f"{mark}{at - 1}" if at % 50 == 1 else None,
    )


@contextmanager
def newcomer_of(known: int = 40) -> Iterator[Opened]:
    """A second owner of a database whose statistics know the first alone, and nothing that comes."""
    dsn = new_database()
    with opened(dsn, KNOWN) as (_, service):
        fill(service, known, "x")
        service.sleep(Sleep(force=True))
        fill(service, known, "y")
    tables = rows(
        dsn,
        "SELECT relname FROM pg_class "
        "WHERE relkind = 'r' AND relnamespace = 'public'::regnamespace",
    )
    setting = 'ALTER TABLE "{}" SET (autovacuum_enabled = false)'
    run(dsn, *(setting.format(table) for (table,) in tables), "VACUUM ANALYZE")
    with opened(dsn, NEW) as newcomer:
        yield newcomer


def live(service: MemoryService) -> None:
    fill(service, NEW_OWNER_MEMORIES, "old")
    sleep_all(service)
    fill(service, NEW_OWNER_MEMORIES, "new")


@contextmanager
def unknown() -> Iterator[None]:
    """The statistics do not get to know an owner that grows."""
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(OwnerGrowth, "count_new", lambda *_: False)
        yield


@pytest.fixture(scope="module")
def newcomer() -> Iterator[MemoryService]:
    with newcomer_of() as (_, service):
        live(service)
        yield service


@pytest.fixture(scope="module")
def stranger() -> Iterator[PostgresStore]:
    """The same, and the statistics still do not know the second."""
    with newcomer_of() as (store, service):
        with unknown():
            live(service)
        yield store


def check(statements: list[Statement]) -> None:
    assert statements
    for each in statements:
        assert each.rows <= ROWS_MAX * 2 * NEW_OWNER_MEMORIES, each


@pytest.mark.parametrize(("verb", "fields"), REQUESTS)
def test_no_verb_reads_a_new_owner_again_and_again(
    newcomer: MemoryService,
    monkeypatch: pytest.MonkeyPatch,
    verb: str,
    fields: dict[str, object],
) -> None:
    with planned(monkeypatch) as statements:
        newcomer.call(msgspec.convert(fields, VERBS[verb]))
    check(statements)


@pytest.mark.parametrize("chosen", FILTERS)
def test_an_export_needs_no_statistics(
    stranger: PostgresStore, monkeypatch: pytest.MonkeyPatch, chosen: MemoryFilter
) -> None:
    with (
        planned(monkeypatch) as statements,
        stranger.exchange.export(chosen) as (_, records),
    ):
        exported = list(records)

    assert len(exported) > NEW_OWNER_MEMORIES / 4
    check(statements)


def test_an_export_asks_for_all_at_once(
    dsn: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    with opened(dsn, NEW) as (store, service):
        fill(service, 60, "old")
        sent: list[int] = []
        for _ in range(2):
            with (
                planned(monkeypatch) as statements,
                store.exchange.export(MemoryFilter()) as (_, records),
            ):
                exported = list(records)
            sent.append(len(statements))
            for number in range(40):
                service.call(EditMemory(f"old{number}", text=f"green{number}, edited"))

    edited = [each for each in exported if getattr(each, "revisions", ())]
    assert len(edited) == 40
    assert sent[0] == sent[1]


def test_changes_by_many_ids_need_no_statistics(
    stranger: PostgresStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    ids = [f"new{number}" for number in range(NEW_OWNER_MEMORIES)]
    with planned(monkeypatch) as statements:
        assert stranger.changes.pin(ids, pinned=True) == NEW_OWNER_MEMORIES
        assert stranger.changes.pin(ids, pinned=False) == NEW_OWNER_MEMORIES
        assert stranger.changes.tag(ids[:10], ["more"]) == 10
    check(statements)


# ----------------------------------------------------------------- statistics


def believed(store: PostgresStore) -> float:
    asked = "EXPLAIN (FORMAT JSON) SELECT 1 FROM memory WHERE owner = %s"
    ((plan,),) = rows(dsn_of(store), asked, NEW)
    return float(plan[0]["Plan"]["Plan Rows"])


def test_statistics_are_made_when_a_new_owner_has_grown() -> None:
    with newcomer_of() as (store, service):
        fill(service, CHECKED_FROM // 2, "few")
        assert believed(store) <= 1
        fill(service, CHECKED_FROM, "many")

        assert believed(store) > CHECKED_FROM / 2


def test_statistics_are_made_once_for_an_owner_they_know_then() -> None:
    with newcomer_of() as (store, service):
        with unknown():
            fill(service, CHECKED_FROM, "many")
        with store.pool.outside_transactions(NEW) as session:
            assert refresh_statistics(session)
            assert not refresh_statistics(session)


def test_a_write_needs_no_statistics(dsn: str, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(_: PostgresSession) -> bool:
        raise psycopg.OperationalError("the server is busy")

    monkeypatch.setattr(f"{pool.__name__}.refresh_statistics", fail)
    with opened(dsn, NEW) as (store, service):
        fill(service, 2 * CHECKED_FROM, "many")
        assert store.memories.working_count() == 2 * CHECKED_FROM


def test_an_owner_is_looked_at_as_it_grows() -> None:
    growth = OwnerGrowth()
    looked = [number for number in range(1, 1_000) if growth.count_new(NEW, 1)]
    assert looked == [CHECKED_FROM, 2 * CHECKED_FROM, 4 * CHECKED_FROM]

    assert growth.count_new(NEW, 25)
    assert not growth.count_new(KNOWN, 1)
