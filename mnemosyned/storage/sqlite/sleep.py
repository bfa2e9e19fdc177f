"""Consolidation: pending memories, promoted batches, roll-ups, stale summaries and the log of cycles."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Collection, Iterable, Sequence
from contextlib import AbstractContextManager, nullcontext
from datetime import datetime
from functools import partial
from typing import cast

from mnemosyned.errors import BatchChanged
from mnemosyned.memory.consolidation import (
    Activity,
    ActivityGroup,
    LogEntry,
    Pending,
    Selection,
    activity_of,
    preview,
)
from mnemosyned.memory.forgetting import StaleSummary
from mnemosyned.memory.intake import Promoting
from mnemosyned.memory.periods import Child, Level, begin_of
from mnemosyned.memory.ports import (
    PendingRollups,
    Promotion,
    Rollup,
    RollupStore,
    SleepStore,
)
from mnemosyned.memory.rows import EPISODE_COLUMNS, LOG_COLUMNS, LOG_FIELDS
from mnemosyned.memory.values import Episode, Tier
from mnemosyned.storage.sqlite.filters import of_sources
from mnemosyned.storage.sqlite.fulltext import (
    index_episode_grams,
    unindex_episode_grams,
)
from mnemosyned.storage.sqlite.memories import (
    chunks,
    episode_at,
    insert_details,
    name_rollup,
    placeholders,
)
from mnemosyned.storage.sqlite.rows import (
    ARCHIVE_FIELDS,
    EPISODE_PLACEHOLDERS,
    EPISODE_WRITTEN,
    LOG_PLACEHOLDERS,
    MEMORY_COLUMNS,
    Row,
    episode_from,
    episode_row,
    instant,
    instant_text,
    log_entry_from,
    log_row,
    memory_from,
    pending_from,
)
from mnemosyned.storage.sqlite.state import invalidate
from mnemosyned.storage.sqlite.writer import Transactional, reads, writes
from mnemosyned.text.details import Detail

_INSERT_LOG = (
    f"INSERT INTO consolidation_log ({LOG_COLUMNS}) VALUES ({LOG_PLACEHOLDERS})"
)


def insert_log(connection: sqlite3.Connection, entry: LogEntry) -> None:
    """Write one row of the consolidation log."""
    connection.execute(_INSERT_LOG, log_row(entry))


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


_BEGINS = "ifnull(period_from, covers_from)"


_CHILD = (
    f"SELECT id, {_BEGINS}, item_count, parent_id, length(content) FROM episodic_memory"
)


class SqliteRollups(Transactional, RollupStore):
    """A `RollupStore` on one SQLite file."""

    @reads
    def pending(
        self,
        connection: sqlite3.Connection,
        *,
        to_level: Level,
        before: datetime,
        limit: int,
        opened: Iterable[datetime] = (),
    ) -> PendingRollups:
        fresh = _children(
            connection,
            f"WHERE level = ? AND parent_id IS NULL AND {_BEGINS} < ? ORDER BY {_BEGINS} LIMIT ?",
            (to_level - 1, instant_text(before), limit),
        )
        existing = dict(
            connection.execute(
                "SELECT period_from, id FROM episodic_memory WHERE level = ? AND stale LIMIT ?",
                (to_level, limit),
            ).fetchall()
        )
        begun = {begin_of(to_level, child.covers_from) for child in fresh}
        for begins in {instant_text(moment) for moment in begun.union(opened)}:
            row = connection.execute(
                "SELECT period_from, id FROM episodic_memory WHERE level = ? AND period_from = ?",
                (to_level, begins),
            ).fetchone()
            existing.update([row] if row else [])
        for id in existing.values():
            fresh += _children(connection, "WHERE parent_id = ?", (id,))
        return PendingRollups(
            fresh, {instant(begins): id for begins, id in existing.items()}
        )

    @writes
    def write(self, connection: sqlite3.Connection, rollup: Rollup) -> None:
        episode = rollup.episode
        _check_unchanged(connection, rollup)
        row = connection.execute(
            "SELECT seq, id, content, index_terms, parent_id FROM episodic_memory "
            "WHERE level = ? AND period_from = ?",
            (
                episode.level,
                instant_text(episode.period_from) if episode.period_from else None,
            ),
        ).fetchone()
        if row is None:
            seq = connection.execute(
                f"INSERT INTO episodic_memory ({EPISODE_WRITTEN}) "
                f"VALUES ({EPISODE_PLACEHOLDERS})",
                episode_row(episode, rollup.index_terms),
            ).lastrowid
        else:
            seq = _rewrite(connection, rollup, row)
        index_episode_grams(connection, seq, episode.content, rollup.index_terms)
        for chunk in chunks(list(rollup.members)):
            connection.execute(
                f"UPDATE episodic_memory SET parent_id = ? WHERE id IN ({placeholders(chunk)})",
                (episode.id, *chunk),
            )
        # An edit may have renamed a member since it was read.
        name_rollup(connection, episode.id)
        insert_log(connection, rollup.entry)

    @reads
    def next_stale(
        self, connection: sqlite3.Connection, *, highest: Level = Level.MONTH
    ) -> StaleSummary | None:
        row = connection.execute(
            "SELECT s.mark, s.episode_seq, e.level FROM emptied_episode AS s "
            "CROSS JOIN episodic_memory AS e ON e.seq = s.episode_seq "
            "WHERE e.level <= ? ORDER BY e.level, s.mark LIMIT 1",
            (highest,),
        ).fetchone()
        # They tell what to mask in originals. What is above an episode is made of summaries, which
        # hold no secrets, and a month has a great many details.
        episode = (
            episode_at(connection, "seq", row[1], details=not row[2]) if row else None
        )
        if episode is None:
            return None
        originals = connection.execute(
            f"SELECT {ARCHIVE_FIELDS} FROM archive AS a WHERE a.episode_seq = ? "
            "ORDER BY a.created_at, a.seq",
            (row[1],),
        )
        children = connection.execute(
            f"SELECT {EPISODE_COLUMNS} FROM episodic_memory WHERE parent_id = ? "
            "ORDER BY covers_from, seq",
            (episode.id,),
        )
        return StaleSummary(
            token=row[0],
            episode=episode,
            originals=tuple(
                memory_from(one, tier=Tier.ARCHIVE, episode=episode.id)
                for one in originals
            ),
            children=tuple(episode_from(one) for one in children),
        )

    @reads
    def index_terms(
        self, connection: sqlite3.Connection, ids: Sequence[str]
    ) -> dict[str, str]:
        known: dict[str, str] = {}
        for chunk in chunks(ids):
            known.update(
                connection.execute(
                    "SELECT id, index_terms FROM episodic_memory "
                    f"WHERE id IN ({placeholders(chunk)})",
                    chunk,
                ).fetchall()
            )
        return known

    @writes
    def rewrite(
        self,
        connection: sqlite3.Connection,
        token: int,
        episode: Episode,
        *,
        index_terms: str = "",
    ) -> None:
        row = connection.execute(
            "DELETE FROM emptied_episode WHERE mark = ? RETURNING episode_seq", (token,)
        ).fetchone()
        if row is None:
            raise BatchChanged("the episode was changed concurrently; retry")
        (seq,) = row
        connection.execute(
            f"UPDATE episodic_memory SET ({EPISODE_WRITTEN}) = ({EPISODE_PLACEHOLDERS}) WHERE seq = ?",
            (*episode_row(episode, index_terms), seq),
        )
        index_episode_grams(connection, seq, episode.content, index_terms)
        connection.execute(
            "UPDATE consolidation_log SET summary_preview = ?, summarizer = ? WHERE episode_id = ?",
            (preview(episode.content), episode.summarizer, episode.id),
        )
        # A summary above that was written meanwhile read this one while it was empty.
        above = connection.execute(
            "SELECT seq FROM episodic_memory WHERE id = ? "
            "AND seq NOT IN (SELECT episode_seq FROM emptied_episode)",
            (episode.parent,),
        ).fetchall()
        invalidate(connection, [seq for (seq,) in above])


def _children(connection: sqlite3.Connection, where: str, values: Row) -> list[Child]:
    return [
        Child(
            id=id,
            covers_from=instant(begins),
            item_count=items,
            parent=parent,
            chars=chars,
        )
        for id, begins, items, parent, chars in connection.execute(
            f"{_CHILD} {where}", values
        )
    ]


def _check_unchanged(connection: sqlite3.Connection, rollup: Rollup) -> None:
    """Raise `BatchChanged` if a member changed: forgotten text must not return with the summary."""
    seen = 0
    for chunk in chunks(list(rollup.members)):
        for id, content in connection.execute(
            f"SELECT id, content FROM episodic_memory WHERE id IN ({placeholders(chunk)})",
            chunk,
        ):
            seen += content == rollup.members[id]
    if seen != len(rollup.members):
        raise BatchChanged(
            "a summary of this period was changed concurrently; the next cycle retries it"
        )


def _rewrite(connection: sqlite3.Connection, rollup: Rollup, row: Row) -> int:
    episode = rollup.episode
    seq: int = row[0]
    _, id, content, index_terms, parent = row
    if id != episode.id:
        raise BatchChanged(
            "the summary of this period was rewritten concurrently; the next cycle retries it"
        )
    unindex_episode_grams(connection, seq, content, index_terms)
    connection.execute(
        "UPDATE episodic_memory SET stale = 0, session_id = ?, source = ?, content = ?, "
        "index_terms = ?, item_count = ?, covers_from = ?, covers_until = ?, summarizer = ?, created_at = ? "
        "WHERE seq = ?",
        (
            episode.session,
            episode.source,
            episode.content,
            rollup.index_terms,
            episode.item_count,
            instant_text(episode.covers_from),
            instant_text(episode.covers_until),
            episode.summarizer,
            instant_text(episode.created_at),
            seq,
        ),
    )
    connection.execute("UPDATE episodic_memory SET stale = 1 WHERE id = ?", (parent,))
    return seq
