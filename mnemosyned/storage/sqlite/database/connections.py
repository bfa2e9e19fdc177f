"""Connections to the file: one writer whose commits are shared, and readers that never wait."""

from __future__ import annotations

import queue
import sqlite3
import threading
import time
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing, contextmanager, suppress
from pathlib import Path
from typing import Generic, TypeVar

from mnemosyned.domain.errors import DatabaseReplaced, StorageFailed
from mnemosyned.logs import logger
from mnemosyned.storage.sqlite.database.failures import (
    NOT_ANSWERED,
    NOTHING_KEPT,
    reason,
    storage_failed,
)

T = TypeVar("T")

BUSY_TIMEOUT_S = 10.0
READER_WAIT_S = 30.0
CHECKPOINT_PAGES = 4_000
"""Log pages, 16 MB, at which SQLite checkpoints; a larger log means fewer checkpoints in a sleep."""
_CLOSED = "the memory is closed; open it again"
COMMIT_SHARE_MAX = 256
"""How many waiting writes one commit takes along."""
NOT_CLEANED = "the file could not be cleaned up; every memory in it is as it was"

log = logger()


def open_writer(
    path: Path, *, check: Callable[[sqlite3.Connection], object] = lambda _: None
) -> sqlite3.Connection:
    """The connection that writes: every commit is on disk when it returns.

    `check` may refuse the file, by what it raises, before anything of it is changed.
    """
    connection = sqlite3.connect(
        path, timeout=BUSY_TIMEOUT_S, isolation_level=None, check_same_thread=False
    )
    try:
        check(connection)
        _set_up(connection)
    except BaseException:
        connection.close()
        raise
    return connection


def _set_up(connection: sqlite3.Connection) -> None:
    connection.execute("PRAGMA journal_mode = WAL")
    connection.execute("PRAGMA synchronous = FULL")
    connection.execute("PRAGMA foreign_keys = ON")
    connection.execute("PRAGMA cache_size = -16000")
    connection.execute(f"PRAGMA wal_autocheckpoint = {CHECKPOINT_PAGES}")
    # What is deleted is overwritten: an evicted row must not outlive its memory in a free page.
    connection.execute("PRAGMA secure_delete = ON")
    connection.execute("PRAGMA temp_store = MEMORY")


def open_reader(path: Path) -> sqlite3.Connection:
    """A connection that cannot write and sees a snapshot for each transaction."""
    connection = sqlite3.connect(
        f"{path.absolute().as_uri()}?mode=ro",
        uri=True,
        timeout=BUSY_TIMEOUT_S,
        isolation_level=None,
        check_same_thread=False,
    )
    connection.execute("PRAGMA query_only = ON")
    connection.execute("PRAGMA cache_size = -8000")
    connection.execute("PRAGMA temp_store = MEMORY")
    return connection


def bound_caches(limit_bytes: int) -> None:
    """Keep SQLite's caches in this process below so much in all; beyond it they recycle pages.

    Each connection has its own, and all of them hold what is asked for often.
    """
    with closing(sqlite3.connect(":memory:")) as connection:
        connection.execute(f"PRAGMA soft_heap_limit = {limit_bytes}")


class _Ticket(Generic[T]):
    """One write that waits for a commit."""

    __slots__ = ("done", "durable", "error", "result", "work")

    def __init__(
        self, work: Callable[[sqlite3.Connection], T], *, durable: bool
    ) -> None:
        self.work = work
        self.durable = durable
        self.done = False
        self.error: Exception | None = None
        self.result: T | None = None

    def outcome(self) -> T:
        if self.error is not None:
            raise self.error
        return self.result  # type: ignore[return-value]  # set by the commit that made it done


class Writer:
    """Group commit: whoever gets the lock commits for everyone who waits.

    A lone writer pays no thread switch; sixteen share one flush of the disk. Each piece of work
    runs in a savepoint of its own, so that one that fails takes nobody along.
    """

    def __init__(
        self,
        connection: sqlite3.Connection,
        *,
        secured: Callable[[sqlite3.Connection], sqlite3.Connection] = lambda usual: (
            usual
        ),
    ) -> None:
        self._connection = connection
        self._secured = secured
        """Called before each change: answers with the connection to use from then on, or raises
        where what is written would not last."""
        self._waiting: deque[_Ticket[object]] = deque()
        self._lock = threading.Lock()
        self._durable = True  # as `open_writer` leaves it
        self._closed = False
        self.held_max_s = 0.0
        """The longest that one commit kept other writers waiting so far."""

    def write(self, work: Callable[[sqlite3.Connection], T]) -> T:
        """Run `work` in a transaction; when this returns, what it wrote is on disk.

        Raises what `work` raised, and `StorageFailed` where the database refused.
        """
        (ticket,) = self._commit([work], durable=True)
        return ticket.outcome()

    def write_each(
        self,
        works: Sequence[Callable[[sqlite3.Connection], T]],
        *,
        durable: bool = True,
    ) -> list[T | Exception]:
        """Run each of `works` by itself, all or nothing, with as few commits as can be.

        What one raised stands in its place; the others are on disk, and where they need not be
        `durable`, with the next commit that is: a failure of power takes them back whole.
        """
        return [
            ticket.error or ticket.outcome()
            for ticket in self._commit(works, durable=durable)
        ]

    def _commit(
        self, works: Sequence[Callable[[sqlite3.Connection], T]], *, durable: bool
    ) -> list[_Ticket[T]]:
        tickets = [_Ticket(work, durable=durable) for work in works]
        self._waiting.extend(tickets)  # type: ignore[arg-type]  # the queue forgets the type
        for ticket in tickets:
            while not ticket.done:
                with self._lock:
                    if not ticket.done:
                        self._commit_waiting()
        return tickets

    def _commit_waiting(self) -> None:
        if self._closed:
            raise StorageFailed(_CLOSED)
        share = min(len(self._waiting), COMMIT_SHARE_MAX)
        tickets = [self._waiting.popleft() for _ in range(share)]
        durable = any(ticket.durable for ticket in tickets)
        try:
            self._begin(durable=durable)
            began = time.monotonic()
            for ticket in tickets:
                self._run(ticket, alone=share == 1)
            self._connection.execute("COMMIT")
            self.held_max_s = max(self.held_max_s, time.monotonic() - began)
        except BaseException as error:
            failure = storage_failed(error, NOTHING_KEPT)
            for (
                ticket
            ) in tickets:  # first of all: a ticket without an error counts as kept
                ticket.error = ticket.error or failure
            self._roll_back()
            if not isinstance(
                error, Exception
            ):  # an interrupt belongs to this thread alone
                raise
        finally:
            for ticket in tickets:
                ticket.done = True

    def _begin(self, *, durable: bool) -> None:
        self._secure()
        if (
            self._connection.in_transaction
        ):  # an earlier one that could not be rolled back
            self._connection.execute("ROLLBACK")
        self._flush_at_commit(durable=durable)
        self._connection.execute("BEGIN IMMEDIATE")

    def _roll_back(self) -> None:
        """End a failed transaction; what cannot end now does before the next begins."""
        try:
            if self._connection.in_transaction:
                self._connection.execute("ROLLBACK")
        except sqlite3.Error as error:
            log.warning("rollback_failed", reason=str(error))

    def _secure(self) -> None:
        connection = self._secured(self._connection)
        if connection is not self._connection:
            self._connection = connection
            self._durable = True

    def secure(self) -> None:
        """See to it that what was written lasts. Raises `DatabaseReplaced` where it does not.

        While somebody writes there is nothing to do: each commit does the same.
        """
        if self._lock.acquire(blocking=False):
            try:
                with self._explained():
                    self._secure()
            finally:
                self._lock.release()

    def _flush_at_commit(self, *, durable: bool) -> None:
        """Have commits wait for the disk, or not; the engine is told only where that changes."""
        if durable is not self._durable:
            self._connection.execute(
                f"PRAGMA synchronous = {'FULL' if durable else 'NORMAL'}"
            )
            self._durable = durable

    def _run(self, ticket: _Ticket[object], *, alone: bool) -> None:
        if alone:
            ticket.result = ticket.work(self._connection)
            return
        self._connection.execute("SAVEPOINT share")
        try:
            ticket.result = ticket.work(self._connection)
        except Exception as error:
            if (
                not self._connection.in_transaction
            ):  # SQLite gave the whole transaction up
                raise
            self._connection.execute("ROLLBACK TO share")
            ticket.error = storage_failed(error, NOTHING_KEPT)
        self._connection.execute("RELEASE share")

    def compact(self) -> bool:
        """Write all pages anew, with nothing in them but what is; False where another writes.

        Rows that SQLite moves between pages leave copies in the free space of the old ones, which
        secure deletion does not know of. Writers wait: about a second for 100 MB.
        """
        with self._lock, self._explained():
            self._secure()
            began = time.monotonic()
            # What it puts aside is what stays, and as large as the file: not a thing for memory.
            self._connection.execute("PRAGMA temp_store = FILE")
            try:
                self._connection.execute("VACUUM")
            except sqlite3.OperationalError as error:
                if error.sqlite_errorcode != sqlite3.SQLITE_BUSY:
                    raise
                return False
            finally:
                self._connection.execute("PRAGMA temp_store = MEMORY")
                self.held_max_s = max(self.held_max_s, time.monotonic() - began)
        return True

    def checkpoint(self, *, wait_s: float = BUSY_TIMEOUT_S) -> bool:
        """Checkpoint the write-ahead log and truncate it; False if a reader prevents it."""
        with self._lock, self._explained():
            return self._checkpoint(wait_s)

    def _checkpoint(self, wait_s: float) -> bool:
        self._connection.execute(f"PRAGMA busy_timeout = {int(wait_s * 1000)}")
        try:
            busy = self._connection.execute(
                "PRAGMA wal_checkpoint(TRUNCATE)"
            ).fetchone()[0]
        finally:
            self._connection.execute(
                f"PRAGMA busy_timeout = {int(BUSY_TIMEOUT_S * 1000)}"
            )
        return not busy

    def shrink(self) -> None:
        """Free the page cache; the next write reads its pages again."""
        with self._lock, self._explained():
            self._connection.execute("PRAGMA shrink_memory")

    @contextmanager
    def _explained(self) -> Iterator[None]:
        """Upkeep of the file: whatever it fails of, no memory is touched by that."""
        if self._closed:
            raise StorageFailed(_CLOSED)
        try:
            yield
        except (OSError, sqlite3.Error) as error:
            raise storage_failed(error, NOT_CLEANED) from error

    def close(self) -> None:
        """Checkpoint the write-ahead log and close.

        A log that cannot be checkpointed stays next to the file, and the next start reads it. Raises
        `DatabaseReplaced` where what was acknowledged could not be saved from a file that is gone.
        """
        with self._lock:
            if self._closed:
                return
            try:
                self._secure()
                self._checkpoint(BUSY_TIMEOUT_S)
            except DatabaseReplaced as error:
                if not error.saved:
                    raise
                log.warning("closed_elsewhere", reason=error.reason)
            except (OSError, sqlite3.Error) as error:
                log.warning("checkpoint_failed", reason=reason(error))
            finally:
                self._closed = True
                self._connection.close()


class Readers:
    """A bounded pool of read-only connections."""

    def __init__(
        self, path: Path, *, size: int, check: Callable[[], object] = lambda: None
    ) -> None:
        self._path = path
        self._check = check
        """Called before and after a connection opens the file and its log: raises where they are
        others."""
        self._pool: queue.LifoQueue[sqlite3.Connection | None] = queue.LifoQueue()
        for _ in range(size):
            self._pool.put(None)
        self._size = size
        self._closed = False
        self._admitting = threading.Event()
        self._admitting.set()
        self._outdated: set[sqlite3.Connection] = set()
        self._all: set[sqlite3.Connection] = set()

    def renew(self) -> None:
        """From the next read on, use new connections: the path leads to another file now."""
        self._outdated = set(self._all)

    @contextmanager
    def snapshot(self) -> Iterator[sqlite3.Connection]:
        """A read transaction: one state of the file, however many statements."""
        self._admitting.wait(READER_WAIT_S)
        try:
            connection = self._pool.get(timeout=READER_WAIT_S)
        except queue.Empty:
            raise StorageFailed(
                f"all {self._size} readers were busy for {READER_WAIT_S:g} s; ask again later"
            ) from None
        try:
            if self._closed:
                raise StorageFailed(_CLOSED)
            if connection is None or connection in self._outdated:
                connection = self._renewed(connection)
            connection.execute("BEGIN")
            try:
                yield connection
            finally:
                connection.execute("ROLLBACK")
        except sqlite3.Error as error:
            raise storage_failed(error, NOT_ANSWERED) from error
        finally:
            self._pool.put(connection)

    def _renewed(self, outdated: sqlite3.Connection | None) -> sqlite3.Connection:
        self._check()
        connection = open_reader(self._path)
        try:
            connection.execute(
                "SELECT 1 FROM sqlite_schema"
            ).fetchone()  # opens the log
            self._check()
        except BaseException:
            connection.close()
            raise
        self._all.add(connection)
        if outdated:
            self._all.discard(outdated)
            self._outdated.discard(outdated)
            outdated.close()
        return connection

    @contextmanager
    def paused(self, *, wait_s: float) -> Iterator[bool]:
        """Let running reads end and no other begin while the block runs.

        Gives False where one went on for `wait_s` seconds. One caller at a time.
        """
        self._admitting.clear()
        ends = time.monotonic() + wait_s
        idle: list[sqlite3.Connection | None] = []
        try:
            with suppress(queue.Empty):
                while len(idle) < self._size:
                    idle.append(
                        self._pool.get(timeout=max(0.0, ends - time.monotonic()))
                    )
            yield len(idle) == self._size
        finally:
            for connection in idle:
                self._pool.put(connection)
            self._admitting.set()

    def shrink(self) -> None:
        """Free the page caches of the connections that nobody reads with."""
        idle: list[sqlite3.Connection | None] = []
        try:
            while not self._pool.empty() and len(idle) < self._size:
                idle.append(self._pool.get_nowait())
                if connection := idle[-1]:
                    connection.execute("PRAGMA shrink_memory")
        except queue.Empty:
            return  # somebody reads with the last
        finally:
            for connection in reversed(idle):
                self._pool.put(connection)

    def close(self) -> None:
        """Wait for running reads and close all connections; later reads are refused."""
        for _ in range(self._size):
            connection = self._pool.get()
            if connection is not None:
                connection.close()
        self._closed = True
        for _ in range(self._size):
            self._pool.put(None)
