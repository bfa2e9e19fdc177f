"""Agents' sessions as rows."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Sequence
from typing import Any

from mnemosyned.domain.ports.surroundings.agents import SHOWN_MAX, AgentSession
from mnemosyned.storage.sqlite.tables.rows import (
    instant,
    instant_text,
    optional_instant,
)

SESSION_COLUMNS = (
    "session_id, client, conversation, project, directory, transcript, file, position, "
    "started_at, seen_at, informed_at, shown"
)


def projects_of(
    connection: sqlite3.Connection, sessions: Sequence[str]
) -> dict[str, str]:
    """The projects of those sessions that have one."""
    rows = connection.execute(
        "SELECT session_id, project FROM agent_session WHERE project != '' "
        "AND session_id IN (SELECT value FROM json_each(?))",
        (json.dumps(list(sessions)),),
    )
    return dict(rows.fetchall())


def session_row(session: AgentSession) -> tuple[Any, ...]:
    """Values for SESSION_COLUMNS."""
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


def session_from(row: Sequence[Any]) -> AgentSession:
    """A session from SESSION_COLUMNS."""
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
