"""Learnings: added, found, edited and removed."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable, Sequence
from functools import partial

from mnemosyned.conversation.learnings.conflicts import LearningKeeper
from mnemosyned.errors import NotFound
from mnemosyned.memory import rows
from mnemosyned.memory.learning import Learning, LearningKind
from mnemosyned.memory.ports import LearningStore
from mnemosyned.memory.rows import LEARNING_COLUMNS
from mnemosyned.storage.sqlite.filters import of_sources
from mnemosyned.storage.sqlite.purge import request_purge
from mnemosyned.storage.sqlite.rows import instant, instant_text
from mnemosyned.storage.sqlite.writer import Transactional, reads, writes

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


class SqliteLearnings(Transactional, LearningStore):
    """A `LearningStore` on one SQLite file."""

    @writes
    def add(
        self, connection: sqlite3.Connection, learning: Learning
    ) -> tuple[Learning, list[str]]:
        return Keeper(connection).keep(learning)

    @reads
    def find(
        self,
        connection: sqlite3.Connection,
        *,
        sources: Sequence[str | None] = (),
        kind: LearningKind | None = None,
        superseded: bool = False,
        limit: int,
    ) -> list[Learning]:
        where = ["(? IS NULL OR kind = ?)"]
        values: list[str | None] = [kind, kind]
        if sources:
            clause, named = of_sources(sources)
            where.append(clause)
            values += named
        if not superseded:
            where.append("superseded_by IS NULL")
        rows = connection.execute(
            f"SELECT {LEARNING_COLUMNS} FROM learning WHERE {' AND '.join(where)} "
            "ORDER BY created_at DESC, seq DESC LIMIT ?",
            (*values, limit),
        ).fetchall()
        return [learning_from(row) for row in rows]

    @writes
    def edit(self, connection: sqlite3.Connection, id: str, text: str) -> None:
        _found(
            connection.execute("UPDATE learning SET text = ? WHERE id = ?", (text, id)),
            id,
        )
        request_purge(connection)

    @writes
    def remove(self, connection: sqlite3.Connection, id: str) -> None:
        _found(connection.execute("DELETE FROM learning WHERE id = ?", (id,)), id)
        request_purge(connection)


def _found(changed: sqlite3.Cursor, id: str) -> None:
    if not changed.rowcount:
        raise NotFound(f"no learning has the id {id!r}; `learnings` shows them")
