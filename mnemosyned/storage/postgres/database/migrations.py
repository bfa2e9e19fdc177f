"""The schema: brought up to date by whoever comes first, one at a time."""

from __future__ import annotations

from pathlib import Path

import psycopg

from mnemosyned.domain.errors import SchemaTooNew, StorageFailed
from mnemosyned.storage.postgres.database.connections import connected_once
from mnemosyned.storage.postgres.database.session import Row, Session

_LOCK = 0x6D6E656D
"""Advisory lock of whoever changes the schema."""
_TABLE = """
CREATE TABLE IF NOT EXISTS schema_migration (
    version    integer PRIMARY KEY,
    name       text NOT NULL,
    applied_at timestamptz NOT NULL DEFAULT now()
)
"""


def upgrade(dsn: str, folder: Path) -> int:
    """Apply the migrations that the database lacks; return its version then.

    Raises `SchemaTooNew` for a database of a later version.
    """
    files = sorted(folder.glob("[0-9][0-9][0-9][0-9]_*.sql"))
    if not files:
        raise StorageFailed(f"no migrations in {folder}; install mnemosyned again")
    latest = _number(files[-1])
    with connected_once(dsn) as connection:
        version = _version(connection)
        if version > latest:
            raise SchemaTooNew(
                f"the database has schema version {version}, this mnemosyned knows {latest}; "
                "install the version that wrote it, or a later one"
            )
        if version < latest:
            _apply(connection, files)
    return latest


def _version(connection: psycopg.Connection[Row]) -> int:
    exists = connection.execute("SELECT to_regclass('schema_migration')").fetchone()
    if exists is None or exists[0] is None:
        return 0
    row = connection.execute("SELECT max(version) FROM schema_migration").fetchone()
    return int(row[0] or 0) if row else 0


def _apply(connection: psycopg.Connection[Row], files: list[Path]) -> None:
    """Apply each file in a transaction of its own; another daemon that starts waits."""
    session = Session(connection, 0)
    session.execute("SELECT pg_advisory_lock(%(lock)s)", lock=_LOCK)
    try:
        session.execute(_TABLE)
        version = _version(connection)
        for file in files:
            if _number(file) > version:
                with connection.transaction():
                    connection.execute(file.read_bytes())
                    session.execute(
                        "INSERT INTO schema_migration (version, name) "
                        "VALUES (%(version)s, %(name)s)",
                        version=_number(file),
                        name=file.stem,
                    )
    finally:
        session.execute("SELECT pg_advisory_unlock(%(lock)s)", lock=_LOCK)


def _number(file: Path) -> int:
    return int(file.name[:4])
