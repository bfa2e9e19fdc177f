"""Failures of SQLite and the file system, explained with advice."""

from __future__ import annotations

import errno
import sqlite3

from mnemosyned.domain.errors import StorageFailed

NOTHING_KEPT = "nothing of this request was kept"
NOT_ANSWERED = "the question was not answered"
NOT_CLEANED = "the file could not be cleaned up; every memory in it is as it was"
CLOSED = "the memory is closed; open it again"
_FULL = "the disk is full: free space, then try again"
_DAMAGED = "the database file is damaged: stop what uses it and restore a backup"
_CANNOT_WRITE = (
    "the file cannot be opened for writing: check its permissions and its folder"
)
_FAILING = "the disk fails: check it and the system's log, then try again"
_ADVICE = {
    sqlite3.SQLITE_FULL: _FULL,
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
    errno.ENOSPC: _FULL,
    errno.EDQUOT: _FULL,
    errno.EIO: _FAILING,
    errno.EACCES: _CANNOT_WRITE,
    errno.EPERM: _CANNOT_WRITE,
    errno.EROFS: _CANNOT_WRITE,
}
_UNKNOWN = "check the free space and the file, then try again"
_PRIMARY = 0xFF
"""The bits of SQLite's extended codes that hold the primary one."""


def reason(error: BaseException) -> str:
    """Why something failed and what to do, with the engine's own words at the end."""
    if isinstance(error, sqlite3.Error):
        # Absent where Python itself raised it.
        code = getattr(error, "sqlite_errorcode", sqlite3.SQLITE_OK)
        advice = _ADVICE.get(code & _PRIMARY, _UNKNOWN)
        return f"{advice} (SQLite says: {error})"
    if isinstance(error, OSError):
        advice = _ADVICE_OF_SYSTEM.get(error.errno or 0, _UNKNOWN)
        return f"{advice} ({error.strerror or error!r})"
    return f"{_UNKNOWN} ({error!r})"


def storage_failed(error: BaseException, consequence: str = NOTHING_KEPT) -> Exception:
    """An error for the caller: the domain's as it is, the engine's explained."""
    if isinstance(error, Exception) and not isinstance(error, sqlite3.Error | OSError):
        return error
    why = reason(error)
    failure = StorageFailed(f"{consequence}: {why}", reason=why)
    failure.__cause__ = error
    return failure
