"""What the server does for a question: it reads rows by their index, whatever the planner believes."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import timedelta
from pathlib import Path
from typing import Any, cast

import psycopg
import pytest
from support.engines import POSTGRES, SQLITE
from support.fakes import NOON, FakeClock
from support.twins import Twins, service_over, twins

from mnemosyned.paths import shipped
from mnemosyned.storage.common.session import Result
from mnemosyned.storage.postgres.insert import evict
from mnemosyned.storage.postgres.session import PostgresSession
from mnemosyned.storage.postgres.store import open_store
from mnemosyned.storage.sqlite.store import SqliteStore
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
NAMES = "AS n (name)"
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

    assert having
    for sql, plan in plans(dsn_of(pair), having):
        read = re.findall(r"on memory\b.*loops=(\d+)", plan)
        assert read == ["1"], f"{sql}\n{plan}"


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
    with noted(monkeypatch) as statements, store._pool.writing(1) as session:  # noqa: SLF001 one step of a sleep
        assert evict(session, [f"new{at}" for at in range(100, 120)], 1, ()) == 20
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
