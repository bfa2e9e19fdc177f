"""What holds from now on: how learnings are kept, read, changed and deleted."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import Any

from mnemosyned.domain.errors import NotFound
from mnemosyned.domain.learnings import Learning, LearningKind
from mnemosyned.domain.superseding import same, superseded
from mnemosyned.storage.sqlite.rows import instant, instant_text

COMPARED_MAX = 300
"""A new learning is held against this many of its source, the newest."""

_FIELDS = "id, kind, text, session_id, source, memory_id, created_at, superseded_by"


def keep(connection: sqlite3.Connection, learning: Learning) -> tuple[Learning, list[str]]:
    """Insert it, and mark what it supersedes; the ids of those.

    What an agent states again in the same words is the learning that is there. One that comes in
    late, as from an import, may itself be superseded by a newer one.
    """
    holding = listed(connection, sources=(learning.source,), limit=COMPARED_MAX)
    for other in holding:
        stated = other.memory is None and learning.memory is None
        if stated and other.kind is learning.kind and same(other.text, learning.text):
            return other, []
    newer = [other for other in holding if other.created_at > learning.created_at]
    older = holding[len(newer) :]
    by = next((other.id for other in newer if superseded(other, [learning])), None)
    learning = replace(learning, superseded_by=by)
    connection.execute(
        f"INSERT INTO learning ({_FIELDS}) VALUES (?, ?, ?, ?, ?, ?, ?, ?)",
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
    gone = [other.id for other in superseded(learning, older)]
    connection.executemany(
        "UPDATE learning SET superseded_by = ? WHERE id = ?",
        [(learning.id, other) for other in gone],
    )
    return learning, gone


def listed(
    connection: sqlite3.Connection,
    *,
    sources: Sequence[str | None] = (),
    kind: LearningKind | None = None,
    superseded: bool = False,
    limit: int,
) -> list[Learning]:
    """Learnings, newest first."""
    where = ["(? IS NULL OR kind = ?)"]
    values: list[str | None] = [kind, kind]
    if sources:
        where.append(f"({' OR '.join(['source IS ?'] * len(sources))})")
        values += sources
    if not superseded:
        where.append("superseded_by IS NULL")
    rows = connection.execute(
        f"SELECT {_FIELDS} FROM learning WHERE {' AND '.join(where)} "
        "ORDER BY created_at DESC, seq DESC LIMIT ?",
        (*values, limit),
    ).fetchall()
    return [_learning(row) for row in rows]


def edit(connection: sqlite3.Connection, id: str, text: str) -> None:
    """Replace the words of a learning. Raises `NotFound`."""
    _found(connection.execute("UPDATE learning SET text = ? WHERE id = ?", (text, id)), id)
    connection.execute("INSERT OR IGNORE INTO scrub_due VALUES (1)")


def remove(connection: sqlite3.Connection, id: str) -> None:
    """Delete a learning; what it superseded holds again. Raises `NotFound`."""
    _found(connection.execute("DELETE FROM learning WHERE id = ?", (id,)), id)
    connection.execute("INSERT OR IGNORE INTO scrub_due VALUES (1)")


def remove_known(connection: sqlite3.Connection, ids: Iterable[str]) -> int:
    """Delete those of these that are there; answers with how many."""
    return sum(
        connection.execute("DELETE FROM learning WHERE id = ?", (id,)).rowcount for id in ids
    )


def remove_of_memory(connection: sqlite3.Connection, memory: str) -> int:
    """Delete what was learned from a memory's words; answers with how many."""
    return connection.execute("DELETE FROM learning WHERE memory_id = ?", (memory,)).rowcount


def _found(changed: sqlite3.Cursor, id: str) -> None:
    if not changed.rowcount:
        raise NotFound(f"no learning has the id {id!r}; `learnings` shows them")


def _learning(row: Sequence[Any]) -> Learning:
    id, kind, text, session, source, memory, created_at, superseded_by = row
    return Learning(
        id=id,
        kind=LearningKind(kind),
        text=text,
        session=session,
        source=source,
        memory=memory,
        created_at=instant(created_at),
        superseded_by=superseded_by,
    )
