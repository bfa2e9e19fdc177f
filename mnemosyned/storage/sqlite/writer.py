"""The single writing connection: writers waiting together share a commit; transactions of store methods."""

from __future__ import annotations

import sqlite3
import threading
import time
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Generic, TypeVar

from mnemosyned.errors import DatabaseReplaced, StorageFailed
from mnemosyned.fairness import note_database_time
from mnemosyned.logs import logger
from mnemosyned.storage.sqlite import connections
from mnemosyned.storage.sqlite.session import SqliteSession

T = TypeVar("T")

COMMIT_SHARE_MAX = 256
"""Waiting writes that one commit takes along."""

log = logger()


@dataclass(eq=False, slots=True)
class _CommitTicket(Generic[T]):
    """One write that waits for a commit."""

    work: Callable[[SqliteSession], T]
    durable: bool
    done: bool = False
    error: Exception | None = None
    result: T = None  # type: ignore[assignment]  # set by the commit that makes it done


class Writer:
    """The writing connection; a thread with the lock commits for all waiting threads.

    A lone writer pays no thread switch; sixteen share one flush of the disk. Each piece of work
    runs in a savepoint of its own, so that a failing one takes nobody along.
    """

    def __init__(
        self,
        connection: SqliteSession,
        *,
        secured: Callable[[SqliteSession], SqliteSession] = lambda usual: usual,
    ) -> None:
        self._connection = connection
        self._secured = secured
        """Called before each change: answers with the connection to use from then on, or raises
        where what is written would not last."""
        self._waiting: deque[_CommitTicket[object]] = deque()
        self._lock = threading.Lock()
        self._closed = False
        self.held_max_s = 0.0
        """The longest that one commit kept other writers waiting so far."""

    def write(self, work: Callable[[SqliteSession], T], *, durable: bool = True) -> T:
        """Run `work` in a transaction and return its result, after its changes are on disk.

        Without `durable` the changes reach the disk with the next durable commit. Raises what
        `work` raised, and `StorageFailed` if the database refused.
        """
        (result,) = self.write_each([work], durable=durable)
        if isinstance(result, Exception):
            raise result
        return result

    def write_each(
        self,
        works: Sequence[Callable[[SqliteSession], T]],
        *,
        durable: bool = True,
    ) -> list[T | Exception]:
        """Run each function atomically, with as few commits as possible; return results in order.

        The error that a function raised replaces its result. On return all changes
        are on disk; without `durable` they reach the disk with the next durable commit. A thread
        that gets the lock also commits the writes that other threads queued.
        """
        began = time.monotonic()
        tickets = [_CommitTicket(work, durable) for work in works]
        self._waiting.extend(tickets)  # type: ignore[arg-type]  # the queue forgets the type
        for ticket in tickets:
            while not ticket.done:
                with self._lock:
                    if not ticket.done:
                        self._commit_waiting()
        note_database_time(began)
        return [ticket.error or ticket.result for ticket in tickets]

    def _commit_waiting(self) -> None:
        """Run up to `COMMIT_SHARE_MAX` queued writes in one transaction; set their outcomes."""
        if self._closed:
            raise StorageFailed(connections.CLOSED)
        share = min(len(self._waiting), COMMIT_SHARE_MAX)
        tickets = [self._waiting.popleft() for _ in range(share)]
        durable = any(ticket.durable for ticket in tickets)
        try:
            self._connection = self._secured(self._connection)
            if self._connection.in_transaction:
                # An earlier one that could not be rolled back.
                self._connection.execute("ROLLBACK")
            if durable is not self._connection.is_durable:
                level = "FULL" if durable else "NORMAL"
                self._connection.execute(f"PRAGMA synchronous = {level}")
                self._connection.is_durable = durable
            self._connection.execute("BEGIN IMMEDIATE")
            began = time.monotonic()
            for ticket in tickets:
                if share == 1:
                    ticket.result = ticket.work(self._connection)
                else:
                    self._run_in_savepoint(ticket)
            self._connection.execute("COMMIT")
            self.held_max_s = max(self.held_max_s, time.monotonic() - began)
        except BaseException as error:
            failure = connections.storage_failed(error, connections.NOTHING_KEPT)
            # First of all: a ticket without an error counts as kept.
            for ticket in tickets:
                ticket.error = ticket.error or failure
            try:
                if self._connection.in_transaction:
                    self._connection.execute("ROLLBACK")
            except sqlite3.Error as problem:  # the next transaction does it
                log.warning("rollback_failed", reason=str(problem))
            if not isinstance(error, Exception):
                raise  # an interrupt belongs to this thread alone
        finally:
            for ticket in tickets:
                ticket.done = True

    def secure(self) -> None:
        """Put a deleted database file back at its path; do nothing while another thread writes.

        Each commit makes the same check. Raises `DatabaseReplaced` if the file cannot be put back.
        """
        if self._lock.acquire(blocking=False):
            try:
                with self._explaining_failures():
                    self._connection = self._secured(self._connection)
            finally:
                self._lock.release()

    def _run_in_savepoint(self, ticket: _CommitTicket[object]) -> None:
        """Run a ticket's function in a savepoint; save its result, or undo its changes and save its error."""
        self._connection.execute("SAVEPOINT share")
        try:
            ticket.result = ticket.work(self._connection)
        except Exception as error:
            if not self._connection.in_transaction:
                raise  # SQLite gave the whole transaction up
            self._connection.execute("ROLLBACK TO share")
            ticket.error = connections.storage_failed(error, connections.NOTHING_KEPT)
        self._connection.execute("RELEASE share")

    def compact(self) -> bool:
        """VACUUM the file while writers wait, a second for 100 MB; return False if another program writes."""
        with self._lock, self._explaining_failures():
            self._connection = self._secured(self._connection)
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

    def checkpoint(self) -> bool:
        """Checkpoint and truncate the log; return False if a reader prevents it now."""
        with self._lock, self._explaining_failures():
            return connections.truncate_log(self._connection, wait_s=0)

    def shrink(self) -> None:
        """Free the page cache; the next write reads its pages again."""
        with self._lock, self._explaining_failures():
            self._connection.execute("PRAGMA shrink_memory")

    @contextmanager
    def _explaining_failures(self) -> Iterator[None]:
        """Turn SQLite's errors in the block into `StorageFailed` that says no memory was lost."""
        if self._closed:
            raise StorageFailed(connections.CLOSED)
        with connections.explain_failures():
            yield

    def close(self) -> None:
        """Checkpoint the write-ahead log and close the connection.

        A log that cannot be checkpointed stays next to the file, and the next start reads it.
        Raises `DatabaseReplaced` if acknowledged memories of a deleted or replaced file could not
        be saved.
        """
        with self._lock:
            if self._closed:
                return
            try:
                self._connection = self._secured(self._connection)
                connections.truncate_log(self._connection)
            except DatabaseReplaced as error:
                if not error.saved:
                    raise
                log.warning("closed_elsewhere", reason=error.reason)
            except (OSError, sqlite3.Error) as error:
                log.warning("checkpoint_failed", reason=connections.reason(error))
            finally:
                self._closed = True
                self._connection.close()


class SqliteEngine:
    """The transactions of one file."""

    def __init__(self, writer: Writer, readers: connections.Readers) -> None:
        self.writer = writer
        self.readers = readers
        self.write = writer.write
        self.reading, self.streaming = readers.reading, readers.snapshot
