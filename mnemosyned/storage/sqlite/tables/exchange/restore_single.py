"""Records of an export that refer to no other row: learnings, the log, compactions and sessions."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from mnemosyned.domain.exchange import (
    OTHER_WORDS,
    ExportedCompaction,
    ForgottenCapture,
    Outcome,
)
from mnemosyned.domain.learnings.learning import Learning
from mnemosyned.domain.ports.surroundings.agents import AgentSession
from mnemosyned.domain.sleep.cycles import LogEntry
from mnemosyned.domain.storing.rows import (
    LEARNING_COLUMNS,
    LOG_COLUMNS,
    SESSION_COLUMNS,
)
from mnemosyned.storage.sqlite.tables.rows import (
    LOG_PLACEHOLDERS,
    instant_text,
    log_row,
)
from mnemosyned.storage.sqlite.tables.surroundings.agents import session_row


def _learning(connection: sqlite3.Connection, learning: Learning) -> bool | str:
    row = connection.execute(
        "SELECT text FROM learning WHERE id = ?", (learning.id,)
    ).fetchone()
    if row is None:
        _insert(
            connection,
            "learning",
            LEARNING_COLUMNS,
            (
                learning.id,
                learning.kind,
                learning.text,
                learning.session,
                learning.source,
                learning.memory,
                instant_text(learning.created_at),
                learning.superseded_by,
            ),
        )
    elif row[0] != learning.text:
        return OTHER_WORDS
    return row is None


def _log_entry(connection: sqlite3.Connection, entry: LogEntry) -> bool:
    known = connection.execute(
        "SELECT 1 FROM consolidation_log WHERE episode_id IS ? AND cycle_id = ? "
        "AND created_at = ? AND session_id = ? AND level = ?",
        (
            entry.episode,
            entry.cycle,
            instant_text(entry.created_at),
            entry.session,
            entry.level,
        ),
    ).fetchone()
    if known:
        return False
    taken = connection.execute(
        "SELECT 1 FROM consolidation_log WHERE id = ?", (entry.id,)
    ).fetchone()
    connection.execute(
        f"INSERT INTO consolidation_log (id, {LOG_COLUMNS}, undone_at) "
        f"VALUES (?, {LOG_PLACEHOLDERS}, ?)",
        (
            None if taken else entry.id,
            *log_row(entry),
            entry.undone_at and instant_text(entry.undone_at),
        ),
    )
    return True


def _compaction(connection: sqlite3.Connection, compaction: ExportedCompaction) -> bool:
    stored = _insert(
        connection,
        "compaction",
        "id, session_id, source, policy, text_hash, created_at",
        (
            compaction.id,
            compaction.session,
            compaction.source,
            compaction.policy,
            compaction.text_hash,
            instant_text(compaction.created_at),
        ),
    )
    for position, part in enumerate(compaction.parts if stored else ()):
        values = (compaction.id, position, part)
        _insert(connection, "compacted", "compaction, position, part", values)
    return stored


def _agent_session(connection: sqlite3.Connection, session: AgentSession) -> bool:
    return _insert(connection, "agent_session", SESSION_COLUMNS, session_row(session))


def _forgotten(connection: sqlite3.Connection, capture: ForgottenCapture) -> bool:
    return _insert(connection, "agent_forgotten", "id", (capture.id,))


def _insert(
    connection: sqlite3.Connection, table: str, columns: str, values: Sequence[Any]
) -> bool:
    """Insert a row, unless its key is here; tell whether it was inserted."""
    marks = ", ".join("?" * len(values))
    inserted = connection.execute(
        f"INSERT OR IGNORE INTO {table} ({columns}) VALUES ({marks})", values
    )
    return bool(inserted.rowcount)


SINGLE: Mapping[type[Any], Callable[[sqlite3.Connection, Any], Outcome]] = {
    Learning: _learning,
    LogEntry: _log_entry,
    ExportedCompaction: _compaction,
    AgentSession: _agent_session,
    ForgottenCapture: _forgotten,
}
"""How each kind is stored."""
