"""Checkpoints the write-ahead log in parallel with writers, who would otherwise wait for it."""

from __future__ import annotations

import sqlite3
import threading
from collections.abc import Callable
from pathlib import Path

from mnemosyned.domain.errors import StorageFailed
from mnemosyned.logs import logger
from mnemosyned.storage.sqlite.database.connections import (
    BUSY_TIMEOUT_S,
    CHECKPOINT_PAGES,
)
from mnemosyned.storage.sqlite.database.failures import NOT_CLEANED, storage_failed

LOG_IDLE_BYTES = 1_000_000
"""A log larger than this is cut to nothing once nothing has been written between two checks. It
grows to 16 MB in a cycle, which is more than the memories of most people; a smaller one is
overwritten from its start, which is faster than to grow it again."""

log = logger()


class Checkpoints:
    """Checkpoints over a connection of its own, which never leads to another file than ours.

    It is opened at once, as a connection to a file that took the place of ours would, when it is
    closed, checkpoint our log into that file.
    """

    def __init__(self, database: Path, *, check: Callable[[], object]) -> None:
        self._database = database
        self._check = check
        """Raises where the path leads to another file than ours."""
        self._lock = threading.Lock()
        self._checkpointed = (0, 0)
        self._connection: sqlite3.Connection | None = self._connect()

    def run(self) -> bool:
        """Checkpoint as far as possible while others write and read.

        False where the log has grown long: it starts anew only with a write that meets no reader,
        and has one chance after each checkpoint. Raises `StorageFailed`.
        """
        with self._lock:
            try:
                if self._connection is None:
                    self._connection = self._connect()
                row = self._connection.execute(
                    "PRAGMA wal_checkpoint(PASSIVE)"
                ).fetchone()
            except (OSError, sqlite3.Error) as error:
                raise storage_failed(error, NOT_CLEANED) from error
        pages: int = row[1]
        return pages < CHECKPOINT_PAGES // 2

    def run_due(self) -> None:
        """Run if anything was written since the last time, else shorten a long log.

        Raises `StorageFailed`.
        """
        wal = self._database.with_name(self._database.name + "-wal")
        try:
            status = wal.stat()
        except FileNotFoundError:
            return
        state = (status.st_size, status.st_mtime_ns)
        if status.st_size and state != self._checkpointed:
            self.run()
            self._checkpointed = state
        elif status.st_size > LOG_IDLE_BYTES:
            self._truncate()

    def _truncate(self) -> None:
        """Truncate the log, unless somebody reads or writes right now. Raises `StorageFailed`."""
        with self._lock:
            if self._connection is None:
                return
            try:
                self._connection.execute("PRAGMA busy_timeout = 0")
                try:
                    self._connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
                finally:
                    self._connection.execute(
                        f"PRAGMA busy_timeout = {int(BUSY_TIMEOUT_S * 1_000)}"
                    )
            except (OSError, sqlite3.Error) as error:
                raise storage_failed(error, NOT_CLEANED) from error

    def renew(self) -> None:
        """Connect anew: the path has another file with the same memories."""
        self.close()
        with self._lock:
            try:
                self._connection = self._connect()
            except (
                StorageFailed,
                OSError,
                sqlite3.Error,
            ) as error:  # the next run tries again
                log.warning("checkpoints_not_connected", reason=str(error))

    def close(self) -> None:
        """Close the connection."""
        with self._lock:
            if self._connection:
                self._connection.close()
            self._connection = None

    def _connect(self) -> sqlite3.Connection:
        self._check()
        connection = sqlite3.connect(
            f"{self._database.absolute().as_uri()}?mode=rw",  # never one that makes a new file
            uri=True,
            timeout=BUSY_TIMEOUT_S,
            isolation_level=None,
            check_same_thread=False,
        )
        try:
            connection.execute(
                "SELECT 1 FROM sqlite_schema"
            ).fetchone()  # opens the log
            self._check()
        except BaseException:
            connection.close()
            raise
        return connection
