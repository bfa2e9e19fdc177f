"""A database as a whole: purged, or spread over nodes."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing, contextmanager

import psycopg

from mnemosyned.domain.ports.servers.server import (
    DatabaseServer,
    Distribution,
    ServerPurge,
)
from mnemosyned.storage.postgres.database.connections import connected_apart
from mnemosyned.storage.postgres.database.distribution import distribute
from mnemosyned.storage.postgres.database.failures import storage_failed
from mnemosyned.storage.postgres.database.rewriting import purge_server
from mnemosyned.storage.postgres.database.session import Row


class PostgresServer(DatabaseServer):
    """A `DatabaseServer` that connects for each of its methods."""

    def __init__(self, dsn: str) -> None:
        self._dsn = dsn

    def purge(self) -> ServerPurge:
        with self._connected() as connection:
            return purge_server(connection)

    def distribute(self, shards: int) -> Distribution:
        with self._connected() as connection:
            return distribute(connection, shards=shards)

    @contextmanager
    def _connected(self) -> Iterator[psycopg.Connection[Row]]:
        try:
            with closing(connected_apart(self._dsn)) as connection:
                yield connection
        except psycopg.Error as error:
            raise storage_failed(error, "it was not finished") from error
