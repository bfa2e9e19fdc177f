"""Learnings as rows: inserted, superseded and deleted."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable, Sequence
from functools import partial

from mnemosyned.domain.learnings.keeper import LearningKeeper
from mnemosyned.domain.learnings.learning import Learning
from mnemosyned.domain.storing import rows
from mnemosyned.domain.storing.rows import LEARNING_COLUMNS
from mnemosyned.storage.sqlite.tables.rows import instant, instant_text

learning_from = partial(rows.learning_from, moment=instant)


class Keeper(LearningKeeper):
    """Keeps learnings in the rows of one transaction."""

    def __init__(self, connection: sqlite3.Connection) -> None:
        super().__init__()
        self._connection = connection

    def read(self, source: str | None, *, limit: int) -> Sequence[Learning]:
        rows = self._connection.execute(
            f"SELECT {LEARNING_COLUMNS} FROM learning "
            "WHERE source IS ? AND superseded_by IS NULL "
            "ORDER BY created_at DESC, seq DESC LIMIT ?",
            (source, limit),
        )
        return list(map(learning_from, rows))

    def insert(self, learning: Learning, *, gone: Sequence[str]) -> None:
        _insert(self._connection, learning, gone=gone)


def _insert(
    connection: sqlite3.Connection, learning: Learning, *, gone: Sequence[str]
) -> None:
    connection.execute(
        f"INSERT INTO learning ({LEARNING_COLUMNS}) VALUES (?, ?, ?, ?, ?, ?, ?, ?)",
        (
            learning.id,
            learning.kind,
            learning.text,
            learning.session,
            learning.source,
            learning.memory,
            instant_text(learning.created_at),
            learning.superseded_by,
        ),
    )
    connection.executemany(
        "UPDATE learning SET superseded_by = ? WHERE id = ?",
        [(learning.id, other) for other in gone],
    )


def remove_known(connection: sqlite3.Connection, ids: Iterable[str]) -> int:
    """Delete those of these that are there; answers with how many."""
    return sum(
        connection.execute("DELETE FROM learning WHERE id = ?", (id,)).rowcount
        for id in ids
    )


def remove_of_memory(connection: sqlite3.Connection, memory: str) -> int:
    """Delete what was learned from a memory's words; answers with how many."""
    return connection.execute(
        "DELETE FROM learning WHERE memory_id = ?", (memory,)
    ).rowcount
