"""Agents' sessions and the activity of their hooks."""

from __future__ import annotations

import json
from collections.abc import Sequence
from datetime import datetime

from mnemosyned.domain.memory import Episode, MemoryRecord
from mnemosyned.domain.ports.surroundings.agents import (
    CLIENTS_MAX,
    SHOWN_MAX,
    AgentCall,
    AgentSession,
    AgentStore,
)
from mnemosyned.domain.statuses import AgentActivity
from mnemosyned.domain.storing.rows import (
    ACTIVITY_COLUMNS,
    EPISODE_COLUMNS,
    SESSION_COLUMNS,
    activity_from,
    episode_from,
    session_from,
)
from mnemosyned.storage.postgres.database.session import Session
from mnemosyned.storage.postgres.database.transactions import (
    Transactional,
    reads,
    writes_lazily,
)
from mnemosyned.storage.postgres.tables.memories import memories_at
from mnemosyned.storage.postgres.tables.rows import storable, utc
from mnemosyned.storage.postgres.tables.surroundings.agents import (
    count_call,
    insert_session,
)

_LATEST_WORKING = (
    "SELECT f.seq FROM fresh AS f JOIN memory AS m ON m.owner = f.owner AND m.seq = f.seq "
    "WHERE f.owner = %(owner)s AND m.session_id = ANY(%(sessions)s::text[]) "
    "ORDER BY f.created_at DESC, f.seq DESC LIMIT %(limit)s"
)
_LATEST_ARCHIVED = (
    "SELECT p.seq FROM episode AS e "
    "JOIN placed AS p ON p.owner = e.owner AND p.episode_seq = e.seq "
    "JOIN memory AS m ON m.owner = p.owner AND m.seq = p.seq "
    "WHERE e.owner = %(owner)s AND e.session_id = ANY(%(sessions)s::text[]) AND e.level = 0 "
    "ORDER BY e.covers_from DESC, m.created_at DESC, m.seq DESC LIMIT %(limit)s"
)
_KNOWN = " UNION ALL ".join(
    f"SELECT id FROM {table} WHERE owner = %(owner)s AND id = ANY(%(ids)s::text[])"
    for table in ("memory", "agent_forgotten")
)


class PostgresAgents(Transactional, AgentStore):
    """An `AgentStore` of one owner in PostgreSQL.

    Nothing of it waits for the disk: what a failure of power takes back is read or counted again.
    """

    @reads
    def session(self, session: Session, name: str) -> AgentSession | None:
        row = session.execute(
            f"SELECT {SESSION_COLUMNS} FROM agent_session "
            "WHERE owner = %(owner)s AND session_id = %(name)s",
            name=storable(name),
        ).fetchone()
        return session_from(row) if row else None

    @writes_lazily
    def keep_session(self, session: Session, told: AgentSession) -> None:
        insert_session(session, told)

    @writes_lazily
    def advance(self, session: Session, name: str, position: int, file: str) -> None:
        session.execute(
            "UPDATE agent_session SET position = %(position)s, file = %(file)s "
            "WHERE owner = %(owner)s AND session_id = %(name)s",
            name=storable(name),
            position=position,
            file=storable(file),
        )

    @writes_lazily
    def note_shown(
        self,
        session: Session,
        name: str,
        ids: Sequence[str],
        *,
        informed_at: datetime | None = None,
    ) -> None:
        before = session.scalar(
            "SELECT shown FROM agent_session "
            "WHERE owner = %(owner)s AND session_id = %(name)s",
            name=storable(name),
        )
        if before is None:
            return
        shown = list(dict.fromkeys([*json.loads(before), *ids]))[-SHOWN_MAX:]
        session.execute(
            "UPDATE agent_session SET shown = %(shown)s, "
            "informed_at = coalesce(%(informed_at)s::timestamptz, informed_at) "
            "WHERE owner = %(owner)s AND session_id = %(name)s",
            name=storable(name),
            shown=json.dumps(shown),
            informed_at=utc(informed_at) if informed_at else None,
        )

    @reads
    def latest(
        self, session: Session, sessions: Sequence[str], limit: int
    ) -> list[MemoryRecord]:
        seqs: list[int] = []
        for statement in (_LATEST_WORKING, _LATEST_ARCHIVED):
            rows = session.execute(
                statement, sessions=list(map(storable, sessions)), limit=limit
            )
            seqs += [seq for (seq,) in rows]
        found = memories_at(session, seqs)
        memories = [found[seq] for seq in seqs]
        memories.sort(key=lambda memory: memory.created_at, reverse=True)
        return memories[:limit]

    @reads
    def latest_episode(self, session: Session, name: str) -> Episode | None:
        row = session.execute(
            f"SELECT {EPISODE_COLUMNS} FROM episode WHERE owner = %(owner)s "
            "AND session_id = %(name)s AND level = 0 ORDER BY covers_from DESC LIMIT 1",
            name=storable(name),
        ).fetchone()
        return episode_from(row) if row else None

    @reads
    def sessions_of(self, session: Session, project: str, limit: int) -> list[str]:
        if not project:
            return []
        rows = session.execute(
            "SELECT session_id FROM agent_session AS s "
            "WHERE s.owner = %(owner)s AND project = %(project)s AND EXISTS ("
            "SELECT 1 FROM memory AS m "
            "WHERE m.owner = %(owner)s AND m.session_id = s.session_id) "
            "ORDER BY seen_at DESC LIMIT %(limit)s",
            project=storable(project),
            limit=limit,
        )
        return [name for (name,) in rows]

    @reads
    def projects_of(self, session: Session, sessions: Sequence[str]) -> dict[str, str]:
        rows = session.execute(
            "SELECT session_id, project FROM agent_session "
            "WHERE owner = %(owner)s AND session_id = ANY(%(sessions)s::text[])",
            sessions=list(map(storable, sessions)),
        )
        return dict(rows.fetchall())

    @reads
    def recent(self, session: Session, limit: int) -> list[AgentSession]:
        rows = session.execute(
            f"SELECT {SESSION_COLUMNS} FROM agent_session "
            "WHERE owner = %(owner)s AND transcript != '' "
            "ORDER BY seen_at DESC LIMIT %(limit)s",
            limit=limit,
        )
        return list(map(session_from, rows))

    @reads
    def unknown(self, session: Session, ids: Sequence[str]) -> list[str]:
        known = {id for (id,) in session.execute(_KNOWN, ids=list(map(storable, ids)))}
        return [id for id in ids if id not in known]

    @writes_lazily
    def count(self, session: Session, call: AgentCall) -> None:
        count_call(session, call)

    @reads
    def activity(self, session: Session) -> list[AgentActivity]:
        rows = session.execute(
            f"SELECT {ACTIVITY_COLUMNS} FROM agent_activity WHERE owner = %(owner)s "
            "ORDER BY client, event LIMIT %(most)s",
            most=CLIENTS_MAX,
        )
        return list(map(activity_from, rows))
