"""Connections shared by all of a daemon's threads: transactions, claims on work, planner statistics.

Autovacuum analyzes a table when a tenth of it has changed; the rows that one owner of several adds are
often fewer. Until then the planner takes a new owner for a single row, and reads all rows of one table
again for each row of another. Therefore statistics are refreshed for an owner who has grown.
"""

from __future__ import annotations

import threading
import time
from collections import OrderedDict
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import (
    AbstractContextManager,
    ExitStack,
    closing,
    contextmanager,
    suppress,
)
from functools import partial
from typing import TypeVar

import psycopg

from mnemosyned.errors import NotFound, SleepInProgress, StorageFailed
from mnemosyned.logs import logger
from mnemosyned.search.words import Frequencies
from mnemosyned.storage.common.session import Row, SharedSnapshot
from mnemosyned.storage.postgres import connections, health
from mnemosyned.storage.postgres.schema import check_schema
from mnemosyned.storage.postgres.session import PostgresSession, Statement

R = TypeVar("R")
_KEY = "hashtextextended('mnemosyned sleeps in ' || current_schema(), %(owner)s)"


class SessionClaims:
    """Claims to consolidate, one for each owner, on a shared connection; safe from any thread.

    A claim is an advisory lock: the server drops it with the connection, so no process leaves one
    behind. It saves double work; the transaction that moves memories is safe without it.
    """

    def __init__(self, dsn: str) -> None:
        self._dsn = dsn
        self._changing = threading.Lock()
        self._claimed: set[int] = set()
        self._connection: connections.Connection | None = None
        self._kept = 0
        """Blocks that keep the connection open."""

    @contextmanager
    def keep_open(self) -> Iterator[None]:
        """Keep the shared connection open while the block runs, also while there is no claim."""
        with self._changing:
            self._kept += 1
        try:
            yield
        finally:
            with self._changing:
                self._kept -= 1
                self._close_unused()

    @contextmanager
    def sleep_claim(self, owner: int) -> Iterator[Callable[[], bool]]:
        """Claim the consolidation of an owner's memory while the block runs.

        The block gets a function that returns whether the claim is still valid. Raises
        `SleepInProgress` if the memory is claimed already, and `StorageFailed` without a
        connection or on a standby.
        """
        with self._changing:
            # The server lets a session have a lock twice.
            is_free = owner not in self._claimed
            try:
                if self._connection is None or self._connection.closed:
                    self._connection = connections.connect_once(
                        self._dsn, limits=connections.WITHOUT_LOCK_LIMIT
                    )
                connection = self._connection
                session = PostgresSession(connection, owner)
                if session.scalar(f"SELECT {health.REFUSES_WRITES}"):
                    self._close_unused()
                    raise StorageFailed(health.STANDBY)
                is_free = is_free and session.scalar(
                    f"SELECT pg_try_advisory_lock({_KEY})"
                )
            except psycopg.Error as error:
                self._close_unused()
                raise connections.translate_error(error) from error
            if is_free:
                self._claimed.add(owner)
            else:
                self._close_unused()
        if not is_free:
            raise SleepInProgress(
                "another daemon consolidates this memory; ask again when it has finished"
            )
        try:
            yield partial(self._is_connection_alive, connection)
        finally:
            with self._changing:
                self._claimed.discard(owner)
                with suppress(psycopg.Error):
                    session.execute(f"SELECT pg_advisory_unlock({_KEY})")
                if connection is self._connection:
                    self._close_unused()

    def _close_unused(self) -> None:
        """Close the shared connection if it holds no claim and is not kept open."""
        if not self._claimed and not self._kept and self._connection:
            self._connection.close()
            self._connection = None

    def _is_connection_alive(self, connection: connections.Connection) -> bool:
        """Return True unless the server has ended a connection, and so released all its claims."""
        try:
            # Without the lock, it could read the answer that another thread waits for.
            with self._changing:
                connections.check_alive(connection)
        except psycopg.Error:
            return False
        return not connection.closed


CHECKED_FROM = 128
"""Number of an owner's new memories after which statistics are checked; then again whenever it has doubled."""
TOO_LOW = 10
"""Factor by which the planner's expected rows may be too low before it chooses wrong plans."""
OWNERS_MAX = 10_000
"""Number of owners whose growth is tracked."""
_OWN = (
    "SELECT pg_has_role(relowner, 'USAGE') FROM pg_class WHERE oid = 'memory'::regclass"
)
_COUNTS = "SELECT working_count, archive_count FROM owner WHERE owner = %(owner)s"
_BELIEVED = "EXPLAIN (FORMAT JSON) SELECT 1 FROM {table} WHERE owner = %(owner)s"
_ANALYZE = (
    "ANALYZE (SKIP_LOCKED) memory, fresh, working_state, episode, placed, memory_state, "
    "tag, revision"
)
"""A table that is locked is being analyzed or cleaned already."""


class OwnerGrowth:
    """Counts of each owner's new memories, for the refresh of statistics; for any thread."""

    def __init__(self) -> None:
        self._counts: OrderedDict[int, int] = OrderedDict()
        """By owner, those that have grown last at the end."""
        self._changing = threading.Lock()

    def count_new(self, owner: int, memories: int) -> bool:
        """Count an owner's new `memories`; return whether to check the planner's statistics now."""
        with self._changing:
            before = self._counts.pop(owner, 0)
            count = self._counts[owner] = before + memories
            if len(self._counts) > OWNERS_MAX:
                self._counts.popitem(last=False)
        # A power of two lies between.
        return count >= CHECKED_FROM and count.bit_length() > before.bit_length()


def refresh_statistics(session: PostgresSession) -> bool:
    """Analyze the tables, outside a transaction, if the planner expects too few rows; return whether done."""
    counts = session.execute(_COUNTS).fetchone() if session.scalar(_OWN) else None
    if counts is None:
        return False
    for table, count in zip(("fresh", "placed"), counts, strict=True):
        if count < CHECKED_FROM:
            continue
        (plan,) = session.scalar(_BELIEVED.format(table=table))
        node = plan["Plan"]
        # A cluster has no estimate of an owner's rows.
        is_known = node["Node Type"] != "Custom Scan"
        if is_known and node["Plan Rows"] * TOO_LOW < count:
            session.execute(_ANALYZE)
            return True
    return False


log = logger()

_SNAPSHOT = "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY"
_SET_OWNER = "set_config('mnemosyned.owner', %(owner)s::text, true)"
_SET_ROLE = "set_config('role', %(role)s, true)"


class Pool:
    """Connections, and the transactions that run on them."""

    def __init__(
        self,
        dsn: str,
        *,
        schema: int | None = None,
        role: str | None = None,
        has_citus: bool = False,
        beside: Pool | None = None,
    ) -> None:
        """Open connections to `dsn`; `schema` is the last schema version known here, None for any.

        `role` is the database role of all transactions; None: the user that connects. `has_citus`
        is as in a `PostgresSession`. `beside` is another pool on the same database, whose
        connections are shared.
        """
        self._dsn = dsn
        self._schema = schema
        self._has_citus = has_citus
        self._role = role
        admit = None if schema is None else partial(check_schema, known=schema)
        self._is_beside = beside is not None
        self.connections: connections.Connections = (
            beside.connections if beside else connections.Connections(dsn, admit=admit)
        )
        self.claims: SessionClaims = beside.claims if beside else SessionClaims(dsn)
        self.held_max_s = 0.0
        """The longest that a transaction has kept an owner's others from writing."""
        self.purged: dict[str, str] = {}
        """The first transaction, `next`, that the last purge did not cover, and the start of its server."""
        self._measuring = threading.Lock()
        self._growth = OwnerGrowth()
        self.shared = SharedSnapshot()

    def close(self) -> None:
        """Close the connections after running transactions, unless they belong to another pool."""
        if not self._is_beside:
            self.connections.close()

    def check_ready(self, *, takes_writes: bool) -> None:
        """Check on a connection of its own that the server can serve a daemon.

        `takes_writes` is false for a daemon that began on a standby. A server without a free
        connection passes, as daemons keep theirs. Raises `SchemaTooNew`, and `StorageFailed` also if
        the server refuses writes that a daemon needs.
        """
        with connections.explaining_failures(connections.NOT_ANSWERED):
            try:
                connection = connections.connect_once(self._dsn)
            except psycopg.OperationalError as error:
                if connections.is_full(error):
                    return
                raise
            with closing(connection):
                check_schema(connection, self._schema or 0)
                row = connection.execute(f"SELECT {health.REFUSES_WRITES}").fetchone()
        if takes_writes and row and row[0]:
            raise StorageFailed(health.STANDBY, reason=health.STANDBY)

    @contextmanager
    def reading(
        self,
        owner: int,
        *,
        first: str = "",
        use: connections.Use = connections.Use.READ,
    ) -> Iterator[PostgresSession]:
        """Lend a session that sees one state of the database while the block runs.

        `first` is a statement sent along with the beginning; the session's `first` has its result.
        `use` chooses the limit that applies to the connection. Within `shared.sharing`, all such
        blocks of a thread have one session.
        """
        open_snapshot = partial(self._snapshot, owner, first=first, use=use)
        if self.shared.owner != owner or use is not connections.Use.READ:
            with open_snapshot() as session:
                yield session
            return
        begun = self.shared.session
        with (
            connections.explaining_failures(connections.NOT_ANSWERED),
            self.shared.lend(open_snapshot) as session,
        ):
            if begun and first:
                session.first = session.execute(first)
            yield session

    @contextmanager
    def _snapshot(
        self, owner: int, *, first: str, use: connections.Use
    ) -> Iterator[PostgresSession]:
        """Lend a session that sees one snapshot, not shared; `first` and `use` are as in `reading`."""

        def begin(connection: connections.Connection) -> PostgresSession:
            with connection.pipeline():
                session = self._begin(connection, owner, (_SNAPSHOT,))
                session.first = session.execute(first) if first else None
            return session

        with (
            connections.explaining_failures(connections.NOT_ANSWERED),
            self.connections.lend(begin, owner=owner, use=use) as (connection, session),
        ):
            yield session
            # Not ROLLBACK: psycopg forgets its prepared statements with one.
            connection.execute("COMMIT")

    def read(self, owner: int, statements: Sequence[Statement]) -> list[list[Row]]:
        """Run statements together on a snapshot; return a list of rows for each statement."""
        with self.reading(owner) as session, session.pipeline():
            results = [session.execute(sql, **values) for sql, values in statements]
        return [result.fetchall() for result in results]

    @contextmanager
    def writing(
        self, owner: int, *, durable: bool = True, at_once: bool = False
    ) -> Iterator[PostgresSession]:
        """Lend a session with the owner's row locked, and commit after the block.

        The changes are on disk after the block; without `durable`, a crash of the server may undo all of them.
        With `at_once`, statements are sent together, and the caller has to lock the owner's row first. If the
        rows of a statement are not read, its error is raised at the end of the block. Raises `NotFound` for a
        removed owner.
        """
        first = ("BEGIN", *(() if durable else ("SET LOCAL synchronous_commit = off",)))

        def begin(connection: connections.Connection) -> PostgresSession | None:
            if at_once:
                connections.check_alive(connection)
                return None
            with connection.pipeline():
                session = self._begin(connection, owner, first)
                session.lock()
            _check_owner(session)
            session.defers = True
            return session

        is_committing = False
        try:
            with self.connections.lend(
                begin, owner=owner, use=connections.Use.WRITE
            ) as (
                connection,
                begun,
            ):
                began = time.monotonic()
                with ExitStack() as together:
                    if at_once:
                        together.enter_context(connection.pipeline())
                    session = begun or self._begin(connection, owner, first)
                    yield session
                    is_committing = True
                    if not at_once:
                        together.enter_context(connection.pipeline())
                    session.save_additions()
                    connection.execute("COMMIT")
                held_s = time.monotonic() - began
                with self._measuring:
                    self.held_max_s = max(self.held_max_s, held_s)
            _check_owner(session)
        except psycopg.Error as error:
            is_unknown = is_committing and connections.is_unreachable(error)
            consequence = (
                connections.PERHAPS_KEPT if is_unknown else connections.NOTHING_KEPT
            )
            raise connections.translate_error(error, consequence) from error
        self._note_growth(session)

    @contextmanager
    def outside_transactions(self, owner: int) -> Iterator[PostgresSession]:
        """Lend a session without a transaction, for statements such as VACUUM."""
        with (
            connections.explaining_failures(connections.NOT_CARRIED_OUT),
            self.connections.lend(
                connections.check_alive, owner=owner, use=connections.Use.READ
            ) as (
                connection,
                _,
            ),
        ):
            yield PostgresSession(connection, owner)

    def _begin(
        self, connection: connections.Connection, owner: int, first: Iterable[str]
    ) -> PostgresSession:
        """Begin a transaction with the statements `first`; set its role and owner; return the session."""
        session = PostgresSession(connection, owner, has_citus=self._has_citus)
        for statement in first:
            session.execute(statement)
        if self._has_citus:
            if self._role:
                session.execute(f'SET LOCAL ROLE "{self._role}"')
            # It hands statements alone on to its nodes, and no function's effect.
            session.execute_once(f"SET LOCAL mnemosyned.owner = {owner:d}")
        elif self._role:
            # One text for all owners: pg_stat_statements keeps each text apart.
            session.execute(f"SELECT {_SET_ROLE}, {_SET_OWNER}", role=self._role)
        else:
            session.execute(f"SELECT {_SET_OWNER}")
        return session

    def _note_growth(self, session: PostgresSession) -> None:
        """Refresh the planner's statistics if the session's owner has enough new memories."""
        grown = session.grown
        if not (grown and self._growth.count_new(session.owner, grown)):
            return
        try:
            with self.outside_transactions(session.owner) as apart:
                refresh_statistics(apart)
        except StorageFailed as error:  # What was written is kept all the same.
            log.warning("statistics_not_refreshed", reason=error.message)


def _check_owner(session: PostgresSession) -> None:
    """Raise `NotFound` if the session found no owner's row to lock."""
    if session.locked_row is None:
        raise NotFound("this owner was removed from the database")


READER_S = 600
"""Seconds that the reader of an export may take for a part of it; other requests do not wait for it."""


class PostgresEngine:
    """The transactions about the rows of one owner.

    A transaction that writes locks the owner's row, so that no other transaction changes the data.
    """

    def __init__(self, pool: Pool, owner: int) -> None:
        self.pool = pool
        self.owner = owner
        self.frequencies = Frequencies()
        """Of the words in questions, kept between them."""

    def reading(self) -> AbstractContextManager[PostgresSession]:
        """Lend a session that sees one snapshot while the block runs."""
        return self.pool.reading(self.owner)

    @contextmanager
    def streaming(self) -> Iterator[PostgresSession]:
        """Lend a session as `reading` does, on a connection that may be kept for long."""
        with self.pool.reading(self.owner, use=connections.Use.STREAM) as session:
            session.execute(
                f"SET LOCAL idle_in_transaction_session_timeout = '{READER_S}s'"
            )
            yield session

    def write(self, work: Callable[[PostgresSession], R], *, durable: bool = True) -> R:
        """Call `work` with a session in a write transaction; return the result of `work`."""
        with self.pool.writing(self.owner, durable=durable) as session:
            return work(session)
