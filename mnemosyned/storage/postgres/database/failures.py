"""Failures of PostgreSQL, explained with advice."""

from __future__ import annotations

import psycopg

from mnemosyned.domain.errors import DatabaseUnreachable, StorageFailed

NOTHING_KEPT = "nothing of this request was kept"
NOT_ANSWERED = "the question was not answered"
PERHAPS_KEPT = (
    "it is not known whether this request was kept; send it again with the same ids"
)
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
    (
        psycopg.errors.LockNotAvailable,
        "another daemon kept this memory from being written for too long; try again",
    ),
    (psycopg.OperationalError, _LOST),
    (psycopg.InterfaceError, _LOST),
)
_REFUSALS: tuple[tuple[str, str], ...] = (
    (
        "no password supplied",
        "the database wants a password: give it in the settings, in PGPASSWORD or in ~/.pgpass",
    ),
    (
        "authentication failed",
        "the database refuses the user or the password: correct them in the settings",
    ),
    (
        "no pg_hba.conf entry",
        "the server lets nobody in from here by this name: see pg_hba.conf there",
    ),
    ("role ", "the server has no such user: create it, or name another"),
    (
        "database ",
        "there is no such database: create it, or name another in the settings",
    ),
    ("too many clients", "the server has no connection left; try again"),
    ("starting up", "the database server is starting; try again"),
    ("shutting down", "the database server is stopping; try again when it is back"),
    ("recovery mode", "the database server is recovering; try again"),
)
"""Parts of what a server answers to an attempt to connect, which has no code that could be read."""
_ENDED = ("08", "57P")
"""Classes of errors with which a server ends a connection."""
_UNKNOWN = "look into the server's log, then try again"


def reason(error: BaseException) -> str:
    """Why something failed and what to do, with the engine's own words at the end."""
    lines = str(error).splitlines() or [repr(error)]
    advice = _refusal(error, lines[0])
    if not advice:
        advice = next(
            (text for kind, text in _ADVICE if isinstance(error, kind)), _UNKNOWN
        )
    return f"{advice} (PostgreSQL says: {lines[0]})"


def storage_failed(error: BaseException, consequence: str = NOTHING_KEPT) -> Exception:
    """An error for the caller: the domain's as it is, the engine's explained."""
    if isinstance(error, Exception) and not isinstance(error, psycopg.Error):
        return error
    why = reason(error)
    kind = DatabaseUnreachable if is_unreachable(error) else StorageFailed
    failure = kind(f"{consequence}: {why}", reason=why)
    failure.__cause__ = error
    return failure


def _refusal(error: BaseException, line: str) -> str:
    """The advice for an attempt to connect that the server refused; empty for all else."""
    _, fatal, answer = line.partition("FATAL: ")
    if not fatal or getattr(error, "sqlstate", None):
        return ""
    return next((text for part, text in _REFUSALS if part in answer), "")


def is_unreachable(error: BaseException) -> bool:
    """Whether the connection to the server was lost, and no answer came."""
    if not isinstance(error, psycopg.OperationalError | psycopg.InterfaceError):
        return False
    code = error.sqlstate
    return code is None or code.startswith(_ENDED)
