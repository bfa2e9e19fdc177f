"""Records of an export that refer to no other row: learnings, the log, compactions and sessions."""

from __future__ import annotations

from collections.abc import Callable, Mapping
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
from mnemosyned.storage.postgres.database.session import Session
from mnemosyned.storage.postgres.tables.learnings import insert_learning
from mnemosyned.storage.postgres.tables.log import restore_log
from mnemosyned.storage.postgres.tables.rows import utc
from mnemosyned.storage.postgres.tables.surroundings.agents import restore_session

_SAME_ENTRY = (
    "SELECT 1 FROM consolidation_log WHERE owner = %(owner)s "
    "AND episode_id IS NOT DISTINCT FROM %(episode)s::text AND cycle_id = %(cycle)s "
    "AND created_at = %(created_at)s AND session_id = %(session)s AND level = %(level)s "
    "LIMIT 1"
)
_INSERT_COMPACTION = (
    "INSERT INTO compaction "
    "(owner, id, session_id, source, policy, text_hash, created_at) VALUES (%(owner)s, "
    "%(id)s, %(session)s, %(source)s, %(policy)s, %(text_hash)s, %(created_at)s) "
    "ON CONFLICT DO NOTHING"
)
_INSERT_PARTS = (
    "INSERT INTO compacted (owner, compaction, position, part) "
    "SELECT o.owner, %(id)s, r.place - 1, r.part FROM owner AS o "
    "CROSS JOIN unnest(%(parts)s::text[]) WITH ORDINALITY AS r (part, place) "
    "WHERE o.owner = %(owner)s"
)


def _learning(session: Session, learning: Learning) -> Outcome:
    text = session.scalar(
        "SELECT text FROM learning WHERE owner = %(owner)s AND id = %(id)s",
        id=learning.id,
    )
    if text is None:
        insert_learning(session, learning)
    elif text != learning.text:
        return OTHER_WORDS
    return text is None


def _log_entry(session: Session, entry: LogEntry) -> Outcome:
    known = session.scalar(
        _SAME_ENTRY,
        episode=entry.episode,
        cycle=entry.cycle,
        created_at=utc(entry.created_at),
        session=entry.session,
        level=int(entry.level),
    )
    if known is None:
        restore_log(session, entry)
    return known is None


def _compaction(session: Session, compaction: ExportedCompaction) -> Outcome:
    stored = session.execute(
        _INSERT_COMPACTION,
        id=compaction.id,
        session=compaction.session,
        source=compaction.source,
        policy=compaction.policy,
        text_hash=compaction.text_hash,
        created_at=utc(compaction.created_at),
    ).rowcount
    if stored:
        session.execute(_INSERT_PARTS, id=compaction.id, parts=list(compaction.parts))
    return bool(stored)


def _forgotten(session: Session, capture: ForgottenCapture) -> Outcome:
    inserted = session.execute(
        "INSERT INTO agent_forgotten (owner, id) VALUES (%(owner)s, %(id)s) "
        "ON CONFLICT DO NOTHING",
        id=capture.id,
    )
    return bool(inserted.rowcount)


SINGLE: Mapping[type[Any], Callable[[Session, Any], Outcome]] = {
    Learning: _learning,
    LogEntry: _log_entry,
    ExportedCompaction: _compaction,
    AgentSession: restore_session,
    ForgottenCapture: _forgotten,
}
"""How each kind is stored."""
