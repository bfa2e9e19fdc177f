"""Restored originals, and pruned ones that keep no text."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator, Sequence
from datetime import datetime
from itertools import groupby
from operator import itemgetter

from mnemosyned.domain.errors import BatchChanged, WordsPruned
from mnemosyned.domain.instants import shift
from mnemosyned.domain.keeping.pruning import EpisodeWords, choose_prunable
from mnemosyned.domain.keeping.retention import (
    Prunable,
    Removal,
    Retention,
)
from mnemosyned.domain.ports.archive.retention import RetentionStore
from mnemosyned.storage.sqlite.database.transactions import Transactional, reads, writes
from mnemosyned.storage.sqlite.fulltext.indexing import unindex_memory
from mnemosyned.storage.sqlite.tables.changing.rewrites import invalidate
from mnemosyned.storage.sqlite.tables.changing.state import (
    has_pruned,
    leave_secrets,
    set_state,
)
from mnemosyned.storage.sqlite.tables.rows import (
    MEMORY_COLUMNS,
    instant,
    instant_text,
)


class SqliteRetention(Transactional, RetentionStore):
    """A `RetentionStore` on one SQLite file."""

    @writes
    def restore(self, connection: sqlite3.Connection, id: str) -> Removal:
        row = connection.execute(
            "SELECT seq, episode_seq FROM archive WHERE id = ? AND content != ''", (id,)
        ).fetchone()
        if row is None:
            raise BatchChanged("the memory was changed concurrently; retry")
        if has_pruned(connection, row[1]):
            raise WordsPruned(
                "other originals of its episode were pruned, and the summary is all that is left of "
                "their words; restoring this one would delete it. `get` shows this one",
                field="id",
            )
        connection.execute(
            f"INSERT INTO working_memory (seq, {MEMORY_COLUMNS}) "
            f"SELECT seq, {MEMORY_COLUMNS} FROM archive WHERE seq = ?",
            row[:1],
        )
        connection.execute(
            "UPDATE working_memory SET pinned = 1 WHERE seq = ?", row[:1]
        )
        leave_secrets(connection, *row)
        connection.execute("DELETE FROM archive WHERE seq = ?", row[:1])
        removed, emptied = invalidate(connection, row[1:])
        return Removal(archived=1, removed=removed, emptied=emptied)

    @reads
    def prunable(
        self,
        connection: sqlite3.Connection,
        retention: Retention,
        *,
        now: datetime,
        limit: int,
    ) -> Prunable:
        return choose_prunable(
            _by_episode(connection),
            before=None if retention.keep is None else shift(now, -retention.keep),
            excess=_excess_characters(connection, retention.characters_max),
            limit=limit,
        )

    @writes
    def prune(
        self, connection: sqlite3.Connection, ids: Sequence[str], *, now: datetime
    ) -> int:
        pruned = 0
        for id in ids:
            row = connection.execute(
                "SELECT seq, content, role FROM archive WHERE id = ? AND content != ''",
                (id,),
            ).fetchone()
            if row is None:  # forgotten or restored meanwhile
                continue
            unindex_memory(connection, *row)
            connection.execute(
                "UPDATE archive SET content = '', metadata = '{}' WHERE seq = ?",
                row[:1],
            )
            for table in ("embedding", "revision"):
                connection.execute(f"DELETE FROM {table} WHERE memory_seq = ?", row[:1])
            set_state(connection, row[0], "pruned_at", instant_text(now))
            pruned += 1
        return pruned


def _by_episode(connection: sqlite3.Connection) -> Iterator[EpisodeWords]:
    """Episodes with originals that have words, the oldest first."""
    rows = connection.execute(
        "SELECT e.covers_from, e.covers_until, e.seq, a.id, a.created_at, length(a.content) "
        "FROM episodic_memory AS e JOIN archive AS a ON a.episode_seq = e.seq "
        "WHERE a.content != '' ORDER BY e.covers_from, e.seq"
    )
    for (begins, ends, _), group in groupby(rows, key=itemgetter(0, 1, 2)):
        originals = ((id, instant(moment), size) for *_, id, moment, size in group)
        yield EpisodeWords(instant(begins), instant(ends), originals)


def _excess_characters(
    connection: sqlite3.Connection, characters_max: int | None
) -> int:
    """The characters in the archive beyond its limit."""
    if characters_max is None:
        return 0
    kept: int = connection.execute(
        "SELECT characters FROM tier_totals WHERE tier = 'archive'"
    ).fetchone()[0]
    return kept - characters_max
