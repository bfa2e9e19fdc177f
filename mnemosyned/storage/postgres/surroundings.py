"""Agents' sessions and the clock on a server: the statements that read an owner's memories."""

from __future__ import annotations

from mnemosyned.memory.values import MemoryRecord
from mnemosyned.storage.common.surroundings import (
    CommonAgents,
)
from mnemosyned.storage.postgres.pool import PostgresPart
from mnemosyned.storage.postgres.session import PostgresSession

_LATEST_WORKING = (
    "SELECT f.seq FROM fresh AS f JOIN memory AS m ON m.owner = f.owner AND m.seq = f.seq "
    "WHERE f.owner = %(owner)s AND m.session_id = ANY(%(names)s::text[]) "
    "ORDER BY f.created_at DESC, f.seq DESC LIMIT %(limit)s"
)
_LATEST_ARCHIVED = (
    "SELECT p.seq FROM episode AS e "
    "JOIN placed AS p ON p.owner = e.owner AND p.episode_seq = e.seq "
    "JOIN memory AS m ON m.owner = p.owner AND m.seq = p.seq "
    "WHERE e.owner = %(owner)s AND e.session_id = ANY(%(names)s::text[]) AND e.level = 0 "
    "ORDER BY e.covers_from DESC, m.created_at DESC, m.seq DESC LIMIT %(limit)s"
)


class PostgresAgents(PostgresPart, CommonAgents):
    """An `AgentStore` of one owner in PostgreSQL."""

    _has_memories = (
        "EXISTS (SELECT 1 FROM memory AS m "
        "WHERE m.owner = %(owner)s AND m.session_id = s.session_id)"
    )
    _memory_tables = ("memory",)

    def _latest(
        self, session: PostgresSession, names: list[str], limit: int
    ) -> list[MemoryRecord]:
        """Return up to `limit` of the newest memories of these sessions from each tier."""
        seqs: list[int] = []
        for statement in (_LATEST_WORKING, _LATEST_ARCHIVED):
            rows = session.execute(statement, names=names, limit=limit)
            seqs += [seq for (seq,) in rows]
        found = session.memories_at(seqs)
        return [found[seq] for seq in seqs]
