"""What goes into the full-text indexes, what is taken out, and what is pressed out for good."""

from __future__ import annotations

import sqlite3
from collections.abc import Sequence

from mnemosyned.storage.sqlite.grams import index_grams, unindex_grams

INDEXES = ("memory_fts", "episode_fts", "memory_gram_fts", "episode_gram_fts")
SCRUB_PAGES = 500
SCRUB_STEPS_MAX = 10_000


def index_memories(connection: sqlite3.Connection, texts: Sequence[tuple[int, str, str]]) -> None:
    """Let memories be found by their words and their speakers: `seq`, content and role of each."""
    connection.executemany("INSERT INTO memory_fts (rowid, content, role) VALUES (?, ?, ?)", texts)
    for seq, content, _ in texts:
        index_grams(connection, "memory_gram_fts", seq, content)


def unindex_memory(connection: sqlite3.Connection, seq: int, content: str, role: str) -> None:
    """Take a memory out, by the words it went in with; a pruned one is out already."""
    if not content:
        return
    connection.execute(
        "INSERT INTO memory_fts (memory_fts, rowid, content, role) VALUES ('delete', ?, ?, ?)",
        (seq, content, role),
    )
    unindex_grams(connection, "memory_gram_fts", seq, content)


def scrub_step(connection: sqlite3.Connection, table: str) -> bool:
    """Merge a bounded part of an index, dropping what was deleted; False when none is left.

    FTS5 keeps deleted words in its segments until they are merged. A negative rank asks it to
    merge all segments into one, a few pages at a time.
    """
    before = connection.total_changes
    connection.execute(f"INSERT INTO {table} ({table}, rank) VALUES ('merge', ?)", (-SCRUB_PAGES,))
    return connection.total_changes - before >= 2
