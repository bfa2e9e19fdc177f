"""Rows of a time, for a question that asks for nothing else."""

from __future__ import annotations

import sqlite3
from collections.abc import Sequence
from typing import Any

from mnemosyned.domain.dates.questions import TimeSpan
from mnemosyned.domain.memory import Tier
from mnemosyned.domain.search.by_time import COMPARED_CHARS, TimedMemory, scores_by_time
from mnemosyned.domain.search.candidates import overlap
from mnemosyned.domain.search.query import Query
from mnemosyned.storage.sqlite.search.filters import among, in_force
from mnemosyned.storage.sqlite.tables.rows import instant, instant_text

WALKED_MAX = 10_000
"""Rows read of a tier, the earliest of the time."""
EPISODES_MAX = 500
"""Episodes read, the latest that had begun when the time was over."""
_COLUMNS = (
    "importance, created_at, {0}seq, session_id, source, substr(content, 1, ?) AS text"
)
_FIRST_OF_EACH = (
    "SELECT importance, created_at, seq, source, text FROM (SELECT *, row_number() OVER "
    "(PARTITION BY source ORDER BY importance DESC, length(text) DESC, seq) AS place "
    "FROM (%s) WHERE %s) WHERE place <= ?"
)


def listed(
    connection: sqlite3.Connection, query: Query, span: TimeSpan, *, limit: int
) -> dict[int, float]:
    """Return the memories of a time with their scores by `scores_by_time`."""
    span = overlap(query, span)
    reach = (instant_text(span.since), instant_text(span.until))
    where, values = _within(query)
    rows: list[tuple[Any, ...]] = []
    if query.tier in (None, Tier.WORKING):
        fresh = (
            f"SELECT {_COLUMNS.format('')} FROM working_memory "
            "WHERE created_at >= ? AND created_at < ? ORDER BY created_at LIMIT ?"
        )
        rows += connection.execute(
            _FIRST_OF_EACH % (fresh, where),
            (COMPARED_CHARS, *reach, WALKED_MAX, *values, limit),
        )
    if query.tier is not Tier.WORKING:
        archived = (
            f"SELECT {_COLUMNS.format('a.')} FROM "
            "(SELECT seq, covers_until FROM episodic_memory WHERE level = 0 AND covers_from < ? "
            "ORDER BY covers_from DESC LIMIT ?) AS e "
            "JOIN archive AS a ON a.episode_seq = e.seq WHERE e.covers_until >= ? "
            "AND a.created_at >= ? AND a.created_at < ? AND a.content != '' LIMIT ?"
        )
        begun = (reach[1], EPISODES_MAX, reach[0])
        rows += connection.execute(
            _FIRST_OF_EACH % (archived, where),
            (COMPARED_CHARS, *begun, *reach, WALKED_MAX, *values, limit),
        )
    memories = [
        TimedMemory(importance, instant(created_at), position, source, beginning)
        for importance, created_at, position, source, beginning in rows
    ]
    return scores_by_time(memories, shown=query.limit, limit=limit)


def _within(query: Query) -> tuple[str, Sequence[Any]]:
    """Return conditions for sessions, sources and validity."""
    clauses, values = among(query.sessions, query.sources)
    holds, moment = in_force(query, seq="seq")
    return " AND ".join(["1", *clauses]) + holds, [*values, *moment]
