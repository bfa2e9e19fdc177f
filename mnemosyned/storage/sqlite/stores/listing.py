"""Lists: pages of memories and summaries, sessions and sources."""

from __future__ import annotations

import sqlite3
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
from mnemosyned.storage.sqlite.database.transactions import Transactional, reads
from mnemosyned.storage.sqlite.search.listing import Key, page_keys
from mnemosyned.storage.sqlite.tables.memories import episode_at, memories_at
from mnemosyned.storage.sqlite.tables.rows import instant, instant_text
from mnemosyned.storage.sqlite.tables.surroundings.agents import projects_of

_GROUPS = (
    "SELECT session_id, source, count(*), min(created_at), max(created_at) "
    "FROM working_memory GROUP BY session_id, source UNION ALL "
    "SELECT session_id, source, sum(item_count), min(covers_from), max(covers_until) "
    "FROM episodic_memory NOT INDEXED WHERE level = 0 GROUP BY session_id, source"
)


class SqliteLists(Transactional, ListStore):
    """A `ListStore` on one SQLite file."""

    @reads
    def page(self, connection: sqlite3.Connection, wanted: ListFilter) -> ListPage:
        keys = page_keys(connection, wanted)
        shown = keys[: wanted.limit]
        memories = memories_at(connection, _seqs(shown, RecordKind.MEMORY))
        summaries = [
            episode_at(connection, "seq", seq)
            for seq in _seqs(shown, RecordKind.SUMMARY)
        ]
        return ListPage(
            [memories[seq] for seq in _seqs(shown, RecordKind.MEMORY)],
            [summary for summary in summaries if summary],
            shown[-1].place() if len(keys) > wanted.limit else None,
        )

    @reads
    def sessions(self, connection: sqlite3.Connection) -> list[SessionTotals]:
        groups = _groups(connection)
        names = list(dict.fromkeys(group.session for group in groups))
        return session_totals(groups, projects_of(connection, names))

    @reads
    def sources(self, connection: sqlite3.Connection) -> list[SourceTotals]:
        return source_totals(_groups(connection))

    @reads
    def count_since(self, connection: sqlite3.Connection, moment: datetime) -> int:
        since = instant_text(moment)
        count: int = connection.execute(
            "SELECT (SELECT count(*) FROM working_memory WHERE created_at >= ?) + "
            "(SELECT count(*) FROM episodic_memory AS e CROSS JOIN archive AS a "
            "ON a.episode_seq = e.seq WHERE e.level = 0 AND e.covers_until >= ? "
            "AND a.created_at >= ?)",
            (since, since, since),
        ).fetchone()[0]
        return count


def _seqs(keys: Sequence[Key], kind: RecordKind) -> list[int]:
    return [key.seq for key in keys if key.kind is kind]


def _groups(connection: sqlite3.Connection) -> list[MemoryGroup]:
    return [
        MemoryGroup(session, source, memories, instant(first), instant(last))
        for session, source, memories, first, last in connection.execute(_GROUPS)
    ]
