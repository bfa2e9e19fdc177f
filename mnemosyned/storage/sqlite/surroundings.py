"""Agents' sessions and the clock in a file: the statements that read its memories."""

from __future__ import annotations

import json

from mnemosyned.memory.values import MemoryRecord
from mnemosyned.storage.common.surroundings import (
    CommonAgents,
    CommonClock,
)
from mnemosyned.storage.sqlite.session import Session
from mnemosyned.storage.sqlite.writer import SqlitePart


class SqliteAgents(SqlitePart, CommonAgents):
    """An `AgentStore` on one SQLite file."""

    _has_memories = (
        "EXISTS (SELECT 1 FROM working_memory AS w WHERE +w.session_id = +s.session_id) OR "
        "EXISTS (SELECT 1 FROM episodic_memory AS e WHERE e.session_id = s.session_id)"
    )
    _memory_tables = ("working_memory", "archive")

    def _latest(
        self, session: Session, names: list[str], limit: int
    ) -> list[MemoryRecord]:
        values = (json.dumps(names), limit)
        among = "session_id IN (SELECT value FROM json_each(?))"
        working = session.working_memories(
            f"WHERE {among} ORDER BY created_at DESC, seq DESC LIMIT ?", values
        )
        archived = session.archived_memories(
            f"WHERE e.{among} AND e.level = 0 "
            "ORDER BY e.covers_from DESC, a.created_at DESC, a.seq DESC LIMIT ?",
            values,
        )
        return [*working.values(), *archived.values()]


_FUTURE = (
    "FROM working_memory WHERE created_at > :now AND seq NOT IN "
    "(SELECT memory_seq FROM working_state WHERE future_since IS NOT NULL)"
)


class SqliteClock(SqlitePart, CommonClock):
    """A `ClockStore` on one SQLite file."""

    _newest = (
        "SELECT max(created_at) FROM (SELECT max(created_at) AS created_at FROM working_memory "
        "UNION ALL SELECT created_at FROM consolidation_log "
        "WHERE id = (SELECT max(id) FROM consolidation_log))"
    )
    _any_future = f"SELECT 1 {_FUTURE} LIMIT 1"
    _note_all_future = (
        f"INSERT INTO working_state (memory_seq, future_since) SELECT seq, :now {_FUTURE} "
        "ON CONFLICT (memory_seq) DO UPDATE SET future_since = excluded.future_since"
    )
