"""Pages of lists in a file: its tables, and lookups of ids and speakers."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from mnemosyned.memory.listing import LIST_LIMITS
from mnemosyned.memory.values import Tier
from mnemosyned.storage.common.filters import Condition
from mnemosyned.storage.common.listing import CommonLists, MemoryTable, id_range
from mnemosyned.storage.sqlite.filters import tables_of
from mnemosyned.storage.sqlite.fulltext import any_of
from mnemosyned.storage.sqlite.session import SqliteSession
from mnemosyned.storage.sqlite.writer import SqlitePart

_HOMES = ("working_memory", "archive", "episodic_memory")
_ANY = " UNION ALL ".join(
    f"SELECT 1 FROM (SELECT 1 FROM {home} WHERE id >= ? AND id < ? LIMIT 1)"
    for home in _HOMES
)
_GROUPS = (
    "SELECT session_id, source, count(*), min(created_at), max(created_at) "
    "FROM working_memory GROUP BY session_id, source UNION ALL "
    "SELECT session_id, source, sum(item_count), min(covers_from), max(covers_until) "
    "FROM episodic_memory NOT INDEXED WHERE level = 0 GROUP BY session_id, source"
)


_COUNT_SINCE = (
    "SELECT (SELECT count(*) FROM working_memory WHERE created_at >= :since) + "
    "(SELECT count(*) FROM episodic_memory AS e CROSS JOIN archive AS a "
    "ON a.episode_seq = e.seq WHERE e.level = 0 AND e.covers_until >= :since "
    "AND a.created_at >= :since)"
)


class SqliteLists(SqlitePart, CommonLists):
    """A `ListStore` on one SQLite file."""

    _groups = _GROUPS
    _count_since = _COUNT_SINCE
    _working = MemoryTable("working_memory AS m")
    _archive = MemoryTable("archive AS m")
    _of_episode = "m.episode_seq"
    _searched = "+{}"

    def _prefixes_of_ids(
        self, session: SqliteSession, prefixes: Sequence[str]
    ) -> list[str]:
        """Return the prefixes with which at least one id of a memory or summary begins."""
        return [
            prefix
            for prefix in prefixes
            if session.scalar(f"{_ANY} LIMIT 1", id_range(prefix) * len(_HOMES))
        ]

    def _tables_by_number(
        self, tier: Tier | None
    ) -> Iterable[tuple[str, Sequence[Condition]]]:
        return [(table, ()) for table in tables_of(tier)]

    def _rows_of_roles(
        self, session: SqliteSession, roles: Sequence[str]
    ) -> list[int] | None:
        """Return the rows of memories with these speakers, by the full-text index; None if many."""
        if not all(any(map(str.isalnum, role)) for role in roles):
            return None
        rows = session.execute(
            "SELECT rowid FROM memory_fts WHERE memory_fts MATCH ? UNION ALL "
            "SELECT memory_seq FROM memory_state WHERE pruned_at IS NOT NULL LIMIT ?",
            (f"role : ({any_of(roles)})", LIST_LIMITS.few + 1),
        ).fetchall()
        return None if len(rows) > LIST_LIMITS.few else [seq for (seq,) in rows]
