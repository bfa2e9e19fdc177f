"""Opens a database as a store: connected, of the present schema, for one owner."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

import psycopg
from psycopg.conninfo import conninfo_to_dict

from mnemosyned.domain.errors import ConfigInvalid, StorageFailed
from mnemosyned.domain.ports.servers.owners import LOCAL_OWNER
from mnemosyned.storage.postgres.database import health
from mnemosyned.storage.postgres.database.connections import connected_once
from mnemosyned.storage.postgres.database.distribution import has_citus
from mnemosyned.storage.postgres.database.failures import storage_failed
from mnemosyned.storage.postgres.database.health import check_server
from mnemosyned.storage.postgres.database.migrations import upgrade
from mnemosyned.storage.postgres.database.pgvector import prepare_search
from mnemosyned.storage.postgres.database.pool import Pool
from mnemosyned.storage.postgres.database.roles import (
    ensure_role,
    part_from_others,
    request_role,
    require_table_owner,
    role_in_use,
    table_owner,
)
from mnemosyned.storage.postgres.database.session import Session
from mnemosyned.storage.postgres.store import PostgresStore
from mnemosyned.storage.postgres.stores.owners import PostgresOwners
from mnemosyned.storage.postgres.stores.server import PostgresServer
from mnemosyned.storage.postgres.tables.owners.owner import ensure_owner
from mnemosyned.storage.postgres.tables.reindexing import index_glued_words


class OwnedStores:
    """The memories of all owners of a database, over the same connections."""

    def __init__(self, pool: Pool, ready: _Prepared) -> None:
        """`pool` administers the owners; for their memories each statement is held to one owner."""
        self.owners = PostgresOwners(pool, role=ready.role)
        self.schema_version = ready.version
        self.read_only = ready.read_only
        self._searches_vectors = ready.searches
        self._pool = Pool(
            ready.dsn, role=ready.role, has_citus=ready.has_citus, beside=pool
        )

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

    `guarded`: the database, too, holds every statement to the owner, which it does anyway where it
    has many. `embeds`: vectors will be asked for, which the server compares where it can. On a
    standby the memory is read alone. Raises `ConfigInvalid`, `SchemaTooNew` and `StorageFailed`.
    """
    ready = _prepared(
        dsn,
        migrations,
        "the memory was not opened",
        embeds=embeds,
        guarded=guarded,
        owner=owner,
    )
    store = PostgresStore(
        Pool(dsn, schema=ready.version, role=ready.role, has_citus=ready.has_citus),
        owner,
        schema_version=ready.version,
        searches_vectors=ready.searches,
        read_only=ready.read_only,
    )
    try:
        yield store
    finally:
        store.close()


@contextmanager
def open_owned_stores(
    dsn: str,
    *,
    migrations: Path,
    embeds: bool = False,
    beside: PostgresStore | None = None,
) -> Iterator[OwnedStores]:
    """Connect, bring the schema up to date, and serve owners' memories while the block runs.

    `embeds` as for `open_store`. `beside` is a store of the same database that stays open for
    longer, whose connections owners use, too. Raises `SchemaTooNew`, and `StorageFailed` also where
    the user may not separate owners.
    """
    ready = _prepared(
        dsn, migrations, "the owners were not read", embeds=embeds, guarded=True
    )
    pool = Pool(dsn, schema=ready.version, beside=beside.pool if beside else None)
    pool.share_among_owners()
    try:
        yield OwnedStores(pool, ready)
    finally:
        pool.close()


@contextmanager
def open_owners(dsn: str, *, migrations: Path) -> Iterator[PostgresOwners]:
    """Connect, bring the schema up to date, and administer owners while the block runs.

    The first owner that is added has the role of requests made. Raises `SchemaTooNew`, and
    `StorageFailed` also for a login that does not own the tables.
    """
    _check(dsn)
    with _explained("nothing was done"), connected_once(dsn) as connection:
        require_table_owner(Session(connection, 0))
    ready = _prepared(dsn, migrations, "the owners were not read")
    pool = Pool(dsn, schema=ready.version)

    def prepare() -> None:
        with _explained("the owner was not added"), connected_once(dsn) as connection:
            ensure_role(connection)

    try:
        yield PostgresOwners(pool, role=ready.role, prepare=prepare)
    finally:
        pool.close()


class _Prepared(NamedTuple):
    """A database that is ready for use."""

    dsn: str
    version: int
    role: str | None
    searches: bool
    has_citus: bool
    read_only: bool


def _prepared(
    dsn: str,
    migrations: Path,
    consequence: str,
    *,
    embeds: bool = False,
    guarded: bool = False,
    owner: int | None = None,
) -> _Prepared:
    """Prepare a database: its schema, the row of an owner, the role of requests, the search of vectors.

    A login that owns nothing finds all of that prepared, or is told what to do. A standby is left as
    it is. `consequence` is what a failure means.
    """
    _check(dsn)
    with _explained(consequence):
        read_only = check_server(dsn)
        with connected_once(dsn) as connection:
            session = Session(connection, 0)
            is_owner, named = table_owner(session)
            role = role_in_use(session)
            if role is None and (not is_owner or (guarded and read_only)):
                user = session.scalar("SELECT current_user")
                raise StorageFailed(
                    f"{consequence}: the tables belong to {named}, and {user} may not work with "
                    f"them; with the login {named}, run mnem db migrate --serving {user}"
                )
            exists = session.scalar("SELECT to_regclass('schema_migration')")
            if is_owner and guarded and exists and not read_only:
                # Before an upgrade, which daemons of an earlier version would not survive.
                ensure_role(connection)
        # This may end the connections of others.
        version = upgrade(dsn, migrations, read_only=read_only)
        searches = embeds and prepare_search(dsn, read_only=read_only)
        if is_owner and not read_only:
            with connected_once(dsn) as connection:
                index_glued_words(connection)
                session = Session(connection, 0)
                if guarded or role:
                    ensure_role(connection)
                    role = request_role(session)
                else:
                    part_from_others(session)
                if owner is not None:
                    ensure_owner(Session(connection, owner))
        return _Prepared(dsn, version, role, searches, has_citus(dsn), read_only)


@contextmanager
def _explained(consequence: str) -> Iterator[None]:
    """Explain the errors of the server."""
    try:
        yield
    except psycopg.Error as error:
        raise storage_failed(error, consequence) from error


def refuses_writes(dsn: str) -> bool:
    """Whether a server that answers takes no writes; nothing is changed there.

    Raises `ConfigInvalid` where no daemon could use it, and `StorageFailed`.
    """
    _check(dsn)
    with _explained("nothing was looked at"):
        return check_server(dsn)


def open_server(dsn: str, *, migrations: Path) -> PostgresServer:
    """Return the database as a whole. Raises `ConfigInvalid`."""
    _check(dsn)
    return PostgresServer(dsn, migrations=migrations)


def exposures(dsn: str) -> list[str]:
    """Name who may read along or connect without need. Raises `ConfigInvalid` and `StorageFailed`."""
    _check(dsn)
    with _explained("nothing was checked"), connected_once(dsn) as connection:
        return health.exposures(connection)


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
