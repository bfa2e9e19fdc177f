"""The cost of requests of an owner whom the server's statistics do not know: a few rows for each memory.

A planner that takes an owner for one row reads all of a table again for each row of another.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import timedelta
from typing import Any, cast

import msgspec
import psycopg
import pytest
from support.engines import new_database
from support.fakes import NOON, FakeClock
from support.twins import service_over

from mnemosyned.memory.exchange import ExportFilter
from mnemosyned.paths import shipped
from mnemosyned.service.service import MemoryService
from mnemosyned.storage.postgres import pool
from mnemosyned.storage.postgres.pool import (
    CHECKED_EVERY,
    OwnerGrowth,
    refresh_statistics,
)
from mnemosyned.storage.postgres.session import PostgresSession
from mnemosyned.storage.postgres.store import PostgresStore, open_store
from mnemosyned.verbs.facade import VERBS
from mnemosyned.verbs.memories import Remember, RememberMany

pytestmark = pytest.mark.postgres
KNOWN, NEW = 7, 8
MEMORIES = 800
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
    ExportFilter(),
    ExportFilter(tags=("work",)),
    ExportFilter(sessions=("s1", "s2")),
    ExportFilter(since=NOON - timedelta(hours=3)),
)


@dataclass(frozen=True, slots=True)
class Statement:
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
def explained(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[Statement]]:
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
            plan = row[0][0]["Plan"]
            seen.append(Statement(sql, rows_read(plan), plan))
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
    fill(service, MEMORIES, "old")
    for _ in range(6):
        call(service, "sleep", {"force": True})
    fill(service, MEMORIES, "new")


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


def check(statements: list[Statement]) -> None:
    assert statements
    for each in statements:
        assert each.rows <= ROWS_MAX * 2 * MEMORIES, f"{each.sql}\n{each.plan}"


@pytest.mark.parametrize(("verb", "fields"), REQUESTS)
def test_no_verb_reads_a_new_owner_again_and_again(
    newcomer: MemoryService,
    monkeypatch: pytest.MonkeyPatch,
    verb: str,
    fields: dict[str, object],
) -> None:
    with explained(monkeypatch) as statements:
        call(newcomer, verb, fields)
    check(statements)


@pytest.mark.parametrize("chosen", FILTERS)
def test_an_export_needs_no_statistics(
    stranger: PostgresStore, monkeypatch: pytest.MonkeyPatch, chosen: ExportFilter
) -> None:
    with (
        explained(monkeypatch) as statements,
        stranger.exchange.export(chosen) as (_, records),
    ):
        exported = list(records)

    assert len(exported) > MEMORIES / 4
    check(statements)


def test_an_export_asks_nothing_for_each_memory(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    with opened(new_database(), NEW) as (store, service):
        fill(service, 60, "old")
        sent: list[int] = []
        for _ in range(2):
            with (
                explained(monkeypatch) as statements,
                store.exchange.export(ExportFilter()) as (_, records),
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
    ids = [f"new{number}" for number in range(MEMORIES)]
    with explained(monkeypatch) as statements:
        assert stranger.changes.pin(ids, pinned=True) == MEMORIES
        assert stranger.changes.pin(ids, pinned=False) == MEMORIES
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
