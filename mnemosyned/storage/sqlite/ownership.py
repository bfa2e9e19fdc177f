"""One owner per database file: a lock beside it that says who owns it and where they listen."""

from __future__ import annotations

import fcntl
import json
import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path

from mnemosyned.domain.errors import DatabaseInUse


@dataclass(frozen=True, slots=True)
class Owner:
    """The process that holds a database."""

    pid: int
    socket: str | None = None
    """Where it serves the verbs; None for a program that embeds the memory."""


@contextmanager
def owned(database: Path, *, socket: Path | None = None) -> Iterator[None]:
    """Own the database while the block runs. Raises `DatabaseInUse`.

    The kernel drops the lock with the process, so a crash leaves nothing to clean up.
    """
    database.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    descriptor = os.open(_lock_path(database), os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise DatabaseInUse(_in_use(database)) from None
        me = Owner(os.getpid(), str(socket.absolute()) if socket else None)
        os.ftruncate(descriptor, 0)
        os.pwrite(descriptor, json.dumps(asdict(me)).encode(), 0)
        yield
        os.ftruncate(descriptor, 0)
    finally:
        os.close(descriptor)


def owner_of(database: Path) -> Owner | None:
    """Who owns the database now, None where it is free."""
    try:
        descriptor = os.open(_lock_path(database), os.O_RDONLY | os.O_CLOEXEC)
    except FileNotFoundError:
        return None
    try:
        fcntl.flock(descriptor, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        text = os.pread(descriptor, 4096, 0)
        return Owner(**json.loads(text)) if text else Owner(0)
    finally:
        os.close(descriptor)
    return None


def _lock_path(database: Path) -> Path:
    database = database.resolve()  # one file, one lock, whatever links lead to it
    return database.with_name(database.name + ".lock")


def _in_use(database: Path) -> str:
    owner = owner_of(database) or Owner(0)
    where = f", which listens on {owner.socket}" if owner.socket else ""
    return (
        f"{database} is in use by process {owner.pid or 'unknown'}{where}. "
        "Talk to that one, stop it, or choose another database."
    )
