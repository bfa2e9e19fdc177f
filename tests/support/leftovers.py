"""Where the words of what was forgotten can still be read, on either engine."""

from __future__ import annotations

from typing import TYPE_CHECKING

from support.fakes import files_containing

from mnemosyned.storage.sqlite.store import SqliteStore

if TYPE_CHECKING:
    from mnemosyned.storage.postgres.store import PostgresStore

NOT_PURGED = "rows that wait for their purge"
_TABLES = (
    "SELECT quote_ident(table_name) FROM information_schema.tables "
    "WHERE table_schema = current_schema() AND table_type = 'BASE TABLE' "
    "AND table_name NOT IN ('schema_migration', 'reindexing', 'audit', 'citus_tables') ORDER BY 1"
)
_STATISTICS = (
    "(SELECT %(owner)s AS owner, most_common_vals::text, histogram_bounds::text, most_common_elems::text "
    "FROM pg_stats WHERE schemaname = current_schema())"
)


def left_of(store: SqliteStore | PostgresStore, *words: str) -> list[str]:
    """The files of SQLite, or the tables of PostgreSQL, in which one of these words can be read.

    Pages of PostgreSQL have the words of deleted rows until a purge: that counts as well.
    """
    if isinstance(store, SqliteStore):
        return files_containing(store.database.parent, *words)
    spellings = [
        form for word in words for form in (word, word.lower(), word.casefold())
    ]
    with store.pool.reading(store.owner) as session:
        tables = [name for (name,) in session.execute(_TABLES)]
        found = [
            source
            for source in (*tables, _STATISTICS)
            if session.scalar(
                f"SELECT 1 FROM {source} AS r, unnest(%(words)s::text[]) AS w (word) "
                "WHERE r.owner = %(owner)s AND strpos(r::text, w.word) > 0 LIMIT 1",
                words=spellings,
            )
        ]
    return found + [NOT_PURGED] * store.deletion.purge_due()
