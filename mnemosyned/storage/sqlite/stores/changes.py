"""Changes of memories: edits with their history, tags and pins."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Sequence
from datetime import datetime

from mnemosyned.domain.memory import Revision
from mnemosyned.domain.ports.changes import ChangeStore
from mnemosyned.domain.revisions import Edition, MemoryEdit
from mnemosyned.domain.storing.editing import edit_groups
from mnemosyned.domain.storing.supersession import Position
from mnemosyned.storage.sqlite.database.transactions import Transactional, reads, writes
from mnemosyned.storage.sqlite.tables.changing.edits import SqliteEditing
from mnemosyned.storage.sqlite.tables.changing.revisions import revisions_of
from mnemosyned.storage.sqlite.tables.changing.state import position_of
from mnemosyned.storage.sqlite.tables.changing.tags import add_tags, remove_tags


class SqliteChanges(Transactional, ChangeStore):
    """A `ChangeStore` on one SQLite file."""

    @writes
    def edit(
        self,
        connection: sqlite3.Connection,
        edits: Sequence[MemoryEdit],
        *,
        now: datetime,
        drop_history: bool = False,
    ) -> Edition:
        editing = SqliteEditing(connection, now=now, drop_history=drop_history)
        return editing.edit(edits)

    @reads
    def groups(
        self, connection: sqlite3.Connection, ids: Sequence[str], *, size: int
    ) -> list[list[str]]:
        return edit_groups(ids, _positions(connection, ids), size=size)

    @reads
    def revisions(self, connection: sqlite3.Connection, id: str) -> list[Revision]:
        position = position_of(connection, id)
        return revisions_of(connection, position[0]) if position else []

    @writes
    def tag(
        self, connection: sqlite3.Connection, ids: Sequence[str], tags: Sequence[str]
    ) -> int:
        return _retag(connection, ids, lambda seq: add_tags(connection, seq, tags))

    @writes
    def untag(
        self, connection: sqlite3.Connection, ids: Sequence[str], tags: Sequence[str]
    ) -> int:
        return _retag(connection, ids, lambda seq: remove_tags(connection, seq, tags))

    @writes
    def pin(
        self, connection: sqlite3.Connection, ids: Sequence[str], *, pinned: bool
    ) -> int:
        changed = 0
        for id in ids:
            if not pinned:
                connection.execute(
                    "UPDATE working_state SET held_until = NULL "
                    "WHERE memory_seq = (SELECT seq FROM working_memory WHERE id = ?)",
                    (id,),
                )
            changed += connection.execute(
                "UPDATE working_memory SET pinned = ? WHERE id = ?", (int(pinned), id)
            ).rowcount
        return changed


def _positions(
    connection: sqlite3.Connection, ids: Sequence[str]
) -> dict[str, Position]:
    """Positions of those of these memories that exist, and of their episodes."""
    positions = ((id, position_of(connection, id)) for id in ids)
    return {id: position for id, position in positions if position}


def _retag(
    connection: sqlite3.Connection, ids: Sequence[str], change: Callable[[int], int]
) -> int:
    """Change the tags of memories; returns how many were not so before."""
    positions = _positions(connection, ids)
    return sum(change(positions[id][0]) > 0 for id in ids if id in positions)
