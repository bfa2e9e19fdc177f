"""Opens a database as a store: connected, of the present schema, for one owner."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

import psycopg
from psycopg.conninfo import conninfo_to_dict

from mnemosyned.domain.errors import ConfigInvalid
from mnemosyned.domain.ports.servers.owners import LOCAL_OWNER
from mnemosyned.domain.text.terms import glued_words
from mnemosyned.logs import logger
from mnemosyned.storage.postgres.database.connections import connected_once
from mnemosyned.storage.postgres.database.distribution import has_citus
from mnemosyned.storage.postgres.database.failures import storage_failed
from mnemosyned.storage.postgres.database.migrations import SCHEMA_LOCK, upgrade
from mnemosyned.storage.postgres.database.pgvector import prepare_search
from mnemosyned.storage.postgres.database.pool import Pool
from mnemosyned.storage.postgres.database.roles import prepare_role
from mnemosyned.storage.postgres.database.session import Row, Session
from mnemosyned.storage.postgres.fulltext.terms import word_hashes
from mnemosyned.storage.postgres.store import PostgresStore
from mnemosyned.storage.postgres.stores.owners import PostgresOwners
from mnemosyned.storage.postgres.stores.server import PostgresServer
from mnemosyned.storage.postgres.tables.owners.owner import (
    ensure_owner,
    note_rewording,
)
from mnemosyned.storage.postgres.tables.rows import episode_words

log = logger()
REINDEXED_ROWS = 200
"""Rows that one transaction reads when words are hashed again."""
PROGRESS_S = 10.0
"""Seconds after which the log says how far that is."""
_DUE = "SELECT name, place[1], place[2] FROM reindexing"
_SECOND_TEXT = {"memory": "role", "episode": "index_terms"}
"""The text of a row that is indexed beside its content."""


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
        version = _upgraded(dsn, migrations)
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
        version = _upgraded(dsn, migrations)
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
        _upgraded(dsn, migrations)
    except psycopg.Error as error:
        raise storage_failed(error, "nothing was done") from error
    return PostgresServer(dsn)


def _upgraded(dsn: str, migrations: Path) -> int:
    """Bring the schema and the words of its rows up to date; return the schema's version.

    Words are hashed again in few rows: those with words that touch a script without spaces. Each
    transaction looks at some rows, and a killed process goes on there.
    """
    version = upgrade(dsn, migrations)
    with connected_once(dsn) as connection:
        if connection.execute(_DUE).fetchone():
            connection.execute("SELECT pg_advisory_lock(%s)", (SCHEMA_LOCK,))
            for table, *place in connection.execute(_DUE).fetchall():
                _reindex(connection, table, place)
    return version


def _reindex(
    connection: psycopg.Connection[Row], table: str, place: Sequence[int]
) -> None:
    """Hash words of a table again, from a place on; the log says how far that is."""
    changed = 0
    began = said = time.monotonic()
    while place:
        with connection.transaction():
            place, written = _reindex_next(connection, table, place)
        changed += written
        if not place or time.monotonic() - said >= PROGRESS_S:
            said = time.monotonic()
            log.info(
                "index_entries_rewritten",
                index=table,
                entries=changed,
                duration_s=round(said - began, 1),
            )


def _reindex_next(
    connection: psycopg.Connection[Row], table: str, place: Sequence[int]
) -> tuple[Sequence[int], int]:
    """Hash the words of the next rows again; return where they end, and how many were written."""
    second = _SECOND_TEXT[table]
    rows = connection.execute(
        f"SELECT owner, seq, content, {second} FROM {table} WHERE grams IS NOT NULL "
        "AND (owner, seq) > (%s, %s) ORDER BY owner, seq LIMIT %s".encode(),
        (*place, REINDEXED_ROWS),
    ).fetchall()
    if not rows:
        connection.execute("DELETE FROM reindexing WHERE name = %s", (table,))
        return (), 0
    changed: Counter[int] = Counter()
    for owner, seq, content, other in rows:
        if not glued_words(f"{content}\n{other}"):
            continue
        words = episode_words(owner, content, other)
        if table == "memory":
            words = {"words": word_hashes(owner, content, other, *glued_words(content))}
        columns = ", ".join(f"{name} = %({name})s" for name in words)
        # What was changed since it was read has its words already.
        connection.execute(
            f"UPDATE {table} SET {columns} WHERE owner = %(owner)s AND seq = %(seq)s "
            f"AND content = %(content)s AND {second} = %(other)s".encode(),
            {"owner": owner, "seq": seq, "content": content, "other": other, **words},
        )
        changed[owner] += 1
    for owner in changed:
        note_rewording(Session(connection, owner))
    place = rows[-1][:2]
    connection.execute(
        "UPDATE reindexing SET place = %s WHERE name = %s", ([*place], table)
    )
    return place, changed.total()


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
