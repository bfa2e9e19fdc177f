"""Opens a database as a store: connected, of the present schema, for one owner."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import psycopg

from mnemosyned.storage.postgres.database.failures import storage_failed
from mnemosyned.storage.postgres.database.migrations import upgrade
from mnemosyned.storage.postgres.database.pool import Pool
from mnemosyned.storage.postgres.store import PostgresStore
from mnemosyned.storage.postgres.tables.owner import LOCAL_OWNER, ensure_owner

LOCAL_NAME = "local"
"""The name of the owner of a memory that has only one."""


@contextmanager
def open_store(
    dsn: str, *, migrations: Path, owner: int = LOCAL_OWNER
) -> Iterator[PostgresStore]:
    """Connect, bring the schema up to date and serve the memory while the block runs.

    Raises `SchemaTooNew` and `StorageFailed`.
    """
    try:
        version = upgrade(dsn, migrations)
    except psycopg.Error as error:
        raise storage_failed(error, "the memory was not opened") from error
    pool = Pool(dsn)
    pool.open()
    store = PostgresStore(pool, owner, schema_version=version)
    try:
        with pool.writing(owner) as session:
            ensure_owner(session, LOCAL_NAME)
        yield store
    finally:
        store.close()
