"""Changes of memories: tags and pins."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Sequence

from mnemosyned.domain.ports.changes import ChangeStore
from mnemosyned.storage.sqlite.database.transactions import Transactional, writes
from mnemosyned.storage.sqlite.tables.state import position_of
from mnemosyned.storage.sqlite.tables.tags import add_tags, remove_tags


class SqliteChanges(Transactional, ChangeStore):
    """A `ChangeStore` on one SQLite file."""

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


def _retag(
    connection: sqlite3.Connection, ids: Sequence[str], change: Callable[[int], int]
) -> int:
    """Change the tags of memories; returns how many were not so before."""
    positions = [position_of(connection, id) for id in ids]
    return sum(change(position[0]) > 0 for position in positions if position)
