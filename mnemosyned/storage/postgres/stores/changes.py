"""Changes of memories: edits with their history, tags and pins."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import datetime

from mnemosyned.domain.memory import Revision
from mnemosyned.domain.ports.changes import ChangeStore
from mnemosyned.domain.revisions import Edition, MemoryEdit
from mnemosyned.domain.storing.editing import edit_groups
from mnemosyned.domain.storing.supersession import Position
from mnemosyned.storage.postgres.database.session import Session
from mnemosyned.storage.postgres.database.transactions import (
    Transactional,
    reads,
    writes,
)
from mnemosyned.storage.postgres.tables.changing.edits import PostgresEditing
from mnemosyned.storage.postgres.tables.changing.revisions import revisions_of
from mnemosyned.storage.postgres.tables.changing.state import position_of
from mnemosyned.storage.postgres.tables.changing.tags import add_tags, remove_tags

# Rows beside those of an id are looked up by their key: `OFFSET 0` is not taken apart by a planner
# that believes an owner to be small.
_WORKING = (
    "SELECT m.seq FROM memory AS m WHERE m.owner = %(owner)s AND m.id = ANY(%(ids)s::text[]) "
    "AND EXISTS (SELECT 1 FROM fresh AS f "
    "WHERE f.owner = %(owner)s AND f.seq = m.seq OFFSET 0)"
)
_POSITIONS = (
    "SELECT m.id, m.seq, (SELECT p.episode_seq FROM placed AS p "
    "WHERE p.owner = %(owner)s AND p.seq = m.seq) FROM memory AS m "
    "WHERE m.owner = %(owner)s AND m.id = ANY(%(ids)s::text[])"
)


class PostgresChanges(Transactional, ChangeStore):
    """A `ChangeStore` of one owner in PostgreSQL."""

    @writes
    def edit(
        self,
        session: Session,
        edits: Sequence[MemoryEdit],
        *,
        now: datetime,
        drop_history: bool = False,
    ) -> Edition:
        editing = PostgresEditing(session, now=now, drop_history=drop_history)
        return editing.edit(edits)

    @reads
    def groups(
        self, session: Session, ids: Sequence[str], *, size: int
    ) -> list[list[str]]:
        return edit_groups(ids, _positions(session, ids), size=size)

    @reads
    def revisions(self, session: Session, id: str) -> list[Revision]:
        position = position_of(session, id)
        return revisions_of(session, position[0]) if position else []

    @writes
    def tag(self, session: Session, ids: Sequence[str], tags: Sequence[str]) -> int:
        return _retag(session, ids, lambda seq: add_tags(session, seq, tags))

    @writes
    def untag(self, session: Session, ids: Sequence[str], tags: Sequence[str]) -> int:
        return _retag(session, ids, lambda seq: remove_tags(session, seq, tags))

    @writes
    def pin(self, session: Session, ids: Sequence[str], *, pinned: bool) -> int:
        seqs = [seq for (seq,) in session.execute(_WORKING, ids=list(ids))]
        if not pinned:
            session.execute(
                "UPDATE working_state SET held_until = NULL "
                "WHERE owner = %(owner)s AND memory_seq = ANY(%(seqs)s::bigint[])",
                seqs=seqs,
            )
        return session.execute(
            "UPDATE memory SET pinned = %(pinned)s "
            "WHERE owner = %(owner)s AND seq = ANY(%(seqs)s::bigint[])",
            seqs=seqs,
            pinned=pinned,
        ).rowcount


def _positions(session: Session, ids: Sequence[str]) -> dict[str, Position]:
    """Positions of those of these memories that exist, and of their episodes."""
    rows = session.execute(_POSITIONS, ids=list(ids))
    return {id: (seq, episode) for id, seq, episode in rows}


def _retag(session: Session, ids: Sequence[str], change: Callable[[int], int]) -> int:
    """Change the tags of memories; returns how many were not so before."""
    positions = _positions(session, ids)
    return sum(change(positions[id][0]) > 0 for id in ids if id in positions)
