"""Failures of PostgreSQL, explained with advice."""

from __future__ import annotations

import psycopg
from psycopg_pool import PoolClosed, PoolTimeout

from mnemosyned.domain.errors import StorageFailed

NOTHING_KEPT = "nothing of this request was kept"
NOT_ANSWERED = "the question was not answered"
PERHAPS_KEPT = (
    "it is not known whether this request was kept; send it again with the same ids"
)
CLOSED = "the memory is closed; open it again"
_LOST = (
    "the database cannot be reached: check the server and the network, then try again"
)
_ADVICE: tuple[tuple[type[BaseException], str], ...] = (
    (
        psycopg.errors.DiskFull,
        "the database's disk is full: free space, then try again",
    ),
    (
        psycopg.errors.InsufficientPrivilege,
        "the database refuses it to this user: grant what docs/postgres.md lists",
    ),
    (
        psycopg.errors.InvalidPassword,
        "the database refuses the password: correct it in the settings",
    ),
    (
        psycopg.errors.InvalidCatalogName,
        "there is no such database: create it, or name another in the settings",
    ),
    (
        psycopg.errors.ReadOnlySqlTransaction,
        "this server is a standby, which cannot be written: connect to the primary",
    ),
    (psycopg.errors.DataCorrupted, "the database is damaged: restore a backup"),
    (psycopg.errors.IndexCorrupted, "an index is damaged: run REINDEX DATABASE"),
    (psycopg.errors.TooManyConnections, "the server has no connection left; try again"),
    (psycopg.errors.QueryCanceled, "the database ended it, as it took too long"),
    (PoolTimeout, "all connections were busy; try again later"),
    (psycopg.OperationalError, _LOST),
    (psycopg.InterfaceError, _LOST),
)
_UNKNOWN = "look into the server's log, then try again"


def reason(error: BaseException) -> str:
    """Why something failed and what to do, with the engine's own words at the end."""
    advice = next((text for kind, text in _ADVICE if isinstance(error, kind)), _UNKNOWN)
    lines = str(error).splitlines() or [repr(error)]
    return f"{advice} (PostgreSQL says: {lines[0]})"


def storage_failed(error: BaseException, consequence: str = NOTHING_KEPT) -> Exception:
    """An error for the caller: the domain's as it is, the engine's explained."""
    if isinstance(error, PoolClosed):
        return StorageFailed(CLOSED)
    if isinstance(error, Exception) and not isinstance(error, psycopg.Error):
        return error
    why = reason(error)
    failure = StorageFailed(f"{consequence}: {why}", reason=why)
    failure.__cause__ = error
    return failure
