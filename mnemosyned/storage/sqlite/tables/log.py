"""Rows of the consolidation log."""

from __future__ import annotations

import sqlite3

from mnemosyned.domain.sleep.cycles import LogEntry
from mnemosyned.domain.storing.rows import LOG_COLUMNS
from mnemosyned.storage.sqlite.tables.rows import LOG_PLACEHOLDERS, log_row

_INSERT_LOG = (
    f"INSERT INTO consolidation_log ({LOG_COLUMNS}) VALUES ({LOG_PLACEHOLDERS})"
)


def insert_log(connection: sqlite3.Connection, entry: LogEntry) -> None:
    """Write one row of the consolidation log."""
    connection.execute(_INSERT_LOG, log_row(entry))
