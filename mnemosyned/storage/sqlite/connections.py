"""Connections to the file: the single writer, the readers, and the write-ahead log, checkpointed and checked.

Writers that wait together share a commit.

SQLite reads a log up to the first frame whose checksum is wrong, and drops all behind it without a
word. That is right for a write that power cut short. If whole transactions lie behind, the disk
has lost acknowledged memories, and their owner should know.
"""

from __future__ import annotations

import errno
import os
import queue
import sqlite3
import struct
import threading
import time
from collections import deque
from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Generic, TypeVar

from mnemosyned import errors, fairness
from mnemosyned.logs import logger
from mnemosyned.search.words import Frequencies
from mnemosyned.storage.common.session import SharedSnapshot
from mnemosyned.storage.sqlite.session import SqliteSession

BUSY_TIMEOUT_S = 10.0
CHECKPOINT_PAGES = 4_000
"""Log pages, 16 MB, at which SQLite checkpoints; a larger log means fewer checkpoints in a sleep."""


def open_writer(
    path: Path, *, check: Callable[[SqliteSession], object] = lambda _: None
) -> SqliteSession:
    """Return a connection for writing, whose commits return when the changes are on disk.

    A missing file is created. `check` is called with the connection before anything in the file is changed, and
    may raise an error to refuse the file.
    """
    return _open_connection(
        path,
        "rwc",
        check,
        "journal_mode = WAL",
        "synchronous = FULL",
        "foreign_keys = ON",
        "cache_size = -16000",
        f"wal_autocheckpoint = {CHECKPOINT_PAGES}",
        # What is deleted is overwritten: an evicted row must not outlive its memory in a free page.
        "secure_delete = ON",
        "temp_store = MEMORY",
    )


def open_with_log(
    path: Path, *pragmas: str, mode: str, check: Callable[[], object]
) -> SqliteSession:
    """Return a connection that has the file and its write-ahead log open; `mode` is `ro` or `rw`.

    `check` is called before and after the opening, and must raise an error if a file was replaced.
    """

    def open_both(connection: SqliteSession) -> None:
        # Opens the log, and does not parse the schema, which takes a millisecond.
        connection.execute("PRAGMA user_version").fetchone()
        check()

    check()
    return _open_connection(path, mode, open_both, *pragmas)


def _open_connection(
    path: Path, mode: str, check: Callable[[SqliteSession], object], *pragmas: str
) -> SqliteSession:
    """Open a connection in a mode of SQLite's URIs, call `check` with it, and set the pragmas."""
    connection = sqlite3.connect(
        f"{path.absolute().as_uri()}?mode={mode}",
        uri=True,
        timeout=BUSY_TIMEOUT_S,
        isolation_level=None,
        check_same_thread=False,
        factory=SqliteSession,
    )
    try:
        check(connection)
        for pragma in pragmas:
            connection.execute(f"PRAGMA {pragma}")
    except BaseException:
        connection.close()
        raise
    return connection


def checkpoint_log(connection: SqliteSession) -> int:
    """Checkpoint the log as far as others allow; return how many frames the log has."""
    pages: int = connection.execute("PRAGMA wal_checkpoint(PASSIVE)").fetchone()[1]
    return pages


def truncate_log(connection: SqliteSession, *, wait_s: float = BUSY_TIMEOUT_S) -> bool:
    """Checkpoint and truncate the log; return False if readers prevent it for `wait_s` seconds."""
    connection.execute(f"PRAGMA busy_timeout = {int(wait_s * 1000)}")
    try:
        busy = connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()[0]
    finally:
        connection.execute(f"PRAGMA busy_timeout = {int(BUSY_TIMEOUT_S * 1000)}")
    return not busy


def bound_caches(limit_bytes: int) -> None:
    """Limit the page caches of all SQLite connections of this process together to `limit_bytes`."""
    with closing(sqlite3.connect(":memory:")) as connection:
        connection.execute(f"PRAGMA soft_heap_limit = {limit_bytes}")


NOTHING_KEPT = "nothing of this request was kept"
NOT_ANSWERED = "the question was not answered"
NOT_CLEANED = "the file could not be cleaned up; every memory in it is as it was"
CLOSED = "the memory is closed; open it again"
_DAMAGED = "the database file is damaged: run mnem doctor, which says how to repair it"
_CANNOT_WRITE = (
    "the file cannot be opened for writing: check its permissions and its folder"
)
_FAILING = "the disk fails: check it and the system's log, then try again"
_ADVICE = {
    sqlite3.SQLITE_FULL: errors.DISK_FULL,
    sqlite3.SQLITE_IOERR: _FAILING,
    sqlite3.SQLITE_CORRUPT: _DAMAGED,
    sqlite3.SQLITE_NOTADB: "this is not a SQLite database: choose another file",
    sqlite3.SQLITE_BUSY: "another program keeps the database locked: let it end, then try again",
    sqlite3.SQLITE_LOCKED: "another program keeps the database locked: let it end, then try again",
    sqlite3.SQLITE_CANTOPEN: _CANNOT_WRITE,
    sqlite3.SQLITE_READONLY: _CANNOT_WRITE,
    sqlite3.SQLITE_PERM: _CANNOT_WRITE,
    sqlite3.SQLITE_NOMEM: "there is no memory left: close other programs, then try again",
}
_ADVICE_OF_SYSTEM = {
    errno.ENOSPC: errors.DISK_FULL,
    errno.EDQUOT: errors.DISK_FULL,
    errno.EIO: _FAILING,
    errno.EACCES: _CANNOT_WRITE,
    errno.EPERM: _CANNOT_WRITE,
    errno.EROFS: _CANNOT_WRITE,
    errno.ENOLCK: "the file system has no locks: name a place on a local disk in the setting database",
}
_UNKNOWN = "check the free space and the file, then try again"
_PRIMARY = 0xFF
"""The bits of SQLite's extended codes that hold the primary one."""


def failure_reason(error: BaseException) -> str:
    """Return why an operation failed and what to do, with SQLite's own message at the end."""
    if isinstance(error, sqlite3.Error):
        # Absent where Python itself raised it.
        code = getattr(error, "sqlite_errorcode", sqlite3.SQLITE_OK)
        advice = _ADVICE.get(code & _PRIMARY, _UNKNOWN)
        # Python's own errors quote a text that is not UTF-8, and the log must not show it.
        words, _, _ = str(error).partition(" with text ")
        if words.startswith("Could not decode"):
            advice = _DAMAGED
        return f"{advice} (SQLite says: {words})"
    if isinstance(error, OSError):
        advice = _ADVICE_OF_SYSTEM.get(error.errno or 0, _UNKNOWN)
        return f"{advice} ({error.strerror or error!r})"
    return f"{_UNKNOWN} ({error!r})"


def translate_error(error: BaseException, consequence: str = NOTHING_KEPT) -> Exception:
    """Return an error of SQLite or the disk as a `StorageFailed` with the `consequence`, others as they are."""
    if isinstance(error, Exception) and not isinstance(error, sqlite3.Error | OSError):
        return error
    why = failure_reason(error)
    failure = errors.StorageFailed(f"{consequence}: {why}", reason=why)
    failure.__cause__ = error
    return failure


@contextmanager
def explain_failures() -> Iterator[None]:
    """Turn errors of SQLite and the disk in the block into `StorageFailed` with the text `NOT_CLEANED`."""
    try:
        yield
    except (OSError, sqlite3.Error) as error:
        raise translate_error(error, NOT_CLEANED) from error


class Readers:
    """A bounded pool of read-only connections."""

    def __init__(
        self,
        path: Path,
        *,
        size: int,
        check: Callable[[], object] = lambda: None,
        wait_s: float = 30.0,
    ) -> None:
        self._path = path
        self._check = check
        """Raises where the path leads to another file than ours, or its log to another log."""
        self._pool: queue.LifoQueue[SqliteSession | None] = queue.LifoQueue()
        """The idle connections; None for one that is opened when it is needed."""
        for _ in range(size):
            self._pool.put(None)
        self._size = size
        self._wait_s = wait_s
        self._closed = False
        self._admitting = threading.Event()
        self._admitting.set()
        self._generation = 0
        self.shared = SharedSnapshot()

    def renew(self) -> None:
        """Have each connection replaced before its next read, as the path leads to another file now."""
        self._generation += 1

    @contextmanager
    def reading(self) -> Iterator[SqliteSession]:
        """Lend a session as `snapshot` does; within `shared.sharing`, all blocks of a thread share it."""
        began = time.monotonic()
        is_shared = self.shared.owner is not None
        try:
            with (
                self.shared.lend(self.snapshot)
                if is_shared
                else self.snapshot() as session
            ):
                yield session
        except sqlite3.Error as error:
            raise translate_error(error, NOT_ANSWERED) from error
        finally:
            fairness.note_database_time(began)

    @contextmanager
    def snapshot(self) -> Iterator[SqliteSession]:
        """Lend a session that sees one state of the file while the block runs. Raises `StorageFailed`."""
        if not self._admitting.is_set():  # a third of the time of a wait that is over
            self._admitting.wait(self._wait_s)
        try:
            connection = self._pool.get(timeout=self._wait_s)
        except queue.Empty:
            raise errors.StorageFailed(
                f"all {self._size} readers were busy for {self._wait_s:g} s; ask again later"
            ) from None
        try:
            if self._closed:
                raise errors.StorageFailed(CLOSED)
            if connection is None or connection.generation != self._generation:
                outdated, generation = connection, self._generation
                connection = open_with_log(
                    self._path,
                    "query_only = ON",
                    "cache_size = -8000",
                    "temp_store = MEMORY",
                    mode="ro",
                    check=self._check,
                )
                connection.generation = generation
                if outdated:
                    outdated.close()
            connection.execute("BEGIN")
            try:
                yield connection
            finally:
                connection.execute("ROLLBACK")
        except sqlite3.Error as error:
            raise translate_error(error, NOT_ANSWERED) from error
        finally:
            self._pool.put(connection)

    @contextmanager
    def pause(self, *, wait_s: float) -> Iterator[bool]:
        """Let no read begin in the block; yield whether running ones ended within `wait_s` seconds."""
        self._admitting.clear()
        ends = time.monotonic() + wait_s
        idle: list[SqliteSession | None] = []
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
        """Free the page caches of the connections that no thread reads with now."""
        idle: list[SqliteSession | None] = []
        try:
            with suppress(queue.Empty):  # somebody reads with the last
                while len(idle) < self._size:
                    idle.append(self._pool.get_nowait())
                    if connection := idle[-1]:
                        connection.execute("PRAGMA shrink_memory")
        finally:
            for connection in reversed(idle):
                self._pool.put(connection)

    def close(self) -> None:
        """Wait for running reads and close all connections; later reads raise an error."""
        for _ in range(self._size):
            connection = self._pool.get()
            if connection is not None:
                connection.close()
        self._closed = True
        for _ in range(self._size):
            self._pool.put(None)


HEADER = struct.Struct(">8I")
"""Magic, version, page size, number of the checkpoint, two salts, two checksums."""
FRAME = struct.Struct(">6I")
"""Page, pages of the database where it ends a transaction, two salts, two checksums."""
MAGIC = 0x377F0682
"""Magic number of a log; its last bit is the byte order of the checksums."""
PAGE_SIZES = {512 << power for power in range(8)}
FRAMES_MAX = 1_000_000


SCHEMA_AT = 40
"""Offset of the number of the schema's changes in a database's first page."""


def commits_in_log(database: Path) -> dict[int, tuple[int, int]] | None:
    """Return the frames that end a transaction in a closed database's log, by number; None without a log.

    The values are the database's pages after that transaction, and the number of its schema's changes, or 0
    while the log does not have it.
    """
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
            page_size = 4_096
        if not _is_sound(header):  # its frames tell which ones belong together
            salts = list(
                FRAME.unpack(os.pread(descriptor, FRAME.size, HEADER.size))[2:4]
            )
        step = FRAME.size + page_size
        count = min((size - HEADER.size) // step, FRAMES_MAX)
        commits = {}
        schema = 0
        for number in range(count):
            at = HEADER.size + number * step
            frame = FRAME.unpack(os.pread(descriptor, FRAME.size, at))
            if list(frame[2:4]) != salts:
                continue
            if frame[0] == 1:
                found = os.pread(descriptor, 4, at + FRAME.size + SCHEMA_AT)
                schema = int.from_bytes(found, "big")
            if frame[1]:
                commits[number + 1] = frame[1], schema
    return commits


def lost_transactions(database: Path, left: Collection[int], frames_read: int) -> str:
    """Return a warning if the log has transactions beyond the frames that SQLite read; else ''.

    `left` has the frames that `commits_in_log` found.
    """
    lost = sum(frame > frames_read for frame in left)
    if not lost:
        return ""
    return (
        f"{database}-wal was damaged: {lost:,} of the {len(left):,} transactions that the "
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
"""A log larger than this is truncated if nothing was written between two checks. It grows to 16 MB in a cycle,
more than most people's memories; a smaller one is overwritten from its start, which is faster than letting it
grow again."""

log = logger()


class Checkpoints:
    """Checkpoints by a separate connection, always to the same file.

    The connection is opened at once: a later one could lead to another file at the path, and its
    closing would checkpoint our log into that file.
    """

    def __init__(self, database: Path, *, check: Callable[[], object]) -> None:
        self._database = database
        self._check = check
        """Raises where the path leads to another file than ours, or ours was written over."""
        self._lock = threading.Lock()
        self._checkpointed = (0, 0)
        self._connection: SqliteSession | None = self._connect()

    def run(self) -> bool:
        """Checkpoint as far as others allow; return False if the log stays long. Raises `StorageFailed`."""
        with self._lock, explain_failures():
            self._check()
            self._connection = self._connection or self._connect()
            pages = checkpoint_log(self._connection)
        return pages < CHECKPOINT_PAGES // 2

    def run_due(self) -> None:
        """Checkpoint a log written to since the last call, else truncate a long one. Raises `StorageFailed`."""
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
            with self._lock, explain_failures():
                self._check()
                if self._connection:
                    # Not waiting: only if no other thread or program uses it.
                    truncate_log(self._connection, wait_s=0)

    def renew(self) -> None:
        """Close the connection and open the path again, as it leads to another file now."""
        self.close()
        with self._lock:
            try:
                self._connection = self._connect()
            except (
                errors.StorageFailed,
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


T = TypeVar("T")

COMMIT_SHARE_MAX = 256
"""Maximum waiting writes that one commit includes."""


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
        fairness.note_database_time(began)
        return [ticket.error or ticket.result for ticket in tickets]

    def _commit_waiting(self) -> None:
        """Run up to `COMMIT_SHARE_MAX` queued writes in one transaction; set their outcomes."""
        if self._closed:
            raise errors.StorageFailed(CLOSED)
        share = min(len(self._waiting), COMMIT_SHARE_MAX)
        tickets = [self._waiting.popleft() for _ in range(share)]
        durable = any(ticket.durable for ticket in tickets)
        is_committing = False
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
            is_committing = True
            self._connection.execute("COMMIT")
            self.held_max_s = max(self.held_max_s, time.monotonic() - began)
        except BaseException as error:
            if is_committing and not (
                isinstance(error, Exception) or self._connection.in_transaction
            ):
                raise  # Ctrl-C arrived during the commit, which SQLite completed
            failure = translate_error(error, NOTHING_KEPT)
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
        """Run a ticket's function in a savepoint; set the result, or undo its changes and set the error."""
        self._connection.execute("SAVEPOINT share")
        try:
            ticket.result = ticket.work(self._connection)
        except Exception as error:
            if not self._connection.in_transaction:
                raise  # SQLite gave the whole transaction up
            self._connection.execute("ROLLBACK TO share")
            ticket.error = translate_error(error, NOTHING_KEPT)
        self._connection.execute("RELEASE share")

    def compact(self) -> bool:
        """VACUUM the file while writers wait, a second for 100 MB; return False if the file is busy."""
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
            return truncate_log(self._connection, wait_s=0)

    def shrink(self) -> None:
        """Free the page cache; the next write reads its pages again."""
        with self._lock, self._explaining_failures():
            self._connection.execute("PRAGMA shrink_memory")

    @contextmanager
    def _explaining_failures(self) -> Iterator[None]:
        """Turn errors in the block into `StorageFailed`, and raise one at once if the writer is closed."""
        if self._closed:
            raise errors.StorageFailed(CLOSED)
        with explain_failures():
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
                truncate_log(self._connection)
            except errors.DatabaseReplaced as error:
                if not error.saved:
                    raise
                log.warning("closed_elsewhere", reason=error.reason)
            except (OSError, sqlite3.Error) as error:
                log.warning("checkpoint_failed", reason=failure_reason(error))
            finally:
                self._closed = True
                self._connection.close()


class SqliteEngine:
    """The transactions of one file."""

    def __init__(self, writer: Writer, readers: Readers) -> None:
        self.writer = writer
        self.readers = readers
        self.frequencies = Frequencies()
        """Of the words in questions, kept between them."""
        self.write = writer.write
        self.reading, self.streaming = readers.reading, readers.snapshot
