"""The open database file: locked for one process, with checks of what its path leads to.

The lock is flock's and lies on the file itself, so that it applies under every name of the file and
without the lock file. SQLite locks with fcntl: it does not see ours, but loses its own when any
descriptor of the file is closed. Therefore ours stays open until SQLite is done, and a file that this
process has open is never opened a second time.
"""

from __future__ import annotations

import fcntl
import os
import stat
import threading
from enum import Enum
from pathlib import Path

from mnemosyned.errors import DatabaseInUse, StorageFailed
from mnemosyned.logs import logger

COMPANIONS = ("-wal", "-shm")
PRIVATE = 0o600

Identity = tuple[int, int]
"""Device and inode."""

log = logger()
_owned: set[Identity] = set()
_owning = threading.Lock()


class Presence(Enum):
    """State of the path of a database."""

    HERE = "here"
    DELETED = "deleted"
    MOVED = "moved"
    REPLACED = "replaced"
    LOG_DELETED = "log_deleted"
    """The file is here; the write-ahead log beside it is not the one that is written."""


class DatabaseFile:
    """An open database file that no other process owns."""

    def __init__(self, path: Path) -> None:
        """Open and lock the database file; create a missing file, readable by its owner alone.

        Raises `DatabaseInUse` if a process holds it under another name, `StorageFailed` if it has
        several names, and OSError.
        """
        self.path = path
        self._companions: dict[str, Identity] = {}
        self._name = str(path)
        self._descriptor = -1
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
        """Open and lock another copy of the database; close the former one. Raises `DatabaseInUse`, OSError."""
        flags |= os.O_RDWR | os.O_CLOEXEC | os.O_NOFOLLOW
        with _owning:
            if (
                _identity(path) in _owned
            ):  # looked at first: to open and close it costs its locks
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

    def know_companions(self) -> None:
        """Save device and inode of the open log and its index, so that a change is noticed."""
        seen = {str(path): _identity(path) for path in self._companion_paths()}
        self._companions = {
            path: identity for path, identity in seen.items() if identity
        }

    def presence(self) -> Presence:
        """Return the state of the path: whether it still leads to the open file and its log."""
        identity = _identity(self._name)
        if identity is None:
            deleted = os.fstat(self._descriptor).st_nlink == 0
            return Presence.DELETED if deleted else Presence.MOVED
        if identity != self._identity:
            return Presence.REPLACED
        for path, known in self._companions.items():
            if _identity(path) != known:
                return Presence.LOG_DELETED
        return Presence.HERE

    def log_elsewhere(self) -> bool:
        """Return whether a log that is not the open log, and is not empty, has taken its path."""
        wal = self._companion_paths()[0]
        identity = _identity(wal)
        return (
            identity not in (None, self._companions.get(str(wal)))
            and wal.stat().st_size > 0
        )

    def remove_companions(self) -> None:
        """Delete the open write-ahead log and its index; a new file under the same name stays."""
        for path, known in self._companions.items():
            if _identity(path) == known:
                Path(path).unlink(missing_ok=True)

    def warnings(self) -> list[str]:
        """Return a warning in a list if other users can write to the folder; else an empty list."""
        folder = self.path.parent
        mode = folder.stat().st_mode
        if mode & (stat.S_IWGRP | stat.S_IWOTH) and not mode & stat.S_ISVTX:
            warning = (
                f"others can write to {folder} (mode {stat.S_IMODE(mode):04o}), so they can "
                f"delete or replace the database: chmod 700 {folder}"
            )
            return [warning]
        return []

    def tighten(self) -> None:
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
            except (
                PermissionError
            ) as error:  # it belongs to someone else, who let us write it
                log.warning("permissions_kept", file=str(path), reason=error.strerror)

    def _companion_paths(self) -> tuple[Path, ...]:
        """Return the paths of the log and of the log's index."""
        return tuple(
            self.path.with_name(self.path.name + suffix) for suffix in COMPANIONS
        )

    def close(self) -> None:
        """Close the file and release its lock; SQLite must have closed the database before."""
        if self._descriptor >= 0:
            os.close(self._descriptor)
            self._descriptor = -1
            _owned.discard(self._identity)


_IN_USE = (
    "{} is in use under another name (a hard link or a mount), or its lock file was deleted. "
    "Stop the process that has it open, or choose another database."
)


def _identity(path: str | Path) -> Identity | None:
    """Return device and inode of the file at a path; None if there is no file."""
    try:
        status = os.stat(path)  # noqa: PTH116 at each commit: a Path takes twice as long
    except (FileNotFoundError, NotADirectoryError):
        return None
    return status.st_dev, status.st_ino
