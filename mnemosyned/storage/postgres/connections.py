"""Connections to one database: made when needed, reused, shared fairly by owners; advice for failures."""

from __future__ import annotations

import logging
import select
import threading
import time
import tomllib
from collections import Counter, deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from enum import Enum, auto
from pathlib import Path
from typing import TypeAlias, TypeVar

import psycopg
from psycopg.conninfo import conninfo_to_dict

from mnemosyned import errors
from mnemosyned.fairness import count_server_time, note_database_time
from mnemosyned.memory.engine_ports import PoolFigures
from mnemosyned.storage.common.session import Row

NOTHING_KEPT = "nothing of this request was kept"
NOT_CARRIED_OUT = "the request was not carried out"
NOT_ANSWERED = "the question was not answered"
PERHAPS_KEPT = (
    "it is not known whether this request was kept; send it again with the same ids"
)
_LOST = (
    "the database cannot be reached: check the server and the network, then try again"
)
_FAILURES = tomllib.loads(
    Path(__file__).with_suffix(".toml").read_text(encoding="utf-8")
)
_ADVICE: dict[str, str] = _FAILURES["advice"]
"""What to do, by SQLSTATE."""
_FULL = "53300"
_ENDED = ("08", "57P", _FULL)
"""Errors with which a server ends a connection, or lets nobody in for now."""
_LOCKED = "55P03"
_UNKNOWN = "look into the server's log, then try again"


def translate_error(error: BaseException, consequence: str = NOTHING_KEPT) -> Exception:
    """Return an error of psycopg as a `StorageFailed` or `MemoryBusy`, and other exceptions as they are.

    `consequence` is the text on what the failure means for the stored data. The server's own words are
    in `reason` and `explained`; without a SQLSTATE, as on a lost connection, they are not in the message.
    """
    if isinstance(error, Exception) and not isinstance(error, psycopg.Error):
        return error
    lines = str(error).splitlines() or [repr(error)]
    is_lost = is_unreachable(error)
    advice = _state_and_advice(error)[1] or (_LOST if is_lost else _UNKNOWN)
    why = f"{advice} (PostgreSQL says: {lines[0]})"
    kind = errors.DatabaseUnreachable if is_lost else errors.StorageFailed
    if sqlstate(error) == _LOCKED:
        kind = errors.MemoryBusy
    told = why if getattr(error, "sqlstate", None) else advice
    failure = kind(f"{consequence}: {told}", reason=why)
    failure.explained = f"{consequence}: {why}"
    failure.__cause__ = error
    return failure


@contextmanager
def explaining_failures(consequence: str) -> Iterator[None]:
    """Turn the server's errors in the block into `StorageFailed` or `MemoryBusy` with the `consequence`."""
    try:
        yield
    except psycopg.Error as error:
        raise translate_error(error, consequence) from error


def sqlstate(error: BaseException) -> str | None:
    """Return the SQLSTATE of an error, also of a refused connection; None without a code."""
    return _state_and_advice(error)[0]


def _state_and_advice(error: BaseException) -> tuple[str | None, str]:
    """Return the SQLSTATE of an error, or None, and advice for the user, or an empty text."""
    state: str | None = getattr(error, "sqlstate", None)
    if state:
        return state, _ADVICE.get(state, "")
    _, refused, answer = str(error).partition("FATAL: ")
    for refusal in _FAILURES["refusal"] if refused else ():
        if refusal["part"] in answer:
            code = refusal["code"]
            return code, refusal.get("advice", _ADVICE[code])
    return None, ""


def is_unreachable(error: BaseException) -> bool:
    """Return whether the server is down or accepts no connection now, so that waiting may help."""
    if not isinstance(error, psycopg.OperationalError | psycopg.InterfaceError):
        return False
    code = sqlstate(error)
    return code is None or code.startswith(_ENDED)


def is_full(error: BaseException) -> bool:
    """Return whether the server refused a connection because it has too many already."""
    return sqlstate(error) == _FULL


CONNECTIONS_MAX = 8
"""Maximum connections of a daemon for the requests of all owners; one more is for claims to sleep."""
WRITES_MAX = 6
"""Maximum connections for writes, so that locked rows leave some for reads."""
OWNER_WRITES_MAX = 2
"""Maximum connections for writes of one owner: as its row is locked, a third would only wait."""
LONG_WRITE_S = 0.05
AT_WORK_S = 1.0
"""Seconds after an owner's last use of a connection in which it counts as at work."""
REST_TIMES = 6
"""Rest after a long write while another owner is at work, as a multiple of the write's time. In this time the
owner's next write leaves processor and server to the other owner."""
REST_MAX_S = 1.5
STREAMS_MAX = 3
"""Maximum connections for exports, each used as long as its reader takes."""
CONNECTION_WAIT_S = 30.0
STREAM_WAIT_S = 2.0
"""Seconds that an export waits for a connection, as others may take an hour."""
CONNECT_S = 5
"""Seconds that one attempt to connect may take, for each of the server's addresses."""
FULL_S = 5.0
"""Seconds in which a full server is asked again, or another request's connection becomes free."""
FULL_PAUSE_S = 0.1
IDLE_MAX_S = 10.0
"""Seconds after which an unused connection is closed, as others may need its place."""
AGE_MAX_S = 3_600.0
"""Seconds after which a connection is replaced, as the memory of its server process only grows."""
PLANS_MAX_S = 60.0
"""Seconds after which a connection plans its statements again. The server keeps a plan until its statistics
change: one made for an empty table reads the whole table after it has grown."""
PLANS_MIN_S = 1.0
"""The age at which a new connection first plans again; later, it does after half of its age."""
PREPARED_AFTER = 2
"""Number of uses after which a statement is prepared: planned once for each connection."""
LOCK_WAIT_MS = 2_000
"""Milliseconds that a write waits for its owner's row if another transaction has locked it."""
STALLED_MS = 60_000
"""Milliseconds for which a daemon that does nothing, such as a suspended one, keeps its locks."""
ANNOUNCEMENTS_MAX = 10
"""Maximum reads of messages that a server sent unasked, before a connection is used."""
# Compiling a plan takes longer than any statement here runs; estimates of GIN would ask for it.
# The driver cannot read other forms of times; the defaults of a server or role may be others.
# Set by statements: poolers refuse or ignore options of a new connection.
_SESSION = (
    "SET timezone = 'UTC'; SET datestyle = 'ISO'; SET intervalstyle = 'postgres'; SET extra_float_digits = 1; "
    "SET default_transaction_isolation = 'read committed'; SET client_min_messages = 'warning'; SET jit = off; "
    "SET row_security = on; "  # off refuses what a policy would limit
)
_WITH_LOCK_LIMIT = f"SET lock_timeout = {LOCK_WAIT_MS}; SET statement_timeout = 0"
_IN_POOL = f"SET lock_timeout = {LOCK_WAIT_MS}; SET idle_in_transaction_session_timeout = {STALLED_MS}"
# The server lets a session wait that does nothing, and ends one whose machine has vanished.
WITHOUT_LOCK_LIMIT = (
    "SET statement_timeout = 0; SET idle_session_timeout = 0; SET tcp_keepalives_idle = 20; "
    "SET tcp_keepalives_interval = 10; SET tcp_keepalives_count = 4"
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
BUSY = (
    "this request waited {seconds:g} s for a connection of the daemon to the database: this "
    "memory, or all together, have as many at work as they may; try again in a moment"
)
LOCKED = (
    "another transaction keeps this memory from being written, and other writes wait for it; "
    "try again in a moment"
)

Connection: TypeAlias = psycopg.Connection[Row]
R = TypeVar("R")


class Use(Enum):
    """Purpose of a connection."""

    READ = auto()
    WRITE = auto()
    STREAM = auto()
    """Reading for as long as the reader of an export takes."""


@dataclass(slots=True, eq=False)
class _Waiter:
    """A thread that waits for a connection."""

    owner: int
    use: Use
    woken: threading.Event = field(default_factory=threading.Event)
    is_locked_out: bool = False
    """Whether it waits in vain, as its owner's row is locked."""


class Connections:
    """Connections of a daemon, lent to one thread at a time.

    If many owners are served, an owner gets a share of the connections, smaller with more owners at
    work. Waiting threads are served in order, except those of owners with their full share.

    If the server has ended a connection, as after a restart, the work begins again on a new one.
    """

    def __init__(
        self, dsn: str, *, admit: Callable[[Connection], object] | None = None
    ) -> None:
        """Open connections by `dsn`; `admit`, asked again with new plans, may refuse one by an error."""
        self.serves_owners = False
        """Whether many owners share the connections, of which each then has a limited part."""
        self._dsn = dsn
        self._admit = admit
        self._lent: Counter[tuple[int, Use]] = Counter()
        self._waiting: list[_Waiter] = []
        self._last_uses: list[tuple[int, float]] = []
        """When each of the two owners that used a connection last did so."""
        self._idle: deque[tuple[float, Connection]] = deque()
        """The one used last at the end, each with when it was given back."""
        self._made: dict[Connection, float] = {}
        self._planned: dict[Connection, float] = {}
        self._changing = threading.Condition()
        self._is_closed = False
        self._waits = 0
        self._wait_s = 0.0

    def figures(self) -> PoolFigures:
        """Return how many connections are lent, and how long requests have waited for one."""
        with self._changing:
            lent, waiting = self._lent.total(), len(self._waiting)
            return PoolFigures(
                lent, CONNECTIONS_MAX, waiting, self._waits, self._wait_s
            )

    @contextmanager
    def lend(
        self, begin: Callable[[Connection], R], *, owner: int, use: Use
    ) -> Iterator[tuple[Connection, R]]:
        """Lend a connection for an owner while the block runs, with the result of `begin` on it.

        The call waits for a free connection within the owner's share. `begin` writes nothing, as it
        is called again if the server has closed the connection. After a long write the end of the
        block pauses while other owners are at work. Raises `MemoryBusy` if no connection is free
        when the time limit of `use` ends, or if the owner's row stays locked, `StorageFailed` once
        the connections are closed, `psycopg.Error`, and the errors of `admit`.
        """
        if self._is_closed:
            raise errors.StorageFailed(CLOSED)
        asked = time.monotonic()
        self._wait_for_place(owner, use)
        try:
            connection, begun = self._begin_on_connection(begin)
            began = time.monotonic()
            try:
                yield connection, begun
            finally:
                self._return_connection(connection)
                note_database_time(asked)
            ended = time.monotonic()
            if use is Use.WRITE:
                count_server_time(ended - began)
            if use is Use.WRITE and ended - began >= LONG_WRITE_S:
                with self._changing:
                    is_alone = all(
                        last == owner or at < ended - AT_WORK_S
                        for last, at in self._last_uses
                    )
                if self.serves_owners and not is_alone:
                    time.sleep(min((ended - began) * REST_TIMES, REST_MAX_S))
        except psycopg.errors.LockNotAvailable:
            # The owner's row was locked for too long: its other writes would wait for nothing.
            with self._changing:
                for waiter in list(self._waiting):
                    if waiter.owner == owner and waiter.use is Use.WRITE:
                        self._waiting.remove(waiter)
                        waiter.is_locked_out = True
                        waiter.woken.set()
            raise
        except psycopg.ProgrammingError:
            # Perhaps a later version changed the tables: a new connection asks that, and refuses.
            self._return_connection(self._new_connection())
            raise
        finally:
            with self._changing:
                self._lent[owner, use] -= 1
                if not self._lent[owner, use]:
                    del self._lent[owner, use]
                if owner:  # else it was asked about all
                    others = [last for last in self._last_uses if last[0] != owner]
                    self._last_uses = [(owner, time.monotonic()), *others[:1]]
                self._wake_waiters()

    def close(self) -> None:
        """Close idle connections now, and all others when they are returned."""
        self._is_closed = True
        self._close_idle(0.0)

    def _close_idle(self, idle_s: float) -> None:
        """Close the connections that nobody has used for `idle_s` seconds."""
        now = time.monotonic()
        with self._changing:
            while self._idle and now - self._idle[0][0] >= idle_s:
                self._drop_connection(self._idle.popleft()[1])

    def _wait_for_place(self, owner: int, use: Use) -> None:
        """Wait until an owner may have one more connection. Raises `MemoryBusy` after the use's time limit."""
        waiter = _Waiter(owner, use)
        with self._changing:
            self._waiting.append(waiter)
            self._wake_waiters()
        wait_s = STREAM_WAIT_S if use is Use.STREAM else CONNECTION_WAIT_S
        began = time.monotonic()
        has_waited = not waiter.woken.is_set()
        waiter.woken.wait(wait_s)
        with self._changing:
            self._waits += has_waited
            self._wait_s += (time.monotonic() - began) * has_waited
            if waiter in self._waiting:
                self._waiting.remove(waiter)
        if waiter.is_locked_out:
            raise errors.MemoryBusy(LOCKED)
        if not waiter.woken.is_set():
            raise errors.MemoryBusy(BUSY.format(seconds=wait_s))

    def _wake_waiters(self) -> None:
        """Wake waiters in order while connections are free, except owners with their full share."""
        for waiter in list(self._waiting):
            if self._lent.total() >= CONNECTIONS_MAX:
                return
            if self._has_room(waiter.owner, waiter.use):
                self._waiting.remove(waiter)
                self._lent[waiter.owner, waiter.use] += 1
                waiter.woken.set()

    def _has_room(self, owner: int, use: Use) -> bool:
        """Return whether an owner's share and the limits of all leave room for one more connection."""
        if use is Use.STREAM:
            return self._count_lent(use) < STREAMS_MAX
        writes = self._lent[owner, Use.WRITE]
        if use is Use.WRITE and (
            writes >= OWNER_WRITES_MAX or self._count_lent(use) >= WRITES_MAX
        ):
            return False
        if not self.serves_owners:
            return True
        active = {lent for lent, _ in self._lent}
        active.update(waiter.owner for waiter in self._waiting)
        part = max(OWNER_WRITES_MAX, CONNECTIONS_MAX // (len(active) + 1))
        # A question waits for no write: one place is left to it whatever the owner writes.
        return self._lent[owner, Use.READ] + min(writes, part - 1) < part

    def _count_lent(self, use: Use) -> int:
        """Return how many connections are lent for a use, to all owners together."""
        return sum(count for (_, of), count in self._lent.items() if of is use)

    def _begin_on_connection(
        self, begin: Callable[[Connection], R]
    ) -> tuple[Connection, R]:
        """Return a connection and the result of `begin`; replace a connection closed by the server."""
        with self._changing:
            kept = self._idle.pop()[1] if self._idle else None
        if kept:
            now = time.monotonic()
            plans_max_s = min(
                max(PLANS_MIN_S, (now - self._made[kept]) / 2), PLANS_MAX_S
            )
            has_old_plans = now - self._planned[kept] > plans_max_s
            try:
                return kept, self._try_begin(kept, begin, replan=has_old_plans)
            except psycopg.OperationalError:
                if not kept.closed:
                    raise
                self._close_idle(0.0)  # those that are left ended with it
        made = self._new_connection()
        return made, self._try_begin(made, begin)

    def _new_connection(self) -> Connection:
        """Return a new connection; if the server is full, the next one that another thread returns."""
        ends = time.monotonic() + FULL_S
        while True:
            try:
                made = _connect(self._dsn, _IN_POOL)
                break
            except psycopg.OperationalError as error:
                if not is_full(error) or time.monotonic() > ends:
                    raise
            with self._changing:
                if self._changing.wait_for(lambda: self._idle, FULL_PAUSE_S):
                    return self._idle.pop()[1]
        try:
            if self._admit:
                self._admit(made)
        except BaseException:
            made.close()
            raise
        with self._changing:
            self._made[made] = self._planned[made] = time.monotonic()
        return made

    def _try_begin(
        self,
        connection: Connection,
        begin: Callable[[Connection], R],
        *,
        replan: bool = False,
    ) -> R:
        """Return the result of `begin`; `replan` discards plans first. On errors, give back the connection."""
        try:
            if replan:
                # Whoever changed the tables may not end this login's connections.
                if self._admit:
                    self._admit(connection)
                connection.execute("DISCARD PLANS")
                self._planned[connection] = time.monotonic()
            return begin(connection)
        except BaseException:
            self._return_connection(connection)
            raise

    def _return_connection(self, connection: Connection) -> None:
        """Roll back a lent connection and keep it idle; close it if broken, old, or the pool is closed."""
        if not connection.closed:
            with suppress(psycopg.Error):
                connection.rollback()
        now = time.monotonic()
        unusable = connection.closed or self._is_closed
        with self._changing:
            if not unusable and now - self._made[connection] < AGE_MAX_S:
                self._idle.append((now, connection))
                self._changing.notify()
            else:
                self._drop_connection(connection)
        self._close_idle(IDLE_MAX_S)

    def _drop_connection(self, connection: Connection) -> None:
        """Close a connection, and no longer count it as open."""
        self._made.pop(connection, None)
        self._planned.pop(connection, None)
        with suppress(psycopg.Error):
            connection.close()


def _connect(dsn: str, limits: str) -> Connection:
    """Return a new connection on which `limits`, SQL statements, have run. Raises `psycopg.Error`."""
    made = psycopg.connect(dsn, **_SETTINGS)
    try:
        made.execute(f"{_SESSION}{limits}".encode(), prepare=False)
    except BaseException:
        made.close()
        raise
    return made


def connect_once(dsn: str, *, limits: str = _WITH_LOCK_LIMIT) -> Connection:
    """Return a new connection for one task, by default with a limit on waiting for locks alone.

    Raises `ConfigInvalid` for a text that is no URL of a database, and `psycopg.Error`.
    """
    try:
        host = conninfo_to_dict(dsn).get("host", "")
    except psycopg.ProgrammingError:  # whose words quote the URL
        host = "none@"
    # With a bare @, the end of a password is taken for the host. A socket may have one, too.
    if "@@" in dsn or ("@" in host and not host.startswith(("@", "/"))):
        raise errors.ConfigInvalid(
            "database: this is no URL of a PostgreSQL database; a % or @ within a password is "
            "written %25 or %40",
            field="database",
        )
    return _connect(dsn, limits)


def check_alive(connection: Connection) -> None:
    """Raise `OperationalError` if the server has closed an idle connection, and close it here, too."""
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
