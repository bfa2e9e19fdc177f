"""Undo of consolidation: originals return to working memory."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime

from mnemosyned.domain.keeping.retention import Returned, returned
from mnemosyned.domain.ports.archive.retention import UndoStore
from mnemosyned.storage.postgres.database.session import Row, Session
from mnemosyned.storage.postgres.database.transactions import (
    Transactional,
    reads,
    writes,
)
from mnemosyned.storage.postgres.tables.changing.rewrites import (
    delete_episode,
    invalidate,
)
from mnemosyned.storage.postgres.tables.hierarchy import ABOVE
from mnemosyned.storage.postgres.tables.placement import return_all
from mnemosyned.storage.postgres.tables.rows import utc


class PostgresUndo(Transactional, UndoStore):
    """An `UndoStore` of one owner in PostgreSQL."""

    @reads
    def last_cycle(self, session: Session) -> str | None:
        cycle: str | None = session.scalar(
            "SELECT l.cycle_id FROM consolidation_log AS l WHERE l.owner = %(owner)s "
            "AND l.episode_id IS NOT NULL AND l.level = 0 AND l.undone_at IS NULL AND EXISTS ("
            "SELECT 1 FROM episode AS e "
            "JOIN placed AS p ON p.owner = e.owner AND p.episode_seq = e.seq "
            "JOIN memory AS m ON m.owner = p.owner AND m.seq = p.seq "
            "WHERE e.owner = %(owner)s AND e.id = l.episode_id AND m.content != '') "
            "ORDER BY l.id DESC LIMIT 1"
        )
        return cycle

    @reads
    def preview(self, session: Session, episodes: Sequence[str]) -> list[Returned]:
        return [_returned(id, _standing(session, id)) for id in episodes]

    @writes
    def apply(
        self,
        session: Session,
        episodes: Sequence[str],
        *,
        now: datetime,
        held_until: datetime,
    ) -> list[Returned]:
        until = utc(held_until)
        return [_undo(session, id, utc(now), until) for id in episodes]


def _standing(session: Session, id: str) -> Row | None:
    """An episode's position, parent and time, its originals, and those that were pruned."""
    return session.execute(
        "SELECT e.seq, e.parent_id, e.covers_from, e.covers_until, count(m.seq), "
        "count(m.seq) FILTER (WHERE m.content = '') FROM episode AS e "
        "LEFT JOIN placed AS p ON p.owner = e.owner AND p.episode_seq = e.seq "
        "LEFT JOIN memory AS m ON m.owner = p.owner AND m.seq = p.seq "
        "WHERE e.owner = %(owner)s AND e.id = %(id)s GROUP BY e.owner, e.seq",
        id=id,
    ).fetchone()


def _returned(id: str, standing: Row | None) -> Returned:
    if standing is None:
        return Returned(episode=id)
    begins, ends, originals, pruned = standing[2:]
    return returned(id, (begins, ends), originals=originals, pruned=pruned)


def _undo(session: Session, id: str, now: datetime, held_until: datetime) -> Returned:
    standing = _standing(session, id)
    result = _returned(id, standing)
    if result.pruned:
        return result
    gone = [id]
    if standing:
        seq, parent = standing[:2]
        session.execute(
            "INSERT INTO working_state (owner, memory_seq, held_until) "
            "SELECT o.owner, r.seq, %(until)s FROM owner AS o "
            "CROSS JOIN unnest(%(seqs)s::bigint[]) AS r (seq) WHERE o.owner = %(owner)s",
            seqs=return_all(session, seq),
            until=held_until,
        )
        above: dict[str, int] = dict(
            session.execute(
                f"{ABOVE} SELECT id, seq FROM above", summary=parent
            ).fetchall()
        )
        delete_episode(session, seq, id)
        removed, _ = invalidate(session, [above[parent]] if parent else [])
        gone += [upper for upper, place in above.items() if place in removed]
    session.execute(
        "UPDATE consolidation_log SET undone_at = %(now)s "
        "WHERE owner = %(owner)s AND episode_id = ANY(%(gone)s)",
        now=now,
        gone=gone,
    )
    return result
