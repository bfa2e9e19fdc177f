"""Undo of consolidation: originals return to working memory."""

from __future__ import annotations

import sqlite3
from collections.abc import Sequence
from datetime import datetime

from mnemosyned.domain.keeping.retention import Returned, returned
from mnemosyned.domain.ports.archive.retention import UndoStore
from mnemosyned.storage.sqlite.database.transactions import Transactional, reads, writes
from mnemosyned.storage.sqlite.tables.changing.rewrites import (
    delete_episode,
    invalidate,
)
from mnemosyned.storage.sqlite.tables.hierarchy import ABOVE
from mnemosyned.storage.sqlite.tables.rows import (
    MEMORY_COLUMNS,
    Row,
    instant,
    instant_text,
)


class SqliteUndo(Transactional, UndoStore):
    """An `UndoStore` on one SQLite file."""

    @reads
    def last_cycle(self, connection: sqlite3.Connection) -> str | None:
        row = connection.execute(
            "SELECT cycle_id FROM consolidation_log AS l "
            "WHERE episode_id IS NOT NULL AND level = 0 AND undone_at IS NULL AND EXISTS ("
            "SELECT 1 FROM episodic_memory AS e JOIN archive AS a ON a.episode_seq = e.seq "
            "WHERE e.id = l.episode_id AND a.content != '') ORDER BY l.id DESC LIMIT 1"
        ).fetchone()
        return row[0] if row else None

    @reads
    def preview(
        self, connection: sqlite3.Connection, episodes: Sequence[str]
    ) -> list[Returned]:
        return [_returned(id, _standing(connection, id)) for id in episodes]

    @writes
    def apply(
        self,
        connection: sqlite3.Connection,
        episodes: Sequence[str],
        *,
        now: datetime,
        held_until: datetime,
    ) -> list[Returned]:
        until = instant_text(held_until)
        return [_undo(connection, id, instant_text(now), until) for id in episodes]


def _standing(connection: sqlite3.Connection, id: str) -> Row | None:
    """An episode's position, parent and time, its originals, and those that were pruned."""
    row: Row | None = connection.execute(
        "SELECT seq, parent_id, covers_from, covers_until, "
        "(SELECT count(*) FROM archive WHERE episode_seq = e.seq), "
        "(SELECT count(*) FROM archive WHERE episode_seq = e.seq AND content = '') "
        "FROM episodic_memory AS e WHERE id = ?",
        (id,),
    ).fetchone()
    return row


def _returned(id: str, standing: Row | None) -> Returned:
    if standing is None:
        return Returned(episode=id)
    begins, ends, originals, pruned = standing[2:]
    return returned(
        id, (instant(begins), instant(ends)), originals=originals, pruned=pruned
    )


def _undo(
    connection: sqlite3.Connection, id: str, now: str, held_until: str
) -> Returned:
    standing = _standing(connection, id)
    result = _returned(id, standing)
    if result.pruned:
        return result
    gone = [id]
    if standing:
        seq, parent = standing[:2]
        connection.execute(
            f"INSERT INTO working_memory (seq, {MEMORY_COLUMNS}) "
            f"SELECT seq, {MEMORY_COLUMNS} FROM archive WHERE episode_seq = ?",
            (seq,),
        )
        connection.execute(
            "INSERT INTO working_state (memory_seq, held_until) "
            "SELECT seq, ? FROM archive WHERE episode_seq = ? "
            "ON CONFLICT (memory_seq) DO UPDATE SET held_until = excluded.held_until",
            (held_until, seq),
        )
        connection.execute("DELETE FROM archive WHERE episode_seq = ?", (seq,))
        above = connection.execute(
            f"{ABOVE} SELECT id, seq FROM above", (parent,)
        ).fetchall()
        delete_episode(connection, seq, id)
        removed, _ = invalidate(connection, [seq for _, seq in above[:1]])
        gone += [upper for upper, seq in above if seq in removed]
    connection.executemany(
        "UPDATE consolidation_log SET undone_at = ? WHERE episode_id = ?",
        [(now, episode) for episode in gone],
    )
    return result
