"""New databases are copies of an empty one, in tests and in the daemons of the fork server."""

import sqlite3
from functools import cache
from pathlib import Path
from threading import Lock

from mnemosyned.paths import shipped
from mnemosyned.storage.sqlite import schema

MIGRATIONS = shipped("migrations")
_apply_migrations = schema._apply_migrations  # noqa: SLF001 replaced below
_copying = Lock()


def copy_blank_databases() -> None:
    """Have this process, and its forks, copy a new database: to apply all migrations takes 10 ms."""
    _blank_database()
    schema._apply_migrations = _copy_or_migrate  # noqa: SLF001 for all tests


@cache
def _blank_database() -> sqlite3.Connection:
    connection = sqlite3.connect(
        ":memory:", isolation_level=None, check_same_thread=False
    )
    _apply_migrations(connection, sorted(MIGRATIONS.glob("*.sql")))
    return connection


def _copy_or_migrate(connection: sqlite3.Connection, files: list[Path]) -> None:
    is_new = not connection.execute("SELECT 1 FROM sqlite_schema").fetchone()
    if is_new and files == sorted(MIGRATIONS.glob("*.sql")):
        with _copying:
            _blank_database().backup(connection)
    else:
        _apply_migrations(connection, files)
