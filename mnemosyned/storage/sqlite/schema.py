"""The schema of a file, brought up to date: numbered SQL files, each in one transaction."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path

from mnemosyned.errors import SchemaTooNew, StorageFailed

MIGRATION_SET = "mnemosyned"
APPLICATION_ID = 0x4D6E656D
"""Mark in SQLite's header of a file of this program: "Mnem"."""
_OURS = "working_memory"
"""A table that every version of this program's database has."""
_BEFORE = {"_sqlite_migrations"}
"""Tables that a start leaves that was killed during the first migration."""
_RECORDS = """
CREATE TABLE IF NOT EXISTS _sqlite_migrations (
    id INTEGER PRIMARY KEY, migration_set TEXT, name TEXT, applied_at TEXT
);
CREATE UNIQUE INDEX IF NOT EXISTS idx__sqlite_migrations_migration_set_name
ON _sqlite_migrations (migration_set, name);
"""


def table_names(connection: sqlite3.Connection) -> set[str]:
    """Return the names of the tables in a database."""
    rows = connection.execute("SELECT name FROM sqlite_schema WHERE type = 'table'")
    return {name for (name,) in rows}


def schema_version(connection: sqlite3.Connection) -> int:
    """Return the number of the last migration applied to a database; 0 for a new file."""
    version: int = connection.execute("PRAGMA user_version").fetchone()[0]
    return version


def refuse_foreign(connection: sqlite3.Connection, path: Path) -> None:
    """Raise `StorageFailed` if the database at `path` is of another program; change nothing."""
    (application,) = connection.execute("PRAGMA application_id").fetchone()
    if application == APPLICATION_ID:
        return
    tables = table_names(connection)
    if application or (_OURS not in tables and tables - _BEFORE):
        some = ", ".join(sorted(tables - _BEFORE)[:3])
        raise StorageFailed(
            f"{path} is the SQLite database of another program (tables: {some or 'none'}); nothing "
            "was changed in it. Choose another file"
        )


def latest_version(migrations: Path) -> int:
    """Return the schema version of this program: the number of its last migration."""
    return _migration_number(_migration_files(migrations)[-1])


def refuse_newer(connection: sqlite3.Connection, latest: int) -> None:
    """Raise `SchemaTooNew` if the schema version of a database is above `latest`."""
    version = schema_version(connection)
    if version > latest:
        raise SchemaTooNew(
            f"the database has schema version {version}, this mnemosyned knows {latest}; "
            "install the version that wrote it, or a later one"
        )


def upgrade(connection: sqlite3.Connection, migrations: Path) -> bool:
    """Apply missing migrations, set the application id; return if anything changed. Raises `SchemaTooNew`."""
    files = _migration_files(migrations)
    latest = _migration_number(files[-1])
    refuse_newer(connection, latest)
    version = schema_version(connection)
    if version < latest:
        _apply_migrations(connection, files)
    (application,) = connection.execute("PRAGMA application_id").fetchone()
    if application != APPLICATION_ID:
        connection.execute(f"PRAGMA application_id = {APPLICATION_ID}")
    return version < latest or application != APPLICATION_ID


def blank_database(migrations: Path) -> sqlite3.Connection:
    """Return an empty in-memory database of the present schema, for comparisons."""
    connection = sqlite3.connect(":memory:", isolation_level=None)
    upgrade(connection, migrations)
    return connection


def missing_parts(
    connection: sqlite3.Connection, blank: sqlite3.Connection
) -> list[tuple[str, str, str]]:
    """Return type, name and SQL of the parts of a schema that only `blank` has, tables first.

    Triggers are parts, too; the tables that SQLite creates with a full-text index are left out.
    """
    parts = (
        "SELECT type, name, sql FROM sqlite_schema WHERE sql IS NOT NULL "
        "AND name NOT LIKE 'sqlite\\_%' ESCAPE '\\' ORDER BY "
        "CASE type WHEN 'table' THEN 0 WHEN 'view' THEN 1 ELSE 2 END, rowid"
    )
    present = {(kind, name) for kind, name, _ in connection.execute(parts)}
    wanted = blank.execute(parts).fetchall()
    indexes = [name for _, name, sql in wanted if sql.startswith("CREATE VIRTUAL")]
    behind = tuple(f"{index}_" for index in indexes)
    return [
        (kind, name, sql)
        for kind, name, sql in wanted
        if (kind, name) not in present and not name.startswith(behind)
    ]


def _migration_files(folder: Path) -> list[Path]:
    """Return the migration files in a folder in order. Raises `StorageFailed` if there are none."""
    files = sorted(folder.glob("[0-9][0-9][0-9][0-9]_*.sql"))
    if not files:
        raise StorageFailed(f"no migrations in {folder}; install mnemosyned again")
    return files


def _apply_migrations(connection: sqlite3.Connection, files: list[Path]) -> None:
    """Apply migrations not recorded yet, in a transaction per file, and record them.

    The records are in the format of sqlite-utils, so that it can list them. sqlite-utils itself is not
    loaded: it loads numpy, which would delay a new database by a third of a second.
    """
    for statement in _split_statements(_RECORDS):
        connection.execute(statement)
    applied = {
        name
        for (name,) in connection.execute(
            "SELECT name FROM _sqlite_migrations WHERE migration_set = ?",
            (MIGRATION_SET,),
        )
    }
    for file in files:
        if file.stem in applied:
            continue
        connection.execute("BEGIN IMMEDIATE")
        try:
            for statement in _split_statements(file.read_text(encoding="utf-8")):
                connection.execute(statement)
            connection.execute(
                "INSERT INTO _sqlite_migrations (migration_set, name, applied_at) "
                "VALUES (?, ?, ?)",
                (MIGRATION_SET, file.stem, str(datetime.now(UTC))),
            )
            connection.execute(f"PRAGMA user_version = {_migration_number(file)}")
            connection.execute("COMMIT")
        except BaseException:
            if connection.in_transaction:
                connection.execute("ROLLBACK")
            raise


def _split_statements(script: str) -> Iterator[str]:
    """Yield the statements of a script. Raises `StorageFailed` if the last one is not complete."""
    statement = ""
    for line in script.splitlines(keepends=True):
        statement += line
        if sqlite3.complete_statement(statement):
            yield statement
            statement = ""
    if statement.strip():
        raise StorageFailed(
            f"a migration ends in the middle of a statement: {statement[:80]!r}"
        )


def _migration_number(file: Path) -> int:
    """Return the number of a migration: the first four digits of its file's name."""
    return int(file.name[:4])
