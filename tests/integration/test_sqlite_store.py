"""What the SQLite store promises beyond the port: its index, its waits, its leftovers."""

import sqlite3
import threading
from collections.abc import Iterator
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import pytest
from support.fakes import (
    NOON,
    consolidate,
    memory,
    promotion,
    remember_batch,
    working_ids,
)

from mnemosyned.errors import StorageFailed
from mnemosyned.memory.values import MemoryRecord
from mnemosyned.paths import shipped
from mnemosyned.search.query import Query
from mnemosyned.storage.sqlite.store import SqliteStore, open_store
from mnemosyned.text.terms import parse_terms

pytestmark = pytest.mark.sqlite

TRIO = (memory("1", "one 東京"), memory("2", "two getUserName"), memory("3", "three"))
BIKE = Query(terms=parse_terms("bike"), limit=10)


@pytest.fixture
def beside(store: SqliteStore) -> Iterator[sqlite3.Connection]:
    """A connection of somebody else to the same file."""
    with closing(
        sqlite3.connect(store.database, timeout=0, isolation_level=None)
    ) as connection:
        yield connection


def index_rows(connection: sqlite3.Connection) -> list[int]:
    return [
        id
        for (id,) in connection.execute("SELECT id FROM memory_fts_docsize ORDER BY id")
    ]


def assert_indexes_agree(connection: sqlite3.Connection) -> None:
    for table in ("memory_fts", "episode_fts"):
        connection.execute(
            f"INSERT INTO {table} ({table}, rank) VALUES ('integrity-check', 1)"
        )


def test_eviction_leaves_the_index_as_it_is(
    store: SqliteStore, beside: sqlite3.Connection
) -> None:
    remember_batch(store, *TRIO)
    segments = beside.execute("SELECT id, block FROM memory_fts_data").fetchall()
    rows = index_rows(beside)

    consolidate(store, promotion("e", *TRIO))

    assert (
        beside.execute("SELECT id, block FROM memory_fts_data").fetchall() == segments
    )
    assert index_rows(beside) == rows == [1, 2, 3]
    assert beside.execute("SELECT seq, id FROM archive ORDER BY seq").fetchall() == [
        (1, "1"),
        (2, "2"),
        (3, "3"),
    ]


def test_a_batch_is_written_to_the_index_at_once(
    store: SqliteStore, beside: sqlite3.Connection
) -> None:
    remember_batch(
        store, *(memory(str(number), f"word{number}") for number in range(100))
    )

    segments = beside.execute(
        "SELECT count(DISTINCT segid) FROM memory_fts_idx"
    ).fetchone()

    assert segments == (1,)


def test_the_index_agrees_with_the_texts_after_every_operation(
    store: SqliteStore, beside: sqlite3.Connection
) -> None:
    remember_batch(store, *TRIO, memory("4", "four", role="user"))
    assert_indexes_agree(beside)

    consolidate(store, promotion("e", *TRIO, content="a summary of 東京"))
    assert_indexes_agree(beside)

    store.deletion.forget(["2"])
    assert_indexes_agree(beside)
    emptied = store.rollups.next_stale()
    assert emptied
    store.rollups.rewrite(
        emptied.token, replace(emptied.episode, content="getRest 大阪")
    )
    assert_indexes_agree(beside)

    store.deletion.forget(["1", "3", "4"])
    assert_indexes_agree(beside)
    assert index_rows(beside) == []
    for table in ("memory_gram_fts", "episode_gram_fts"):
        assert not beside.execute(f"SELECT 1 FROM {table}_docsize").fetchall()


def test_a_number_in_the_index_is_never_used_twice(
    store: SqliteStore, beside: sqlite3.Connection
) -> None:
    remember_batch(store, *TRIO)
    store.deletion.forget(["3"])

    remember_batch(store, memory("4"))

    assert index_rows(beside) == [1, 2, 4]


def test_reading_never_waits_for_a_writer(
    store: SqliteStore, beside: sqlite3.Connection
) -> None:
    remember_batch(store, memory("1", "my bike"))
    beside.execute("BEGIN EXCLUSIVE")
    beside.execute("UPDATE working_memory SET content = 'changed'")

    found = store.search.candidates(BIKE)
    known = store.memories.get("1")

    assert len(found.memories) == 1
    assert isinstance(known, MemoryRecord)
    assert known.content == "my bike"


def test_a_writer_waits_for_another_process_to_finish(
    store: SqliteStore, beside: sqlite3.Connection
) -> None:
    beside.execute("BEGIN IMMEDIATE")
    writing = threading.Thread(target=remember_batch, args=(store, memory("1")))
    writing.start()

    writing.join(0.2)
    assert writing.is_alive()
    beside.execute("COMMIT")
    writing.join(10)

    assert working_ids(store) == ["1"]


def test_a_refused_write_is_reported_and_leaves_nothing(
    store: SqliteStore, beside: sqlite3.Connection
) -> None:
    beside.execute(
        "CREATE TRIGGER disk_full BEFORE INSERT ON episodic_memory "
        "BEGIN SELECT RAISE(ABORT, 'no space'); END"
    )
    remember_batch(store, *TRIO)

    with pytest.raises(StorageFailed):
        consolidate(store, promotion("e", *TRIO))

    assert store.memories.working_count() == 3
    beside.execute("DROP TRIGGER disk_full")
    consolidate(store, promotion("e", *TRIO))
    assert store.memories.working_count() == 0


@pytest.mark.parametrize(
    "name", ["with space.db", "odd?mode=memory#%20&.db", "größe 東京.db"]
)
def test_any_file_name_will_do(tmp_path: Path, name: str) -> None:
    with open_store(tmp_path / name, migrations=shipped("migrations")) as store:
        remember_batch(store, memory("1"))

        assert working_ids(store) == ["1"]
    assert (tmp_path / name).stat().st_size > 0


def test_a_closed_store_refuses_instead_of_hanging(database: Path) -> None:
    with open_store(database, migrations=shipped("migrations")) as store:
        remember_batch(store, memory("1"))

    with pytest.raises(StorageFailed):
        store.memories.get("1")
    with pytest.raises(StorageFailed):
        remember_batch(store, memory("2"))


def test_closing_folds_the_log_into_the_file(database: Path) -> None:
    with open_store(database, migrations=shipped("migrations")) as store:
        remember_batch(store, memory("1"))

    assert not database.with_name("memory.db-wal").exists()
    with closing(sqlite3.connect(database)) as connection:
        assert connection.execute("SELECT id FROM working_memory").fetchall() == [
            ("1",)
        ]


def test_a_long_log_is_cut_once_nothing_is_written(
    store: SqliteStore, beside: sqlite3.Connection
) -> None:
    log = store.database.with_name(f"{store.database.name}-wal")
    for number in range(30):
        remember_batch(store, memory(str(number), "word " * 10_000))
    filled = log.stat().st_size

    store.maintenance.run_idle_upkeep()
    checkpointed = log.stat().st_size
    beside.execute("BEGIN IMMEDIATE")
    store.maintenance.run_idle_upkeep()  # gives way to the writer
    beside.execute("ROLLBACK")
    written = log.stat().st_size
    store.maintenance.run_idle_upkeep()

    assert filled == checkpointed == written > 1_000_000
    assert log.stat().st_size == 0
    remember_batch(store, memory("last"))
    assert len(working_ids(store)) == 31


def test_a_short_log_stays_for_the_next_write(store: SqliteStore) -> None:
    log = store.database.with_name(f"{store.database.name}-wal")
    remember_batch(store, memory("1"))
    size = log.stat().st_size

    for _ in range(3):
        store.maintenance.run_idle_upkeep()

    assert log.stat().st_size == size > 0


def test_times_sort_as_text(store: SqliteStore, beside: sqlite3.Connection) -> None:
    years = (1, 987, 1970, 2026)
    remember_batch(
        store,
        *(memory(str(year), created_at=NOON.replace(year=year)) for year in years),
    )

    ordered = beside.execute(
        "SELECT id FROM working_memory ORDER BY created_at"
    ).fetchall()

    assert ordered == [(str(year),) for year in years]
