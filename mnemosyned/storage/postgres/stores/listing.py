"""Lists: pages of memories and summaries, sessions and sources."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime

from mnemosyned.domain.listing import (
    ListFilter,
    ListPage,
    MemoryGroup,
    RecordKind,
    SessionTotals,
    SourceTotals,
    session_totals,
    source_totals,
)
from mnemosyned.domain.ports.listing import ListStore
from mnemosyned.storage.postgres.database.session import Session
from mnemosyned.storage.postgres.database.transactions import Transactional, reads
from mnemosyned.storage.postgres.search.listing import Key, page_keys
from mnemosyned.storage.postgres.tables.memories import episode_at, memories_at
from mnemosyned.storage.postgres.tables.rows import utc

_GROUPS = (
    "SELECT session_id, source, count, first, last FROM ("
    "SELECT 0 AS home, m.session_id, m.source, count(*) AS count, "
    "min(f.created_at) AS first, max(f.created_at) AS last "
    "FROM fresh AS f JOIN memory AS m ON m.owner = f.owner AND m.seq = f.seq "
    "WHERE f.owner = %(owner)s GROUP BY m.session_id, m.source UNION ALL "
    "SELECT 1, e.session_id, e.source, sum(e.item_count)::bigint, "
    "min(e.covers_from), max(e.covers_until) FROM episode AS e "
    "WHERE e.owner = %(owner)s AND e.level = 0 GROUP BY e.session_id, e.source) AS g "
    "ORDER BY home, session_id, source NULLS FIRST"
)
_COUNT_SINCE = (
    "SELECT (SELECT count(*) FROM fresh AS f "
    "WHERE f.owner = %(owner)s AND f.created_at >= %(since)s) + "
    "(SELECT count(*) FROM episode AS e "
    "JOIN placed AS p ON p.owner = e.owner AND p.episode_seq = e.seq "
    "JOIN memory AS m ON m.owner = p.owner AND m.seq = p.seq "
    "WHERE e.owner = %(owner)s AND e.level = 0 AND e.covers_until >= %(since)s "
    "AND m.created_at >= %(since)s)"
)


class PostgresLists(Transactional, ListStore):
    """A `ListStore` of one owner in PostgreSQL."""

    @reads
    def page(self, session: Session, wanted: ListFilter) -> ListPage:
        keys = page_keys(session, wanted)
        shown = keys[: wanted.limit]
        seqs = _seqs(shown, RecordKind.MEMORY)
        memories = memories_at(session, seqs) if seqs else {}
        summaries = [
            episode_at(session, "seq", seq) for seq in _seqs(shown, RecordKind.SUMMARY)
        ]
        return ListPage(
            [memories[seq] for seq in seqs],
            [summary for summary in summaries if summary],
            shown[-1].place() if len(keys) > wanted.limit else None,
        )

    @reads
    def sessions(self, session: Session) -> list[SessionTotals]:
        groups = _groups(session)
        names = list(dict.fromkeys(group.session for group in groups))
        return session_totals(groups, _projects(session, names))

    @reads
    def sources(self, session: Session) -> list[SourceTotals]:
        return source_totals(_groups(session))

    @reads
    def count_since(self, session: Session, moment: datetime) -> int:
        count: int = session.scalar(_COUNT_SINCE, since=utc(moment))
        return count


def _seqs(keys: Sequence[Key], kind: RecordKind) -> list[int]:
    return [key.seq for key in keys if key.kind is kind]


def _groups(session: Session) -> list[MemoryGroup]:
    return list(map(MemoryGroup._make, session.execute(_GROUPS)))


def _projects(session: Session, sessions: Sequence[str]) -> dict[str, str]:
    """The projects of those sessions that agents' hooks reported."""
    rows = session.execute(
        "SELECT session_id, project FROM agent_session WHERE owner = %(owner)s "
        "AND project != '' AND session_id = ANY(%(sessions)s::text[])",
        sessions=list(sessions),
    )
    return dict(rows.fetchall())
