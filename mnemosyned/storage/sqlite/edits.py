"""Edits of memories with their index entries, details, learnings and stale summaries; tags and pins."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Collection, Sequence
from datetime import datetime

from mnemosyned.memory.edit import (
    Editing,
    Edition,
    EditTarget,
    KeptMemory,
    MemoryEdit,
    Position,
    details_with,
    edit_groups,
    unstated,
)
from mnemosyned.memory.ports import ChangeStore
from mnemosyned.memory.values import MemoryRecord, Revision, content_hash
from mnemosyned.storage.sqlite.fulltext import index_memories, unindex_memory
from mnemosyned.storage.sqlite.learnings import Keeper, remove_known
from mnemosyned.storage.sqlite.memories import (
    ABOVE,
    insert_details,
    name_rollup,
    sensitive_details,
    working_count,
)
from mnemosyned.storage.sqlite.purge import request_purge
from mnemosyned.storage.sqlite.rows import MEMORY_COLUMNS, instant, instant_text
from mnemosyned.storage.sqlite.state import (
    add_tags,
    has_pruned,
    invalidate,
    keep_revision,
    leave_secrets,
    position_of,
    remark,
    remove_tags,
    replace_tags,
    revisions_of,
)
from mnemosyned.storage.sqlite.writer import Transactional, reads, writes

_EDITED = "content, session_id, source, role, importance, created_at"


class SqliteEditing(Editing):
    """The edits of one transaction."""

    def __init__(
        self, connection: sqlite3.Connection, *, now: datetime, drop_history: bool
    ) -> None:
        super().__init__()
        self._connection = connection
        self._keeper = Keeper(connection)
        self._moment = instant_text(now)
        self._drop_history = drop_history

    def find(self, id: str) -> KeptMemory | None:
        row = self._connection.execute(
            f"SELECT seq, NULL, {_EDITED} FROM working_memory WHERE id = ? UNION ALL "
            f"SELECT seq, episode_seq, {_EDITED} FROM archive WHERE id = ?",
            (id, id),
        ).fetchone()
        if row is None:
            return None
        seq, episode, content, session, source, role, importance, created_at = row
        return KeptMemory(
            seq=seq,
            episode=episode,
            content=content,
            session=session,
            source=source,
            role=role,
            importance=importance,
            created_at=instant(created_at),
        )

    def count_originals(self, episode: int) -> int:
        count: int = self._connection.execute(
            "SELECT count(*) FROM archive WHERE episode_seq = ?", (episode,)
        ).fetchone()[0]
        return count

    def covers(self, episode: int, moment: datetime) -> bool:
        row = self._connection.execute(
            "SELECT 1 FROM episodic_memory "
            "WHERE seq = ? AND ? BETWEEN covers_from AND covers_until",
            (episode, instant_text(moment)),
        ).fetchone()
        return row is not None

    def has_pruned(self, episode: int) -> bool:
        return has_pruned(self._connection, episode)

    def write(self, target: EditTarget) -> None:
        connection, edit, seq = self._connection, target.edit, target.seq
        keep_revision(
            connection, seq, edit, moment=self._moment, drop=self._drop_history
        )
        _write_row(connection, target)
        if edit.is_reworded:
            _index(connection, target)
            _relearn(connection, edit, self._keeper)
        if edit.is_moved:
            _move_learnings(connection, edit.after)
        if edit.before.created_at != edit.after.created_at:
            connection.execute(
                "UPDATE working_state SET future_since = NULL WHERE memory_seq = ?",
                (seq,),
            )
        if target.episode is not None and edit.is_reworded:
            _restate_details(connection, target, target.episode)

    def move_back(self, seq: int, episode: int) -> None:
        self._connection.execute(
            f"INSERT INTO working_memory (seq, {MEMORY_COLUMNS}) "
            f"SELECT seq, {MEMORY_COLUMNS} FROM archive WHERE seq = ?",
            (seq,),
        )
        leave_secrets(self._connection, seq, episode)
        self._connection.execute("DELETE FROM archive WHERE seq = ?", (seq,))

    def rename_episode(self, episode: int, edit: MemoryEdit) -> None:
        connection = self._connection
        names = (edit.after.session, edit.after.source)
        id, parent = connection.execute(
            "UPDATE episodic_memory SET session_id = ?, source = ? WHERE seq = ? "
            "RETURNING id, parent_id",
            (*names, episode),
        ).fetchone()
        connection.execute(
            "UPDATE consolidation_log SET session_id = ?, source = ? WHERE episode_id = ?",
            (*names, id),
        )
        above = connection.execute(
            f"{ABOVE} SELECT id, seq FROM above", (parent,)
        ).fetchall()
        remark(connection, [episode, *(seq for _, seq in above)])
        for upper, _ in above:
            name_rollup(connection, upper)

    def finish(self, stale: Collection[int], *, changed: int) -> int:
        invalidate(self._connection, stale)
        if self._drop_history and changed:
            request_purge(self._connection)
        return working_count(self._connection)


def _write_row(connection: sqlite3.Connection, target: EditTarget) -> None:
    edit, seq, after = target.edit, target.seq, target.edit.after
    home = "working_memory" if target.episode is None else "archive"
    connection.execute(
        f"UPDATE {home} SET session_id = ?, source = ?, role = ?, importance = ?, created_at = ? "
        "WHERE seq = ?",
        (
            after.session,
            after.source,
            after.role,
            after.importance,
            instant_text(after.created_at),
            seq,
        ),
    )
    if "tags" in edit.changed_fields:
        replace_tags(connection, seq, after.tags)
    if edit.before.content != after.content:
        connection.execute(
            f"UPDATE {home} SET content = ?, content_hash = ? WHERE seq = ?",
            (after.content, content_hash(after.content), seq),
        )


def _index(connection: sqlite3.Connection, target: EditTarget) -> None:
    """Have a memory found by its new words; what was made of the old ones goes."""
    seq, before, after = target.seq, target.edit.before, target.edit.after
    unindex_memory(connection, seq, before.content, before.role)
    index_memories(connection, [(seq, after.content, after.role)])
    connection.execute("DELETE FROM embedding WHERE memory_seq = ?", (seq,))


def _relearn(connection: sqlite3.Connection, edit: MemoryEdit, keeper: Keeper) -> None:
    """Delete the learnings that the new words no longer state, and keep those they add."""
    rows = connection.execute(
        "SELECT id, text FROM learning WHERE memory_id = ?", (edit.before.id,)
    ).fetchall()
    remove_known(connection, unstated(edit, rows))
    for learning in edit.learnings:
        keeper.keep(learning)


def _move_learnings(connection: sqlite3.Connection, memory: MemoryRecord) -> None:
    connection.execute(
        "UPDATE learning SET session_id = ?, source = ?, created_at = ? WHERE memory_id = ?",
        (memory.session, memory.source, instant_text(memory.created_at), memory.id),
    )


def _restate_details(
    connection: sqlite3.Connection, target: EditTarget, episode: int
) -> None:
    """Replace the exact values of an original; secrets stay so where others hold them too."""
    leave_secrets(connection, target.seq, episode)
    connection.execute("DELETE FROM detail WHERE memory_seq = ?", (target.seq,))
    secrets = sensitive_details(connection, episode)
    insert_details(connection, details_with(target.edit.after, secrets), episode)
    leave_secrets(connection, target.seq, episode)


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
