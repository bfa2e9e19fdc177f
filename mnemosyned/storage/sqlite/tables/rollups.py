"""Days, weeks and months: what can be folded, folding it, and what stands under a summary."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable, Iterator, Sequence
from datetime import datetime
from typing import TypeVar

from mnemosyned.domain.errors import BatchChanged
from mnemosyned.domain.memory import Episode
from mnemosyned.domain.ports.store import Fold, Foldable
from mnemosyned.domain.rollup import Child, Level, begin_of
from mnemosyned.storage.sqlite.fulltext.indexing import index_grams, unindex_grams
from mnemosyned.storage.sqlite.tables.rows import (
    EPISODE_COLUMNS,
    Row,
    episode_row,
    instant,
    instant_text,
)

T = TypeVar("T")

CHUNK = 500
"""How many values one statement binds; SQLite allows more, older builds 999."""

BELOW = """
    WITH RECURSIVE below (id, seq) AS (
        SELECT id, seq FROM episodic_memory WHERE id = ?
        UNION ALL
        SELECT e.id, e.seq FROM below JOIN episodic_memory AS e ON e.parent_id = below.id
    )
"""
"""A summary and all summaries under it; the first value bound is its id.

What lies under them is joined by CROSS JOIN, which keeps SQLite from reading a whole table first:
it takes the summaries of a recursion to be many.
"""
ABOVE = """
    WITH RECURSIVE above (id, seq, parent_id) AS (
        SELECT id, seq, parent_id FROM episodic_memory WHERE id = ?
        UNION ALL
        SELECT e.id, e.seq, e.parent_id FROM above
        JOIN episodic_memory AS e ON e.id = above.parent_id
    )
"""
"""The same upwards: a summary, and those it went into."""

_BEGINS = "ifnull(period_from, covers_from)"
_CHILD = (
    f"SELECT id, {_BEGINS}, item_count, parent_id, length(content) FROM episodic_memory"
)


def foldable(
    connection: sqlite3.Connection,
    *,
    to_level: Level,
    before: datetime,
    limit: int,
    opened: Iterable[datetime],
) -> Foldable:
    """What can become, or has to become anew, a summary of this level.

    `opened` are beginnings of periods that more is coming for.
    """
    fresh = _children(
        connection,
        f"WHERE level = ? AND parent_id IS NULL AND {_BEGINS} < ? ORDER BY {_BEGINS} LIMIT ?",
        (to_level - 1, instant_text(before), limit),
    )
    standing = dict(
        connection.execute(
            "SELECT period_from, id FROM episodic_memory WHERE level = ? AND stale LIMIT ?",
            (to_level, limit),
        ).fetchall()
    )
    begun = {begin_of(to_level, child.covers_from) for child in fresh}
    for begins in {instant_text(moment) for moment in begun.union(opened)}:
        row = connection.execute(
            "SELECT period_from, id FROM episodic_memory WHERE level = ? AND period_from = ?",
            (to_level, begins),
        ).fetchone()
        standing.update([row] if row else [])
    for id in standing.values():
        fresh += _children(connection, "WHERE parent_id = ?", (id,))
    return Foldable(fresh, {instant(begins): id for begins, id in standing.items()})


def _children(connection: sqlite3.Connection, where: str, values: Row) -> list[Child]:
    return [
        Child(
            id=id,
            covers_from=instant(begins),
            item_count=items,
            parent=parent,
            chars=chars,
        )
        for id, begins, items, parent, chars in connection.execute(
            f"{_CHILD} {where}", values
        )
    ]


def fold(connection: sqlite3.Connection, change: Fold) -> None:
    """Write the summary of a period and link what it was made of.

    One that stands is rewritten in place, and what it went into has to be written again.
    """
    episode = change.episode
    _check_unchanged(connection, change)
    row = connection.execute(
        "SELECT seq, id, content, parent_id FROM episodic_memory "
        "WHERE level = ? AND period_from = ?",
        (episode.level, episode_row(episode)[-1]),
    ).fetchone()
    if row is None:
        marks = ", ".join("?" * len(episode_row(episode)))
        seq = connection.execute(
            f"INSERT INTO episodic_memory ({EPISODE_COLUMNS}) VALUES ({marks})",
            episode_row(episode),
        ).lastrowid
    else:
        seq = _rewrite(connection, episode, row)
    index_grams(connection, "episode_gram_fts", seq, episode.content)
    for chunk in chunks(list(change.members)):
        connection.execute(
            f"UPDATE episodic_memory SET parent_id = ? WHERE id IN ({_marks(chunk)})",
            (episode.id, *chunk),
        )


def _check_unchanged(connection: sqlite3.Connection, change: Fold) -> None:
    """What was forgotten while the summary was written must not come back with it."""
    seen = 0
    for chunk in chunks(list(change.members)):
        for id, content in connection.execute(
            f"SELECT id, content FROM episodic_memory WHERE id IN ({_marks(chunk)})",
            chunk,
        ):
            seen += content == change.members[id]
    if seen != len(change.members):
        raise BatchChanged("a summary of this period changed meanwhile; fold it again")


def _rewrite(connection: sqlite3.Connection, episode: Episode, row: Row) -> int:
    seq: int = row[0]
    _, id, content, parent = row
    if id != episode.id:
        raise BatchChanged(
            "the summary of this period was written anew meanwhile; fold it again"
        )
    unindex_grams(connection, "episode_gram_fts", seq, content)
    connection.execute(
        "UPDATE episodic_memory SET stale = 0, session_id = ?, source = ?, content = ?, "
        "item_count = ?, covers_from = ?, covers_until = ?, summarizer = ?, created_at = ? "
        "WHERE seq = ?",
        (
            episode.session,
            episode.source,
            episode.content,
            episode.item_count,
            instant_text(episode.covers_from),
            instant_text(episode.covers_until),
            episode.summarizer,
            instant_text(episode.created_at),
            seq,
        ),
    )
    connection.execute("UPDATE episodic_memory SET stale = 1 WHERE id = ?", (parent,))
    return seq


def ancestors(connection: sqlite3.Connection, seqs: Iterable[int]) -> dict[int, int]:
    """For those of these summaries that were folded, and for what they were folded into: by what.

    Both are the `seq` of a summary.
    """
    found: dict[int, int] = {}
    asked = set(seqs)
    for _ in Level:
        upper: set[int] = set()
        for chunk in chunks(sorted(asked)):
            for seq, parent in connection.execute(
                "SELECT e.seq, p.seq FROM episodic_memory AS e "
                f"JOIN episodic_memory AS p ON p.id = e.parent_id WHERE e.seq IN ({_marks(chunk)})",
                chunk,
            ):
                found[seq] = parent
                upper.add(parent)
        asked = upper - found.keys()
        if not asked:
            break
    return found


def chunks(values: Sequence[T]) -> Iterator[Sequence[T]]:
    """The values in runs that one statement can bind."""
    return (values[at : at + CHUNK] for at in range(0, len(values), CHUNK))


def _marks(values: Sequence[object]) -> str:
    return ", ".join("?" * len(values))
