"""The file itself: its migrations, its pragmas, its permissions."""

import shutil
import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest
from sqlite_utils import Database
from support.fakes import (
    consolidate,
    memory,
    promotion,
    remember_batch,
    trio,
    working_ids,
)

from mnemosyned.errors import SchemaTooNew, StorageFailed
from mnemosyned.paths import shipped
from mnemosyned.storage.sqlite.connections import open_writer
from mnemosyned.storage.sqlite.memories import SAID_BEFORE
from mnemosyned.storage.sqlite.store import open_store

LATEST = int(max(shipped("migrations").glob("*.sql")).name[:4])


@pytest.fixture
def migrations(tmp_path: Path) -> Path:
    """A copy of the migrations, for a test to add its own."""
    folder = tmp_path / "migrations"
    shutil.copytree(shipped("migrations"), folder)
    return folder


def add(migrations: Path, step: int, script: str) -> None:
    (migrations / f"{LATEST + step:04}_made_up.sql").write_text(script)


@pytest.fixture
def used(database: Path) -> Path:
    """A file of the present schema with memories in every tier."""
    with open_store(database, migrations=shipped("migrations")) as store:
        remember_batch(store, *trio("a"), memory("fresh"))
        consolidate(store, promotion("e", *trio("a")))
    return database


def version(database: Path) -> int:
    with closing(sqlite3.connect(database)) as connection:
        number: int = connection.execute("PRAGMA user_version").fetchone()[0]
    return number


def schema(database: Path) -> list[tuple[str]]:
    with closing(sqlite3.connect(database)) as connection:
        return connection.execute(
            "SELECT name, sql FROM sqlite_schema ORDER BY name"
        ).fetchall()


# ---------------------------------------------------------------- migrations


def test_a_new_file_has_the_latest_schema(database: Path) -> None:
    with open_store(database, migrations=shipped("migrations")) as store:
        assert store.schema_version == LATEST

    with closing(sqlite3.connect(database)) as connection:
        rows = list(Database(connection)["_sqlite_migrations"].rows)
    assert version(database) == LATEST
    assert [row["name"] for row in rows] == [
        file.stem for file in sorted(shipped("migrations").glob("*.sql"))
    ]


def test_an_older_file_is_upgraded_and_keeps_its_memories(
    used: Path, migrations: Path
) -> None:
    add(migrations, 1, "ALTER TABLE working_memory ADD COLUMN mood TEXT;\n")

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

    with open_store(database, migrations=shipped("migrations")) as store:
        again = remember_batch(
            store, memory("1", "still here"), memory("2", "moved since"), dedupe=True
        )

    assert [answer.id for answer in again] == ["fresh", "old"]


def test_what_was_said_before_is_looked_up_in_an_index(used: Path) -> None:
    with closing(sqlite3.connect(used)) as connection:
        plan = connection.execute(
            f"EXPLAIN QUERY PLAN {SAID_BEFORE}",
            {"session": "s", "hash": 1, "content": "a text", "source": None},
        )
        steps = [row[3] for row in plan if "_said" in row[3]]

    found = "USING INDEX {}_said (<expr>=? AND content_hash=?)"
    assert steps == [
        f"SEARCH {x} {found.format(x)}" for x in ("working_memory", "archive")
    ]


def test_a_range_of_rows_is_read_as_such_whatever_the_session(used: Path) -> None:
    with closing(sqlite3.connect(used)) as connection:
        plan = connection.execute(
            "EXPLAIN QUERY PLAN SELECT content FROM archive "
            "WHERE seq BETWEEN 1 AND 9 AND session_id = 's'"
        ).fetchall()

    assert ["INTEGER PRIMARY KEY" in row[3] for row in plan] == [True]


def test_opening_again_changes_nothing(used: Path) -> None:
    before = schema(used)

    with open_store(used, migrations=shipped("migrations")):
        pass

    assert schema(used) == before
    assert version(used) == LATEST


def test_a_file_of_a_later_version_is_refused_and_left_alone(
    used: Path, migrations: Path
) -> None:
    add(migrations, 1, "CREATE TABLE later (id INTEGER);\n")
    with open_store(used, migrations=migrations):
        pass
    before = schema(used)

    with (
        pytest.raises(SchemaTooNew, match=str(LATEST + 1)),
        open_store(used, migrations=shipped("migrations")),
    ):
        pass

    assert schema(used) == before


def test_a_migration_that_fails_leaves_the_file_as_it_was(
    used: Path, migrations: Path
) -> None:
    add(
        migrations,
        1,
        "CREATE TABLE half (id INTEGER);\n"
        "UPDATE working_memory SET content = 'changed';\n"
        "INSERT INTO nowhere VALUES (1);\n",
    )
    before = schema(used)

    with pytest.raises(StorageFailed), open_store(used, migrations=migrations):
        pass

    assert schema(used) == before
    assert version(used) == LATEST
    with open_store(used, migrations=shipped("migrations")) as store:
        assert store.memories.working(["fresh"])[0].content == "note fresh"


def test_migrations_before_the_one_that_fails_stay(
    used: Path, migrations: Path
) -> None:
    add(migrations, 1, "CREATE TABLE good (id INTEGER);\n")
    add(migrations, 2, "CREATE TABLE good (id INTEGER);\n")

    with pytest.raises(StorageFailed), open_store(used, migrations=migrations):
        pass

    assert version(used) == LATEST + 1


def test_a_trigger_in_a_migration_is_one_statement(
    used: Path, migrations: Path
) -> None:
    add(
        migrations,
        1,
        "-- a comment; with a semicolon\n"
        "CREATE TRIGGER t AFTER INSERT ON archive BEGIN\n    SELECT 1;\n    SELECT 2;\nEND;\n",
    )

    with open_store(used, migrations=migrations) as store:
        assert store.schema_version == LATEST + 1


def test_without_migrations_nothing_opens(database: Path, tmp_path: Path) -> None:
    with (
        pytest.raises(StorageFailed, match="install mnemosyned again"),
        open_store(database, migrations=tmp_path / "empty"),
    ):
        pass


# ------------------------------------------------------------------ the file


@pytest.mark.parametrize(
    "content", [b"not a database at all, but long enough", b"x" * 8192]
)
def test_a_file_that_is_no_database_is_refused_as_such(
    database: Path, content: bytes
) -> None:
    database.write_bytes(content)

    with (
        pytest.raises(StorageFailed, match=r"memory\.db"),
        open_store(database, migrations=shipped("migrations")),
    ):
        pass

    assert database.read_bytes() == content


def test_a_place_where_no_file_can_be_is_refused_as_such(tmp_path: Path) -> None:
    (tmp_path / "file").touch()

    with (
        pytest.raises(StorageFailed),
        open_store(tmp_path / "file" / "memory.db", migrations=shipped("migrations")),
    ):
        pass


def test_only_the_owner_can_read_the_files(database: Path) -> None:
    with open_store(database, migrations=shipped("migrations")) as store:
        remember_batch(store, memory("1"))
        modes = {
            path.name: path.stat().st_mode & 0o777 for path in database.parent.iterdir()
        }

    assert modes == dict.fromkeys(
        ("memory.db", "memory.db-wal", "memory.db-shm", "memory.db.lock"), 0o600
    )


def test_a_new_folder_is_private(tmp_path: Path) -> None:
    with open_store(
        tmp_path / "new" / "memory.db", migrations=shipped("migrations")
    ) as store:
        assert store.database.parent.stat().st_mode & 0o777 == 0o700


@pytest.mark.parametrize(
    ("pragma", "value"),
    [
        ("journal_mode", "wal"),
        ("synchronous", 2),
        ("foreign_keys", 1),
        ("secure_delete", 1),
    ],
)
def test_the_writer_is_durable_and_thorough(
    database: Path, pragma: str, value: str | int
) -> None:
    with closing(open_writer(database)) as connection:
        assert connection.execute(f"PRAGMA {pragma}").fetchone() == (value,)


# --------------------------------------------------------- outside tools


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


def test_an_original_cannot_lose_its_episode(outside: Database) -> None:
    outside.execute("PRAGMA foreign_keys = ON")

    with pytest.raises(sqlite3.IntegrityError):
        outside.execute("DELETE FROM episodic_memory")
