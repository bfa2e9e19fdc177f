"""Consolidation: pending memories, promoted groups and the log of cycles."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Collection, Sequence
from contextlib import AbstractContextManager, nullcontext
from datetime import datetime
from functools import partial
from typing import cast

from mnemosyned.domain.memory import Detail
from mnemosyned.domain.ports.sleep import Promotion, SleepStore
from mnemosyned.domain.sleep.consolidation import (
    Activity,
    ActivityGroup,
    Pending,
    Selection,
    activity_of,
)
from mnemosyned.domain.sleep.cycles import LogEntry
from mnemosyned.domain.storing.promoting import Promoting
from mnemosyned.domain.storing.rows import LOG_FIELDS
from mnemosyned.storage.sqlite.database.transactions import Transactional, reads, writes
from mnemosyned.storage.sqlite.fulltext.indexing import index_episode_grams
from mnemosyned.storage.sqlite.search.filters import of_sources
from mnemosyned.storage.sqlite.tables.details import insert_details
from mnemosyned.storage.sqlite.tables.hierarchy import placeholders
from mnemosyned.storage.sqlite.tables.log import insert_log
from mnemosyned.storage.sqlite.tables.rows import (
    EPISODE_PLACEHOLDERS,
    EPISODE_WRITTEN,
    MEMORY_COLUMNS,
    Row,
    episode_row,
    instant,
    instant_text,
    log_entry_from,
    pending_from,
)

RECENT_LOG_ROWS = 500
"""Log rows from which the present speed of a model is computed."""

_INSERT_EPISODE = (
    f"INSERT INTO episodic_memory ({EPISODE_WRITTEN}) VALUES ({EPISODE_PLACEHOLDERS})"
)


class SqliteSleep(Transactional, SleepStore):
    """A `SleepStore` on one SQLite file."""

    @reads
    def activity(
        self,
        connection: sqlite3.Connection,
        *,
        fresh: datetime,
        now: datetime,
        limit: int,
    ) -> Activity:
        groups = connection.execute(
            "SELECT session_id, source, pinned OR seq IN "
            "(SELECT memory_seq FROM working_state WHERE held_until > ?) AS stays, "
            "count(*), sum(length(content)), "
            "sum(length(CAST(content AS BLOB))), min(created_at), sum(created_at < ?) "
            "FROM (SELECT * FROM working_memory ORDER BY created_at LIMIT ?) "
            "GROUP BY session_id, source, stays",
            (instant_text(now), instant_text(fresh), limit),
        )
        return activity_of(
            ActivityGroup._make((*sizes, instant(oldest), seasoned))
            for *sizes, oldest, seasoned in groups
        )

    def claim(self) -> AbstractContextManager[Callable[[], bool]]:
        return nullcontext(lambda: True)  # the file has one daemon

    @reads
    def newest_revision(self, connection: sqlite3.Connection) -> int:
        (newest,) = connection.execute(
            "SELECT ifnull(max(seq), 0) FROM revision"
        ).fetchone()
        return int(newest)

    @reads
    def pending(
        self,
        connection: sqlite3.Connection,
        selection: Selection,
        *,
        limit: int,
    ) -> list[Pending]:
        where, values = _pending_filter(connection, selection)
        rows = connection.execute(
            "SELECT id, session_id, source, created_at, length(content) FROM working_memory "
            f"{where} ORDER BY created_at, seq LIMIT ?",
            (*values, limit),
        )
        return [pending_from(row) for row in rows]

    @reads
    def count_due(
        self,
        connection: sqlite3.Connection,
        selection: Selection,
        *,
        limit: int,
    ) -> int:
        where, values = _pending_filter(connection, selection)
        count: int = connection.execute(
            f"SELECT count(*) FROM (SELECT 1 FROM working_memory {where} LIMIT ?)",
            (*values, limit),
        ).fetchone()[0]
        return count

    @reads
    def ids_excluded_from_summaries(self, connection: sqlite3.Connection) -> set[str]:
        rows = connection.execute(
            "SELECT w.id FROM memory_state AS s JOIN working_memory AS w ON w.seq = s.memory_seq "
            "WHERE s.valid_until IS NOT NULL OR s.superseded_at IS NOT NULL"
        )
        return {id for (id,) in rows}

    @reads
    def chars_per_s(
        self, connection: sqlite3.Connection, summarizer: str
    ) -> float | None:
        chars, seconds = connection.execute(
            "SELECT sum(chars_before), sum(duration_s) FROM "
            "(SELECT * FROM consolidation_log ORDER BY id DESC LIMIT ?) "
            "WHERE summarizer = ? AND fallback_reason IS NULL AND status = 'promoted'",
            (RECENT_LOG_ROWS, summarizer),
        ).fetchone()
        return chars / seconds if chars and seconds else None

    def consolidate(
        self, groups: Sequence[Sequence[Promotion]], *, durable: bool = True
    ) -> list[Exception | None]:
        return self._writer.write_each(
            [partial(_promote, promotions=promotions) for promotions in groups],
            durable=durable,
        )

    @writes
    def record_failure(self, connection: sqlite3.Connection, entry: LogEntry) -> None:
        insert_log(connection, entry)

    @reads
    def log(
        self,
        connection: sqlite3.Connection,
        *,
        limit: int,
        session: str | None = None,
        cycle: str | None = None,
    ) -> list[LogEntry]:
        rows = connection.execute(
            f"SELECT {LOG_FIELDS} FROM consolidation_log "
            "WHERE (? IS NULL OR session_id = ?) AND (? IS NULL OR cycle_id = ?) "
            "ORDER BY id DESC LIMIT ?",
            (session, session, cycle, cycle, limit),
        ).fetchall()
        return [log_entry_from(row) for row in rows]


def _pending_filter(
    connection: sqlite3.Connection, selection: Selection
) -> tuple[str, Row]:
    clauses: list[str] = ["NOT pinned"]
    values: list[str | None] = []
    now = selection.now and instant_text(selection.now)
    if selection.before:
        before = instant_text(selection.before)
        aged = "created_at < ?"
        values.append(before)
        # Only then, as it costs the bound on the index.
        if now and _any_future(connection):
            aged = (
                f"({aged} OR (created_at > ? AND seq IN "
                "(SELECT memory_seq FROM working_state WHERE future_since < ?)))"
            )
            values += [now, before]
        clauses.append(aged)
    if now:
        clauses.append(
            "seq NOT IN (SELECT memory_seq FROM working_state WHERE held_until > ?)"
        )
        values.append(now)
    if selection.session is not None:
        clauses.append("session_id = ?")
        values.append(selection.session)
    if selection.sources:
        clause, named = of_sources(selection.sources)
        clauses.append(clause)
        values.extend(named)
    return f"WHERE {' AND '.join(clauses)}", tuple(values)


def _any_future(connection: sqlite3.Connection) -> bool:
    row = connection.execute(
        "SELECT 1 FROM working_state WHERE future_since IS NOT NULL LIMIT 1"
    ).fetchone()
    return row is not None


def _promote(connection: sqlite3.Connection, promotions: Sequence[Promotion]) -> None:
    _Promoting(connection).promote(promotions)


class _Promoting(Promoting):
    """Promotions in rows. The index keeps its rows: a memory's `seq` goes with it."""

    def __init__(self, connection: sqlite3.Connection) -> None:
        self._connection = connection

    def insert(self, promotion: Promotion) -> int:
        episode, terms = promotion.episode, promotion.index_terms
        inserted = self._connection.execute(
            _INSERT_EPISODE, episode_row(episode, terms)
        )
        seq = cast("int", inserted.lastrowid)
        index_episode_grams(self._connection, seq, episode.content, terms)
        return seq

    def any_superseded(self, ids: Collection[str]) -> bool:
        row = self._connection.execute(
            "SELECT 1 FROM memory_state AS s JOIN working_memory AS w ON w.seq = s.memory_seq "
            f"WHERE s.superseded_at IS NOT NULL AND w.id IN ({placeholders(ids)})",
            tuple(ids),
        ).fetchone()
        return row is not None

    def any_edited(self, ids: Sequence[str], *, since: int) -> bool:
        row = self._connection.execute(
            "SELECT 1 FROM revision AS r JOIN working_memory AS w ON w.seq = r.memory_seq "
            f"WHERE r.seq > ? AND w.id IN ({placeholders(ids)})",
            (since, *ids),
        ).fetchone()
        return row is not None

    def evict(self, ids: Sequence[str], episode: int, details: Sequence[Detail]) -> int:
        among = f"id IN ({placeholders(ids)})"
        moved = self._connection.execute(
            f"INSERT INTO archive (seq, {MEMORY_COLUMNS}, episode_seq) "
            f"SELECT seq, {MEMORY_COLUMNS}, ? FROM working_memory "
            f"WHERE {among} AND NOT pinned ORDER BY seq",
            (episode, *ids),
        ).rowcount
        self._connection.execute(
            f"DELETE FROM working_memory WHERE {among} AND NOT pinned", ids
        )
        # Where some were not there or are pinned, the caller takes all of it back.
        if details and moved == len(ids):
            insert_details(self._connection, details, episode)
        return moved

    def insert_log(self, entry: LogEntry) -> None:
        insert_log(self._connection, entry)
