"""Tags of memories as rows."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable

from mnemosyned.domain.errors import InvalidRequest
from mnemosyned.domain.tags import TAGS_MAX


def add_tags(connection: sqlite3.Connection, seq: int, names: Iterable[str]) -> int:
    """Give a memory tags; returns how many it did not have. Raises `InvalidRequest` for too many."""
    added = connection.executemany(
        "INSERT OR IGNORE INTO tag (memory_seq, name) VALUES (?, ?)",
        [(seq, name) for name in names],
    ).rowcount
    (count,) = connection.execute(
        "SELECT count(*) FROM tag WHERE memory_seq = ?", (seq,)
    ).fetchone()
    if count > TAGS_MAX:
        (id,) = connection.execute(
            "SELECT id FROM working_memory WHERE seq = ? "
            "UNION ALL SELECT id FROM archive WHERE seq = ?",
            (seq, seq),
        ).fetchone()
        raise InvalidRequest(
            f"{id} would have {count}, and a memory has at most {TAGS_MAX} tags; remove some "
            "with `untag`",
            field="tags",
        )
    return added


def remove_tags(connection: sqlite3.Connection, seq: int, names: Iterable[str]) -> int:
    """Take tags from a memory; returns how many it had."""
    return connection.executemany(
        "DELETE FROM tag WHERE memory_seq = ? AND name = ?",
        [(seq, name) for name in names],
    ).rowcount


def replace_tags(
    connection: sqlite3.Connection, seq: int, names: Iterable[str]
) -> None:
    """Give a memory these tags and no others."""
    connection.execute("DELETE FROM tag WHERE memory_seq = ?", (seq,))
    add_tags(connection, seq, names)
