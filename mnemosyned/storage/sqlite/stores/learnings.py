"""Learnings: added, found, edited and removed."""

from __future__ import annotations

import sqlite3
from collections.abc import Sequence

from mnemosyned.domain.errors import NotFound
from mnemosyned.domain.learnings.learning import Learning, LearningKind
from mnemosyned.domain.ports.learnings import LearningStore
from mnemosyned.domain.storing.rows import LEARNING_COLUMNS
from mnemosyned.storage.sqlite.database.transactions import Transactional, reads, writes
from mnemosyned.storage.sqlite.search.filters import of_sources
from mnemosyned.storage.sqlite.tables.forgetting.purge import request_purge
from mnemosyned.storage.sqlite.tables.learnings import Keeper, learning_from


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
