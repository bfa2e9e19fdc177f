"""The hierarchy of summaries: all below one, all above one."""

from __future__ import annotations

import sqlite3
from collections.abc import Collection, Iterable, Iterator, Sequence
from typing import TypeVar

from mnemosyned.domain.sleep.rollup import Level

T = TypeVar("T")

CHUNK = 500
"""How many values one statement binds; SQLite allows more, older builds 999."""

BELOW = """
    WITH RECURSIVE below (id, seq) AS (
        SELECT id, seq FROM episodic_memory WHERE id = ?
        UNION ALL
        SELECT e.id, e.seq FROM below JOIN episodic_memory AS e ON e.parent_id = below.id
    )
"""
"""A summary and all summaries under it; the first value bound is its id.

What lies under them is joined by CROSS JOIN, which keeps SQLite from reading a whole table first:
it takes the summaries of a recursion to be many.
"""

ABOVE = """
    WITH RECURSIVE above (id, seq, parent_id) AS (
        SELECT id, seq, parent_id FROM episodic_memory WHERE id = ?
        UNION ALL
        SELECT e.id, e.seq, e.parent_id FROM above
        JOIN episodic_memory AS e ON e.id = above.parent_id
    )
"""
"""The same upwards: a summary, and those it went into."""


def ancestors(connection: sqlite3.Connection, seqs: Iterable[int]) -> dict[int, int]:
    """Map these summaries, and those above them, to the roll-up that each went into.

    Both are the `seq` of a summary.
    """
    parents: dict[int, int] = {}
    asked = set(seqs)
    for _ in Level:
        upper: set[int] = set()
        for chunk in chunks(sorted(asked)):
            for seq, parent in connection.execute(
                "SELECT e.seq, p.seq FROM episodic_memory AS e "
                f"JOIN episodic_memory AS p ON p.id = e.parent_id WHERE e.seq IN ({placeholders(chunk)})",
                chunk,
            ):
                parents[seq] = parent
                upper.add(parent)
        asked = upper - parents.keys()
        if not asked:
            break
    return parents


def name_rollup(connection: sqlite3.Connection, id: str) -> None:
    """Give a day, week or month the session and source that all below it have, if they agree."""
    connection.execute(
        "UPDATE episodic_memory SET (session_id, source) = ("
        "SELECT iif(min(session_id) = max(session_id), min(session_id), ''), "
        "iif(min(ifnull(source, '')) = max(ifnull(source, '')), min(source), NULL) "
        "FROM episodic_memory WHERE parent_id = ?) WHERE id = ?",
        (id, id),
    )


def chunks(values: Sequence[T]) -> Iterator[Sequence[T]]:
    """The values in runs that one statement can bind."""
    return (values[start : start + CHUNK] for start in range(0, len(values), CHUNK))


def placeholders(values: Collection[object]) -> str:
    """Return as many question marks as there are values to bind."""
    return ", ".join("?" * len(values))
