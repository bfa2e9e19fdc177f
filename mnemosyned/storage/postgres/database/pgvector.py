"""pgvector, where it is to be had: a column of vectors that the server compares by itself.

The extension is optional, so that no migration may name it. The column is a second form of what
stands in `vector`; where the extension is removed, nothing is lost with it.
"""

from __future__ import annotations

from contextlib import suppress

import psycopg

from mnemosyned.logs import logger
from mnemosyned.storage.postgres.database.connections import connected_once
from mnemosyned.storage.postgres.database.roles import lock_schema, table_owner
from mnemosyned.storage.postgres.database.session import Row, Session

_HAS_COLUMN = (
    "SELECT EXISTS (SELECT 1 FROM pg_attribute WHERE attrelid = to_regclass('embedding') "
    "AND attname = 'near' AND NOT attisdropped) AND to_regtype('halfvec') IS NOT NULL"
)
_AVAILABLE = (
    "SELECT to_regtype('halfvec') IS NOT NULL, EXISTS (SELECT 1 FROM pg_available_extensions "
    "WHERE name = 'vector' AND installed_version IS NULL)"
)
_ADD = (
    "ALTER TABLE embedding ADD COLUMN near halfvec",
    "CREATE INDEX embedding_unprepared ON embedding (owner, memory_seq) WHERE near IS NULL",
)
# Kept in the row, as a search reads each; no sample of it in the statistics.
_ADJUST = (
    "ALTER TABLE embedding ALTER near SET STORAGE MAIN",
    "ALTER TABLE embedding ALTER near SET STATISTICS 0",
)
HINT = "CREATE EXTENSION vector"

log = logger()


def prepare_search(dsn: str, *, read_only: bool = False) -> bool:
    """Add the column where the server has pgvector and the user may; whether it is there.

    Raises `psycopg.Error` where the database fails.
    """
    with connected_once(dsn) as connection:
        session = Session(connection, 0)
        if session.scalar(_HAS_COLUMN):
            return True
        if read_only or not table_owner(session)[0]:
            return False
        with connection.transaction():
            lock_schema(session)
            if session.scalar(_HAS_COLUMN):  # another daemon was first
                return True
            if not _has_extension(connection):
                return False
            for statement in _ADD:
                session.execute(statement)
            for statement in _ADJUST:
                # Citus may refuse them for a table that is spread over nodes.
                with (
                    suppress(psycopg.errors.FeatureNotSupported),
                    connection.transaction(),
                ):
                    session.execute(statement)
    log.info("vector_search_prepared")
    return True


def _has_extension(connection: psycopg.Connection[Row]) -> bool:
    """Create the extension where it is only available; whether its type can be named."""
    is_known, is_available = connection.execute(_AVAILABLE).fetchone() or (False, False)
    if is_known or not is_available:
        return bool(is_known)
    try:
        with connection.transaction():
            connection.execute("CREATE EXTENSION vector")
    except psycopg.errors.InsufficientPrivilege:
        log.info("vector_search_unprepared", administrator=HINT)
        return False
    except (psycopg.errors.DuplicateObject, psycopg.errors.UniqueViolation):
        pass
    # An old release has no half precision, and a schema out of the path hides it.
    row = connection.execute("SELECT to_regtype('halfvec') IS NOT NULL").fetchone()
    return bool(row and row[0])
