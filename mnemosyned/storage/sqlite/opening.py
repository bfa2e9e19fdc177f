"""Opens a file as a store: owned by this process, of the present schema, with a look at its log."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from functools import partial
from pathlib import Path

from mnemosyned.domain.errors import StorageFailed
from mnemosyned.logs import logger
from mnemosyned.storage.sqlite.database.connections import open_writer
from mnemosyned.storage.sqlite.database.failures import reason
from mnemosyned.storage.sqlite.database.file import DatabaseFile
from mnemosyned.storage.sqlite.database.ownership import owned
from mnemosyned.storage.sqlite.database.schema import (
    refuse_foreign,
    schema_version,
    upgrade,
)
from mnemosyned.storage.sqlite.database.wal import frames_left, lost_transactions
from mnemosyned.storage.sqlite.fulltext.segments import (
    REINDEXING,
    finish_reindexing,
    heal_indexes,
)
from mnemosyned.storage.sqlite.store import SqliteStore

log = logger()


@contextmanager
def open_store(
    database: Path, *, migrations: Path, socket: Path | None = None
) -> Iterator[SqliteStore]:
    """Own the file, bring it up to date and serve it while the block runs.

    Raises `DatabaseInUse`, `SchemaTooNew` and `StorageFailed`.
    """
    with ExitStack() as stack:
        try:
            file = stack.enter_context(owned(database, socket=socket))
            store = _store(file, migrations)
        except (OSError, sqlite3.Error) as error:
            raise StorageFailed(
                f"{database} cannot be opened as a memory: {reason(error)}",
                reason=reason(error),
            ) from error
        stack.callback(store.close)
        yield store


def _store(file: DatabaseFile, migrations: Path) -> SqliteStore:
    left = frames_left(file.path)
    connection = open_writer(file.path, check=partial(refuse_foreign, path=file.path))
    try:
        warnings = file.warnings()
        if left and (
            lost := lost_transactions(left, frames_read=_checkpoint(connection))
        ):
            warnings.append(lost)
        # Before a statement of this connection names an index.
        warnings += [
            f"the full-text index {index} could not be read and was rebuilt; no memory was lost"
            for index in heal_indexes(file.path)
        ]
        if upgrade(connection, migrations):
            _checkpoint(
                connection
            )  # the file is a database with tables from its first moment on
        if schema_version(connection) >= REINDEXING:
            finish_reindexing(connection)
        file.know_companions()
        file.tighten()
        for warning in warnings:
            log.warning("database_warning", reason=warning)
        return SqliteStore(file.path, connection, file=file, warnings=warnings)
    except BaseException:
        connection.close()
        raise


def _checkpoint(connection: sqlite3.Connection) -> int:
    """Checkpoint the log; returns the number of its frames that SQLite can read."""
    row = connection.execute("PRAGMA wal_checkpoint(PASSIVE)").fetchone()
    frames: int = row[1]
    return frames
