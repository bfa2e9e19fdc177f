"""What a write costs the server, and how owners share its connections."""

from __future__ import annotations

import time
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor, wait
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from datetime import timedelta
from types import SimpleNamespace
from typing import Any, TypeAlias

import psycopg
import pytest
from e2e.daemons import WAIT_S, eventually
from support.fakes import NOON, memory, remember_batch
from support.postgres import Server, number_of, open_owned_stores, open_store, run

from mnemosyned.errors import MemoryBusy, NotFound, StorageFailed
from mnemosyned.memory.ports import Draft
from mnemosyned.memory.values import MemoryFilter, MemoryRecord, Tier
from mnemosyned.storage.postgres import connections, memories
from mnemosyned.storage.postgres.memories import INSERTED_AT_ONCE
from mnemosyned.storage.postgres.store import OwnedStores, PostgresStore

pytestmark = pytest.mark.postgres


BATCH, BATCHES = 200, 15
OURS = (
    "SELECT count(*) FROM pg_stat_activity WHERE application_name = 'mnemosyned' "
    "AND datname = current_database()"
)


Sql: TypeAlias = psycopg.Connection[Any]


@pytest.fixture
def server(dsn: str) -> Iterator[Sql]:
    """A connection beside the daemon's."""
    with psycopg.connect(dsn, autocommit=True) as connection:
        yield connection


def new(*ids: str) -> list[Draft]:
    """Memories whose ids were made for them."""
    return [
        Draft(memory(id, f"the {id} was seen at the mill"), has_new_id=True)
        for id in ids
    ]


@pytest.mark.parametrize(("plans_s", "has_another"), [(0.0, True), (60.0, False)])
def test_a_table_that_grew_is_not_read_by_the_plans_of_an_empty_one(
    dsn: str,
    store: PostgresStore,
    monkeypatch: pytest.MonkeyPatch,
    *,
    plans_s: float,
    has_another: bool,
) -> None:
    """Of indexes that seem equal the newest is used: the key, until there is another."""
    monkeypatch.setattr(connections, "PLANS_MIN_S", plans_s)
    monkeypatch.setattr(connections, "PLANS_MAX_S", plans_s)
    if has_another:
        run(dsn, "CREATE INDEX ON memory (owner, session_id)")
    for number in range(10):  # from the sixth time on the server keeps a plan
        remember_batch(store, memory(f"a{number}"))
        store.memories.get(f"a{number}")
    for batch in range(BATCHES):
        ids = [f"b{batch}-{number}" for number in range(BATCH)]
        remember_batch(store, *map(memory, ids))
    for id in ids:
        store.memories.get(id)
    store.pool.close()  # which has the server count what was read
    eventually(lambda: number_of(dsn, OURS) == 0, "the daemon's connections ended")

    read = (
        "SELECT coalesce(sum(idx_tup_read), 0)::bigint FROM pg_stat_user_indexes "
        "WHERE relname = 'memory'"
    )
    assert 0 < number_of(dsn, read) < 300 * BATCH * BATCHES


@pytest.mark.parametrize("ids", [["second"], ["second", "third"]])
def test_a_memory_with_an_id_of_its_own_takes_one_round_trip(
    store: PostgresStore, monkeypatch: pytest.MonkeyPatch, ids: list[str]
) -> None:
    store.memories.remember(new("first"))
    trips: list[bool] = []
    fetch = psycopg.Pipeline._fetch_gen  # noqa: SLF001 what waits for answers

    def counted(pipeline: psycopg.Pipeline, *, flush: bool) -> object:
        trips.append(flush)
        return fetch(pipeline, flush=flush)

    monkeypatch.setattr(psycopg.Pipeline, "_fetch_gen", counted)

    remembered = store.memories.remember(new(*ids))

    assert len(trips) == 1
    assert remembered.working == 1 + len(ids)
    assert store.memories.get(ids[-1]).id == ids[-1]


@pytest.mark.parametrize("size", [INSERTED_AT_ONCE, INSERTED_AT_ONCE + 1, 1_234])
def test_a_batch_is_inserted_in_parts_in_its_order(
    store: PostgresStore, monkeypatch: pytest.MonkeyPatch, size: int
) -> None:
    ids = [f"n{number}" for number in range(size)]
    parts: list[int] = []
    values_by_column = memories.values_by_column

    def noted(rows: Any) -> dict[str, list[Any]]:  # noqa: ANN401 as they come
        parts.append(len(rows))
        return values_by_column(rows)

    monkeypatch.setattr(memories, "values_by_column", noted)
    store.memories.remember(new("first"))

    remembered = store.memories.remember(new(*ids))

    assert remembered.working == 1 + size
    assert sum(parts) == size
    assert len(parts) == (1 if size == INSERTED_AT_ONCE else min(11, -(-size // 100)))
    listed = store.endings.memories_at(range(1, size + 2))
    assert [listed[number].id for number in range(1, size + 2)] == ["first", *ids]


@pytest.mark.parametrize(
    "fields",
    [
        {},
        {"source": "mail", "role": "user", "importance": 0.9, "pinned": True},
        {
            "content": "東京駅 QX-4821 'a\\b' {1,2}",
            "metadata": {"of": ["{", None, '"']},
        },
        {"tags": ("x", "y"), "valid_until": NOON + timedelta(days=9)},
    ],
)
def test_a_memory_is_kept_alone_as_it_is_among_others(
    store: PostgresStore, server: Sql, fields: dict[str, Any]
) -> None:
    alone, among = (replace(memory(id, "at the mill"), **fields) for id in "ab")
    store.memories.remember([Draft(alone, has_new_id=True)])
    store.memories.remember([Draft(among, has_new_id=True), *new("c")])

    first, second, _ = server.execute(
        "SELECT to_jsonb(m) - 'seq' - 'id', f.created_at FROM memory AS m "
        "JOIN fresh AS f ON f.owner = m.owner AND f.seq = m.seq ORDER BY m.seq"
    ).fetchall()
    assert first == second
    kept = store.memories.get("a")
    assert isinstance(kept, MemoryRecord)
    assert replace(kept, id="b") == store.memories.get("b")
    for name, value in fields.items():
        assert getattr(kept, name) == value


def test_numbers_follow_each_other(store: PostgresStore, server: Sql) -> None:
    tagged = Draft(memory("b", tags=("x",)), has_new_id=True)
    ending = memory("c", valid_until=NOON + timedelta(days=9))
    store.memories.remember([*new("a"), tagged])
    store.memories.remember([Draft(ending, dedupe=True), *new("d")])
    store.memories.remember(new("e"))

    def ids(statement: bytes) -> list[str]:
        return [id for (id,) in server.execute(statement)]

    of_memory = b"JOIN memory AS m ON m.seq = memory_seq"
    assert ids(b"SELECT id FROM memory ORDER BY seq") == ["a", "b", "c", "d", "e"]
    assert ids(b"SELECT m.id FROM tag " + of_memory) == ["b"]
    assert ids(b"SELECT m.id FROM memory_state " + of_memory) == ["c"]
    counted = server.execute("SELECT last_memory, working_count FROM owner").fetchall()
    assert counted == [(5, 5)]


def test_a_late_refusal_keeps_nothing(store: PostgresStore, server: Sql) -> None:
    server.execute("ALTER TABLE fresh ADD CHECK (seq < 3)")
    store.memories.remember(new("a"))

    with pytest.raises(StorageFailed, match="nothing of this request was kept"):
        store.memories.remember(new("b", "c"))

    assert store.maintenance.totals()[Tier.WORKING].count == 1
    assert store.memories.remember(new("b")).working == 2


def test_a_removed_owner_gets_no_row(store: PostgresStore, server: Sql) -> None:
    server.execute("DELETE FROM owner")

    with pytest.raises(NotFound, match="owner was removed"):
        store.memories.remember(new("a"))

    for table in (b"memory", b"fresh"):
        assert server.execute(b"SELECT * FROM " + table).fetchall() == []


# Owners share a daemon's connections: none takes all of them, and a full server is waited for.


WRITERS = 14


@pytest.fixture
def stores(dsn: str) -> Iterator[OwnedStores]:
    with open_owned_stores(dsn) as stores:
        yield stores


@contextmanager
def locked(dsn: str, owner: int) -> Iterator[psycopg.Connection]:
    """An owner's row, kept by another program's transaction."""
    with psycopg.connect(dsn) as other:
        other.execute("SELECT 1 FROM owner WHERE owner = %s FOR UPDATE", [owner])
        yield other
        other.rollback()


def remember_one(store: PostgresStore, name: str) -> None:
    remember_batch(store, memory(name, session=name))


def begin_writes(pool: ThreadPoolExecutor, store: PostgresStore) -> list[Future[None]]:
    return [pool.submit(remember_one, store, f"w{number}") for number in range(WRITERS)]


def test_a_locked_owner_stops_no_question(dsn: str, stores: OwnedStores) -> None:
    owner = stores.owners.add("anna").number
    anna, bert = stores.store(owner), stores.store(stores.owners.add("bert").number)
    waiting = OURS + " AND wait_event_type = 'Lock'"

    with ThreadPoolExecutor(WRITERS) as pool, locked(dsn, owner):
        writes = begin_writes(pool, anna)
        eventually(lambda: number_of(dsn, waiting) > 0, "a write waits at the row")
        assert bert.memories.working_count() == 0
        remember_one(bert, "bert")
        assert anna.memories.working_count() == 0
        assert number_of(dsn, waiting) > 0
        done, left = wait(writes, WAIT_S)

    assert not left
    errors = [write.exception() for write in done]
    assert {type(error) for error in errors} == {MemoryBusy}
    assert all("try again" in str(error) for error in errors)
    # Who waits behind a locked write is answered with it.
    in_vain = sum(connections.LOCKED in str(error) for error in errors)
    assert in_vain >= WRITERS - 2 * connections.OWNER_WRITES_MAX
    assert number_of(dsn, "SELECT count(*) FROM memory") == 1


def test_an_owners_writes_take_few_places(dsn: str, stores: OwnedStores) -> None:
    owner = stores.owners.add("anna").number

    with ThreadPoolExecutor(WRITERS) as pool:
        with locked(dsn, owner):
            writes = begin_writes(pool, stores.store(owner))
            eventually(
                lambda: (
                    number_of(dsn, OURS + " AND wait_event_type = 'Lock'")
                    == connections.OWNER_WRITES_MAX
                ),
                "as many wait as may",
            )
        for write in writes:
            write.result(WAIT_S)

    assert stores.store(owner).memories.working_count() == WRITERS


def test_a_long_write_rests_while_another_owner_is_at_work(
    stores: OwnedStores, monkeypatch: pytest.MonkeyPatch
) -> None:
    rests: list[float] = []
    monkeypatch.setattr(connections, "LONG_WRITE_S", 0.0)
    monkeypatch.setattr(connections, "REST_MAX_S", 1e-6)
    monkeypatch.setattr(connections, "AT_WORK_S", WAIT_S)  # however slow the machine is
    monkeypatch.setattr(
        connections,
        "time",
        SimpleNamespace(monotonic=time.monotonic, sleep=rests.append),
    )
    anna, bert = (stores.store(stores.owners.add(name).number) for name in ("a", "b"))
    with monkeypatch.context() as lately:
        lately.setattr(connections, "AT_WORK_S", -1.0)  # nobody counts as at work
        remember_one(anna, "alone")
    assert rests == []

    assert bert.memories.working_count() == 0
    remember_one(anna, "beside")

    assert rests == [1e-6]


def test_exports_take_no_place_from_questions(
    stores: OwnedStores, monkeypatch: pytest.MonkeyPatch
) -> None:
    owner = stores.owners.add("anna").number
    store = stores.store(owner)
    remember_one(store, "a")
    monkeypatch.setattr(connections, "STREAM_WAIT_S", 0.05)

    with ExitStack() as stack:
        for _ in range(connections.STREAMS_MAX):
            stack.enter_context(store.exchange.export(MemoryFilter()))
        assert store.memories.working_count() == 1
        with (
            pytest.raises(MemoryBusy, match="try again"),
            store.exchange.export(MemoryFilter()),
        ):
            pass


def test_idle_connections_are_closed(dsn: str, monkeypatch: pytest.MonkeyPatch) -> None:
    with open_store(dsn) as store:
        with ThreadPoolExecutor(WRITERS) as pool:
            for write in begin_writes(pool, store):
                write.result(WAIT_S)
        assert number_of(dsn, OURS) > 0
        monkeypatch.setattr(connections, "IDLE_MAX_S", 0.0)
        assert store.memories.working_count() == WRITERS

        eventually(lambda: number_of(dsn, OURS) == 0, "all are closed")


def test_all_owners_and_the_local_memory_have_one_pool(dsn: str) -> None:
    with (
        open_store(dsn) as local,
        open_owned_stores(dsn, beside=local) as stores,
        ThreadPoolExecutor(60) as pool,
    ):
        opened = [
            stores.store(stores.owners.add(f"owner-{number}").number)
            for number in range(12)
        ]
        reads = [
            pool.submit(store.memories.working_count)
            for store in (local, *opened)
            for _ in range(20)
        ]
        for read in reads:
            read.result(WAIT_S)

        assert number_of(dsn, OURS) <= connections.CONNECTIONS_MAX


def test_few_connections_answer_a_whole_burst() -> None:
    with Server(fsync="off") as server:
        admin = server.dsn("postgres")
        run(admin, "CREATE ROLE few LOGIN", "CREATE DATABASE few OWNER few")
        dsn = server.dsn("few").replace("postgres@", "few@")
        with open_store(dsn):
            pass
        run(admin, "ALTER ROLE few CONNECTION LIMIT 3")
        with open_store(dsn) as store, ThreadPoolExecutor(WRITERS) as pool:
            counting = [store.memories.working_count] * 20 * WRITERS
            reads = [pool.submit(count) for count in counting]
            answers = [read.result(WAIT_S) for read in reads]
            remember_one(store, "after")

    assert answers == [0] * 20 * WRITERS
