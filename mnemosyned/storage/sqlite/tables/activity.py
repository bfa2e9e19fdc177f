"""What is going on in working memory: one bounded query, asked at each tick."""

from __future__ import annotations

import sqlite3
from collections import defaultdict
from datetime import datetime

from mnemosyned.domain.consolidation import Activity
from mnemosyned.storage.sqlite.tables.rows import instant, instant_text


def activity(
    connection: sqlite3.Connection, *, fresh: datetime, now: datetime, limit: int
) -> Activity:
    """Totals over the oldest rows, by session and source; what lies beyond `limit` is not seen.

    What an undo holds back is no more movable than what is pinned.
    """
    groups = connection.execute(
        "SELECT session_id, source, pinned OR seq IN "
        "(SELECT memory_seq FROM working_state WHERE held_until > ?) AS stays, "
        "count(*), sum(length(content)), "
        "sum(length(CAST(content AS BLOB))), min(created_at), sum(created_at < ?) "
        "FROM (SELECT * FROM working_memory ORDER BY created_at LIMIT ?) "
        "GROUP BY session_id, source, stays",
        (instant_text(now), instant_text(fresh), limit),
    )
    rows = movable = size = 0
    oldest: list[str] = []
    by_source: dict[str | None, int] = defaultdict(int)
    by_session: dict[str, tuple[int, int]] = {}
    for session, source, stays, count, chars, octets, first, seasoned in groups:
        rows += count
        size += octets
        if not stays:
            movable += count
            oldest.append(first)
            by_source[source] += seasoned
            known = by_session.get(session, (0, 0))
            by_session[session] = (known[0] + count, known[1] + chars)
    return Activity(
        rows=rows,
        movable=movable,
        bytes=size,
        oldest=instant(min(oldest)) if oldest else None,
        by_source=dict(by_source),
        by_session=by_session,
    )
