"""The PostgreSQL store: one owner's rows in a database, of the present schema; the server as a whole."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

import psycopg

from mnemosyned.errors import NotFound, StorageFailed
from mnemosyned.memory import engine_ports, ports
from mnemosyned.storage.common import edits, endings, injections, learnings, records
from mnemosyned.storage.common.exchange import ExchangeStore
from mnemosyned.storage.common.session import Row, StorePart, as_method, reads, writes
from mnemosyned.storage.common.sleep import RollupStore
from mnemosyned.storage.common.surroundings import AgentStore, ClockStore, WatchStore
from mnemosyned.storage.common.undo import RetentionStore, UndoStore
from mnemosyned.storage.postgres import forgetting, health, memories, roles, schema
from mnemosyned.storage.postgres.connections import (
    WITHOUT_LOCK_LIMIT,
    connect_once,
    explaining_failures,
)
from mnemosyned.storage.postgres.exchange import PostgresExporting, PostgresRestoring
from mnemosyned.storage.postgres.listing import PostgresLists
from mnemosyned.storage.postgres.owners import PostgresOwners
from mnemosyned.storage.postgres.pool import Pool, PostgresEngine
from mnemosyned.storage.postgres.search import PostgresSearch
from mnemosyned.storage.postgres.session import PostgresSession
from mnemosyned.storage.postgres.vectors import PostgresVectors

_NO_COPY = (
    "this memory is in PostgreSQL; back up the server with pgBackRest, "
    "or the database with pg_dump"
)


class PostgresMaintenance(StorePart, ports.MaintenanceStore):
    """A `MaintenanceStore` of one owner in PostgreSQL."""

    _engine: PostgresEngine

    def __init__(self, engine: PostgresEngine, *, read_only: bool) -> None:
        super().__init__(engine)
        self._read_only = read_only

    totals = reads(as_method(records.tier_totals))

    # The server is asked as who connects, who may ask more than the role of requests.

    def bytes_on_disk(self) -> int:
        """Return the size in bytes of the whole database, with the data of all owners."""
        with self._engine.pool.outside_transactions(self._engine.owner) as session:
            return int(session.scalar("SELECT pg_database_size(current_database())"))

    def problems(self) -> list[str]:
        """Return a text for each damage that the server reports, such as broken pages."""
        with self._engine.pool.outside_transactions(self._engine.owner) as session:
            return health.problems(session)

    def warnings(self) -> list[str]:
        """Return a text for each danger to the data that the server's settings and state show."""
        with self._engine.pool.outside_transactions(self._engine.owner) as session:
            return health.warnings(session)

    def longest_write_s(self) -> float:
        """Return the longest time in seconds that a transaction of this process locked an owner's row."""
        return self._engine.pool.held_max_s

    @reads
    def ensure_durable(self, session: PostgresSession) -> None:
        """Raise `StorageFailed` if the server refuses writes, as a standby does."""
        # This transaction itself is read-only: what others begin with is the default.
        if session.scalar(f"SELECT {health.REFUSES_WRITES}"):
            raise StorageFailed(f"{health.STANDBY}; connect to the primary")

    def pool_figures(self) -> engine_ports.PoolFigures:
        """Return how many connections to the server are lent, and how long requests have waited for one."""
        return self._engine.pool.connections.figures()

    def check_ready(self) -> None:
        """Check on a new connection that the server answers and, unless opened read-only, takes writes."""
        self._engine.pool.check_ready(takes_writes=not self._read_only)

    @writes
    def flush(self, session: PostgresSession) -> None:
        # A row without a change: its commit takes all before it to the disk.
        """Commit a durable change of the owner's row, which brings all earlier commits to disk."""
        session.execute(
            "UPDATE owner SET last_record = last_record WHERE owner = %(owner)s"
        )

    def release_memory(self, *, words: bool = False) -> None:
        """Free the cached word frequencies if `words` is true; no other caches are kept here."""
        if words:
            self._engine.frequencies.clear()

    def back_up(self, target: Path) -> ports.CopyReport:
        """Raise `StorageFailed`, as backups are made with the tools of the server."""
        raise StorageFailed(
            f"no backup was made to {target}: {_NO_COPY}", reason=_NO_COPY
        )


class PostgresStore(ports.MemoryStore):
    """A `MemoryStore` of one owner in PostgreSQL."""

    def __init__(self, pool: Pool, owner: int, ready: _Prepared) -> None:
        """Serve an owner of a database that is `ready`."""
        self.schema_version = ready.version
        self.read_only = ready.read_only
        self.owner = owner
        self.pool = pool
        engine = PostgresEngine(pool, owner)
        self.memories = memories.PostgresRecords(engine, memories.PostgresIntake)
        self.search = PostgresSearch(engine)
        self.lists = PostgresLists(engine)
        self.deletion = forgetting.PostgresDeletion(engine)
        self.changes = edits.ChangeStore(engine)
        self.learnings = learnings.LearningStore(engine)
        self.vectors = PostgresVectors(engine, searched=ready.searches)
        self.maintenance = PostgresMaintenance(engine, read_only=ready.read_only)
        self.sleep = memories.PostgresSleep(engine)
        self.rollups = RollupStore(engine)
        self.retention = RetentionStore(engine)
        self.undo = UndoStore(engine)
        self.exchange = ExchangeStore(engine, PostgresExporting, PostgresRestoring)
        self.agents = AgentStore(engine)
        self.endings = endings.EndingStore(engine)
        self.injections = injections.InjectionStore(engine)
        self.watches = WatchStore(engine)
        self.clock = ClockStore(engine)


_NAME_AND_COUNT = (
    "SELECT name, working_count + archive_count FROM owner WHERE owner = %(owner)s"
)


class OwnedStores:
    """The memories of all owners of a database, over the same connections."""

    def __init__(self, pool: Pool, ready: _Prepared) -> None:
        """Serve all owners; `pool` administers owners, and every store sees the rows of one owner alone."""
        self.owners = PostgresOwners(pool, role=ready.role)
        self.schema_version = ready.version
        self.read_only = ready.read_only
        self._ready = ready
        self._pool = Pool(
            ready.dsn, role=ready.role, has_citus=ready.has_citus, beside=pool
        )

    def describe_owner(self, owner: int) -> tuple[str, int]:
        """Return an owner's name and count of memories. Raises `NotFound` and `StorageFailed`."""
        (rows,) = self._pool.read(owner, [(_NAME_AND_COUNT, {})])
        if not rows:
            raise NotFound("this owner was removed from the database")
        return rows[0][0], rows[0][1]

    def store(self, owner: int) -> PostgresStore:
        """Return the memory of the owner with this number; it need not be closed."""
        return PostgresStore(self._pool, owner, self._ready)


@contextmanager
def open_store(
    dsn: str,
    *,
    migrations: Path,
    owner: int = engine_ports.LOCAL_OWNER,
    guarded: bool = False,
    embeds: bool = False,
) -> Iterator[PostgresStore]:
    """Connect, upgrade the schema, and lend the store of one owner to the block.

    With `guarded`, row-level security restricts statements to the owner, as always in a database of many
    owners. With `embeds`, the server compares vectors if it can. Raises `ConfigInvalid`, `SchemaTooNew` and
    `StorageFailed`.
    """
    ready = _prepare_database(
        dsn,
        migrations,
        "the memory was not opened",
        embeds=embeds,
        guarded=guarded,
        owner=owner,
    )
    pool = Pool(dsn, schema=ready.version, role=ready.role, has_citus=ready.has_citus)
    with closing(pool):
        yield PostgresStore(pool, owner, ready)


@contextmanager
def open_owned_stores(
    dsn: str,
    *,
    migrations: Path,
    embeds: bool = False,
    beside: PostgresStore | None = None,
) -> Iterator[OwnedStores]:
    """Connect, upgrade the schema, and lend the stores of all owners to the block.

    With `embeds`, the server compares vectors if it can. `beside` is a store of the same database that stays
    open for longer, whose connections are shared. Raises `SchemaTooNew`, and `StorageFailed` also if the user
    may not separate owners.
    """
    ready = _prepare_database(
        dsn, migrations, "the owners were not read", embeds=embeds, guarded=True
    )
    pool = Pool(dsn, schema=ready.version, beside=beside.pool if beside else None)
    pool.connections.serves_owners = True
    with closing(pool):
        yield OwnedStores(pool, ready)


@contextmanager
def open_owners(dsn: str, *, migrations: Path) -> Iterator[PostgresOwners]:
    """Connect, upgrade the schema, and lend access to the owners of a database to the block.

    The role of requests is created with the first owner. Raises `SchemaTooNew`, and `StorageFailed`
    also for a login that does not own the tables.
    """
    with explaining_failures("nothing was done"), connect_once(dsn) as connection:
        roles.require_table_owner(PostgresSession(connection, 0))
    ready = _prepare_database(dsn, migrations, "the owners were not read")

    def prepare() -> None:
        with (
            explaining_failures("the owner was not added"),
            connect_once(dsn) as connection,
        ):
            roles.ensure_role(connection)

    with closing(Pool(dsn, schema=ready.version)) as pool:
        yield PostgresOwners(pool, role=ready.role, prepare=prepare)


class _Prepared(NamedTuple):
    """A database that is ready for use."""

    dsn: str
    version: int
    role: str | None
    searches: bool
    has_citus: bool
    read_only: bool


def _prepare_database(
    dsn: str,
    migrations: Path,
    consequence: str,
    *,
    embeds: bool = False,
    guarded: bool = False,
    owner: int | None = None,
) -> _Prepared:
    """Check the server; prepare schema, owner's row, role of requests and vector search; return the results.

    A login that owns no table only checks that all is prepared, or raises with advice; a standby is not
    changed. `consequence` is the text on what a failure means for the data.
    """
    with explaining_failures(consequence):
        read_only = health.check_server(dsn)
        with connect_once(dsn) as connection:
            session = PostgresSession(connection, 0)
            is_owner, named = roles.table_owner(session)
            has_citus = bool(session.scalar(schema.HAS_CITUS))
            role = roles.role_in_use(session)
            if statement := session.scalar(roles.LOOK_THERE):
                raise StorageFailed(
                    f"{consequence}: the login's search_path does not lead to its tables; as an "
                    f"administrator, run {statement}"
                )
            if role is None and (not is_owner or (guarded and read_only)):
                user = session.scalar("SELECT current_user")
                raise StorageFailed(
                    f"{consequence}: the tables belong to {named}, and {user} may not work with "
                    f"them; with the login {named}, run mnem db migrate --serving {user}"
                )
            exists = session.scalar("SELECT to_regclass('schema_migration')")
            if is_owner and guarded and exists and not read_only:
                # Before an upgrade, which daemons of an earlier version would not survive.
                roles.ensure_role(connection)
        # This may end the connections of others.
        version = schema.upgrade(dsn, migrations, read_only=read_only)
        searches = embeds and schema.prepare_search(dsn, read_only=read_only)
        if is_owner and not read_only:
            with connect_once(dsn) as connection:
                schema.rewrite_index_entries(connection)
                session = PostgresSession(connection, 0)
                if guarded or role:
                    roles.ensure_role(connection)
                    role = roles.request_role(session)
                else:
                    roles.revoke_from_others(session)
                if owner is not None:
                    PostgresSession(connection, owner).ensure_owner()
        return _Prepared(dsn, version, role, searches, has_citus, read_only)


_VERSION = "SELECT coalesce(max(version), 0) FROM schema_migration"
_HAS_OWNERS = (
    f"SELECT EXISTS (SELECT 1 FROM owner WHERE owner <> {engine_ports.LOCAL_OWNER})"
)


@dataclass(frozen=True)
class PostgresServer:
    """A database as a whole: each method connects, and brings the schema up to date first.

    Every method may be repeated, and raises `ConfigInvalid` for a `dsn` that is no URL of a database,
    and `StorageFailed` if the database fails.
    """

    dsn: str
    migrations: Path

    def migrate(self, *, serving: str | None = None) -> engine_ports.Migration:
        """Upgrade the schema, and the rights of the login that serves requests.

        Return what was done. `serving` is a login without tables that serves from now on. Raises
        `StorageFailed` for a login that does not own the tables.
        """
        with self._connect() as connection:
            session = PostgresSession(connection, 0)
            roles.require_table_owner(session)
            exists = session.scalar("SELECT to_regclass('schema_migration')")
            before = session.scalar(_VERSION) if exists else 0
        with self._upgrade() as connection:
            session = PostgresSession(connection, 0)
            PostgresSession(connection, engine_ports.LOCAL_OWNER).ensure_owner()
            if serving or roles.role_in_use(session) or session.scalar(_HAS_OWNERS):
                ran = roles.ensure_role(connection, serving=serving)
            else:
                ran = roles.revoke_from_others(session)
            after = session.scalar(_VERSION)
        return engine_ports.Migration(before=before, after=after, statements=tuple(ran))

    def purge(self) -> engine_ports.ServerPurge:
        """Rewrite all tables, each under a lock, and the log, to drop deleted text; return what was done."""
        with self._upgrade() as connection:
            return forgetting.purge_server(connection)

    def distribute(self, shards: int) -> engine_ports.Distribution:
        """Distribute the tables by owner over a cluster, as `schema.distribute` does; return what was done."""
        with self._upgrade() as connection:
            return schema.distribute(connection, shards=shards)

    @contextmanager
    def _upgrade(self) -> Iterator[psycopg.Connection[Row]]:
        """Upgrade the schema and old index entries, then lend a connection to the block."""
        with explaining_failures("nothing was done"):
            schema.upgrade(self.dsn, self.migrations)
        with self._connect() as connection:
            schema.rewrite_index_entries(connection)
            yield connection

    @contextmanager
    def _connect(self) -> Iterator[psycopg.Connection[Row]]:
        """Lend a connection to the block, and turn the server's errors into `StorageFailed`."""
        with (
            explaining_failures("it was not finished"),
            closing(connect_once(self.dsn, limits=WITHOUT_LOCK_LIMIT)) as connection,
        ):
            yield connection
