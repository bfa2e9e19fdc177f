"""Agents' sessions and the activity of their hooks."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Sequence
from datetime import datetime

from mnemosyned.domain.memory import Episode, MemoryRecord, Tier
from mnemosyned.domain.ports.surroundings import agents as limits
from mnemosyned.domain.ports.surroundings.agents import (
    CLIENTS_MAX,
    FAILURE_CHARS_MAX,
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
)
from mnemosyned.storage.sqlite.database.transactions import (
    Transactional,
    reads,
    writes_lazily,
)
from mnemosyned.storage.sqlite.tables.rows import (
    ARCHIVE_FIELDS,
    MEMORY_FIELDS,
    episode_from,
    instant_text,
    memory_from,
)
from mnemosyned.storage.sqlite.tables.surroundings.agents import (
    activity_from,
    projects_of,
    session_from,
    session_row,
)


class SqliteAgents(Transactional, AgentStore):
    """An `AgentStore` on one SQLite file.

    Nothing of it waits for the disk: what a failure of power takes back is read or counted again.
    """

    @reads
    def session(
        self, connection: sqlite3.Connection, session: str
    ) -> AgentSession | None:
        row = connection.execute(
            f"SELECT {SESSION_COLUMNS} FROM agent_session WHERE session_id = ?",
            (session,),
        ).fetchone()
        return session_from(row) if row else None

    @writes_lazily
    def keep_session(
        self, connection: sqlite3.Connection, session: AgentSession
    ) -> None:
        connection.execute(
            f"INSERT INTO agent_session ({SESSION_COLUMNS}) "
            "VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?) "
            "ON CONFLICT (session_id) DO UPDATE SET project = excluded.project, "
            "directory = excluded.directory, transcript = excluded.transcript, "
            "seen_at = excluded.seen_at",
            session_row(session),
        )
        connection.execute(
            "DELETE FROM agent_session WHERE session_id IN (SELECT session_id "
            "FROM agent_session ORDER BY seen_at DESC LIMIT -1 OFFSET ?)",
            (limits.SESSIONS_MAX,),
        )

    @writes_lazily
    def advance(
        self, connection: sqlite3.Connection, session: str, position: int, file: str
    ) -> None:
        connection.execute(
            "UPDATE agent_session SET position = ?, file = ? WHERE session_id = ?",
            (position, file, session),
        )

    @writes_lazily
    def note_shown(
        self,
        connection: sqlite3.Connection,
        session: str,
        ids: Sequence[str],
        *,
        informed_at: datetime | None = None,
    ) -> None:
        row = connection.execute(
            "SELECT shown FROM agent_session WHERE session_id = ?", (session,)
        ).fetchone()
        if row is None:
            return
        shown = list(dict.fromkeys([*json.loads(row[0]), *ids]))[-SHOWN_MAX:]
        connection.execute(
            "UPDATE agent_session SET shown = ?, informed_at = ifnull(?, informed_at) "
            "WHERE session_id = ?",
            (
                json.dumps(shown),
                instant_text(informed_at) if informed_at else None,
                session,
            ),
        )

    @reads
    def latest(
        self, connection: sqlite3.Connection, sessions: Sequence[str], limit: int
    ) -> list[MemoryRecord]:
        names = json.dumps(list(sessions))
        among = "session_id IN (SELECT value FROM json_each(?))"
        working = connection.execute(
            f"SELECT {MEMORY_FIELDS} FROM working_memory WHERE {among} "
            "ORDER BY created_at DESC, seq DESC LIMIT ?",
            (names, limit),
        )
        memories = [memory_from(row, tier=Tier.WORKING) for row in working]
        archived = connection.execute(
            f"SELECT e.id, {ARCHIVE_FIELDS} FROM episodic_memory AS e "
            "CROSS JOIN archive AS a ON a.episode_seq = e.seq "
            f"WHERE e.{among} AND e.level = 0 "
            "ORDER BY e.covers_from DESC, a.created_at DESC, a.seq DESC LIMIT ?",
            (names, limit),
        )
        memories += [
            memory_from(row[1:], tier=Tier.ARCHIVE, episode=row[0]) for row in archived
        ]
        memories.sort(key=lambda memory: memory.created_at, reverse=True)
        return memories[:limit]

    @reads
    def latest_episode(
        self, connection: sqlite3.Connection, session: str
    ) -> Episode | None:
        row = connection.execute(
            f"SELECT {EPISODE_COLUMNS} FROM episodic_memory "
            "WHERE session_id = ? AND level = 0 ORDER BY covers_from DESC LIMIT 1",
            (session,),
        ).fetchone()
        return episode_from(row) if row else None

    @reads
    def sessions_of(
        self, connection: sqlite3.Connection, project: str, limit: int
    ) -> list[str]:
        if not project:
            return []
        rows = connection.execute(
            "SELECT session_id FROM agent_session AS s WHERE project = ? AND ("
            "EXISTS (SELECT 1 FROM working_memory AS w WHERE +w.session_id = +s.session_id) OR "
            "EXISTS (SELECT 1 FROM episodic_memory AS e WHERE e.session_id = s.session_id)) "
            "ORDER BY seen_at DESC LIMIT ?",
            (project, limit),
        )
        return [session for (session,) in rows]

    @reads
    def projects_of(
        self, connection: sqlite3.Connection, sessions: Sequence[str]
    ) -> dict[str, str]:
        return projects_of(connection, sessions)

    @reads
    def recent(self, connection: sqlite3.Connection, limit: int) -> list[AgentSession]:
        rows = connection.execute(
            f"SELECT {SESSION_COLUMNS} FROM agent_session WHERE transcript != '' "
            "ORDER BY seen_at DESC LIMIT ?",
            (limit,),
        )
        return [session_from(row) for row in rows]

    @reads
    def unknown(self, connection: sqlite3.Connection, ids: Sequence[str]) -> list[str]:
        among = "id IN (SELECT value FROM json_each(?))"
        known = {
            id
            for (id,) in connection.execute(
                f"SELECT id FROM working_memory WHERE {among} "
                f"UNION ALL SELECT id FROM archive WHERE {among} "
                f"UNION ALL SELECT id FROM agent_forgotten WHERE {among}",
                (json.dumps(list(ids)),) * 3,
            )
        }
        return [id for id in ids if id not in known]

    @writes_lazily
    def count(self, connection: sqlite3.Connection, call: AgentCall) -> None:
        _count(connection, call)

    @reads
    def activity(self, connection: sqlite3.Connection) -> list[AgentActivity]:
        rows = connection.execute(
            f"SELECT {ACTIVITY_COLUMNS} FROM agent_activity ORDER BY client, event LIMIT ?",
            (CLIENTS_MAX,),
        )
        return [activity_from(row) for row in rows]


def _count(connection: sqlite3.Connection, call: AgentCall) -> None:
    called = instant_text(call.called_at)
    connection.execute(
        f"INSERT INTO agent_activity ({ACTIVITY_COLUMNS}) "
        "VALUES (?, ?, 1, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?) "
        "ON CONFLICT (client, event) DO UPDATE SET calls = calls + 1, "
        "stored = stored + excluded.stored, characters = characters + excluded.characters, "
        "failures = failures + excluded.failures, total_ms = total_ms + excluded.total_ms, "
        "slowest_ms = max(slowest_ms, excluded.slowest_ms), called_at = excluded.called_at, "
        "stored_at = ifnull(excluded.stored_at, stored_at), "
        "informed_at = ifnull(excluded.informed_at, informed_at), "
        "failed_at = ifnull(excluded.failed_at, failed_at), "
        "failure = iif(excluded.failed_at IS NULL, failure, excluded.failure)",
        (
            call.client,
            call.event,
            call.stored,
            call.characters,
            int(bool(call.failure)),
            call.duration_ms,
            call.duration_ms,
            called,
            called if call.stored else None,
            called if call.characters else None,
            called if call.failure else None,
            call.failure[:FAILURE_CHARS_MAX],
        ),
    )
    connection.execute(
        "DELETE FROM agent_activity WHERE (client, event) IN (SELECT client, event "
        "FROM agent_activity ORDER BY called_at DESC LIMIT -1 OFFSET ?)",
        (CLIENTS_MAX,),
    )
