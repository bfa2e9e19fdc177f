"""Connections to one database, shared by all of a daemon's threads, within a limit."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial

import psycopg

from mnemosyned.domain.errors import NotFound, StorageFailed
from mnemosyned.logs import logger
from mnemosyned.storage.postgres.database.claims import SessionClaims
from mnemosyned.storage.postgres.database.connections import (
    Connection,
    Connections,
    Use,
    check_alive,
)
from mnemosyned.storage.postgres.database.failures import (
    NOT_ANSWERED,
    NOTHING_KEPT,
    PERHAPS_KEPT,
    is_unreachable,
    storage_failed,
)
from mnemosyned.storage.postgres.database.migrations import check_schema
from mnemosyned.storage.postgres.database.session import Row, Session, Statement
from mnemosyned.storage.postgres.database.statistics import (
    Growth,
    refresh_statistics,
)

log = logger()

_SNAPSHOT = "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY"
_NAME_OWNER = "SELECT set_config('mnemosyned.owner', %(owner)s::text, true)"
_LAZILY = "SET LOCAL synchronous_commit = off"


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
        """`schema` is the last version that is known here; None: whichever the database has.

        `role` is the database role of all transactions; None: the user that connects. `has_citus` is
        as in a `Session`. `beside` is another pool of the database, whose connections this one uses.
        """
        self._dsn = dsn
        self._has_citus = has_citus
        self._role = (f'SET LOCAL ROLE "{role}"',) if role else ()
        admit = None if schema is None else partial(check_schema, known=schema)
        self._is_beside = beside is not None
        self.connections: Connections = (
            beside.connections if beside else Connections(dsn, admit=admit)
        )
        self.claims: SessionClaims = beside.claims if beside else SessionClaims(dsn)
        self.held_max_s = 0.0
        """The longest that a transaction has kept an owner's others from writing."""
        self._measuring = threading.Lock()
        self._growth = Growth()

    def close(self) -> None:
        """Close the connections, unless they are another pool's; transactions that run end first."""
        if not self._is_beside:
            self.connections.close()

    def share_among_owners(self) -> None:
        """From now on, leave an owner no more than a part of the connections."""
        self.connections.serves_owners = True

    @contextmanager
    def reading(
        self, owner: int, *, first: str = "", use: Use = Use.READ
    ) -> Iterator[Session]:
        """One state of the database, however many statements.

        `first` is a statement that goes with the beginning: its result is the session's `first`.
        """

        def begin(connection: Connection) -> Session:
            with connection.pipeline():
                session = self._begin(connection, owner, (_SNAPSHOT, *self._role))
                session.first = session.execute(first) if first else None
            return session

        try:
            with self.connections.lent(begin, owner=owner, use=use) as (
                connection,
                session,
            ):
                yield session
                # Not ROLLBACK: psycopg forgets its prepared statements with one.
                connection.execute("COMMIT")
        except psycopg.Error as error:
            raise storage_failed(error, NOT_ANSWERED) from error

    def read(self, owner: int, statements: Sequence[Statement]) -> list[list[Row]]:
        """The rows of each of these, of one state of the database, in one round trip."""

        def begin(connection: Connection) -> list[list[Row]]:
            with connection.pipeline():
                session = self._begin(connection, owner, (_SNAPSHOT, *self._role))
                results = [session.execute(sql, **values) for sql, values in statements]
                session.execute("COMMIT")
            return [result.fetchall() for result in results]

        try:
            with self.connections.lent(begin, owner=owner, use=Use.READ) as (_, rows):
                return rows
        except psycopg.Error as error:
            raise storage_failed(error, NOT_ANSWERED) from error

    @contextmanager
    def writing(self, owner: int, *, durable: bool = True) -> Iterator[Session]:
        """A transaction in which nobody else changes what is the owner's.

        What it wrote is on disk when the block has ended, unless `durable` is false: then a crash
        of the server may take it back whole. Raises `NotFound` for an owner that was removed.
        """
        first = ("BEGIN", *self._role, *(() if durable else (_LAZILY,)))

        def begin(connection: Connection) -> Session:
            with connection.pipeline():
                session = self._begin(connection, owner, first)
                session.lock()
            _check_owner(session)
            return session

        is_committing = False
        try:
            with self.connections.lent(begin, owner=owner, use=Use.WRITE) as (
                connection,
                session,
            ):
                began = time.monotonic()
                yield session
                is_committing = True
                connection.execute("COMMIT")
                self._note_held(time.monotonic() - began)
        except psycopg.Error as error:
            raise storage_failed(error, _consequence(error, is_committing)) from error
        self._note_growth(session)

    @contextmanager
    def writing_at_once(self, owner: int) -> Iterator[Session]:
        """A transaction whose statements are sent together.

        Those whose rows nobody reads share a round trip with what follows, at last the commit:
        their errors come when the block ends. The caller locks the owner's row before it reads or
        writes; where nothing was read, it makes sure that nothing is written for an owner that was
        removed.
        """
        is_committing = False
        try:
            with self.connections.lent(check_alive, owner=owner, use=Use.WRITE) as (
                connection,
                _,
            ):
                began = time.monotonic()
                with connection.pipeline():
                    session = self._begin(connection, owner, ("BEGIN", *self._role))
                    yield session
                    is_committing = True
                    connection.execute("COMMIT")
                self._note_held(time.monotonic() - began)
            _check_owner(session)
        except psycopg.Error as error:
            raise storage_failed(error, _consequence(error, is_committing)) from error
        self._note_growth(session)

    @contextmanager
    def outside_transactions(self, owner: int) -> Iterator[Session]:
        """Statements each by itself, for what no transaction may hold, such as VACUUM."""

        def begin(connection: Connection) -> Session:
            session = Session(connection, owner)
            session.execute("SELECT 1")
            return session

        try:
            with self.connections.lent(begin, owner=owner, use=Use.READ) as (
                _,
                session,
            ):
                yield session
        except psycopg.Error as error:
            raise storage_failed(error, NOTHING_KEPT) from error

    def _begin(
        self, connection: Connection, owner: int, first: Iterable[str]
    ) -> Session:
        """Send what begins a transaction about an owner, without a wait for the answers."""
        session = Session(connection, owner, has_citus=self._has_citus)
        for statement in first:
            session.execute(statement)
        if self._has_citus:
            # It hands statements alone on to its nodes, and no function's effect.
            session.execute_once(f"SET LOCAL mnemosyned.owner = {owner:d}")
        else:
            # One text for all owners: pg_stat_statements keeps each text apart.
            session.execute(_NAME_OWNER)
        return session

    def _note_growth(self, session: Session) -> None:
        """See from time to time whether the statistics know how much an owner has."""
        if not self._growth.is_due(session.owner, session.grown):
            return
        try:
            with self.outside_transactions(session.owner) as apart:
                if refresh_statistics(apart):
                    self._growth.postpone(session.owner)
        except StorageFailed as error:  # What was written is kept all the same.
            log.warning("statistics_not_refreshed", reason=error.message)

    def _note_held(self, held_s: float) -> None:
        with self._measuring:
            self.held_max_s = max(self.held_max_s, held_s)


def _check_owner(session: Session) -> None:
    if session.locked is None:
        raise NotFound("this owner was removed from the database")


def _consequence(error: psycopg.Error, is_committing: bool) -> str:  # noqa: FBT001
    """What became of a write; an error that the server answered with took all of it back."""
    is_unknown = is_committing and is_unreachable(error)
    return PERHAPS_KEPT if is_unknown else NOTHING_KEPT
