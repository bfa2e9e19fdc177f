"""What the server does for a question, also of an owner whom its statistics do not know."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from typing import Any, cast

import msgspec
import psycopg
import pytest
from support.engines import POSTGRES, SQLITE, new_database
from support.fakes import NOON, FakeClock, promotion
from support.twins import Twins, service_over, twins

from mnemosyned.memory.fields import MemoryFilter
from mnemosyned.paths import shipped
from mnemosyned.service.service import MemoryService
from mnemosyned.storage.common.session import Result
from mnemosyned.storage.postgres import pool
from mnemosyned.storage.postgres.memories import PostgresPromoting
from mnemosyned.storage.postgres.pool import (
    CHECKED_EVERY,
    OwnerGrowth,
    refresh_statistics,
)
from mnemosyned.storage.postgres.session import PostgresSession
from mnemosyned.storage.postgres.store import PostgresStore, open_store
from mnemosyned.storage.sqlite.store import SqliteStore
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

pytestmark = pytest.mark.postgres


MEMORIES = 6_000
ASLEEP = 3_000
LONG = 2_000
"""Memories of which every other one is in one session, and each other in one of its own."""
READ_WHOLE = re.compile(r"Seq Scan on (memory|fresh)\b")
READ_WHOLE_ASLEEP = re.compile(r"Seq Scan on (memory|fresh|placed)\b")
TAGS_READ = re.compile(r"on tag t\b.*actual .*rows=([\d.]+)")
"""How many rows each look at the tags gave."""
NAMES = "AS n WHERE NOT"
"""Part of the statement for names of the log that no memory has: it reads all once for a request."""
QUESTIONS = ("green7 harbor9 word41", "QX-4821 harbor3", "where is word41 green2")
Statement = tuple[str, dict[str, object]]


def dsn_of(pair: Twins) -> str:
    store: Any = pair.stores[POSTGRES]
    return str(store._pool._dsn)  # noqa: SLF001 the statements are asked for their plans


@pytest.fixture(scope="module")
def pair(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Twins]:
    folder: Path = tmp_path_factory.mktemp("plans")
    with twins(folder, FakeClock()) as opened:
        opened.remember(
            *(
                Remember(
                    content=f"green{at % 40} harbor{at % 60} word{at % 700} QX-{at}",
                    session=f"talk {at % 20}",
                    created_at=NOON - timedelta(minutes=MEMORIES - at),
                    tags=["said"],
                )
                for at in range(MEMORIES)
            )
        )
        yield opened


@contextmanager
def noted(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[Statement]]:
    """The statements that are sent meanwhile, with their values."""
    sent: list[Statement] = []
    send = PostgresSession.execute

    def execute(self: PostgresSession, sql: str, /, **values: object) -> Result:
        if "set_config" not in sql:
            sent.append((sql, {"owner": self.owner, **values}))
        return send(self, sql, **values)

    with monkeypatch.context() as patched:
        patched.setattr(PostgresSession, "execute", execute)
        yield sent


def plans(dsn: str, statements: list[Statement]) -> list[tuple[str, str]]:
    """Each statement that reads, and how it is carried out."""
    reading = [
        (sql, values)
        for sql, values in statements
        if sql.startswith(("SELECT", "WITH")) and "set_config" not in sql
    ]
    return explained(dsn, reading, "EXPLAIN (ANALYZE, TIMING OFF)")


def explained(
    dsn: str, statements: list[Statement], explain: str
) -> list[tuple[str, str]]:
    with psycopg.connect(dsn) as connection:
        connection.execute("SELECT set_config('mnemosyned.owner', '1', false)")
        return [
            (
                sql,
                "\n".join(
                    line
                    for (line,) in connection.execute(
                        f"{explain} {sql}".encode(), values
                    )
                ),
            )
            for sql, values in statements
        ]


def test_no_plan_is_compiled(pair: Twins) -> None:
    store: Any = pair.stores[POSTGRES]
    with store._pool.reading(1) as session:  # noqa: SLF001
        assert session.scalar("SHOW jit") == "off"


@pytest.mark.parametrize("analyzed", [False, True])
def test_a_question_reads_no_table_from_end_to_end(
    pair: Twins, monkeypatch: pytest.MonkeyPatch, *, analyzed: bool
) -> None:
    dsn = dsn_of(pair)
    if analyzed:
        with psycopg.connect(dsn, autocommit=True) as connection:
            connection.execute("VACUUM ANALYZE")
    with noted(monkeypatch) as statements:
        for text in QUESTIONS:
            assert pair.services[POSTGRES].recall(Recall(query=text)).hits
    carried_out = plans(dsn, statements)

    assert len(carried_out) > 3 * len(QUESTIONS)
    assert any("memory_words" in plan for _, plan in carried_out)
    for sql, plan in carried_out:
        assert not READ_WHOLE.search(plan), f"{sql}\n{plan}"
        # A word's postings beside the whole key of the table take twice as long.
        assert "BitmapAnd" not in plan, f"{sql}\n{plan}"


def test_lines_around_a_match_are_read_alone_also_in_a_long_session(
    dsn: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    with open_store(dsn, migrations=shipped("migrations") / "postgres") as store:
        service = service_over(cast("SqliteStore", store), FakeClock(), 0)
        for start in range(0, LONG, BATCH_MAX):
            service.remember_many(
                RememberMany(
                    [
                        Remember(
                            content=f"green{at % 40} harbor{at % 60}",
                            session="long" if at % 2 else f"talk {at}",
                            created_at=NOON - timedelta(minutes=LONG - at),
                        )
                        for at in range(start, min(LONG, start + BATCH_MAX))
                    ]
                )
            )
        with psycopg.connect(dsn, autocommit=True) as connection:
            connection.execute("VACUUM ANALYZE")
        with noted(monkeypatch) as statements:
            assert service.recall(Recall(query="green7 harbor9")).hits
    around = [each for each in statements if "near.position" in each[0]]

    ((_, plan),) = plans(dsn, around)

    assert "memory_pkey" in plan
    assert "memory_session" not in plan


@pytest.mark.parametrize(
    "request_",
    [Recall(query=QUESTIONS[0], tag=["said"]), ListMemories(tag=["said"])],
    ids=lambda request_: type(request_).__name__,
)
def test_a_tag_of_many_is_looked_up_row_by_row(
    pair: Twins, monkeypatch: pytest.MonkeyPatch, request_: Request[Any]
) -> None:
    with noted(monkeypatch) as statements:
        assert len(pair.services[POSTGRES].call(request_))
    # The first statement sees that they are many.
    held = [each for each in statements if "EXISTS (SELECT 1 FROM tag" in each[0]]

    carried_out = plans(dsn_of(pair), held)

    assert any(TAGS_READ.search(plan) for _, plan in carried_out)
    for sql, plan in carried_out:
        for rows in TAGS_READ.findall(plan):
            assert float(rows) <= 1, f"{sql}\n{plan}"


def test_words_are_looked_for_among_few_memories_that_are_read_once(
    pair: Twins, monkeypatch: pytest.MonkeyPatch
) -> None:
    with noted(monkeypatch) as statements:
        asked = Recall(query="where is word41 green2 harbor2", session=["talk 2"])
        assert pair.services[POSTGRES].recall(asked).hits
    having = [each for each in statements if "m.words &&" in each[0]]
    within = [each for each in having if "AS MATERIALIZED" in each[0]]

    assert within
    for sql, plan in plans(dsn_of(pair), within):
        read = re.findall(r"on memory\b.*loops=(\d+)", plan)
        assert read == ["1"], f"{sql}\n{plan}"
    # Compounds are looked for among all memories, each by the index of words.
    everywhere = [each for each in having if each not in within]
    for sql, plan in plans(dsn_of(pair), everywhere):
        assert "on memory_words" in plan, f"{sql}\n{plan}"


def test_a_preview_reads_its_lines_together(
    pair: Twins, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked = Forget(session=["talk 2"], dry_run=True)
    with noted(monkeypatch) as statements:
        lines = pair.services[POSTGRES].call(asked).lines

    assert len(lines) == MEMORIES // 20
    assert len(statements) < 20
    assert [line.snippet for line in lines] == [
        line.snippet for line in pair.services[SQLITE].call(asked).lines
    ]


def test_a_group_that_falls_asleep_is_read_by_its_ids(
    pair: Twins, monkeypatch: pytest.MonkeyPatch
) -> None:
    store: Any = pair.stores[POSTGRES]
    dsn = dsn_of(pair)
    with psycopg.connect(dsn, autocommit=True) as connection:
        connection.execute("VACUUM ANALYZE")
    with psycopg.connect(dsn) as connection:
        some = "SELECT id FROM memory LIMIT 1000"
        ids = [id for (id,) in connection.execute(some)]
    with noted(monkeypatch) as statements:
        assert len(store.memories.working(ids)) == len(ids)
    (carried_out,) = [
        plan for sql, plan in plans(dsn, statements) if "m.content" in sql
    ]

    assert "memory_owner_id_key" in carried_out
    assert not READ_WHOLE.search(carried_out), carried_out


# ------------------------------------------------------------------------- ids


@pytest.fixture(scope="module")
def slept(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Twins]:
    """A memory of which most is in the archive, and whose statistics are true."""
    with twins(tmp_path_factory.mktemp("slept"), FakeClock()) as opened:
        for tier in ("old", "new"):
            opened.sleep()
            opened.remember(
                *(
                    Remember(
                        content=f"{tier} green{at % 40} harbor{at % 60} QX-{at}",
                        id=f"{tier}{at}",
                        session=f"talk {at % 20}",
                        created_at=NOON - timedelta(minutes=ASLEEP - at),
                    )
                    for at in range(ASLEEP)
                )
            )
        with psycopg.connect(dsn_of(opened), autocommit=True) as connection:
            connection.execute("VACUUM ANALYZE")
        yield opened


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
    slept: Twins, monkeypatch: pytest.MonkeyPatch, request_: Request[Any]
) -> None:
    with noted(monkeypatch) as statements:
        slept.services[POSTGRES].call(request_)
    check_reached(slept, statements)


def test_a_group_that_falls_asleep_leaves_by_its_ids(
    slept: Twins, monkeypatch: pytest.MonkeyPatch
) -> None:
    store: Any = slept.stores[POSTGRES]
    ids = [f"new{at}" for at in range(100, 120)]
    episode = promotion("e", *store.memories.existing(ids)).episode
    with noted(monkeypatch) as statements, store._pool.writing(1) as session:  # noqa: SLF001 one step of a sleep
        assert PostgresPromoting(session)._evict({1: episode}) == 20  # noqa: SLF001 likewise
    check_reached(slept, statements)


def check_reached(slept: Twins, statements: list[Statement]) -> None:
    found = [
        (sql, values)
        for sql, values in statements
        if re.match(r"(SELECT|WITH|UPDATE|DELETE)\b", sql)
        and "set_config" not in sql
        and NAMES not in sql
    ]
    assert any("memory" in sql for sql, _ in found)
    for sql, plan in explained(dsn_of(slept), found, "EXPLAIN"):
        assert not READ_WHOLE_ASLEEP.search(plan), f"{sql}\n{plan}"


# The cost of requests of an owner whom the server's statistics do not know: a few rows for each memory.

KNOWN, NEW = 7, 8
NEW_OWNER_MEMORIES = 800
"""In the archive, and as many in working memory."""
ROWS_MAX = 100
"""Rows that a statement may read for each memory of the owner: a table of few pages is read whole."""
EXPLAINED = re.compile(r"(SELECT|WITH|UPDATE|DELETE|INSERT|DECLARE)\b")
NOT_EXPLAINED = re.compile(r"advisory|FOR UPDATE|pg_|clock_timestamp|SELECT 1$")
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


@dataclass(frozen=True, slots=True)
class CostedStatement:
    """A statement, and how many rows it read."""

    sql: str
    rows: float
    plan: object


def rows_read(node: dict[str, Any]) -> float:
    """All rows that a part of a plan handled, those it threw away included."""
    names = [name for name in node if name.startswith("Rows Removed")]
    rows = sum(node[name] for name in ("Actual Rows", *names)) * node["Actual Loops"]
    return float(rows) + sum(map(rows_read, node.get("Plans", [])))


@contextmanager
def costs_of(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[CostedStatement]]:
    """The statements that are sent meanwhile, each carried out once before for its plan."""
    seen: list[CostedStatement] = []
    send = PostgresSession._send  # noqa: SLF001 the one place that all statements pass

    def explain(self: PostgresSession, sql: str, values: Any, **how: Any) -> Any:  # noqa: ANN401 as it is
        connection: psycopg.Connection[Any] = self._connection
        if EXPLAINED.match(sql) and not NOT_EXPLAINED.search(sql):
            connection.execute("SAVEPOINT explained")
            text = f"EXPLAIN (ANALYZE, TIMING OFF, FORMAT JSON) {sql}".encode()
            row = connection.execute(text, {"owner": self.owner, **values}).fetchone()
            connection.execute("ROLLBACK TO explained")
            assert row
            plan = row[0][0]["Plan"]
            seen.append(CostedStatement(sql, rows_read(plan), plan))
        return send(self, sql, values, **how)

    with monkeypatch.context() as patched:
        patched.setattr(PostgresSession, "_send", explain)
        yield seen


def fill(service: MemoryService, count: int, mark: str) -> None:
    memories = [
        Remember(
            content=f"{mark}{number} green{number % 40} harbor{number % 60} QX-{number}",
            id=f"{mark}{number}",
            session=f"s{number % 8}",
            source=("chat", "mail", None)[number % 3],
            tags=["work"] if number % 4 == 0 else ["home"],
            created_at=NOON - timedelta(minutes=count - number),
            supersedes=f"{mark}{number - 1}" if number % 50 == 1 else None,
        )
        for number in range(count)
    ]
    for start in range(0, count, 50):
        service.remember_many(RememberMany(memories=memories[start : start + 50]))


def call(service: MemoryService, verb: str, fields: dict[str, object]) -> object:
    return service.call(msgspec.convert(fields, VERBS[verb]))


def analyzed_once(dsn: str) -> None:
    """Statistics of what is there now, and of nothing that comes."""
    with psycopg.connect(dsn, autocommit=True) as connection:
        tables = connection.execute(
            "SELECT relname FROM pg_class "
            "WHERE relkind = 'r' AND relnamespace = 'public'::regnamespace"
        ).fetchall()
        for (table,) in tables:
            setting = f'ALTER TABLE "{table}" SET (autovacuum_enabled = false)'
            connection.execute(setting.encode())
        connection.execute("VACUUM ANALYZE")


@contextmanager
def opened(dsn: str, owner: int) -> Iterator[tuple[PostgresStore, MemoryService]]:
    with open_store(
        dsn, migrations=shipped("migrations") / "postgres", owner=owner, guarded=True
    ) as store:
        yield store, service_over(cast("Any", store), FakeClock(), grace_hours=24)


def database_of_one(known: int = 40) -> str:
    """A database whose statistics know one owner."""
    dsn = new_database()
    with opened(dsn, KNOWN) as (_, service):
        fill(service, known, "x")
        call(service, "sleep", {"force": True})
        fill(service, known, "y")
    analyzed_once(dsn)
    return dsn


def live(service: MemoryService) -> None:
    fill(service, NEW_OWNER_MEMORIES, "old")
    for _ in range(6):
        call(service, "sleep", {"force": True})
    fill(service, NEW_OWNER_MEMORIES, "new")


@pytest.fixture(scope="module")
def newcomer() -> Iterator[MemoryService]:
    """A second owner of a database whose statistics knew the first alone."""
    with opened(database_of_one(), NEW) as (_, service):
        live(service)
        yield service


@pytest.fixture(scope="module")
def stranger() -> Iterator[PostgresStore]:
    """The same, and the statistics still do not know the second."""
    with opened(database_of_one(), NEW) as (store, service):
        with pytest.MonkeyPatch.context() as patched:
            patched.setattr(OwnerGrowth, "is_due", lambda *_: False)
            live(service)
        yield store


def check(statements: list[CostedStatement]) -> None:
    assert statements
    for each in statements:
        assert each.rows <= ROWS_MAX * 2 * NEW_OWNER_MEMORIES, (
            f"{each.sql}\n{each.plan}"
        )


@pytest.mark.parametrize(("verb", "fields"), REQUESTS)
def test_no_verb_reads_a_new_owner_again_and_again(
    newcomer: MemoryService,
    monkeypatch: pytest.MonkeyPatch,
    verb: str,
    fields: dict[str, object],
) -> None:
    with costs_of(monkeypatch) as statements:
        call(newcomer, verb, fields)
    check(statements)


@pytest.mark.parametrize("chosen", FILTERS)
def test_an_export_needs_no_statistics(
    stranger: PostgresStore, monkeypatch: pytest.MonkeyPatch, chosen: MemoryFilter
) -> None:
    with (
        costs_of(monkeypatch) as statements,
        stranger.exchange.export(chosen) as (_, records),
    ):
        exported = list(records)

    assert len(exported) > NEW_OWNER_MEMORIES / 4
    check(statements)


def test_an_export_asks_nothing_for_each_memory(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    with opened(new_database(), NEW) as (store, service):
        fill(service, 60, "old")
        sent: list[int] = []
        for _ in range(2):
            with (
                costs_of(monkeypatch) as statements,
                store.exchange.export(MemoryFilter()) as (_, records),
            ):
                exported = list(records)
            sent.append(len(statements))
            for number in range(40):
                text = f"green{number}, edited"
                call(service, "edit", {"id": f"old{number}", "text": text})

    edited = [each for each in exported if getattr(each, "revisions", ())]
    assert len(edited) == 40
    assert sent[0] == sent[1]


def test_changes_by_many_ids_need_no_statistics(
    stranger: PostgresStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    ids = [f"new{number}" for number in range(NEW_OWNER_MEMORIES)]
    with costs_of(monkeypatch) as statements:
        assert stranger.changes.pin(ids, pinned=True) == NEW_OWNER_MEMORIES
        assert stranger.changes.pin(ids, pinned=False) == NEW_OWNER_MEMORIES
        assert stranger.changes.tag(ids[:10], ["more"]) == 10
    check(statements)


# ----------------------------------------------------------------- statistics


def believed(dsn: str, owner: int) -> float:
    """The rows that the planner expects of an owner."""
    with psycopg.connect(dsn) as connection:
        row = connection.execute(
            "EXPLAIN (FORMAT JSON) SELECT 1 FROM memory WHERE owner = %s", [owner]
        ).fetchone()
    assert row
    return float(row[0][0]["Plan"]["Plan Rows"])


def test_statistics_are_made_when_a_new_owner_has_grown() -> None:
    dsn = database_of_one()
    with opened(dsn, NEW) as (_, service):
        fill(service, CHECKED_EVERY // 2, "few")
        assert believed(dsn, NEW) <= 1
        fill(service, CHECKED_EVERY, "many")

    assert believed(dsn, NEW) > CHECKED_EVERY / 2


def test_statistics_are_made_once_for_an_owner_they_know_then() -> None:
    with opened(database_of_one(), NEW) as (store, service):
        with pytest.MonkeyPatch.context() as patched:
            patched.setattr(OwnerGrowth, "is_due", lambda *_: False)
            fill(service, CHECKED_EVERY, "many")
        with store._pool.outside_transactions(NEW) as session:  # noqa: SLF001 as the store itself does
            assert refresh_statistics(session)
            assert not refresh_statistics(session)


def test_a_write_is_kept_though_no_statistics_can_be_made(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def fail(_: PostgresSession) -> bool:
        raise psycopg.OperationalError("the server is busy")

    monkeypatch.setattr(f"{pool.__name__}.refresh_statistics", fail)
    with opened(new_database(), NEW) as (store, service):
        fill(service, 2 * CHECKED_EVERY, "many")
        assert store.memories.working_count() == 2 * CHECKED_EVERY


def test_an_owner_is_looked_at_as_it_grows() -> None:
    growth = OwnerGrowth()
    looked = [number for number in range(1, 1_000) if growth.is_due(NEW, 1)]
    assert looked == [CHECKED_EVERY * step for step in range(1, 8)]

    growth.postpone(NEW)
    assert not growth.is_due(NEW, 998)
    assert growth.is_due(NEW, 1)
    assert not growth.is_due(KNOWN, 1)
