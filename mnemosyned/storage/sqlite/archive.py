"""The archive: originals restored or pruned, and consolidation undone."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator, Sequence
from datetime import datetime
from itertools import groupby
from operator import itemgetter

from mnemosyned.errors import BatchChanged, WordsPruned
from mnemosyned.instants import shift
from mnemosyned.memory.forgetting import (
    EpisodeWords,
    Prunable,
    Removal,
    Retention,
    Returned,
    choose_prunable,
    returned,
)
from mnemosyned.memory.ports import RetentionStore, UndoStore
from mnemosyned.storage.sqlite.fulltext import unindex_memory
from mnemosyned.storage.sqlite.memories import ABOVE
from mnemosyned.storage.sqlite.rows import MEMORY_COLUMNS, Row, instant, instant_text
from mnemosyned.storage.sqlite.state import (
    delete_episode,
    has_pruned,
    invalidate,
    leave_secrets,
    set_state,
)
from mnemosyned.storage.sqlite.writer import Transactional, reads, writes


class SqliteRetention(Transactional, RetentionStore):
    """A `RetentionStore` on one SQLite file."""

    @writes
    def restore(self, connection: sqlite3.Connection, id: str) -> Removal:
        row = connection.execute(
            "SELECT seq, episode_seq FROM archive WHERE id = ? AND content != ''", (id,)
        ).fetchone()
        if row is None:
            raise BatchChanged("the memory was changed concurrently; retry")
        if has_pruned(connection, row[1]):
            raise WordsPruned(
                "other originals of its episode were pruned, and the summary is all that is left of "
                "their words; restoring this one would delete it. `get` shows this one",
                field="id",
            )
        connection.execute(
            f"INSERT INTO working_memory (seq, {MEMORY_COLUMNS}) "
            f"SELECT seq, {MEMORY_COLUMNS} FROM archive WHERE seq = ?",
            row[:1],
        )
        connection.execute(
            "UPDATE working_memory SET pinned = 1 WHERE seq = ?", row[:1]
        )
        leave_secrets(connection, *row)
        connection.execute("DELETE FROM archive WHERE seq = ?", row[:1])
        removed, emptied = invalidate(connection, row[1:])
        return Removal(archived=1, removed=removed, emptied=emptied)

    @reads
    def prunable(
        self,
        connection: sqlite3.Connection,
        retention: Retention,
        *,
        now: datetime,
        limit: int,
    ) -> Prunable:
        return choose_prunable(
            _by_episode(connection),
            before=None if retention.keep is None else shift(now, -retention.keep),
            excess=_excess_characters(connection, retention.characters_max),
            limit=limit,
        )

    @writes
    def prune(
        self, connection: sqlite3.Connection, ids: Sequence[str], *, now: datetime
    ) -> int:
        pruned = 0
        for id in ids:
            row = connection.execute(
                "SELECT seq, content, role FROM archive WHERE id = ? AND content != ''",
                (id,),
            ).fetchone()
            if row is None:  # forgotten or restored meanwhile
                continue
            unindex_memory(connection, *row)
            connection.execute(
                "UPDATE archive SET content = '', metadata = '{}' WHERE seq = ?",
                row[:1],
            )
            for table in ("embedding", "revision"):
                connection.execute(f"DELETE FROM {table} WHERE memory_seq = ?", row[:1])
            set_state(connection, row[0], "pruned_at", instant_text(now))
            pruned += 1
        return pruned


def _by_episode(connection: sqlite3.Connection) -> Iterator[EpisodeWords]:
    """Episodes with originals that have words, the oldest first."""
    rows = connection.execute(
        "SELECT e.covers_from, e.covers_until, e.seq, a.id, a.created_at, length(a.content) "
        "FROM episodic_memory AS e JOIN archive AS a ON a.episode_seq = e.seq "
        "WHERE a.content != '' ORDER BY e.covers_from, e.seq"
    )
    for (begins, ends, _), group in groupby(rows, key=itemgetter(0, 1, 2)):
        originals = ((id, instant(moment), size) for *_, id, moment, size in group)
        yield EpisodeWords(instant(begins), instant(ends), originals)


def _excess_characters(
    connection: sqlite3.Connection, characters_max: int | None
) -> int:
    """The characters in the archive beyond its limit."""
    if characters_max is None:
        return 0
    kept: int = connection.execute(
        "SELECT characters FROM tier_totals WHERE tier = 'archive'"
    ).fetchone()[0]
    return kept - characters_max


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
        return [_return_originals(id, _standing(connection, id)) for id in episodes]

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


def _return_originals(id: str, standing: Row | None) -> Returned:
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
    result = _return_originals(id, standing)
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
