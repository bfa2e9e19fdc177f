"""Learnings as rows: inserted, superseded and deleted."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import Any

from mnemosyned.domain.learnings.conflicts import ActiveLearnings
from mnemosyned.domain.learnings.learning import Learning, LearningKind
from mnemosyned.storage.sqlite.tables.rows import instant, instant_text

COMPARED_MAX = 300
"""A new learning is held against this many of its source, the newest."""

FIELDS = "id, kind, text, session_id, source, memory_id, created_at, superseded_by"


class Keeper:
    """Inserts the learnings of one transaction, reading those in force once."""

    def __init__(self, connection: sqlite3.Connection) -> None:
        self._connection = connection
        self._holding: dict[str | None, ActiveLearnings] = {}
        self._kept: set[str] = set()

    @property
    def learned(self) -> int:
        """How many of the learnings that it inserted are in force."""
        return len(self._kept)

    def keep(self, learning: Learning) -> tuple[Learning, list[str]]:
        """Insert a learning and mark those it supersedes; returns their ids.

        A statement repeated by an agent in the same words is the existing learning. A learning that
        comes in late, as from an import, may itself be superseded by a newer one.
        """
        holding = self._holding_of(learning.source)
        stated = _stated_before(learning, holding)
        if stated is not None:
            return stated, []
        older: list[Learning] = []
        newer: list[Learning] = []
        for other in holding.find_conflicts(learning):
            (newer if other.created_at > learning.created_at else older).append(other)
        if newer:
            newest = max(newer, key=lambda other: other.created_at)
            learning = replace(learning, superseded_by=newest.id)
        else:
            learning = replace(learning, superseded_by=None)
        superseded = [other.id for other in older]
        _insert(self._connection, learning, gone=superseded)
        for other in older:
            holding.remove(other)
            self._kept.discard(other.id)
        if not newer:
            holding.add(learning)
            self._kept.add(learning.id)
        return learning, superseded

    def _holding_of(self, source: str | None) -> ActiveLearnings:
        if source not in self._holding:
            rows = self._connection.execute(
                f"SELECT {FIELDS} FROM learning "
                "WHERE source IS ? AND superseded_by IS NULL "
                "ORDER BY created_at DESC, seq DESC LIMIT ?",
                (source, COMPARED_MAX),
            ).fetchall()
            newest = map(learning_from, reversed(rows))
            self._holding[source] = ActiveLearnings(newest, limit=COMPARED_MAX)
        return self._holding[source]


def _stated_before(learning: Learning, holding: ActiveLearnings) -> Learning | None:
    """Return the learning that an agent already stated in the same words, if any."""
    if learning.memory is not None:
        return None
    for other in holding.same_wording(learning):
        if other.memory is None and other.kind is learning.kind:
            return other
    return None


def _insert(
    connection: sqlite3.Connection, learning: Learning, *, gone: Sequence[str]
) -> None:
    connection.execute(
        f"INSERT INTO learning ({FIELDS}) VALUES (?, ?, ?, ?, ?, ?, ?, ?)",
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


def learning_from(row: Sequence[Any]) -> Learning:
    """Return a learning from FIELDS."""
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
