"""Failures of PostgreSQL, explained with advice."""

from __future__ import annotations

import psycopg

from mnemosyned.domain.errors import (
    DatabaseUnreachable,
    MemoryBusy,
    StorageFailed,
)

NOTHING_KEPT = "nothing of this request was kept"
NOT_ANSWERED = "the question was not answered"
PERHAPS_KEPT = (
    "it is not known whether this request was kept; send it again with the same ids"
)
_LOST = (
    "the database cannot be reached: check the server and the network, then try again"
)
_NO_USER = "the server has no such user: create it, or name another"
_CREDENTIALS = (
    "the database refuses the user or the password: correct them in the settings"
)
_ADVICE = {
    "53100": "the database's disk is full: free space, then try again",
    "42501": "the database refuses it to this user: grant what docs/postgres.md lists",
    "28P01": _CREDENTIALS,
    "28000": "the server does not let this user in: see pg_hba.conf and the user there",
    "3D000": "there is no such database: create it, or name another in the settings",
    "25006": "this server is a standby, which cannot be written: connect to the primary",
    "XX001": "the database is damaged: restore a backup",
    "XX002": "an index is damaged: run REINDEX DATABASE",
    "53300": "the server has no connection left for this user or database; try again, or raise "
    "max_connections or the limit that it names",
    "57014": "the database ended it, as it took too long",
    "55P03": "another transaction keeps this memory, or a table, locked; try again in a moment",
    "57P03": "the database server is starting, stopping or recovering; try again in a moment",
    "26000": "a pooler changes sessions between transactions: let it pool sessions "
    "(pool_mode = session), or connect to the server itself",
}
"""What to do, by SQLSTATE."""
_REFUSALS: tuple[tuple[str, str, str], ...] = (
    ("starting up", "57P03", "the database server is starting; try again"),
    (
        "shutting down",
        "57P03",
        "the database server is stopping; try again when it is back",
    ),
    ("recovery", "57P03", "the database server is recovering; try again"),
    ("not yet accepting", "57P03", "the database server is recovering; try again"),
    ("not accepting connections", "57P03", ""),
    ("currently accepting", "57P03", ""),
    ("too many", "53300", ""),
    ("connection slots are reserved", "53300", ""),
    ("no more connections", "53300", ""),
    (
        "no password supplied",
        "28P01",
        "the database wants a password: give it in the settings, in PGPASSWORD or in ~/.pgpass",
    ),
    ("authentication failed", "28P01", ""),
    (
        "no pg_hba.conf entry",
        "28000",
        "the server lets nobody in from here by this name: see pg_hba.conf there",
    ),
    ("not permitted to log in", "28000", ""),
    ("permission denied", "42501", ""),
    ("role ", "28000", _NO_USER),
    ("no such user", "28000", _NO_USER),
    ("database ", "3D000", ""),
)
"""Parts of the answer to an attempt to connect, which comes without its SQLSTATE; the first that
matches says which it was, and what to do where that is more than the code tells."""
_FULL = "53300"
_ENDED = ("08", "57P", _FULL)
"""Errors with which a server ends a connection, or lets nobody in for now."""
_LOCKED = "55P03"
_UNKNOWN = "look into the server's log, then try again"


def reason(error: BaseException) -> str:
    """Why something failed and what to do, with the engine's own words at the end."""
    lines = str(error).splitlines() or [repr(error)]
    advice = _state_and_advice(error)[1]
    if not advice and is_unreachable(error):
        advice = _LOST
    return f"{advice or _UNKNOWN} (PostgreSQL says: {lines[0]})"


def storage_failed(error: BaseException, consequence: str = NOTHING_KEPT) -> Exception:
    """An error for the caller: the domain's as it is, the engine's explained."""
    if isinstance(error, Exception) and not isinstance(error, psycopg.Error):
        return error
    why = reason(error)
    kind = DatabaseUnreachable if is_unreachable(error) else StorageFailed
    if sqlstate(error) == _LOCKED:
        kind = MemoryBusy
    failure = kind(f"{consequence}: {why}", reason=why)
    failure.__cause__ = error
    return failure


def sqlstate(error: BaseException) -> str | None:
    """The code of an error, also of a refused attempt to connect; None where no answer came."""
    return _state_and_advice(error)[0]


def _state_and_advice(error: BaseException) -> tuple[str | None, str]:
    """The code of an error, and what to do about it; empty where that is not known."""
    state: str | None = getattr(error, "sqlstate", None)
    if state:
        return state, _ADVICE.get(state, "")
    _, refused, answer = str(error).partition("FATAL: ")
    for part, code, advice in _REFUSALS if refused else ():
        if part in answer:
            return code, advice or _ADVICE[code]
    return None, ""


def is_unreachable(error: BaseException) -> bool:
    """Whether the server is away, or takes nobody now: waiting may help."""
    if not isinstance(error, psycopg.OperationalError | psycopg.InterfaceError):
        return False
    code = sqlstate(error)
    return code is None or code.startswith(_ENDED)


def is_full(error: BaseException) -> bool:
    """Whether the server has no place for one more connection."""
    return sqlstate(error) == _FULL
