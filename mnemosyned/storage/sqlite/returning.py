"""The way back: originals return to working memory; and pruning, after which they cannot."""

from __future__ import annotations

import sqlite3
from collections.abc import Sequence
from datetime import datetime

from mnemosyned.domain.errors import BatchChanged
from mnemosyned.domain.forgetting import Prunable, Removal, Retention, Returned
from mnemosyned.storage.sqlite.emptied import delete_episode, empty
from mnemosyned.storage.sqlite.forgetting import leave_secrets
from mnemosyned.storage.sqlite.indexing import unindex_memory
from mnemosyned.storage.sqlite.marks import note
from mnemosyned.storage.sqlite.rows import MEMORY_COLUMNS, instant, instant_text


def restore(connection: sqlite3.Connection, id: str) -> Removal:
    """Move an original back to working memory and pin it. Raises `BatchChanged`."""
    row = connection.execute(
        "SELECT seq, episode_seq FROM archive WHERE id = ? AND content != ''", (id,)
    ).fetchone()
    if row is None:
        raise BatchChanged("the memory moved, or was pruned, meanwhile; try again")
    connection.execute(
        f"INSERT INTO working_memory (seq, {MEMORY_COLUMNS}) "
        f"SELECT seq, {MEMORY_COLUMNS} FROM archive WHERE seq = ?",
        row[:1],
    )
    connection.execute("UPDATE working_memory SET pinned = 1 WHERE seq = ?", row[:1])
    leave_secrets(connection, *row)
    connection.execute("DELETE FROM archive WHERE seq = ?", row[:1])
    removed, emptied = empty(connection, row[1:])
    return Removal(archived=1, removed=removed, emptied=emptied)


def undo(connection: sqlite3.Connection, ids: Sequence[str], now: datetime) -> list[Returned]:
    """Put the originals of these episodes back as they were, and delete the episodes.

    A summary above the episodes lets its parts go.
    """
    return [_undo(connection, id, instant_text(now)) for id in ids]


def _undo(connection: sqlite3.Connection, id: str, now: str) -> Returned:
    row = connection.execute(
        "SELECT e.seq, e.content, (SELECT seq FROM episodic_memory WHERE id = e.parent_id), "
        "(SELECT count(*) FROM archive WHERE episode_seq = e.seq AND content = '') "
        "FROM episodic_memory AS e WHERE e.id = ?",
        (id,),
    ).fetchone()
    restored = 0
    if row:
        seq, content, parent, pruned = row
        if pruned:
            return Returned(episode=id, pruned=pruned)
        restored = connection.execute(
            f"INSERT INTO working_memory (seq, {MEMORY_COLUMNS}) "
            f"SELECT seq, {MEMORY_COLUMNS} FROM archive WHERE episode_seq = ?",
            (seq,),
        ).rowcount
        connection.execute("DELETE FROM archive WHERE episode_seq = ?", (seq,))
        connection.execute("UPDATE episodic_memory SET parent_id = NULL WHERE parent_id = ?", (id,))
        delete_episode(connection, seq, id, content)
        empty(connection, [parent] if parent is not None else [])
    connection.execute("UPDATE consolidation_log SET undone_at = ? WHERE episode_id = ?", (now, id))
    return Returned(episode=id, restored=restored)


def prunable(
    connection: sqlite3.Connection, retention: Retention, *, now: datetime, limit: int
) -> Prunable:
    """The originals whose words a retention gives up, oldest episode first, so many at most."""
    before = now - retention.keep if retention.keep is not None else None
    over = 0
    if retention.characters_max is not None:
        (kept,) = connection.execute(
            "SELECT characters FROM tier_totals WHERE tier = 'archive'"
        ).fetchone()
        over = kept - retention.characters_max
    ids: list[str] = []
    characters = 0
    times: list[str] = []
    for id, created_at, covers_from, size in connection.execute(
        "SELECT a.id, a.created_at, e.covers_from, length(a.content) "
        "FROM episodic_memory AS e JOIN archive AS a ON a.episode_seq = e.seq "
        "WHERE a.content != '' ORDER BY e.covers_from, e.seq"
    ):
        too_much = characters < over
        begun = before is not None and instant(covers_from) < before
        if len(ids) >= limit or not (too_much or begun):
            break
        if too_much or (before is not None and instant(created_at) < before):
            ids.append(id)
            times.append(created_at)
            characters += size
    return Prunable(
        ids=tuple(ids),
        characters=characters,
        oldest=instant(min(times)) if times else None,
        newest=instant(max(times)) if times else None,
    )


def prune(connection: sqlite3.Connection, ids: Sequence[str], now: datetime) -> int:
    """Give up the words of these originals; their details, hashes and provenance stay."""
    pruned = 0
    for id in ids:
        row = connection.execute(
            "SELECT seq, content, role FROM archive WHERE id = ? AND content != ''", (id,)
        ).fetchone()
        if row is None:  # forgotten or restored meanwhile
            continue
        unindex_memory(connection, *row)
        connection.execute(
            "UPDATE archive SET content = '', metadata = '{}' WHERE seq = ?", row[:1]
        )
        connection.execute("DELETE FROM embedding WHERE memory_seq = ?", row[:1])
        note(connection, row[0], "pruned_at", instant_text(now))
        pruned += 1
    return pruned
