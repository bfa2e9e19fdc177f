"""Summaries whose ground has gone: emptied at once, up to the top, and rewritten one by one."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable

from mnemosyned.domain.consolidation import preview
from mnemosyned.domain.errors import BatchChanged
from mnemosyned.domain.memory import Episode, Tier
from mnemosyned.domain.retention import Emptied
from mnemosyned.storage.sqlite.fulltext.indexing import index_grams, unindex_grams
from mnemosyned.storage.sqlite.tables.memories import episode_at
from mnemosyned.storage.sqlite.tables.rows import (
    ARCHIVE_FIELDS,
    EPISODE_COLUMNS,
    episode_from,
    episode_row,
    memory_from,
)

_MARKS = ", ".join("?" for _ in EPISODE_COLUMNS.split(", "))

KEYED_BY_EPISODE = ("emptied_episode",)
"""The tables that keep something of an episode under its `episode_seq`. What is made of its words
(such as a vector) joins in here, and goes when the episode does or is emptied."""


def empty(
    connection: sqlite3.Connection, episodes: Iterable[int]
) -> tuple[frozenset[int], frozenset[int]]:
    """Empty these summaries and all above them; delete those that nothing is left of.

    Answers with the deleted and the emptied. No words of what is gone stay readable, however long
    the rewriting takes and whatever becomes of this process meanwhile.
    """
    removed: set[int] = set()
    emptied: set[int] = set()
    waiting = set(episodes)
    while waiting:  # ends, as each step goes up a level
        seq = waiting.pop()
        row = connection.execute(
            "SELECT e.id, e.content, (SELECT seq FROM episodic_memory WHERE id = e.parent_id), "
            "(SELECT count(*) FROM archive WHERE episode_seq = e.seq), "
            "EXISTS (SELECT 1 FROM episodic_memory WHERE parent_id = e.id) "
            "FROM episodic_memory AS e WHERE e.seq = ?",
            (seq,),
        ).fetchone()
        if row is None:
            continue
        id, content, parent, originals, has_children = row
        if originals or has_children:
            _blank(connection, seq, id, content, originals)
            emptied.add(seq)
        else:
            delete_episode(connection, seq, id, content)
            removed.add(seq)
            emptied.discard(seq)
        if parent is not None:
            waiting.add(parent)
    return frozenset(removed), frozenset(emptied)


def _blank(
    connection: sqlite3.Connection, seq: int, id: str, content: str, originals: int
) -> None:
    _leave(connection, seq, id, content)
    connection.execute(
        "UPDATE episodic_memory SET content = '', item_count = iif(?1, ?1, item_count) "
        "WHERE seq = ?2",
        (originals, seq),
    )
    connection.execute("INSERT INTO emptied_episode (episode_seq) VALUES (?)", (seq,))


def delete_episode(
    connection: sqlite3.Connection, seq: int, id: str, content: str
) -> None:
    """Delete an episode that has no originals and no children, and its words in the log."""
    _leave(connection, seq, id, content)
    connection.execute("DELETE FROM episodic_memory WHERE seq = ?", (seq,))


def _leave(connection: sqlite3.Connection, seq: int, id: str, content: str) -> None:
    """Take an episode's words out of everything that is kept beside it."""
    unindex_grams(connection, "episode_gram_fts", seq, content)
    for table in KEYED_BY_EPISODE:
        connection.execute(f"DELETE FROM {table} WHERE episode_seq = ?", (seq,))
    connection.execute(
        "UPDATE consolidation_log SET summary_preview = '', fallback_reason = NULL "
        "WHERE episode_id = ?",
        (id,),
    )


def next_emptied(connection: sqlite3.Connection, *, highest: int) -> Emptied | None:
    """The emptied summary to rewrite next, the lowest level first, with what it was made of."""
    row = connection.execute(
        "SELECT s.mark, s.episode_seq, e.level FROM emptied_episode AS s "
        "CROSS JOIN episodic_memory AS e ON e.seq = s.episode_seq "
        "WHERE e.level <= ? ORDER BY e.level, s.mark LIMIT 1",
        (highest,),
    ).fetchone()
    # They tell what to mask in originals. What is above an episode is made of summaries, which
    # hold no secrets, and a month has a great many details.
    episode = episode_at(connection, "seq", row[1], details=not row[2]) if row else None
    if episode is None:
        return None
    originals = connection.execute(
        f"SELECT {ARCHIVE_FIELDS} FROM archive AS a WHERE a.episode_seq = ? "
        "ORDER BY a.created_at, a.seq",
        (row[1],),
    )
    children = connection.execute(
        f"SELECT {EPISODE_COLUMNS} FROM episodic_memory WHERE parent_id = ? "
        "ORDER BY covers_from, seq",
        (episode.id,),
    )
    return Emptied(
        mark=row[0],
        episode=episode,
        originals=tuple(
            memory_from(one, tier=Tier.ARCHIVE, episode=episode.id) for one in originals
        ),
        children=tuple(episode_from(one) for one in children),
    )


def rewrite(connection: sqlite3.Connection, mark: int, episode: Episode) -> None:
    """Give an emptied summary its new words. Raises `BatchChanged` if it was emptied again."""
    row = connection.execute(
        "DELETE FROM emptied_episode WHERE mark = ? RETURNING episode_seq", (mark,)
    ).fetchone()
    if row is None:
        raise BatchChanged("the episode changed meanwhile; try again")
    (seq,) = row
    connection.execute(
        f"UPDATE episodic_memory SET ({EPISODE_COLUMNS}) = ({_MARKS}) WHERE seq = ?",
        (*episode_row(episode), seq),
    )
    index_grams(connection, "episode_gram_fts", seq, episode.content)
    connection.execute(
        "UPDATE consolidation_log SET summary_preview = ?, summarizer = ? WHERE episode_id = ?",
        (preview(episode.content), episode.summarizer, episode.id),
    )
    # A summary above that was written meanwhile read this one while it was empty.
    above = connection.execute(
        "SELECT seq FROM episodic_memory WHERE id = ? "
        "AND seq NOT IN (SELECT episode_seq FROM emptied_episode)",
        (episode.parent,),
    ).fetchall()
    empty(connection, [seq for (seq,) in above])
