"""Owners share a daemon's connections: none takes all of them, and a full server is waited for."""

import time
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor, wait
from contextlib import ExitStack, contextmanager
from types import SimpleNamespace
from typing import cast

import psycopg
import pytest
from e2e.daemons import WAIT_S, eventually
from support.fakes import remember_batch, trio
from support.postgres import Server

from mnemosyned.errors import MemoryBusy
from mnemosyned.memory.exchange import ExportFilter
from mnemosyned.memory.ports import MemoryStore
from mnemosyned.paths import shipped
from mnemosyned.storage.postgres import connections
from mnemosyned.storage.postgres.store import (
    OwnedStores,
    open_owned_stores,
    open_store,
)

pytestmark = pytest.mark.postgres

MIGRATIONS = shipped("migrations") / "postgres"
WRITERS = 14
OURS = (
    "SELECT count(*) FROM pg_stat_activity WHERE application_name = 'mnemosyned' "
    "AND datname = current_database()"
)


@pytest.fixture
def stores(dsn: str) -> Iterator[OwnedStores]:
    with open_owned_stores(dsn, migrations=MIGRATIONS) as stores:
        yield stores


@contextmanager
def locked(dsn: str, owner: int) -> Iterator[psycopg.Connection]:
    """An owner's row, kept by another program's transaction."""
    with psycopg.connect(dsn) as other:
        other.execute("SELECT 1 FROM owner WHERE owner = %s FOR UPDATE", [owner])
        yield other
        other.rollback()


def count(dsn: str, sql: str) -> int:
    with psycopg.connect(dsn) as connection:
        row = connection.execute(sql.encode()).fetchone()
        return int(row[0]) if row else 0


def remember_one(store: object, name: str) -> None:
    remember_batch(cast("MemoryStore", store), trio(name)[0])


def begin_writes(pool: ThreadPoolExecutor, store: object) -> list[Future[None]]:
    return [pool.submit(remember_one, store, f"w{number}") for number in range(WRITERS)]


def test_a_locked_owner_stops_neither_others_nor_its_own_questions(
    dsn: str, stores: OwnedStores
) -> None:
    numbers = {name: stores.owners.add(name).number for name in ("anna", "bert")}
    anna, bert = (stores.store(number) for number in numbers.values())
    waiting = OURS + " AND wait_event_type = 'Lock'"

    with ThreadPoolExecutor(WRITERS) as pool, locked(dsn, numbers["anna"]):
        writes = begin_writes(pool, anna)
        eventually(lambda: count(dsn, waiting) > 0, "a write waits at the row")
        assert bert.memories.working_count() == 0
        remember_one(bert, "bert")
        assert anna.memories.working_count() == 0
        assert count(dsn, waiting) > 0
        done, left = wait(writes, WAIT_S)

    assert not left
    errors = [write.exception() for write in done]
    assert {type(error) for error in errors} == {MemoryBusy}
    assert all("try again" in str(error) for error in errors)
    assert count(dsn, "SELECT count(*) FROM memory") == 1


def test_who_waits_behind_a_locked_write_is_answered_with_it(
    dsn: str, stores: OwnedStores
) -> None:
    owner = stores.owners.add("anna").number

    with ThreadPoolExecutor(WRITERS) as pool, locked(dsn, owner):
        writes = begin_writes(pool, stores.store(owner))
        wait(writes, WAIT_S)
    in_vain = [
        write for write in writes if connections.LOCKED in str(write.exception())
    ]
    assert len(in_vain) >= WRITERS - 2 * connections.OWNER_WRITES_MAX


def test_writes_of_one_owner_take_few_connections(
    dsn: str, stores: OwnedStores
) -> None:
    owner = stores.owners.add("anna").number

    with ThreadPoolExecutor(WRITERS) as pool:
        with locked(dsn, owner):
            writes = begin_writes(pool, stores.store(owner))
            eventually(
                lambda: (
                    count(dsn, OURS + " AND wait_event_type = 'Lock'")
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
            stack.enter_context(store.exchange.export(ExportFilter()))
        assert store.memories.working_count() == 1
        with (
            pytest.raises(MemoryBusy, match="try again"),
            store.exchange.export(ExportFilter()),
        ):
            pass


def test_idle_connections_are_given_back(
    dsn: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    with open_store(dsn, migrations=MIGRATIONS) as store:
        with ThreadPoolExecutor(WRITERS) as pool:
            for write in begin_writes(pool, store):
                write.result(WAIT_S)
        assert count(dsn, OURS) > 0
        monkeypatch.setattr(connections, "IDLE_MAX_S", 0.0)
        assert store.memories.working_count() == WRITERS

        eventually(lambda: count(dsn, OURS) == 0, "all are closed")


def test_all_owners_and_the_local_memory_have_one_pool(dsn: str) -> None:
    with (
        open_store(dsn, migrations=MIGRATIONS) as local,
        open_owned_stores(dsn, migrations=MIGRATIONS, beside=local) as stores,
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

        assert count(dsn, OURS) <= connections.CONNECTIONS_MAX


@pytest.fixture(scope="module")
def small() -> Iterator[tuple[Server, str]]:
    """A server that leaves this user three connections, and a database of that user."""
    server = Server(fsync="off")
    server.start()
    with psycopg.connect(server.dsn("postgres"), autocommit=True) as connection:
        connection.execute("CREATE ROLE few LOGIN")
        connection.execute("CREATE DATABASE few OWNER few")
    dsn = server.dsn("few").replace("postgres@", "few@")
    with open_store(dsn, migrations=MIGRATIONS):
        pass
    with psycopg.connect(server.dsn("postgres"), autocommit=True) as connection:
        connection.execute("ALTER ROLE few CONNECTION LIMIT 3")
    yield server, dsn
    server.remove()


def test_a_server_with_few_places_answers_every_request_of_a_burst(
    small: tuple[Server, str],
) -> None:
    _, dsn = small
    with open_store(dsn, migrations=MIGRATIONS) as store:
        with ThreadPoolExecutor(WRITERS) as pool:
            reads = [
                pool.submit(store.memories.working_count) for _ in range(20 * WRITERS)
            ]
            answers = [read.result(WAIT_S) for read in reads]
        remember_one(store, "after")

    assert answers == [0] * 20 * WRITERS
