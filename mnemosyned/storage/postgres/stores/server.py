"""A database as a whole: purged, or spread over nodes."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

import psycopg

from mnemosyned.domain.ports.servers.owners import LOCAL_OWNER
from mnemosyned.domain.ports.servers.server import (
    DatabaseServer,
    Distribution,
    Migration,
    ServerPurge,
)
from mnemosyned.storage.postgres.database.connections import connected_apart
from mnemosyned.storage.postgres.database.distribution import distribute
from mnemosyned.storage.postgres.database.failures import storage_failed
from mnemosyned.storage.postgres.database.migrations import upgrade
from mnemosyned.storage.postgres.database.rewriting import purge_server
from mnemosyned.storage.postgres.database.roles import (
    ensure_role,
    part_from_others,
    require_table_owner,
    role_in_use,
)
from mnemosyned.storage.postgres.database.session import Row, Session
from mnemosyned.storage.postgres.tables.owners.owner import ensure_owner
from mnemosyned.storage.postgres.tables.reindexing import index_glued_words

_VERSION = "SELECT coalesce(max(version), 0) FROM schema_migration"
_HAS_OWNERS = f"SELECT EXISTS (SELECT 1 FROM owner WHERE owner <> {LOCAL_OWNER})"


class PostgresServer(DatabaseServer):
    """A `DatabaseServer` that connects for each of its methods, and brings the schema up to date first."""

    def __init__(self, dsn: str, *, migrations: Path) -> None:
        self._dsn = dsn
        self._migrations = migrations

    def migrate(self, *, serving: str | None = None) -> Migration:
        with self._connected() as connection:
            session = Session(connection, 0)
            require_table_owner(session)
            exists = session.scalar("SELECT to_regclass('schema_migration')")
            before = session.scalar(_VERSION) if exists else 0
        with self._upgraded() as connection:
            session = Session(connection, 0)
            ensure_owner(Session(connection, LOCAL_OWNER))
            if serving or role_in_use(session) or session.scalar(_HAS_OWNERS):
                ran = ensure_role(connection, serving=serving)
            else:
                ran = part_from_others(session)
            after = session.scalar(_VERSION)
        return Migration(before=before, after=after, statements=tuple(ran))

    def purge(self) -> ServerPurge:
        with self._upgraded() as connection:
            return purge_server(connection)

    def distribute(self, shards: int) -> Distribution:
        with self._upgraded() as connection:
            return distribute(connection, shards=shards)

    @contextmanager
    def _upgraded(self) -> Iterator[psycopg.Connection[Row]]:
        try:
            upgrade(self._dsn, self._migrations)
        except psycopg.Error as error:
            raise storage_failed(error, "nothing was done") from error
        with self._connected() as connection:
            index_glued_words(connection)
            yield connection

    @contextmanager
    def _connected(self) -> Iterator[psycopg.Connection[Row]]:
        try:
            with closing(connected_apart(self._dsn)) as connection:
                yield connection
        except psycopg.Error as error:
            raise storage_failed(error, "it was not finished") from error
