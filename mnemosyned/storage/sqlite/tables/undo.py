"""The way back: originals return to working memory; and pruning, after which they cannot."""

from __future__ import annotations

import sqlite3
from collections.abc import Sequence
from datetime import datetime
from itertools import groupby

from mnemosyned.domain.errors import BatchChanged, WordsPruned
from mnemosyned.domain.instants import shift
from mnemosyned.domain.retention import Prunable, Removal, Retention, Returned
from mnemosyned.storage.sqlite.fulltext.indexing import unindex_memory
from mnemosyned.storage.sqlite.tables.deletion import leave_secrets
from mnemosyned.storage.sqlite.tables.rewrites import delete_episode, empty
from mnemosyned.storage.sqlite.tables.rollups import ABOVE
from mnemosyned.storage.sqlite.tables.rows import (
    MEMORY_COLUMNS,
    Row,
    instant,
    instant_text,
)
from mnemosyned.storage.sqlite.tables.state import has_pruned, note


def restore(connection: sqlite3.Connection, id: str) -> Removal:
    """Move an original back to working memory and pin it.

    Raises `BatchChanged`, and `WordsPruned` where its episode is all that is left of others' words.
    """
    row = connection.execute(
        "SELECT seq, episode_seq FROM archive WHERE id = ? AND content != ''", (id,)
    ).fetchone()
    if row is None:
        raise BatchChanged("the memory moved, or was pruned, meanwhile; try again")
    if has_pruned(connection, row[1]):
        raise WordsPruned(
            "other originals of its episode were pruned, and the summary is all that is left of "
            "their words; taking this one out would cost them that. `get` shows it",
            field="id",
        )
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


def returning(connection: sqlite3.Connection, ids: Sequence[str]) -> list[Returned]:
    """What an undo of these episodes would put back, found without changing anything."""
    return [_returned(id, _standing(connection, id)) for id in ids]


def undo(
    connection: sqlite3.Connection,
    ids: Sequence[str],
    now: datetime,
    held_until: datetime,
) -> list[Returned]:
    """Put the originals of these episodes back as they were, and delete the episodes.

    A summary above the episodes lets its parts go; one that nothing is left of is undone too.
    """
    until = instant_text(held_until)
    return [_undo(connection, id, instant_text(now), until) for id in ids]


def last_cycle(connection: sqlite3.Connection) -> str | None:
    """The newest cycle of which something can be put back."""
    row = connection.execute(
        "SELECT cycle_id FROM consolidation_log AS l "
        "WHERE episode_id IS NOT NULL AND level = 0 AND undone_at IS NULL AND EXISTS ("
        "SELECT 1 FROM episodic_memory AS e JOIN archive AS a ON a.episode_seq = e.seq "
        "WHERE e.id = l.episode_id AND a.content != '') ORDER BY l.id DESC LIMIT 1"
    ).fetchone()
    return row[0] if row else None


def _standing(connection: sqlite3.Connection, id: str) -> Row | None:
    """An episode's position, words, parent and time, its originals, and those that were pruned."""
    row: Row | None = connection.execute(
        "SELECT seq, content, parent_id, covers_from, covers_until, "
        "(SELECT count(*) FROM archive WHERE episode_seq = e.seq), "
        "(SELECT count(*) FROM archive WHERE episode_seq = e.seq AND content = '') "
        "FROM episodic_memory AS e WHERE id = ?",
        (id,),
    ).fetchone()
    return row


def _returned(id: str, standing: Row | None) -> Returned:
    if standing is None:
        return Returned(episode=id)
    begins, ends, originals, pruned = standing[3:]
    return Returned(
        episode=id,
        originals=originals,
        restored=0 if pruned else originals,
        pruned=pruned,
        covers=(instant(begins), instant(ends)),
    )


def _undo(
    connection: sqlite3.Connection, id: str, now: str, held_until: str
) -> Returned:
    standing = _standing(connection, id)
    returned = _returned(id, standing)
    if returned.pruned:
        return returned
    gone = [id]
    if standing:
        seq, content, parent = standing[:3]
        connection.execute(
            f"INSERT INTO working_memory (seq, {MEMORY_COLUMNS}) "
            f"SELECT seq, {MEMORY_COLUMNS} FROM archive WHERE episode_seq = ?",
            (seq,),
        )
        connection.execute(
            "INSERT INTO working_state (memory_seq, held_until) "
            "SELECT seq, ?1 FROM archive WHERE episode_seq = ?2 "
            "ON CONFLICT (memory_seq) DO UPDATE SET held_until = ?1",
            (held_until, seq),
        )
        connection.execute("DELETE FROM archive WHERE episode_seq = ?", (seq,))
        above = connection.execute(
            f"{ABOVE} SELECT id, seq FROM above", (parent,)
        ).fetchall()
        delete_episode(connection, seq, id, content)
        removed, _ = empty(connection, [seq for _, seq in above[:1]])
        gone += [upper for upper, seq in above if seq in removed]
    connection.executemany(
        "UPDATE consolidation_log SET undone_at = ? WHERE episode_id = ?",
        [(now, episode) for episode in gone],
    )
    return returned


def prunable(
    connection: sqlite3.Connection, retention: Retention, *, now: datetime, limit: int
) -> Prunable:
    """The originals whose words a retention gives up, oldest episode first, about so many at most.

    An episode's go together: where some of them were left, taking one back would cost the others
    the summary, which is all that is left of their words.
    """
    before = (
        instant_text(shift(now, -retention.keep)) if retention.keep is not None else ""
    )
    over = 0
    if retention.characters_max is not None:
        (kept,) = connection.execute(
            "SELECT characters FROM tier_totals WHERE tier = 'archive'"
        ).fetchone()
        over = kept - retention.characters_max
    ids: list[str] = []
    characters = 0
    times: list[str] = []
    rows = connection.execute(
        "SELECT e.covers_from, e.covers_until, e.seq, a.id, a.created_at, length(a.content) "
        "FROM episodic_memory AS e JOIN archive AS a ON a.episode_seq = e.seq "
        "WHERE a.content != '' ORDER BY e.covers_from, e.seq"
    )
    for (begins, ends, _), originals in groupby(rows, key=lambda row: row[:3]):
        too_much = characters < over
        if len(ids) >= limit or not (too_much or begins < before):
            break
        if too_much or ends < before:
            for *_, id, created_at, size in originals:
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
            "SELECT seq, content, role FROM archive WHERE id = ? AND content != ''",
            (id,),
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
