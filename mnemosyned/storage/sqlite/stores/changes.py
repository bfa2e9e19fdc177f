"""Changes of memories: edits with their history, tags and pins."""

from __future__ import annotations

import sqlite3
from collections import defaultdict
from collections.abc import Callable, Sequence
from datetime import datetime

from mnemosyned.domain.memory import Revision
from mnemosyned.domain.ports.changes import ChangeStore
from mnemosyned.domain.revisions import Edition, MemoryEdit
from mnemosyned.storage.sqlite.database.transactions import Transactional, reads, writes
from mnemosyned.storage.sqlite.tables.changing.edits import edit_memories
from mnemosyned.storage.sqlite.tables.changing.revisions import revisions_of
from mnemosyned.storage.sqlite.tables.changing.state import position_of
from mnemosyned.storage.sqlite.tables.changing.tags import add_tags, remove_tags
from mnemosyned.storage.sqlite.tables.rows import instant_text


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
        return edit_memories(
            connection, edits, moment=instant_text(now), drop_history=drop_history
        )

    @reads
    def groups(
        self, connection: sqlite3.Connection, ids: Sequence[str], *, size: int
    ) -> list[list[str]]:
        members: dict[int, list[str]] = defaultdict(list)
        for id in ids:
            position = position_of(connection, id)
            if position:
                members[position[1] or -position[0]].append(id)
        groups: list[list[str]] = []
        for together in members.values():
            if not groups or len(groups[-1]) + len(together) > size:
                groups.append([])
            groups[-1] += together
        return groups

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


def _retag(
    connection: sqlite3.Connection, ids: Sequence[str], change: Callable[[int], int]
) -> int:
    """Change the tags of memories; returns how many were not so before."""
    positions = [position_of(connection, id) for id in ids]
    return sum(change(position[0]) > 0 for position in positions if position)
