"""Connections to one database: made when they are needed, kept for the next, within a limit."""

from __future__ import annotations

import logging
import select
import threading
import time
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import TypeAlias, TypeVar

import psycopg

from mnemosyned.domain.errors import DatabaseUnreachable, StorageFailed
from mnemosyned.storage.postgres.database.session import Row

CONNECTIONS_MAX = 8
CONNECTION_WAIT_S = 30.0
CONNECT_S = 5
"""Seconds that one attempt to connect may take, for each of the server's addresses."""
IDLE_MAX_S = 300.0
"""Seconds after which a connection that nobody needed is closed."""
AGE_MAX_S = 3_600.0
"""Seconds after which a connection gives way to a new one, as its server process only grows."""
PLANS_MAX_S = 60.0
"""Seconds after which a connection plans its statements anew. The server keeps a plan while its
statistics stay: one made for an empty table reads all of a table that has grown since."""
PLANS_MIN_S = 1.0
"""The same of a new connection; then a half of its age."""
PREPARED_AFTER = 2
"""A statement that comes so often is prepared: planned once for each connection."""
LOCK_WAIT_MS = 30_000
"""How long a write waits for another of the same owner."""
STALLED_MS = 60_000
"""How long a daemon that stands still, as a suspended one, keeps its locks."""
ANNOUNCEMENTS_MAX = 10
"""So often what a server sent unasked is read before the connection is used."""
# Compiling a plan takes longer than any statement here runs; estimates of GIN would ask for it.
_OPTIONS = "-c timezone=UTC -c client_min_messages=warning -c jit=off"
_LIMITS = f"-c lock_timeout={LOCK_WAIT_MS} -c idle_in_transaction_session_timeout={STALLED_MS}"
# The server lets a session wait that does nothing, and ends one whose machine has vanished.
_WAITING = (
    "-c idle_session_timeout=0 -c tcp_keepalives_idle=20 "
    "-c tcp_keepalives_interval=10 -c tcp_keepalives_count=4"
)
_SETTINGS: dict[str, object] = {
    "autocommit": True,
    "prepare_threshold": PREPARED_AFTER,
    "connect_timeout": CONNECT_S,
    "application_name": "mnemosyned",
    # A server whose machine vanished is noticed within a minute, not by TCP's own two hours.
    "keepalives_idle": 20,
    "keepalives_interval": 10,
    "keepalives_count": 3,
    "tcp_user_timeout": 50_000,
}
# It reports what is raised anyway, in lines of its own form.
logging.getLogger("psycopg").setLevel(logging.ERROR)
CLOSED = "the memory is closed; open it again"
BUSY = "all connections to the database were busy; try again later"

Connection: TypeAlias = psycopg.Connection[Row]
R = TypeVar("R")


class Connections:
    """Connections of a daemon, lent to one thread at a time.

    A connection that the server has ended, as when it was started again, is not the caller's
    trouble: what begins on it and fails begins once more on a new one.
    """

    def __init__(
        self, dsn: str, *, admit: Callable[[Connection], object] | None = None
    ) -> None:
        """Call `admit` with each new connection; what it raises is told to who wanted one."""
        self._dsn = dsn
        self._admit = admit
        self._free = threading.BoundedSemaphore(CONNECTIONS_MAX)
        self._idle: deque[tuple[float, Connection]] = deque()
        """The one used last at the end, each with when it was given back."""
        self._made: dict[Connection, float] = {}
        self._planned: dict[Connection, float] = {}
        self._changing = threading.Lock()
        self._is_closed = False

    @contextmanager
    def lent(self, begin: Callable[[Connection], R]) -> Iterator[tuple[Connection, R]]:
        """A connection, with what `begin` gave on it; `begin` writes nothing.

        Raises `StorageFailed` where all are busy, and `psycopg.Error`.
        """
        if self._is_closed:
            raise StorageFailed(CLOSED)
        if not self._free.acquire(timeout=CONNECTION_WAIT_S):
            raise DatabaseUnreachable(BUSY)
        try:
            connection, begun = self._begun(begin)
            try:
                yield connection, begun
            finally:
                self._take_back(connection)
        finally:
            self._free.release()

    def close(self) -> None:
        """Close those that nobody uses now, and each other one when it is given back."""
        self._is_closed = True
        self._close_idle()

    def _begun(self, begin: Callable[[Connection], R]) -> tuple[Connection, R]:
        kept = self._kept()
        if kept:
            try:
                return kept, self._tried(kept, begin, replan=self._replans(kept))
            except psycopg.OperationalError:
                if not kept.closed:
                    raise
                self._close_idle()  # those that are left ended with it
        made = psycopg.connect(self._dsn, **_SETTINGS, options=f"{_OPTIONS} {_LIMITS}")
        try:
            if self._admit:
                self._admit(made)
        except BaseException:
            made.close()
            raise
        with self._changing:
            self._made[made] = self._planned[made] = time.monotonic()
        return made, self._tried(made, begin)

    def _replans(self, connection: Connection) -> bool:
        """Whether a connection's plans are old for its age."""
        now = time.monotonic()
        age = now - self._made[connection]
        return now - self._planned[connection] > min(
            max(PLANS_MIN_S, age / 2), PLANS_MAX_S
        )

    def _tried(
        self,
        connection: Connection,
        begin: Callable[[Connection], R],
        *,
        replan: bool = False,
    ) -> R:
        try:
            if replan:
                connection.execute("DISCARD PLANS")
                self._planned[connection] = time.monotonic()
            return begin(connection)
        except BaseException:
            self._take_back(connection)
            raise

    def _kept(self) -> Connection | None:
        with self._changing:
            return self._idle.pop()[1] if self._idle else None

    def _take_back(self, connection: Connection) -> None:
        """Keep a connection for the next, with no transaction open, or close it."""
        if not connection.closed:
            with suppress(psycopg.Error):
                connection.rollback()
        now = time.monotonic()
        unusable = connection.closed or self._is_closed
        with self._changing:
            if not unusable and now - self._made[connection] < AGE_MAX_S:
                self._idle.append((now, connection))
            else:
                self._drop(connection)
            while self._idle and now - self._idle[0][0] > IDLE_MAX_S:
                self._drop(self._idle.popleft()[1])

    def _close_idle(self) -> None:
        with self._changing:
            while self._idle:
                self._drop(self._idle.pop()[1])

    def _drop(self, connection: Connection) -> None:
        self._made.pop(connection, None)
        self._planned.pop(connection, None)
        with suppress(psycopg.Error):
            connection.close()


def connected_once(dsn: str) -> Connection:
    """A connection for one piece of work, which may wait for locks. Raises `psycopg.Error`."""
    return psycopg.connect(dsn, **_SETTINGS, options=_OPTIONS)


def connected_apart(dsn: str) -> Connection:
    """A connection that waits for as long as its holder does. Raises `psycopg.Error`."""
    return psycopg.connect(dsn, **_SETTINGS, options=f"{_OPTIONS} {_WAITING}")


def check_alive(connection: Connection) -> None:
    """See without a round trip whether the server ended a connection that stood idle.

    Raises `psycopg.OperationalError` where it did.
    """
    waiting = select.poll()
    waiting.register(connection.fileno(), select.POLLIN)
    try:
        for _ in range(ANNOUNCEMENTS_MAX):
            if not waiting.poll(0):
                return
            connection.pgconn.consume_input()  # raises at the end of what was sent
    except psycopg.OperationalError:
        connection.close()
        raise
