"""Rows of the consolidation log."""

from __future__ import annotations

from mnemosyned.domain.sleep.cycles import LogEntry
from mnemosyned.storage.postgres.database.session import Session
from mnemosyned.storage.postgres.tables.owner import take_numbers
from mnemosyned.storage.postgres.tables.rows import LOG_COLUMNS, log_values

_NAMES = [name.strip('"') for name in LOG_COLUMNS.split(", ")]
_INSERT = (
    f"INSERT INTO consolidation_log (owner, id, {LOG_COLUMNS}) "
    f"VALUES (%(owner)s, %(id)s, {', '.join(f'%({name})s' for name in _NAMES)})"
)


def insert_log(session: Session, entry: LogEntry) -> None:
    """Write one row of the consolidation log."""
    (id,) = take_numbers(session, "log", 1)
    session.execute(_INSERT, id=id, **log_values(entry))
