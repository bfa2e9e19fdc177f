"""Ownership of a database file: locked for one process, and guarded at each commit.

The lock is flock's and lies on the file itself, so that it applies under every name of the file and
without the lock file. SQLite locks with fcntl: it does not see ours, but loses its own when any
descriptor of the file is closed. Therefore ours stays open until SQLite is done, and a file that this
process has open is never opened a second time.

SQLite goes on writing to a file that has lost its name, and those commits are lost when the process
ends. Therefore each commit first looks where the path leads:

- The file was deleted, and nothing has its name: all of it is written back, and the work goes on.
  Nothing is lost; to delete a memory for good, stop the daemon first.
- Another file has its name, such as a backup that was put there: that file is never touched. The
  acknowledged memories are saved next to it, nothing more is taken, and a restart opens the other file.
- The file was moved: the log is checkpointed into it, so that it is whole, and nothing more is taken.
- The log was deleted: it is checkpointed into the file, which is whole then, and nothing more is taken.
- The file was written over, as `cp BACKUP` does: the path gets a file of its own with exactly what was written
  there, the log is saved next to it, and nothing more is taken. For the case that the process is killed, the
  lock file has the header that the file had: the next one saves the log before SQLite writes it into the copy.
"""

from __future__ import annotations

import errno
import fcntl
import os
import sqlite3
import stat
import struct
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from enum import Enum
from pathlib import Path
from typing import Any

import msgspec

from mnemosyned.errors import DatabaseInUse, DatabaseReplaced, StorageFailed
from mnemosyned.logs import logger
from mnemosyned.storage.sqlite import connections
from mnemosyned.storage.sqlite.copies import (
    PARTIAL,
    PRIVATE,
    copy_beside,
    finish_restore,
    flush,
    place,
)
from mnemosyned.storage.sqlite.session import SqliteSession

COMPANIONS = ("-wal", "-shm")
FREE_MIN_BYTES = 50_000_000
"""Free space below which the disk of a database counts as almost full."""

Identity = tuple[int, int]
"""Device and inode."""

log = logger()
_owned: set[Identity] = set()
_owning = threading.Lock()


class Presence(Enum):
    """Whether the path of a database still leads to the open file."""

    HERE = "here"
    DELETED = "deleted"
    MOVED = "moved"
    REPLACED = "replaced"
    LOG_DELETED = "log_deleted"
    """The file is here; the write-ahead log beside it is not the one that is written."""
    OVERWRITTEN = "overwritten"
    """The file is here; something other than SQLite has written over it."""


RETRY_S = 5.0
"""Seconds until a failed rescue is tried again: on a full disk, each try takes a while."""
SETTLE_S = 1.0
"""How long an overwritten file must not have changed: a copy of a large one takes a while."""
CHUNK_BYTES = 1 << 20
_HEADER = struct.Struct(">16s8xII8xI")
"""Of a database: its magic number, change counter, pages, and the number of the schema's changes."""
_MAGIC = b"SQLite format 3\0"
RESCUED = ".rescued"
"""Suffix of the name of a whole copy, until the copy gets the database's name."""


class DatabaseFile:
    """An open database file that no other process owns, with its rescue if the path loses it.

    The methods from `secure_connection` on are called with the writer's lock held.
    """

    def __init__(self, path: Path, save_header: Callable[[bytes], object]) -> None:
        """Open and lock the database file; create a missing file, readable by its owner alone.

        `save_header` keeps a header for the next process: the one before the last checkpoint that changed
        it, as that is on disk. Raises `DatabaseInUse` if a process holds the file under another name,
        `StorageFailed` if it has several names, and OSError.
        """
        self.path = path
        self._save_header = save_header
        self._companions: dict[str, Identity] = {}
        self._name = str(path)
        self._descriptor = -1
        self.renewed: Callable[[], object] = lambda: None
        """Called when the path has another file than before, with the same memories in it."""
        self.problem = ""
        """Why nothing can be remembered; empty while all is well."""
        self._presence = Presence.HERE
        self._saved = False
        self._tried = -RETRY_S
        self._reconnect = False
        self._log_copy = path
        """Where the log of an overwritten file is."""
        self.adopt(path, os.O_CREAT)
        names = os.fstat(self._descriptor).st_nlink
        if names > 1:
            self.close()
            raise StorageFailed(
                f"{path} has {names} names (hard links). SQLite keeps a log next to each name, so "
                "opening another one damages the database: remove the other names. A copy "
                "is made with `mnem backup`"
            )

    def adopt(self, path: Path, flags: int = 0) -> None:
        """Open and lock the database at `path`; close the one open before. Raises `DatabaseInUse`, OSError."""
        flags |= os.O_RDWR | os.O_CLOEXEC | os.O_NOFOLLOW
        with _owning:
            # Looked at first: to open and close it costs its locks.
            if _file_identity(path) in _owned:
                raise DatabaseInUse(_IN_USE.format(path))
            descriptor = os.open(path, flags, PRIVATE)
            try:
                fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                os.close(descriptor)
                raise DatabaseInUse(_IN_USE.format(path)) from None
            except OSError:
                os.close(descriptor)
                raise
            self.close()
            self._descriptor = descriptor
            # By its path: some layered file systems number an open file differently.
            status = path.stat()
            self._identity: Identity = (status.st_dev, status.st_ino)
            _owned.add(self._identity)
        self._companions = {}
        self._written = 0, b""

    def save_companion_identities(self) -> None:
        """Save the file's header, and device and inode of its log and index, so that a replacement is seen."""
        # A checkpoint of a killed process may not be on disk.
        os.fsync(self._descriptor)
        header = self._read_header()
        self._written = os.fstat(self._descriptor).st_mtime_ns, header
        self._save_header(header)
        seen = {str(path): _file_identity(path) for path in self._companion_paths()}
        self._companions = {
            path: identity for path, identity in seen.items() if identity
        }

    def presence(self) -> Presence:
        """Return the state of the path: whether it still leads to the open file and its log."""
        identity = _file_identity(self._name)
        if identity is None:
            deleted = os.fstat(self._descriptor).st_nlink == 0
            return Presence.DELETED if deleted else Presence.MOVED
        if identity != self._identity:
            return Presence.REPLACED
        if self._presence is Presence.OVERWRITTEN:
            return Presence.OVERWRITTEN
        for path, known in self._companions.items():
            if _file_identity(path) != known:
                return Presence.LOG_DELETED
        return Presence.HERE

    def _is_overwritten(self, connection: SqliteSession) -> bool:
        """Return whether the file was written to, and its header is none that a checkpoint has written.

        A checkpoint writes the header of a commit that is newer than the one before, and is in the log: its
        change counter and its schema's number never fall, and without a VACUUM, neither do its pages.
        """
        changed_ns = os.fstat(self._descriptor).st_mtime_ns
        if changed_ns == self._written[0]:
            return False
        header = self._read_header()
        last = self._written[1]
        if last not in (b"", header):
            if _is_older(header, last):
                return True
            *_, pages, schema = _HEADER.unpack(header)
            try:
                newest = _read_pragma(connection, "schema_version")
                pages_max = _read_pragma(connection, "page_count")
            except sqlite3.DatabaseError as error:
                # A number that Python's own errors lack.
                code = getattr(error, "sqlite_errorcode", sqlite3.SQLITE_OK) & 0xFF
                if code in (sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB):
                    return True
                raise
            if schema > newest or (schema == newest and pages > pages_max):
                return True
        if header != last:
            self._save_header(last)
        self._written = changed_ns, header
        return False

    def _read_header(self) -> bytes:
        return os.pread(self._descriptor, _HEADER.size, 0)

    def is_log_replaced(self) -> bool:
        """Return whether another log, not empty, has the path of the open log."""
        wal = self._companion_paths()[0]
        identity = _file_identity(wal)
        return (
            identity not in (None, self._companions.get(str(wal)))
            and wal.stat().st_size > 0
        )

    def remove_companions(self) -> None:
        """Delete the open write-ahead log and its index; a new file under the same name stays."""
        for path, known in self._companions.items():
            if _file_identity(path) == known:
                Path(path).unlink(missing_ok=True)

    def warnings(self) -> list[str]:
        """Return a list with one warning if other users can write to the folder; else an empty list."""
        folder = self.path.parent
        mode = folder.stat().st_mode
        if mode & (stat.S_IWGRP | stat.S_IWOTH) and not mode & stat.S_ISVTX:
            warning = (
                f"others can write to {folder} (mode {stat.S_IMODE(mode):04o}), so they can "
                f"delete or replace the database: chmod 700 {folder}"
            )
            return [warning]
        return []

    def restrict_permissions(self) -> None:
        """Remove other users' permissions on the database, its log and the log's index."""
        for path in (self.path, *self._companion_paths()):
            try:
                status = path.lstat()
                if stat.S_ISREG(status.st_mode) and status.st_mode & 0o077:
                    path.chmod(PRIVATE)
                    before = f"{stat.S_IMODE(status.st_mode):04o}"
                    log.warning(
                        "permissions_tightened",
                        file=str(path),
                        before=before,
                        now="0600",
                    )
            except FileNotFoundError:
                continue
            except PermissionError as error:
                # It belongs to someone else, who let us write it.
                log.warning("permissions_kept", file=str(path), reason=error.strerror)

    def _companion_paths(self) -> tuple[Path, ...]:
        """Return the paths of the write-ahead log and the log's index next to the database."""
        return tuple(
            self.path.with_name(self.path.name + suffix) for suffix in COMPANIONS
        )

    def close(self) -> None:
        """Close the file and release its lock; SQLite must have closed the database before."""
        if self._descriptor >= 0:
            os.close(self._descriptor)
            self._descriptor = -1
            _owned.discard(self._identity)

    def secure_connection(self, connection: SqliteSession) -> SqliteSession:
        """Return `connection` if the path still leads to the open file and its log.

        Else save the memories: put a deleted file back, close `connection` and return a new one. In all
        other cases, raise `DatabaseReplaced`.
        """
        presence = self.presence()
        if presence is Presence.HERE and self._is_overwritten(connection):
            presence = Presence.OVERWRITTEN
        if presence is not self._presence:
            self._presence, self._saved = presence, False
            if presence is Presence.OVERWRITTEN:
                self.renewed()
            self.retry_now()
            log.warning("database_presence", now=presence.value)
        if presence is Presence.HERE:
            self.problem = ""
        elif not self._saved and time.monotonic() - self._tried >= RETRY_S:
            self._rescue(presence, connection)
        if self._reconnect:
            fresh = connections.open_writer(self.path)
            self.save_companion_identities()
            if self.presence() is not Presence.HERE:
                fresh.close()
                self.check()
            self._reconnect = False
            connection.close()
            self.renewed()
            return fresh
        if presence is Presence.HERE:
            return connection
        raise DatabaseReplaced(
            f"{connections.NOTHING_KEPT}: {self.problem}",
            reason=self.problem,
            saved=self._saved,
        )

    def retry_now(self) -> None:
        """Let the next check retry a failed rescue at once, without a pause."""
        self._tried = -RETRY_S

    def check(self) -> None:
        """Raise `DatabaseReplaced` if the path does not lead to the open file and its log."""
        presence = self.presence()
        if presence is not Presence.HERE:
            raise DatabaseReplaced(
                self.problem
                or f"{self.path} was {_HAPPENED[presence]} while it was open: try again "
                "in a few seconds, or restart the daemon",
                saved=self._saved,
            )

    def _rescue(self, presence: Presence, connection: SqliteSession) -> None:
        """Save the memories of a file that lost its path; an error is logged, not raised.

        A deleted file is put back. Else the memories are copied to a file next to it, or the log is
        checkpointed, and `problem` says what happened. A failed rescue is tried again.
        """
        path = self.path
        try:
            if presence is Presence.DELETED:
                self._restore_deleted(connection)
                return
            if presence is Presence.OVERWRITTEN:
                self._leave_overwritten(_name_aside(path, "-log"))
            elif presence is Presence.REPLACED or self.is_log_replaced():
                aside = _name_aside(path)
                copy_beside(connection, aside).rename(aside)
                flush(path.parent)
                # A log beside a file that it is not of would damage that.
                self.remove_companions()
                log.warning("database_set_aside", copy=str(aside))
                self.problem = (
                    f"{path} was replaced by another file while it was open. What was remembered "
                    f"until then is saved in {aside}. Restart the daemon to use the file that is "
                    "there now"
                )
            elif connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()[0]:
                raise sqlite3.OperationalError("another program reads the database")
            elif presence is Presence.LOG_DELETED:  # with its log, the file is whole
                self.problem = (
                    f"the write-ahead log of {path} was deleted or replaced while it was open. "
                    "Everything that was acknowledged is in the database: restart the daemon"
                )
            else:
                self.problem = (
                    f"{path} was moved away while it was open. Everything that was acknowledged is "
                    "in the moved file: put it back, or restart the daemon to begin a new one"
                )
            self._saved = True
        except FileExistsError:
            # Another file has come in the meantime: the next look sees it.
            self.problem = f"{path} was deleted, and another file is being put there"
        except (OSError, sqlite3.Error) as error:
            self._tried = time.monotonic()
            why = connections.failure_reason(error)
            self.problem = (
                f"{path} was {_HAPPENED[presence]} while it was open, and what it held cannot be "
                f"saved yet: {why}. It is tried again until this process ends"
            )
            log.error("rescue_failed", presence=presence.value, reason=why)  # noqa: TRY400 tried again

    def _leave_overwritten(self, log_copy: Path) -> None:
        """Copy what another program wrote over the open file to a new file, and give that file the path.

        SQLite would otherwise write the log into what was written, at a start after a crash, too: the log
        first becomes `log_copy`. Raises `OSError`, also while the file is still being written.
        """
        wal = self._companion_paths()[0]
        if _file_identity(wal) == self._companions.get(str(wal)):  # not at a second try
            wal.rename(log_copy)
            self._log_copy = log_copy
        self.remove_companions()
        path, changed_ns = self.path, os.fstat(self._descriptor).st_mtime_ns
        time.sleep(SETTLE_S)
        if os.fstat(self._descriptor).st_mtime_ns != changed_ns:
            raise OSError(errno.EBUSY, "it is still being written")
        separate = path.with_name(path.name + PARTIAL)
        separate.unlink(missing_ok=True)
        flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC
        with os.fdopen(os.open(separate, flags, PRIVATE), "wb") as file:
            while chunk := os.pread(self._descriptor, CHUNK_BYTES, file.tell()):
                file.write(chunk)
        flush(separate)
        separate.rename(path)
        flush(path.parent)
        self._presence = Presence.REPLACED
        self.problem = (
            f"{path} was written over while it was open, as cp does, and has nothing of what was remembered "
            f"since that copy was made. The pages that changed last are in {self._log_copy}. Restart the "
            "daemon to use the file that is there now; mnem restore-db puts a backup in place without "
            "such a loss"
        )

    def _restore_deleted(self, connection: SqliteSession) -> None:
        """Write the deleted database back to its path, where it appears whole.

        The copy is complete under another name before the old log is deleted; after a crash,
        `finish_rescue` gives it the database's name.
        """
        path = self.path
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        copy = copy_beside(connection, path).rename(f"{path}{RESCUED}")
        flush(path.parent)
        self.remove_companions()
        try:
            place(copy, path)
        except FileExistsError:
            # What is there is set aside from the connection again.
            copy.unlink(missing_ok=True)
            raise
        self.adopt(path)
        self._reconnect = True
        self._presence = Presence.HERE
        self.problem = ""
        log.warning("database_put_back", database=str(path), bytes=path.stat().st_size)


_IN_USE = (
    "{} is in use under another name (a hard link or a mount), or its lock file was deleted. "
    "Stop the process that has it open, or choose another database."
)


def _read_pragma(connection: SqliteSession, name: str) -> Any:  # noqa: ANN401 a number or a text
    """Return the value of a pragma. Raises sqlite3.Error."""
    return connection.execute(f"PRAGMA {name}").fetchone()[0]


def _file_identity(path: str | Path) -> Identity | None:
    """Return device and inode of the file at a path; None if there is no file."""
    try:
        status = os.stat(path)  # noqa: PTH116 at each commit: a Path takes twice as long
    except (FileNotFoundError, NotADirectoryError):
        return None
    return status.st_dev, status.st_ino


def finish_rescue(path: Path) -> None:
    """Rename the rescued copy of a killed process to the database, unless another file is there."""
    copy = path.with_name(path.name + RESCUED)
    if not copy.exists():
        return
    if path.exists():
        if copy.samefile(path):
            copy.unlink()  # the second of two names
        return
    for suffix in COMPANIONS:  # of the deleted file, whose pages are others
        Path(os.fspath(path) + suffix).unlink(missing_ok=True)
    place(copy, path)
    log.warning("database_put_back", database=str(path), bytes=path.stat().st_size)


def _is_older(header: bytes, last: bytes) -> bool:
    """Return whether no checkpoint can have written `header` to a file that had the header `last`."""
    if len(header) < _HEADER.size or not header.startswith(_MAGIC):
        return True
    _, counter_before, pages_before, schema_before = _HEADER.unpack(last)
    _, counter, pages, schema = _HEADER.unpack(header)
    if counter < counter_before or schema < schema_before:
        return True
    return bool(schema == schema_before and pages < pages_before)


def _read_header_left(lock: int) -> bytes:
    """Return the header in the open lock file of a process that was killed; empty if it has none."""
    try:
        return _LOCK_DECODER.decode(os.pread(lock, LOCK_BYTES_MAX, 0)).header
    except (ValueError, RecursionError):
        return b""


def _set_foreign_log_aside(database: Path, last: bytes) -> None:
    """Rename the log of a killed process if its file, which had the header `last`, was written over."""
    try:
        with database.open("rb") as file:
            header = file.read(_HEADER.size)
    except FileNotFoundError:
        return
    commits = connections.commits_in_log(database)
    if len(last) < _HEADER.size or header == last or not commits:
        return
    if not _is_older(header, last):
        *_, pages, schema = _HEADER.unpack(header)
        pages_max, schema_max = map(max, zip(*commits.values(), strict=True))
        # A log in which a VACUUM changed the schema's number may leave fewer pages than the file has.
        if pages <= pages_max or schema < schema_max:
            return
    aside = _name_aside(database, "-log")
    database.with_name(database.name + "-wal").rename(aside)
    database.with_name(database.name + "-shm").unlink(missing_ok=True)
    flush(database.parent)
    log.warning("database_overwritten", database=str(database), log_copy=str(aside))


def _name_aside(database: Path, suffix: str = "") -> Path:
    """Return a path with the time for what is kept of a database that was replaced."""
    return database.with_name(
        f"{database.name}.replaced-{datetime.now(UTC):%Y%m%dT%H%M%SZ}{suffix}"
    )


_HAPPENED = {
    Presence.DELETED: "deleted",
    Presence.MOVED: "moved away",
    Presence.REPLACED: "replaced by another file",
    Presence.LOG_DELETED: "robbed of its write-ahead log",
    Presence.OVERWRITTEN: "written over",
}


@dataclass(frozen=True, slots=True)
class DatabaseProcess:
    """A process that has a memory open: a daemon, or a program that embeds the memory."""

    pid: int
    """Its id; 0 if it is unknown."""
    socket: str | None
    """The path of its socket; None for a program that embeds the memory."""


@dataclass(frozen=True, slots=True)
class _Lock(DatabaseProcess):
    """What a lock file says."""

    header: bytes = b""
    """Header that the database had, or one that a later checkpoint has changed; empty if it is unknown."""


_DECODER = msgspec.json.Decoder(DatabaseProcess)
_LOCK_DECODER = msgspec.json.Decoder(_Lock)
LOCK_BYTES_MAX = 4_096
NAMED_WITHIN_S, NAMED_LOOK_S = 0.5, 0.01


@contextmanager
def own_database(
    database: Path, *, socket: Path | None = None
) -> Iterator[DatabaseFile]:
    """Lock and open the database while the block runs; create it if it is missing.

    `socket` is the address of this process, which the lock file names for others. Raises
    `DatabaseInUse`, `StorageFailed` and OSError.
    """
    with lock_database(database, socket=socket) as save_header:
        file = DatabaseFile(_resolve_links(database), save_header)
        try:
            yield file
        finally:
            file.close()


@contextmanager
def lock_database(
    database: Path, *, socket: Path | None = None
) -> Iterator[Callable[[bytes], object]]:
    """Lock the database against other processes while the block runs; yield what saves the file's header.

    The lock file names this process for others, and its `socket`, if any. A restore or rescue that a
    killed process left is finished first, and its log set aside if it is of another file. Raises
    `DatabaseInUse`, `StorageFailed` and OSError.
    """
    database.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    with _lock_file(database, os.O_RDWR | os.O_CREAT) as descriptor:
        until = time.monotonic() + NAMED_WITHIN_S
        while True:
            try:
                fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
                break
            except BlockingIOError:
                owner = database_owner(database)
                # Another process may only have looked who has it, which takes a lock, too.
                if owner is None and time.monotonic() < until:
                    time.sleep(NAMED_LOOK_S)
                    continue
                owner = owner or DatabaseProcess(0, None)
                where = f", which listens on {owner.socket}" if owner.socket else ""
                advice = "Talk to that one, stop it, or choose another database."
                if owner.pid == os.getpid():
                    advice = "It is this process: use the memory it has open, or close that first."
                raise DatabaseInUse(
                    f"{database} is in use by process {owner.pid or 'unknown'}{where}. {advice}"
                ) from None
        resolved = _resolve_links(database)
        left = _read_header_left(descriptor)
        me = _Lock(os.getpid(), str(socket.absolute()) if socket else None)
        os.fchmod(descriptor, PRIVATE)
        os.ftruncate(descriptor, 0)

        def save_header(header: bytes) -> None:
            said = msgspec.json.encode(replace(me, header=header))
            os.pwrite(descriptor, said.ljust(LOCK_BYTES_MAX), 0)  # over a longer one

        save_header(left)  # others look for this process, which may be killed
        _set_foreign_log_aside(resolved, left)
        save_header(b"")
        finish_restore(resolved)
        finish_rescue(resolved)
        yield save_header
        with suppress(OSError):
            # Of a failing disk: what an earlier owner left does not count.
            os.ftruncate(descriptor, 0)


def database_owner(database: Path) -> DatabaseProcess | None:
    """Return the process that has the database locked, or None.

    The process id is 0 if the lock file does not name it, also after `NAMED_WITHIN_S`: a process locks the file
    before it writes its name, and removes the name before it unlocks the file. Raises `StorageFailed` without
    locks.
    """
    until = time.monotonic() + NAMED_WITHIN_S
    while (owner := _read_owner(database)) and not owner.pid:
        if time.monotonic() > until:
            break
        time.sleep(NAMED_LOOK_S)
    return owner


def _read_owner(database: Path) -> DatabaseProcess | None:
    """Return the process that has the database locked, with 0 as its id if it has no name in the lock file."""
    try:
        with _lock_file(database, os.O_RDONLY) as descriptor:
            try:
                fcntl.flock(descriptor, fcntl.LOCK_SH | fcntl.LOCK_NB)
            except BlockingIOError:
                try:
                    return _DECODER.decode(os.pread(descriptor, LOCK_BYTES_MAX, 0))
                except (ValueError, RecursionError):
                    return DatabaseProcess(0, None)
            except OSError as error:
                reason = connections.failure_reason(error)
                raise StorageFailed(f"{database} cannot be locked: {reason}") from error
    except FileNotFoundError:
        pass
    return None


@contextmanager
def _lock_file(database: Path, flags: int) -> Iterator[int]:
    """Open a database's lock file while the block runs. Raises `StorageFailed` for a symbolic link."""
    database = _resolve_links(database)  # one file, one lock, whatever links lead to it
    path = database.with_name(database.name + ".lock")
    try:
        descriptor = os.open(path, flags | os.O_CLOEXEC | os.O_NOFOLLOW, PRIVATE)
    except OSError as error:
        if error.errno != errno.ELOOP:
            raise
        raise StorageFailed(
            f"{path} is a symbolic link, and what it leads to would be overwritten: remove it"
        ) from error
    try:
        yield descriptor
    finally:
        os.close(descriptor)


def _resolve_links(database: Path) -> Path:
    """Return a path without symbolic links. Raises `StorageFailed` for a loop of links."""
    # A loop is a RuntimeError before Python 3.13, and since then stays a link.
    with suppress(RuntimeError, OSError):
        resolved = database.resolve()
        if not resolved.is_symlink():
            return resolved
    raise StorageFailed(f"{database} is a loop of symbolic links: name another file")
