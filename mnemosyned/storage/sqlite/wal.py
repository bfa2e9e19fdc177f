"""The write-ahead log: checkpointed while others write, and checked after a crash for lost transactions.

SQLite reads a log up to the first frame whose checksum is wrong, and drops all behind it without a
word. That is right for a write that power cut short. If whole transactions lie behind, the disk
has lost acknowledged memories, and their owner should know.
"""

from __future__ import annotations

import os
import sqlite3
import struct
import threading
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from mnemosyned.errors import StorageFailed
from mnemosyned.logs import logger
from mnemosyned.storage.sqlite.connections import (
    CHECKPOINT_PAGES,
    NOT_CLEANED,
    open_with_log,
    storage_failed,
    truncate_log,
)
from mnemosyned.storage.sqlite.session import SqliteSession

HEADER = struct.Struct(">8I")
"""Magic, version, page size, number of the checkpoint, two salts, two checksums."""
FRAME = struct.Struct(">6I")
"""Page, pages of the database where it ends a transaction, two salts, two checksums."""
MAGIC = 0x377F0682
"""The last bit says in which order of bytes checksums are made."""
PAGE_SIZES = {512 << power for power in range(8)}
USUAL_PAGE_SIZE = 4_096
FRAMES_MAX = 1_000_000


@dataclass(frozen=True, slots=True)
class LeftLog:
    """The frames of a log that a process left behind."""

    path: Path
    commits: tuple[int, ...]
    """Which of its frames, counted from 1, end a transaction."""


def frames_left(database: Path) -> LeftLog | None:
    """Return the committed frames in the log next to a closed database; None without a log."""
    path = database.with_name(database.name + "-wal")
    try:
        descriptor = os.open(
            path, os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK
        )
    except OSError:  # none, or none that SQLite would read: it says so itself
        return None
    with os.fdopen(descriptor, "rb", buffering=0):
        header = os.pread(descriptor, HEADER.size, 0)
        size = os.fstat(descriptor).st_size
        if size < HEADER.size + FRAME.size:
            return None
        _, _, page_size, _, *salts, _, _ = HEADER.unpack(header)
        if page_size not in PAGE_SIZES:
            page_size = USUAL_PAGE_SIZE
        if not _is_sound(header):  # its frames tell which ones belong together
            salts = list(
                FRAME.unpack(os.pread(descriptor, FRAME.size, HEADER.size))[2:4]
            )
        step = FRAME.size + page_size
        count = min((size - HEADER.size) // step, FRAMES_MAX)
        commits = []
        for number in range(count):
            frame = FRAME.unpack(
                os.pread(descriptor, FRAME.size, HEADER.size + number * step)
            )
            if list(frame[2:4]) == salts and frame[1]:
                commits.append(number + 1)
    return LeftLog(path, tuple(commits))


def lost_transactions(left: LeftLog, *, frames_read: int) -> str:
    """Return a warning if the log has transactions beyond the frames that SQLite read; else ''."""
    lost = sum(frame > frames_read for frame in left.commits)
    if not lost:
        return ""
    return (
        f"{left.path} was damaged: {lost:,} of the {len(left.commits):,} transactions that the "
        "last process left in it cannot be read, and what they changed is lost (the last one may "
        "never have been acknowledged). Check the disk, and remember again what was remembered "
        "just before that process ended"
    )


def _is_sound(header: bytes) -> bool:
    """Return whether the header of a write-ahead log has the right magic number and checksum."""
    order = ">" if HEADER.unpack(header)[0] & 1 else "<"
    words = struct.unpack(f"{order}6I", header[:24])
    first = second = 0
    for even, odd in zip(words[::2], words[1::2], strict=True):
        first = (first + even + second) & 0xFFFFFFFF
        second = (second + odd + first) & 0xFFFFFFFF
    magic, *_, third, fourth = HEADER.unpack(header)
    return magic & ~1 == MAGIC and (first, second) == (third, fourth)


LOG_IDLE_BYTES = 1_000_000
"""A log larger than this is cut to nothing once nothing has been written between two checks. It
grows to 16 MB in a cycle, which is more than the memories of most people; a smaller one is
overwritten from its start, which is faster than to grow it again."""

log = logger()


class Checkpoints:
    """Checkpoints by a separate connection, always to the same file.

    It is opened at once, as a connection to a file that took the place of ours would, when it is
    closed, checkpoint our log into that file.
    """

    def __init__(self, database: Path, *, check: Callable[[], object]) -> None:
        self._database = database
        self._check = check
        """Raises where the path leads to another file than ours."""
        self._lock = threading.Lock()
        self._checkpointed = (0, 0)
        self._connection: SqliteSession | None = self._connect()

    def run(self) -> bool:
        """Checkpoint as far as others allow; return False if the log stays long. Raises `StorageFailed`."""
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
        """Checkpoint a log that was written to, else truncate a long one. Raises `StorageFailed`."""
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
        """Truncate the log unless another thread or program uses it. Raises `StorageFailed`."""
        with self._lock:
            if self._connection is None:
                return
            try:
                truncate_log(self._connection, wait_s=0)
            except (OSError, sqlite3.Error) as error:
                raise storage_failed(error, NOT_CLEANED) from error

    def renew(self) -> None:
        """Close the connection and open the path again, as it leads to another file now."""
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

    def _connect(self) -> SqliteSession:
        """Return a new connection; raise an error if the path leads to another file."""
        # In a mode that never makes a new file.
        return open_with_log(self._database, mode="rw", check=self._check)
