"""Another program's SQLite file is refused as it is; a file of ours is known by its header."""

import shutil
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from mnemosyned.errors import StorageFailed
from mnemosyned.paths import shipped
from mnemosyned.storage.sqlite.schema import APPLICATION_ID
from mnemosyned.storage.sqlite.store import open_store


def run(database: Path, *statements: str) -> None:
    with closing(sqlite3.connect(database)) as connection:
        for statement in statements:
            connection.execute(statement)
        connection.commit()


def application(database: Path) -> int:
    with closing(sqlite3.connect(database)) as connection:
        number: int = connection.execute("PRAGMA application_id").fetchone()[0]
        return number


@pytest.mark.parametrize(
    "statements",
    [
        ["CREATE TABLE contact (name TEXT)"],
        ["CREATE TABLE contact (name TEXT)", "PRAGMA user_version = 3"],
        ["CREATE TABLE contact (name TEXT)", "PRAGMA user_version = 3000"],
        ["PRAGMA application_id = 77", "CREATE TABLE t (x)"],
        ["CREATE TABLE _sqlite_migrations (id)", "CREATE TABLE contact (name TEXT)"],
    ],
)
def test_the_file_of_another_program_is_refused_unchanged(
    database: Path, statements: list[str]
) -> None:
    run(database, *statements)
    before = database.read_bytes()

    with (
        pytest.raises(
            StorageFailed, match=r"memory\.db is the SQLite database of another program"
        ),
        open_store(database, migrations=shipped("migrations")),
    ):
        pass

    assert database.read_bytes() == before
    assert not database.with_name("memory.db-wal").exists()


def test_a_file_of_ours_is_known_by_its_header(database: Path) -> None:
    with open_store(database, migrations=shipped("migrations")):
        pass

    assert application(database) == APPLICATION_ID


def test_a_file_of_an_earlier_version_is_ours(database: Path, blank: Path) -> None:
    shutil.copy(blank, database)
    run(database, "PRAGMA application_id = 0")

    with open_store(database, migrations=shipped("migrations")):
        pass

    assert application(database) == APPLICATION_ID


def test_a_start_that_was_killed_at_its_first_table_starts_again(
    database: Path,
) -> None:
    run(
        database,
        "CREATE TABLE _sqlite_migrations (migration_set TEXT, name TEXT, applied_at TEXT)",
    )

    with open_store(database, migrations=shipped("migrations")) as store:
        assert store.schema_version > 0
