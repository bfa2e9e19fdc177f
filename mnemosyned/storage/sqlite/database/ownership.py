"""One owner per database file: a lock beside it that says who owns it and where they listen."""

from __future__ import annotations

import errno
import fcntl
import json
import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass
from pathlib import Path

from mnemosyned.domain.errors import DatabaseInUse, StorageFailed
from mnemosyned.storage.sqlite.database.custody import finish_rescue
from mnemosyned.storage.sqlite.database.file import PRIVATE, DatabaseFile
from mnemosyned.storage.sqlite.database.restoring import finish_restore


@dataclass(frozen=True, slots=True)
class Owner:
    """The process that holds a database."""

    pid: int
    socket: str | None = None
    """Where it serves the verbs; None for a program that embeds the memory."""


@contextmanager
def owned(database: Path, *, socket: Path | None = None) -> Iterator[DatabaseFile]:
    """Own the database, made where there is none, while the block runs.

    Raises `DatabaseInUse`, `StorageFailed` and OSError. The kernel drops the locks with the
    process, so a crash leaves nothing to clean up.
    """
    with locked(database) as descriptor:
        file = DatabaseFile(_resolved(database))
        try:
            me = Owner(os.getpid(), str(socket.absolute()) if socket else None)
            os.fchmod(descriptor, PRIVATE)
            os.ftruncate(descriptor, 0)
            os.pwrite(descriptor, json.dumps(asdict(me)).encode(), 0)
            yield file
            with suppress(
                OSError
            ):  # of a failing disk: what an earlier owner left does not count
                os.ftruncate(descriptor, 0)
        finally:
            file.close()


@contextmanager
def locked(database: Path) -> Iterator[int]:
    """Keep every other process from a database while the block runs; yields the lock file.

    What a killed process left half moved is finished first. Raises `DatabaseInUse`,
    `StorageFailed` and OSError.
    """
    database.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    with _lock_file(database, os.O_RDWR | os.O_CREAT) as descriptor:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise DatabaseInUse(_in_use(database)) from None
        resolved = _resolved(database)
        finish_restore(resolved)
        finish_rescue(resolved)
        yield descriptor


def owner_of(database: Path) -> Owner | None:
    """Who owns the database now, None where it is free."""
    try:
        with _lock_file(database, os.O_RDONLY) as descriptor:
            try:
                fcntl.flock(descriptor, fcntl.LOCK_SH | fcntl.LOCK_NB)
            except BlockingIOError:
                return _owner(os.pread(descriptor, 4096, 0))
    except FileNotFoundError:
        pass
    return None


def _owner(text: bytes) -> Owner:
    """The owner that a lock file names; process 0 where something else wrote to it."""
    try:
        said = json.loads(text)
        owner = Owner(said["pid"], said["socket"])
    except (ValueError, TypeError, KeyError, RecursionError):
        return Owner(0)
    known = isinstance(owner.pid, int) and isinstance(owner.socket, str | None)
    return owner if known else Owner(0)


@contextmanager
def _lock_file(database: Path, flags: int) -> Iterator[int]:
    """The open lock file. Raises `StorageFailed` where its name is a link to another file."""
    database = _resolved(database)  # one file, one lock, whatever links lead to it
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


def _resolved(database: Path) -> Path:
    # A loop is a RuntimeError before Python 3.13, and since then stays a link.
    with suppress(RuntimeError, OSError):
        resolved = database.resolve()
        if not resolved.is_symlink():
            return resolved
    raise StorageFailed(f"{database} is a loop of symbolic links: name another file")


def _in_use(database: Path) -> str:
    owner = owner_of(database) or Owner(0)
    where = f", which listens on {owner.socket}" if owner.socket else ""
    return (
        f"{database} is in use by process {owner.pid or 'unknown'}{where}. "
        "Talk to that one, stop it, or choose another database."
    )
