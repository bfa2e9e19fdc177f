"""Candidates as ranking reads them, by their positions."""

from __future__ import annotations

from collections.abc import Sequence

from mnemosyned.domain.search.query import Match, Query
from mnemosyned.domain.search.words.bm25 import READ_CHARS_MAX
from mnemosyned.storage.postgres.database.session import Row, Session
from mnemosyned.storage.postgres.search.filters import memory_filter

_EPISODE = (
    "SELECT p.episode_seq FROM placed AS p WHERE p.owner = %(owner)s AND p.seq = m.seq"
)
MATCH_FIELDS = (
    f"m.seq, ({_EPISODE}), m.session_id, m.importance, m.source, m.role, "
    f"left(m.content, {READ_CHARS_MAX}), m.created_at"
)
"""Columns of `memory AS m`, for `match_from`. No join: whatever the planner expects, the archive is
looked up row by row."""


def match_from(row: Row, *, score: float = 0.0, grams: float = 0.0) -> Match:
    """A candidate from MATCH_FIELDS."""
    seq, episode, session, importance, source, role, content, created_at = row
    return Match(
        seq,
        score,
        session,
        importance,
        episode,
        source,
        role,
        content,
        created_at,
        grams,
    )


def matches_at(session: Session, query: Query, positions: Sequence[int]) -> list[Match]:
    """The memories at these positions that lie within the filters; their words have no score.

    Pruned ones are none of them: positions may come from vectors that were dropped meanwhile.
    """
    narrow = memory_filter(query)
    rows = session.execute(
        f"SELECT {MATCH_FIELDS} FROM memory AS m WHERE m.owner = %(owner)s "
        "AND m.seq = ANY(%(positions)s::bigint[]) "
        f"AND (m.content != '' OR NOT EXISTS ({_EPISODE})){narrow.where}",
        **narrow.values,
        positions=list(positions),
    )
    found = {row[0]: match_from(row) for row in rows}
    return [found[position] for position in positions if position in found]
