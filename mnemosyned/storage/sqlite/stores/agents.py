"""Agents' sessions and the activity of their hooks."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Sequence
from functools import partial
from typing import Any

from mnemosyned.domain.ports.agents import (
    AgentActivity,
    AgentCall,
    AgentSession,
    AgentStore,
)
from mnemosyned.storage.sqlite.database.transactions import Transactional, reads, writes
from mnemosyned.storage.sqlite.tables.rows import (
    instant,
    instant_text,
    optional_instant,
)

SESSIONS_MAX = 10_000
"""The sessions that are kept, the last seen ones."""
CLIENTS_MAX = 200
"""The rows of activity that are kept."""
SHOWN_MAX = 500
FAILURE_CHARS_MAX = 200

_SESSION = (
    "session_id, client, conversation, project, directory, transcript, file, position, "
    "started_at, seen_at, informed_at, shown"
)
_ACTIVITY = (
    "client, event, calls, stored, characters, failures, total_ms, slowest_ms, called_at, "
    "stored_at, informed_at, failed_at, failure"
)


class SqliteAgents(Transactional, AgentStore):
    """An `AgentStore` on one SQLite file."""

    @reads
    def session(
        self, connection: sqlite3.Connection, session: str
    ) -> AgentSession | None:
        row = connection.execute(
            f"SELECT {_SESSION} FROM agent_session WHERE session_id = ?", (session,)
        ).fetchone()
        return _session_from(row) if row else None

    @writes
    def keep_session(
        self, connection: sqlite3.Connection, session: AgentSession
    ) -> None:
        connection.execute(
            f"INSERT INTO agent_session ({_SESSION}) "
            "VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?) "
            "ON CONFLICT (session_id) DO UPDATE SET project = excluded.project, "
            "directory = excluded.directory, transcript = excluded.transcript, "
            "file = excluded.file, position = excluded.position, seen_at = excluded.seen_at, "
            "informed_at = excluded.informed_at, shown = excluded.shown",
            _session_row(session),
        )
        connection.execute(
            "DELETE FROM agent_session WHERE session_id IN (SELECT session_id "
            "FROM agent_session ORDER BY seen_at DESC LIMIT -1 OFFSET ?)",
            (SESSIONS_MAX,),
        )

    @reads
    def sessions_of(
        self, connection: sqlite3.Connection, project: str, limit: int
    ) -> list[str]:
        if not project:
            return []
        rows = connection.execute(
            "SELECT session_id FROM agent_session WHERE project = ? "
            "ORDER BY seen_at DESC LIMIT ?",
            (project, limit),
        )
        return [session for (session,) in rows]

    @reads
    def recent(self, connection: sqlite3.Connection, limit: int) -> list[AgentSession]:
        rows = connection.execute(
            f"SELECT {_SESSION} FROM agent_session WHERE transcript != '' "
            "ORDER BY seen_at DESC LIMIT ?",
            (limit,),
        )
        return [_session_from(row) for row in rows]

    @reads
    def unknown(self, connection: sqlite3.Connection, ids: Sequence[str]) -> list[str]:
        among = "id IN (SELECT value FROM json_each(?1))"
        known = {
            id
            for (id,) in connection.execute(
                f"SELECT id FROM working_memory WHERE {among} "
                f"UNION ALL SELECT id FROM archive WHERE {among} "
                f"UNION ALL SELECT id FROM agent_forgotten WHERE {among}",
                (json.dumps(list(ids)),),
            )
        }
        return [id for id in ids if id not in known]

    def count(self, call: AgentCall) -> None:
        # What a failure of power takes back is a count.
        (outcome,) = self._writer.write_each(
            [partial(_count, call=call)], durable=False
        )
        if isinstance(outcome, Exception):
            raise outcome

    @reads
    def activity(self, connection: sqlite3.Connection) -> list[AgentActivity]:
        rows = connection.execute(
            f"SELECT {_ACTIVITY} FROM agent_activity ORDER BY client, event LIMIT ?",
            (CLIENTS_MAX,),
        )
        return [_activity_from(row) for row in rows]


def _count(connection: sqlite3.Connection, call: AgentCall) -> None:
    called = instant_text(call.called_at)
    connection.execute(
        f"INSERT INTO agent_activity ({_ACTIVITY}) "
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


def _session_row(session: AgentSession) -> tuple[Any, ...]:
    informed = session.informed_at
    return (
        session.session,
        session.client,
        session.conversation,
        session.project,
        session.directory,
        session.transcript,
        session.file,
        session.position,
        instant_text(session.started_at),
        instant_text(session.seen_at),
        instant_text(informed) if informed else None,
        json.dumps(session.shown[-SHOWN_MAX:]),
    )


def _session_from(row: Sequence[Any]) -> AgentSession:
    *texts, position, started_at, seen_at, informed_at, shown = row
    session, client, conversation, project, directory, transcript, file = texts
    return AgentSession(
        session=session,
        client=client,
        conversation=conversation,
        project=project,
        directory=directory,
        transcript=transcript,
        file=file,
        position=position,
        started_at=instant(started_at),
        seen_at=instant(seen_at),
        informed_at=optional_instant(informed_at),
        shown=tuple(json.loads(shown)),
    )


def _activity_from(row: Sequence[Any]) -> AgentActivity:
    client, event, calls, stored, characters, failures, total_ms, slowest_ms = row[:8]
    called_at, stored_at, informed_at, failed_at, failure = row[8:]
    return AgentActivity(
        client=client,
        event=event,
        calls=calls,
        stored=stored,
        characters=characters,
        failures=failures,
        mean_ms=round(total_ms / calls, 3),
        slowest_ms=round(slowest_ms, 3),
        called_at=instant(called_at),
        stored_at=optional_instant(stored_at),
        informed_at=optional_instant(informed_at),
        failed_at=optional_instant(failed_at),
        failure=failure,
    )
