"""Agents' sessions as rows."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Sequence
from functools import partial
from typing import Any

from mnemosyned.domain.ports.surroundings.agents import SHOWN_MAX, AgentSession
from mnemosyned.domain.storing import rows
from mnemosyned.storage.sqlite.tables.rows import (
    instant,
    instant_text,
)

session_from = partial(rows.session_from, moment=instant)
activity_from = partial(rows.activity_from, moment=instant)
hook_activity_from = partial(rows.hook_activity_from, moment=instant)


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
