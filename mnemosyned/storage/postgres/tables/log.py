"""Rows of the consolidation log."""

from __future__ import annotations

from mnemosyned.domain.sleep.cycles import LogEntry
from mnemosyned.domain.storing.rows import LOG_COLUMNS
from mnemosyned.storage.postgres.database.session import Session
from mnemosyned.storage.postgres.tables.owners.owner import pass_number, take_numbers
from mnemosyned.storage.postgres.tables.rows import log_values, utc

_NAMES = [name.strip('"') for name in LOG_COLUMNS.split(", ")]
_INSERT = (
    f"INSERT INTO consolidation_log (owner, id, undone_at, {LOG_COLUMNS}) "
    "VALUES (%(owner)s, %(id)s, %(undone_at)s, "
    f"{', '.join(f'%({name})s' for name in _NAMES)})"
)


def insert_log(session: Session, entry: LogEntry) -> None:
    """Write one row of the consolidation log."""
    (id,) = take_numbers(session, "log", 1)
    session.execute(_INSERT, id=id, undone_at=None, **log_values(entry))


def restore_log(session: Session, entry: LogEntry) -> None:
    """Write a row as it was; it has its number again, unless another has that now."""
    taken = session.scalar(
        "SELECT 1 FROM consolidation_log WHERE owner = %(owner)s AND id = %(id)s",
        id=entry.id,
    )
    if taken:
        (id,) = take_numbers(session, "log", 1)
    else:
        id = entry.id
        pass_number(session, "log", id)
    undone_at = utc(entry.undone_at) if entry.undone_at else None
    session.execute(_INSERT, id=id, undone_at=undone_at, **log_values(entry))
