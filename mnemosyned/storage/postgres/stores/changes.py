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

_WORKING = (
    "SELECT f.seq FROM fresh AS f JOIN memory AS m ON m.owner = f.owner AND m.seq = f.seq "
    "WHERE f.owner = %(owner)s AND m.id = ANY(%(ids)s::text[])"
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
        if not pinned:
            session.execute(
                "UPDATE working_state SET held_until = NULL "
                f"WHERE owner = %(owner)s AND memory_seq IN ({_WORKING})",
                ids=list(ids),
            )
        return session.execute(
            "UPDATE memory SET pinned = %(pinned)s "
            f"WHERE owner = %(owner)s AND seq IN ({_WORKING})",
            ids=list(ids),
            pinned=pinned,
        ).rowcount


def _positions(session: Session, ids: Sequence[str]) -> dict[str, Position]:
    """Positions of those of these memories that exist, and of their episodes."""
    rows = session.execute(
        "SELECT m.id, m.seq, p.episode_seq FROM memory AS m "
        "LEFT JOIN placed AS p ON p.owner = m.owner AND p.seq = m.seq "
        "WHERE m.owner = %(owner)s AND m.id = ANY(%(ids)s::text[])",
        ids=list(ids),
    )
    return {id: (seq, episode) for id, seq, episode in rows}


def _retag(session: Session, ids: Sequence[str], change: Callable[[int], int]) -> int:
    """Change the tags of memories; returns how many were not so before."""
    positions = _positions(session, ids)
    return sum(change(positions[id][0]) > 0 for id in ids if id in positions)
