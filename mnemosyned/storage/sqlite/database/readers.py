"""Connections that read: a bounded pool, whose readers never wait for the writer."""

from __future__ import annotations

import queue
import sqlite3
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from mnemosyned.domain.errors import StorageFailed
from mnemosyned.storage.sqlite.database.connections import open_reader
from mnemosyned.storage.sqlite.database.failures import (
    CLOSED,
    NOT_ANSWERED,
    storage_failed,
)

READER_WAIT_S = 30.0


class Readers:
    """A bounded pool of read-only connections."""

    def __init__(
        self,
        path: Path,
        *,
        size: int,
        check: Callable[[], object] = lambda: None,
        wait_s: float = READER_WAIT_S,
    ) -> None:
        self._path = path
        self._check = check
        """Called before and after a connection opens the file and its log: raises where they are
        others."""
        self._pool: queue.LifoQueue[sqlite3.Connection | None] = queue.LifoQueue()
        for _ in range(size):
            self._pool.put(None)
        self._size = size
        self._wait_s = wait_s
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
        if not self._admitting.is_set():  # a third of the time of a wait that is over
            self._admitting.wait(self._wait_s)
        try:
            connection = self._pool.get(timeout=self._wait_s)
        except queue.Empty:
            raise StorageFailed(
                f"all {self._size} readers were busy for {self._wait_s:g} s; ask again later"
            ) from None
        try:
            if self._closed:
                raise StorageFailed(CLOSED)
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
            # Opens the log.
            connection.execute("SELECT 1 FROM sqlite_schema").fetchone()
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
