"""The hierarchy of summaries: all below one, all above one."""

from __future__ import annotations

from collections.abc import Iterable

from mnemosyned.storage.postgres.database.session import Session

BELOW = """
    WITH RECURSIVE below (id, seq) AS (
        SELECT id, seq FROM episode WHERE owner = %(owner)s AND id = %(summary)s
        UNION ALL
        SELECT e.id, e.seq FROM below
        JOIN episode AS e ON e.owner = %(owner)s AND e.parent_id = below.id
    )
"""
"""A summary and all summaries under it; `summary` is its id."""

ABOVE = """
    WITH RECURSIVE above (id, seq, parent_id) AS (
        SELECT id, seq, parent_id FROM episode
        WHERE owner = %(owner)s AND id = %(summary)s
        UNION ALL
        SELECT e.id, e.seq, e.parent_id FROM above
        JOIN episode AS e ON e.owner = %(owner)s AND e.id = above.parent_id
    )
"""
"""The same upwards: a summary, and those it went into."""

_NAME_AS_BELOW = (
    "UPDATE episode AS u SET session_id = b.session_id, source = b.source FROM ("
    "SELECT CASE WHEN min(e.session_id) = max(e.session_id) THEN min(e.session_id) "
    "ELSE '' END AS session_id, "
    "CASE WHEN min(coalesce(e.source, '')) = max(coalesce(e.source, '')) "
    "THEN min(e.source) END AS source "
    "FROM episode AS e WHERE e.owner = %(owner)s AND e.parent_id = %(id)s) AS b "
    "WHERE u.owner = %(owner)s AND u.id = %(id)s "
    "AND (u.session_id, u.source) IS DISTINCT FROM (b.session_id, b.source)"
)


def ancestors(session: Session, seqs: Iterable[int]) -> dict[int, int]:
    """Map these summaries, and those above them, to the roll-up that each went into.

    Both are the `seq` of a summary.
    """
    # Read as the recursion meets them: joined to them behind it, the planner would read every summary.
    rows = session.execute(
        "WITH RECURSIVE above (below, seq, parent_id) AS ("
        "SELECT NULL::bigint, e.seq, e.parent_id FROM episode AS e "
        "WHERE e.owner = %(owner)s AND e.seq = ANY(%(seqs)s) "
        "UNION SELECT a.seq::bigint, p.seq, p.parent_id FROM above AS a "
        "JOIN episode AS p ON p.owner = %(owner)s AND p.id = a.parent_id) "
        "SELECT below, seq FROM above WHERE below IS NOT NULL",
        seqs=sorted(seqs),
    )
    return dict(rows.fetchall())


def name_rollup(session: Session, id: str) -> None:
    """Give a day, week or month the session and source that all below it have, if they agree."""
    session.execute(_NAME_AS_BELOW, id=id)
