"""Agents' sessions and the clock in a file: the statements that read its memories."""

from __future__ import annotations

import json

from mnemosyned.memory.values import MemoryRecord
from mnemosyned.storage.common.surroundings import (
    CommonAgents,
)
from mnemosyned.storage.sqlite.session import SqliteSession
from mnemosyned.storage.sqlite.writer import SqlitePart


class SqliteAgents(SqlitePart, CommonAgents):
    """An `AgentStore` on one SQLite file."""

    _has_memories = (
        "EXISTS (SELECT 1 FROM working_memory AS w WHERE +w.session_id = +s.session_id) OR "
        "EXISTS (SELECT 1 FROM episodic_memory AS e WHERE e.session_id = s.session_id)"
    )
    _memory_tables = ("working_memory", "archive")

    def _latest(
        self, session: SqliteSession, names: list[str], limit: int
    ) -> list[MemoryRecord]:
        """Return up to `limit` of the newest memories of these sessions from each tier."""
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
