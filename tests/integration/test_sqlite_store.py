"""What the SQLite store promises beyond the port: its file and migrations, its index, its waits."""

import shutil
import sqlite3
import threading
from collections.abc import Iterator
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import pytest
from sqlite_utils import Database
from support.blank_database import MIGRATIONS
from support.cases import each_case
from support.fakes import (
    NOON,
    consolidate,
    memory,
    promotion,
    remember_batch,
    trio,
    working_ids,
)
from support.stores import open_store

from mnemosyned.errors import SchemaTooNew, StorageFailed
from mnemosyned.memory.values import MemoryRecord
from mnemosyned.search.query import Query
from mnemosyned.storage.sqlite.connections import open_writer
from mnemosyned.storage.sqlite.memories import SAID_BEFORE
from mnemosyned.storage.sqlite.store import SqliteStore
from mnemosyned.text.terms import parse_terms

pytestmark = pytest.mark.sqlite

LATEST = int(max(MIGRATIONS.glob("*.sql")).name[:4])
TRIO = (memory("1", "one 東京"), memory("2", "two getUserName"), memory("3", "three"))
BIKE = Query(terms=parse_terms("bike"), limit=10)


@pytest.fixture
def migrations(tmp_path: Path) -> Path:
    """A copy of the migrations, for a test to add its own."""
    return shutil.copytree(MIGRATIONS, tmp_path / "migrations")


def add(migrations: Path, script: str, *, step: int = 1) -> None:
    (migrations / f"{LATEST + step:04}_made_up.sql").write_text(script)


@pytest.fixture
def used(database: Path) -> Path:
    """A file of the present schema with memories in every tier."""
    with open_store(database) as store:
        remember_batch(store, *trio("a"), memory("fresh"))
        consolidate(store, promotion("e", *trio("a")))
    return database


def read(database: Path, sql: str, **values: object) -> list[tuple[object, ...]]:
    with closing(sqlite3.connect(database)) as connection:
        return connection.execute(sql, values).fetchall()


def schema(database: Path) -> list[tuple[object, ...]]:
    """The version and the tables of a file."""
    tables = read(database, "SELECT name, sql FROM sqlite_schema ORDER BY name")
    return [*read(database, "PRAGMA user_version"), *tables]


def test_opening_again_changes_nothing_of_the_latest_schema(database: Path) -> None:
    with open_store(database) as store:
        assert store.schema_version == LATEST
    before = schema(database)
    with open_store(database):
        pass

    assert before == schema(database)
    assert before[0] == (LATEST,)
    names = [(file.stem,) for file in sorted(MIGRATIONS.glob("*.sql"))]
    assert read(database, "SELECT name FROM _sqlite_migrations ORDER BY name") == names


def test_an_older_file_is_upgraded_and_keeps_all(used: Path, migrations: Path) -> None:
    add(
        migrations,
        "-- a comment; with a semicolon\n"
        "ALTER TABLE working_memory ADD COLUMN mood TEXT;\n"
        "CREATE TRIGGER t AFTER INSERT ON archive BEGIN\n    SELECT 1;\n    SELECT 2;\nEND;\n",
    )

    with open_store(used, migrations=migrations) as store:
        assert store.schema_version == LATEST + 1
        assert working_ids(store) == ["fresh"]
        assert len(store.memories.originals("e")) == 3
        remember_batch(store, memory("later"))


def test_what_was_said_before_an_upgrade_is_still_found(
    database: Path, migrations: Path
) -> None:
    for file in migrations.glob("*.sql"):
        if int(file.name[:4]) >= 4:
            file.unlink()
    with open_store(database, migrations=migrations) as store:
        remember_batch(
            store, memory("old", "moved since"), memory("fresh", "still here")
        )
    with closing(sqlite3.connect(database)) as connection, connection:
        connection.execute(
            "INSERT INTO episodic_memory (id, session_id, content, item_count, covers_from, "
            "covers_until, summarizer, created_at) VALUES ('e', 's', '', 1, '', '', '', '')"
        )
        columns = "seq, id, session_id, source, content, created_at, content_hash"
        connection.execute(
            f"INSERT INTO archive ({columns}, episode_seq) "
            f"SELECT {columns}, 1 FROM working_memory WHERE id = 'old'"
        )
        connection.execute("DELETE FROM working_memory WHERE id = 'old'")

    with open_store(database) as store:
        again = remember_batch(
            store, memory("1", "still here"), memory("2", "moved since"), dedupe=True
        )

    assert [answer.id for answer in again] == ["fresh", "old"]


def test_what_was_said_before_is_looked_up_in_an_index(used: Path) -> None:
    said = {"session": "s", "hash": 1, "content": "a text", "source": None}
    plan = read(used, f"EXPLAIN QUERY PLAN {SAID_BEFORE}", **said)

    found = "USING INDEX {}_said (<expr>=? AND content_hash=?)"
    assert [row[3] for row in plan if "_said" in str(row[3])] == [
        f"SEARCH {x} {found.format(x)}" for x in ("working_memory", "archive")
    ]


def test_a_file_of_a_later_version_is_refused(used: Path, migrations: Path) -> None:
    add(migrations, "CREATE TABLE later (id INTEGER);\n")
    with open_store(used, migrations=migrations):
        pass
    before = schema(used)

    with pytest.raises(SchemaTooNew, match=str(LATEST + 1)), open_store(used):
        pass

    assert schema(used) == before


def test_a_failed_migration_leaves_the_file_as_it_was(
    used: Path, migrations: Path
) -> None:
    add(
        migrations,
        "CREATE TABLE half (id INTEGER);\n"
        "UPDATE working_memory SET content = 'changed';\n"
        "INSERT INTO nowhere VALUES (1);\n",
    )
    before = schema(used)

    with pytest.raises(StorageFailed), open_store(used, migrations=migrations):
        pass

    assert schema(used) == before
    with open_store(used) as store:
        assert store.memories.working(["fresh"])[0].content == "note fresh"


def test_migrations_before_one_that_fails_stay(used: Path, migrations: Path) -> None:
    for step in (1, 2):
        add(migrations, "CREATE TABLE good (id INTEGER);\n", step=step)

    with pytest.raises(StorageFailed), open_store(used, migrations=migrations):
        pass

    assert schema(used)[0] == (LATEST + 1,)


@pytest.mark.parametrize(
    "content", [b"not a database at all, but long enough", b"x" * 8192]
)
def test_a_file_that_is_no_database_is_refused(database: Path, content: bytes) -> None:
    database.write_bytes(content)

    with pytest.raises(StorageFailed, match=r"memory\.db"), open_store(database):
        pass

    assert database.read_bytes() == content


def test_a_place_where_no_file_can_be_is_refused_as_such(tmp_path: Path) -> None:
    (tmp_path / "file").touch()

    with pytest.raises(StorageFailed), open_store(tmp_path / "file" / "memory.db"):
        pass


def test_only_the_owner_can_read_the_files_and_a_new_folder(tmp_path: Path) -> None:
    folder = tmp_path / "new"
    with open_store(folder / "memory.db") as store:
        remember_batch(store, memory("1"))
        modes = {
            path.name: path.stat().st_mode & 0o777
            for path in (folder, *folder.iterdir())
        }

    assert modes.pop("new") == 0o700
    assert modes == dict.fromkeys(
        ("memory.db", "memory.db-wal", "memory.db-shm", "memory.db.lock"), 0o600
    )


@each_case(
    ("pragma", "value"),
    [
        ("journal_mode", "wal"),
        ("synchronous", 2),
        ("foreign_keys", 1),
        ("secure_delete", 1),
    ],
)
def test_the_writer_is_durable(database: Path, pragma: str, value: str | int) -> None:
    with closing(open_writer(database)) as connection:
        assert connection.execute(f"PRAGMA {pragma}").fetchone() == (value,)


@pytest.mark.parametrize(
    "name", ["with space.db", "odd?mode=memory#%20&.db", "größe 東京.db"]
)
def test_any_file_name_will_do(tmp_path: Path, name: str) -> None:
    with open_store(tmp_path / name) as store:
        remember_batch(store, memory("1"))

        assert working_ids(store) == ["1"]
    assert (tmp_path / name).stat().st_size > 0


def test_a_closed_store_has_folded_its_log_and_refuses(database: Path) -> None:
    with open_store(database) as store:
        remember_batch(store, memory("1"))

    assert not database.with_name("memory.db-wal").exists()
    assert read(database, "SELECT id FROM working_memory") == [("1",)]
    with pytest.raises(StorageFailed):
        store.memories.get("1")
    with pytest.raises(StorageFailed):
        remember_batch(store, memory("2"))


@pytest.fixture
def outside(used: Path) -> Iterator[Database]:
    database = Database(used)
    yield database
    database.conn.close()


def test_sqlite_utils_reads_the_rows_of_every_table_and_view(outside: Database) -> None:
    names = outside.table_names() + outside.view_names()

    rows = {name: list(outside[name].rows) for name in names if "_fts" not in name}

    assert [row["id"] for row in rows["working_memory"]] == ["fresh"]
    assert [row["memory_id"] for row in rows["summary_of"]] == ["a0", "a1", "a2"]
    assert len(rows["memory_text"]) == 4
    assert rows["consolidation_log"][0]["items_consolidated"] == 3


def test_the_documented_columns_of_the_log_come_first(outside: Database) -> None:
    columns = [column.name for column in outside["consolidation_log"].columns]

    assert columns[:5] == [
        "id",
        "session_id",
        "items_consolidated",
        "summary_preview",
        "created_at",
    ]


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

    archived = beside.execute("SELECT seq, id FROM archive ORDER BY seq").fetchall()
    left = beside.execute("SELECT id, block FROM memory_fts_data").fetchall()
    assert left == segments
    assert index_rows(beside) == rows == [1, 2, 3]
    assert archived == [(1, "1"), (2, "2"), (3, "3")]


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
    writing.join(60)

    assert working_ids(store) == ["1"]


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
