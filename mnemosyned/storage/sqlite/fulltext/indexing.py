"""Entries of the full-text indexes: inserted and deleted."""

from __future__ import annotations

import sqlite3
from collections.abc import Sequence

from mnemosyned.domain.text.terms import grams


def index_memories(
    connection: sqlite3.Connection, texts: Sequence[tuple[int, str, str]]
) -> None:
    """Let memories be found by their words and their speakers: `seq`, content and role of each."""
    connection.executemany(
        "INSERT INTO memory_fts (rowid, content, role) VALUES (?, ?, ?)", texts
    )
    for seq, content, _ in texts:
        index_grams(connection, "memory_gram_fts", seq, content)


def unindex_memory(
    connection: sqlite3.Connection, seq: int, content: str, role: str
) -> None:
    """Take a memory out, by the words it went in with; a pruned one is out already."""
    if not content:
        return
    connection.execute(
        "INSERT INTO memory_fts (memory_fts, rowid, content, role) VALUES ('delete', ?, ?, ?)",
        (seq, content, role),
    )
    unindex_grams(connection, "memory_gram_fts", seq, content)


def index_grams(
    connection: sqlite3.Connection, table: str, seq: int | None, content: str
) -> None:
    """Enter what a text has of them."""
    if parts := grams(content):
        connection.execute(
            f"INSERT INTO {table} (rowid, grams) VALUES (?, ?)", (seq, parts)
        )


def unindex_grams(
    connection: sqlite3.Connection, table: str, seq: int, content: str
) -> None:
    """Take them out again; `content` is what was entered."""
    if parts := grams(content):
        connection.execute(
            f"INSERT INTO {table} ({table}, rowid, grams) VALUES ('delete', ?, ?)",
            (seq, parts),
        )


def index_episode_grams(
    connection: sqlite3.Connection, seq: int | None, content: str, index_terms: str
) -> None:
    """Enter what a summary's text and index terms have of them."""
    index_grams(connection, "episode_gram_fts", seq, f"{content}\n{index_terms}")


def unindex_episode_grams(
    connection: sqlite3.Connection, seq: int, content: str, index_terms: str
) -> None:
    """Take them out again; the texts are what was entered."""
    unindex_grams(connection, "episode_gram_fts", seq, f"{content}\n{index_terms}")
