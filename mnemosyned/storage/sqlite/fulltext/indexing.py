"""Entries of the full-text indexes: inserted and deleted."""

from __future__ import annotations

import sqlite3
from collections.abc import Sequence

from mnemosyned.domain.text.stemming import WORD, fold_case, stem
from mnemosyned.domain.text.terms import glued_words, grams

GLUED = "\ue000"
"""Begins the stem of a word that touches a script without spaces; before each of them it is alone.

It parts them, so that no phrase goes across, and says whether an index has any. A private character
is a letter to FTS5, and is in no text.
"""


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
    if parts := second_terms(content):
        connection.execute(
            f"INSERT INTO {table} (rowid, grams) VALUES (?, ?)", (seq, parts)
        )


def unindex_grams(
    connection: sqlite3.Connection, table: str, seq: int, content: str
) -> None:
    """Take them out again; `content` is what was entered."""
    if parts := second_terms(content):
        connection.execute(
            f"INSERT INTO {table} ({table}, rowid, grams) VALUES ('delete', ?, ?)",
            (seq, parts),
        )


def second_terms(content: str) -> str:
    """Return the text for the second index: its grams, and the words that the first one misses."""
    parts = grams(content)
    if parts and (glued := glued_words(content)):
        return " ".join([parts, *(f"{GLUED} {glued_terms(word)}" for word in glued)])
    return parts


def glued_terms(word: str) -> str:
    """Return a word or code as the second index has it where it touches a script without spaces."""
    return " ".join(GLUED + stem(token) for token in WORD.findall(fold_case(word)))


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
