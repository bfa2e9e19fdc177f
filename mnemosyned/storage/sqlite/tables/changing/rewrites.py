"""Invalidates summaries whose sources were deleted, up the hierarchy; they are rewritten later."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable
from functools import partial

from mnemosyned.domain.storing.summaries import Standing, invalidate_upward
from mnemosyned.storage.sqlite.fulltext.indexing import unindex_episode_grams

KEYED_BY_EPISODE = ("emptied_episode",)
"""The tables that keep something of an episode under its `episode_seq`. What is made of its words
(such as a vector) joins in here, and goes when the episode does or is emptied."""


def invalidate(
    connection: sqlite3.Connection, episodes: Iterable[int]
) -> tuple[frozenset[int], frozenset[int]]:
    """Empty and delete summaries; see `invalidate_upward`."""
    return invalidate_upward(
        episodes,
        standing_of=partial(_standing, connection),
        blank=partial(_blank, connection),
        delete=lambda seq, summary: delete_episode(connection, seq, summary.id),
    )


def _standing(connection: sqlite3.Connection, seq: int) -> Standing | None:
    row = connection.execute(
        "SELECT e.id, (SELECT seq FROM episodic_memory WHERE id = e.parent_id), "
        "(SELECT count(*) FROM archive WHERE episode_seq = e.seq), "
        "EXISTS (SELECT 1 FROM episodic_memory WHERE parent_id = e.id) "
        "FROM episodic_memory AS e WHERE e.seq = ?",
        (seq,),
    ).fetchone()
    return Standing._make(row) if row else None


def _blank(connection: sqlite3.Connection, seq: int, summary: Standing) -> None:
    _leave(connection, seq, summary.id)
    connection.execute(
        "UPDATE episodic_memory SET content = '', index_terms = '', item_count = iif(?, ?, item_count) "
        "WHERE seq = ?",
        (summary.originals, summary.originals, seq),
    )
    connection.execute("INSERT INTO emptied_episode (episode_seq) VALUES (?)", (seq,))


def remark(connection: sqlite3.Connection, episodes: Iterable[int]) -> None:
    """Give those that are empty a new mark: a rewriting that began before this is repeated."""
    connection.executemany(
        "INSERT OR REPLACE INTO emptied_episode (episode_seq) "
        "SELECT episode_seq FROM emptied_episode WHERE episode_seq = ?",
        [(episode,) for episode in episodes],
    )


def delete_episode(connection: sqlite3.Connection, seq: int, id: str) -> None:
    """Delete an episode that has no originals and no children, and its words in the log."""
    _leave(connection, seq, id)
    connection.execute("DELETE FROM episodic_memory WHERE seq = ?", (seq,))


def _leave(connection: sqlite3.Connection, seq: int, id: str) -> None:
    """Take an episode's words out of everything that is kept beside it."""
    content, index_terms = connection.execute(
        "SELECT content, index_terms FROM episodic_memory WHERE seq = ?", (seq,)
    ).fetchone()
    unindex_episode_grams(connection, seq, content, index_terms)
    for table in KEYED_BY_EPISODE:
        connection.execute(f"DELETE FROM {table} WHERE episode_seq = ?", (seq,))
    connection.execute(
        "UPDATE consolidation_log SET summary_preview = '', fallback_reason = NULL "
        "WHERE episode_id = ?",
        (id,),
    )
