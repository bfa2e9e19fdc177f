"""The second path of the index: only texts that have such parts are in it."""

from __future__ import annotations

import sqlite3

from mnemosyned.domain.text.terms import grams


def index_grams(connection: sqlite3.Connection, table: str, seq: int | None, content: str) -> None:
    """Enter what a text has of them."""
    if parts := grams(content):
        connection.execute(f"INSERT INTO {table} (rowid, grams) VALUES (?, ?)", (seq, parts))


def unindex_grams(connection: sqlite3.Connection, table: str, seq: int, content: str) -> None:
    """Take them out again; `content` is what was entered."""
    if parts := grams(content):
        connection.execute(
            f"INSERT INTO {table} ({table}, rowid, grams) VALUES ('delete', ?, ?)", (seq, parts)
        )
