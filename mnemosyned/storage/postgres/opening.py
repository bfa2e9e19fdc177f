"""Opens a database as a store: connected, of the present schema, for one owner."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

import psycopg
from psycopg.conninfo import conninfo_to_dict

from mnemosyned.domain.errors import ConfigInvalid
from mnemosyned.domain.ports.servers.owners import LOCAL_OWNER
from mnemosyned.storage.postgres.database.connections import connected_once
from mnemosyned.storage.postgres.database.distribution import has_citus
from mnemosyned.storage.postgres.database.failures import storage_failed
from mnemosyned.storage.postgres.database.migrations import upgrade
from mnemosyned.storage.postgres.database.pgvector import prepare_search
from mnemosyned.storage.postgres.database.pool import Pool
from mnemosyned.storage.postgres.database.roles import prepare_role
from mnemosyned.storage.postgres.database.session import Session
from mnemosyned.storage.postgres.store import PostgresStore
from mnemosyned.storage.postgres.stores.owners import PostgresOwners
from mnemosyned.storage.postgres.stores.server import PostgresServer
from mnemosyned.storage.postgres.tables.owners.owner import ensure_owner


class OwnedStores:
    """The memories of all owners of a database, over the same connections."""

    def __init__(
        self,
        *,
        guarded: Pool,
        owners: Pool,
        schema_version: int,
        searches_vectors: bool,
    ) -> None:
        """`guarded` holds each statement to one owner; on `owners` they are administered."""
        self.owners = PostgresOwners(owners)
        self.schema_version = schema_version
        self._pool = guarded
        self._searches_vectors = searches_vectors

    def store(self, owner: int) -> PostgresStore:
        """The memory of an owner; there is nothing to close."""
        return PostgresStore(
            self._pool,
            owner,
            schema_version=self.schema_version,
            searches_vectors=self._searches_vectors,
        )


@contextmanager
def open_store(
    dsn: str,
    *,
    migrations: Path,
    owner: int = LOCAL_OWNER,
    guarded: bool = False,
    embeds: bool = False,
) -> Iterator[PostgresStore]:
    """Connect, bring the schema up to date and serve the memory while the block runs.

    `guarded`: the database, too, holds every statement to the owner. `embeds`: vectors will be
    asked for, which the server compares where it can. Raises `ConfigInvalid`, `SchemaTooNew` and
    `StorageFailed`.
    """
    _check(dsn)
    try:
        version = upgrade(dsn, migrations)
        searches = embeds and prepare_search(dsn)
        role = prepare_role(dsn) if guarded else None
        with connected_once(dsn) as connection:
            ensure_owner(Session(connection, owner))
        pool = Pool(dsn, schema=version, role=role, has_citus=has_citus(dsn))
    except psycopg.Error as error:
        raise storage_failed(error, "the memory was not opened") from error
    store = PostgresStore(
        pool, owner, schema_version=version, searches_vectors=searches
    )
    try:
        yield store
    finally:
        store.close()


@contextmanager
def open_owned_stores(
    dsn: str, *, migrations: Path, embeds: bool = False
) -> Iterator[OwnedStores]:
    """Connect, bring the schema up to date, and serve owners' memories while the block runs.

    `embeds` as for `open_store`. Raises `SchemaTooNew`, and `StorageFailed` also where the user may
    not separate owners.
    """
    ready = _prepared(dsn, migrations, embeds=embeds)
    guarded = Pool(
        dsn, schema=ready.version, role=ready.role, has_citus=ready.has_citus
    )
    owners = Pool(dsn, schema=ready.version)
    try:
        yield OwnedStores(
            guarded=guarded,
            owners=owners,
            schema_version=ready.version,
            searches_vectors=ready.searches,
        )
    finally:
        guarded.close()
        owners.close()


@contextmanager
def open_owners(dsn: str, *, migrations: Path) -> Iterator[PostgresOwners]:
    """Connect, bring the schema up to date, and administer owners while the block runs.

    Raises `SchemaTooNew`, and `StorageFailed` also where the user may not separate owners.
    """
    pool = Pool(dsn, schema=_prepared(dsn, migrations).version)
    try:
        yield PostgresOwners(pool)
    finally:
        pool.close()


class _Prepared(NamedTuple):
    """A database for many owners that is ready for use."""

    version: int
    role: str
    searches: bool
    has_citus: bool


def _prepared(dsn: str, migrations: Path, *, embeds: bool = False) -> _Prepared:
    """Bring the schema up to date, and prepare the role of requests and the search of vectors."""
    _check(dsn)
    try:
        version = upgrade(dsn, migrations)
        searches = embeds and prepare_search(dsn)
        return _Prepared(version, prepare_role(dsn), searches, has_citus(dsn))
    except psycopg.Error as error:
        raise storage_failed(error, "the owners were not read") from error


def open_server(dsn: str, *, migrations: Path) -> PostgresServer:
    """Bring the schema up to date, and return the database as a whole.

    Raises `ConfigInvalid`, `SchemaTooNew` and `StorageFailed`.
    """
    _check(dsn)
    try:
        upgrade(dsn, migrations)
    except psycopg.Error as error:
        raise storage_failed(error, "nothing was done") from error
    return PostgresServer(dsn)


def _check(dsn: str) -> None:
    try:
        conninfo_to_dict(dsn)
    except psycopg.ProgrammingError:
        # Its words quote the URL, which may hold a password.
        raise ConfigInvalid(
            "database: this is no URL of a PostgreSQL database; a % or @ within a password is "
            "written %25 or %40",
            field="database",
        ) from None
