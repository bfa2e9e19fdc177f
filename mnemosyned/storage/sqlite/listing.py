"""What happened at a time, for a question that asks for nothing else that is known."""

from __future__ import annotations

import sqlite3
from collections.abc import Sequence
from typing import Any

from mnemosyned.domain.memory import Tier
from mnemosyned.domain.recall import Query
from mnemosyned.domain.when import Span
from mnemosyned.storage.sqlite.filters import among, in_force
from mnemosyned.storage.sqlite.rows import instant_text

LISTED = 0.01
"""What the first is worth: next to nothing beside a word that matches."""
LISTED_STEP = 0.05
WALKED_MAX = 10_000
"""So many of a tier are looked at, the earliest of the time."""
EPISODES_MAX = 500
"""So many episodes, the latest that had begun when the time was over."""


def listed(
    connection: sqlite3.Connection, query: Query, span: Span, *, limit: int
) -> dict[int, float]:
    """The memories of a time, the most important first, then the earliest."""
    since = max(query.since, span.since) if query.since else span.since
    until = min(query.until, span.until) if query.until else span.until
    reach = (instant_text(since), instant_text(until))
    where, values = _within(query)
    found: list[tuple[float, str, int]] = []
    if query.tier in (None, Tier.WORKING):
        found += connection.execute(
            "SELECT importance, created_at, seq FROM (SELECT * FROM working_memory "
            "WHERE created_at >= ? AND created_at < ? ORDER BY created_at LIMIT ?) "
            f"WHERE {where} ORDER BY importance DESC, created_at, seq LIMIT ?",
            (*reach, WALKED_MAX, *values, limit),
        )
    if query.tier is not Tier.WORKING:
        found += connection.execute(
            "SELECT importance, created_at, seq FROM (SELECT a.* FROM "
            "(SELECT seq, covers_until FROM episodic_memory WHERE level = 0 AND covers_from < ? "
            "ORDER BY covers_from DESC LIMIT ?) AS e "
            "JOIN archive AS a ON a.episode_seq = e.seq WHERE e.covers_until >= ? "
            "AND a.created_at >= ? AND a.created_at < ? AND a.content != '' LIMIT ?) "
            f"WHERE {where} ORDER BY importance DESC, created_at, seq LIMIT ?",
            (reach[1], EPISODES_MAX, reach[0], *reach, WALKED_MAX, *values, limit),
        )
    found.sort(key=lambda row: (-row[0], *row[1:]))
    return {seq: LISTED / (1 + LISTED_STEP * at) for at, (_, _, seq) in enumerate(found[:limit])}


def _within(query: Query) -> tuple[str, Sequence[Any]]:
    """The filters by session and source, and what is in force."""
    clauses, values = among(query.sessions, query.sources)
    holds, moment = in_force(query, seq="seq")
    return " AND ".join(["1", *clauses]) + holds, [*values, *moment]
