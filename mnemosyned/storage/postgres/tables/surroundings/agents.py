"""Agents' sessions and the activity of their hooks as rows."""

from __future__ import annotations

import json

from mnemosyned.domain.ports.surroundings import agents as limits
from mnemosyned.domain.ports.surroundings.agents import (
    CLIENTS_MAX,
    FAILURE_CHARS_MAX,
    SHOWN_MAX,
    AgentCall,
    AgentSession,
)
from mnemosyned.domain.storing.rows import ACTIVITY_COLUMNS, SESSION_COLUMNS
from mnemosyned.storage.postgres.database.session import Session
from mnemosyned.storage.postgres.tables.rows import storable, utc

_INSERT = (
    f"INSERT INTO agent_session (owner, {SESSION_COLUMNS}) VALUES (%(owner)s, %(session)s, "
    "%(client)s, %(conversation)s, %(project)s, %(directory)s, %(transcript)s, %(file)s, "
    "%(position)s, %(started_at)s, %(seen_at)s, %(informed_at)s, %(shown)s) "
    "ON CONFLICT (owner, session_id) DO "
)
_KEEP = (
    f"{_INSERT} UPDATE SET project = excluded.project, "
    "directory = excluded.directory, transcript = excluded.transcript, "
    "seen_at = excluded.seen_at"
)
_DROP_SESSIONS = (
    "DELETE FROM agent_session WHERE owner = %(owner)s AND session_id IN ("
    "SELECT session_id FROM agent_session WHERE owner = %(owner)s "
    "ORDER BY seen_at DESC OFFSET %(most)s)"
)
_COUNT = (
    f"INSERT INTO agent_activity AS a (owner, {ACTIVITY_COLUMNS}) VALUES (%(owner)s, "
    "%(client)s, %(event)s, 1, %(stored)s, %(characters)s, %(failures)s, %(duration_ms)s, "
    "%(duration_ms)s, %(called_at)s, %(stored_at)s, %(informed_at)s, %(failed_at)s, "
    "%(failure)s) ON CONFLICT (owner, client, event) DO UPDATE SET calls = a.calls + 1, "
    "stored = a.stored + excluded.stored, "
    "characters = a.characters + excluded.characters, "
    "failures = a.failures + excluded.failures, "
    "total_ms = a.total_ms + excluded.total_ms, "
    "slowest_ms = greatest(a.slowest_ms, excluded.slowest_ms), "
    "called_at = excluded.called_at, "
    "stored_at = coalesce(excluded.stored_at, a.stored_at), "
    "informed_at = coalesce(excluded.informed_at, a.informed_at), "
    "failed_at = coalesce(excluded.failed_at, a.failed_at), "
    "failure = CASE WHEN excluded.failed_at IS NULL THEN a.failure ELSE excluded.failure END"
)
# Not by a pair of columns, which Citus cannot hand on under row-level security.
_DROP_ACTIVITY = (
    "DELETE FROM agent_activity WHERE owner = %(owner)s AND event || ' ' || client IN ("
    "SELECT event || ' ' || client FROM agent_activity WHERE owner = %(owner)s "
    "ORDER BY called_at DESC OFFSET %(most)s)"
)


def insert_session(session: Session, told: AgentSession) -> None:
    """Add an agent's session, or replace what changes in it; the last seen are kept."""
    session.execute(_KEEP, **_session_values(told))
    session.execute(_DROP_SESSIONS, most=limits.SESSIONS_MAX)


def restore_session(session: Session, told: AgentSession) -> bool:
    """Add an agent's session as it was, unless it is there; tell whether it was added."""
    added = session.execute(f"{_INSERT} NOTHING", **_session_values(told))
    return bool(added.rowcount)


def _session_values(told: AgentSession) -> dict[str, object]:
    return {
        "session": storable(told.session),
        "client": storable(told.client),
        "conversation": storable(told.conversation),
        "project": storable(told.project),
        "directory": storable(told.directory),
        "transcript": storable(told.transcript),
        "file": storable(told.file),
        "position": told.position,
        "started_at": utc(told.started_at),
        "seen_at": utc(told.seen_at),
        "informed_at": utc(told.informed_at) if told.informed_at else None,
        "shown": json.dumps(told.shown[-SHOWN_MAX:]),
    }


def count_call(session: Session, call: AgentCall) -> None:
    """Add a call to the activity of its client and event; the last called are kept."""
    called = utc(call.called_at)
    session.execute(
        _COUNT,
        client=storable(call.client),
        event=storable(call.event),
        stored=call.stored,
        characters=call.characters,
        failures=int(bool(call.failure)),
        duration_ms=call.duration_ms,
        called_at=called,
        stored_at=called if call.stored else None,
        informed_at=called if call.characters else None,
        failed_at=called if call.failure else None,
        failure=storable(call.failure[:FAILURE_CHARS_MAX]),
    )
    session.execute(_DROP_ACTIVITY, most=CLIENTS_MAX)
