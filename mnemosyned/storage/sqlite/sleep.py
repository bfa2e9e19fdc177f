"""Consolidation in a file: pending memories, and batches promoted to episodes."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from contextlib import AbstractContextManager, nullcontext
from datetime import datetime
from functools import partial

from mnemosyned.memory.consolidation import (
    ActivityGroup,
    LogEntry,
    Pending,
    Selection,
    WorkingActivity,
    activity_of,
)
from mnemosyned.memory.intake import PromotionTransaction
from mnemosyned.memory.ports import Promotion
from mnemosyned.storage.common.filters import source_condition
from mnemosyned.storage.common.rows import instant, pending_from
from mnemosyned.storage.common.session import Row, reads
from mnemosyned.storage.common.sleep import CommonSleep, insert_log
from mnemosyned.storage.sqlite.filters import bind_by_place
from mnemosyned.storage.sqlite.memories import (
    insert_details,
    placeholders,
)
from mnemosyned.storage.sqlite.rows import (
    MEMORY_COLUMNS,
    instant_text,
)
from mnemosyned.storage.sqlite.session import SqliteSession
from mnemosyned.storage.sqlite.writer import SqlitePart
from mnemosyned.text.details import Detail


class SqliteSleep(SqlitePart, CommonSleep):
    """A `SleepStore` on one SQLite file."""

    @reads
    def activity(
        self,
        session: SqliteSession,
        *,
        fresh: datetime,
        now: datetime,
        limit: int,
    ) -> WorkingActivity:
        """Return the state of working memory from its first `limit` rows, for the triggers.

        `by_source` counts memories created before `fresh`. Memories held back beyond `now` by an
        undo do not count as movable.
        """
        groups = session.execute(
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
    def pending(
        self,
        session: SqliteSession,
        selection: Selection,
        *,
        limit: int,
    ) -> list[Pending]:
        """Return up to `limit` unpinned working memories of a selection, the oldest first."""
        where, values = _pending_filter(session, selection)
        rows = session.execute(
            "SELECT id, session_id, source, created_at, length(content) FROM working_memory "
            f"{where} ORDER BY created_at, seq LIMIT ?",
            (*values, limit),
        )
        return [pending_from(row) for row in rows]

    @reads
    def count_due(
        self,
        session: SqliteSession,
        selection: Selection,
        *,
        limit: int,
    ) -> int:
        """Return how many working memories a selection has, `limit` at most."""
        where, values = _pending_filter(session, selection)
        count: int = session.execute(
            f"SELECT count(*) FROM (SELECT 1 FROM working_memory {where} LIMIT ?)",
            (*values, limit),
        ).fetchone()[0]
        return count

    @reads
    def ids_excluded_from_summaries(self, session: SqliteSession) -> set[str]:
        """Return the ids of working memories that were superseded or may expire."""
        rows = session.execute(
            "SELECT w.id FROM memory_state AS s JOIN working_memory AS w ON w.seq = s.memory_seq "
            "WHERE s.valid_until IS NOT NULL OR s.superseded_at IS NOT NULL"
        )
        return {id for (id,) in rows}

    def consolidate(
        self, groups: Sequence[Sequence[Promotion]], *, durable: bool = True
    ) -> list[Exception | None]:
        """Promote each group of batches in a transaction; return an error or None for each group."""
        return self._writer.write_each(
            [
                partial(SqlitePromoting.promote_in, promotions=promotions)
                for promotions in groups
            ],
            durable=durable,
        )


def _pending_filter(session: SqliteSession, selection: Selection) -> tuple[str, Row]:
    """Return the SQL conditions of a selection of working memories, and their bind values."""
    clauses: list[str] = ["NOT pinned"]
    values: list[str | None] = []
    now = selection.now and instant_text(selection.now)
    if selection.before:
        before = instant_text(selection.before)
        aged = "created_at < ?"
        values.append(before)
        # Only then, as it costs the bound on the index.
        if now and session.scalar(
            "SELECT 1 FROM working_state WHERE future_since IS NOT NULL LIMIT 1"
        ):
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
        clause, named = bind_by_place([source_condition(selection.sources, "source")])
        clauses.append(clause.removeprefix(" AND "))
        values.extend(named)
    return f"WHERE {' AND '.join(clauses)}", tuple(values)


class SqlitePromoting(PromotionTransaction):
    """Promotions in rows. The index keeps its rows: a memory's `seq` goes with it."""

    def __init__(self, session: SqliteSession) -> None:
        self._session = session

    @classmethod
    def promote_in(
        cls, session: SqliteSession, promotions: Sequence[Promotion]
    ) -> None:
        """Promote batches within the transaction of a session."""
        cls(session).promote(promotions)

    def insert(self, promotion: Promotion) -> int:
        return self._session.insert_episode(promotion.episode, promotion.index_terms)

    def any_superseded(self, ids: Collection[str]) -> bool:
        """Return whether one of these working memories was superseded."""
        row = self._session.execute(
            "SELECT 1 FROM memory_state AS s JOIN working_memory AS w ON w.seq = s.memory_seq "
            f"WHERE s.superseded_at IS NOT NULL AND w.id IN ({placeholders(ids)})",
            tuple(ids),
        ).fetchone()
        return row is not None

    def any_edited(self, ids: Sequence[str], *, since: int) -> bool:
        """Return whether one of these working memories was edited after revision `since`."""
        row = self._session.execute(
            "SELECT 1 FROM revision AS r JOIN working_memory AS w ON w.seq = r.memory_seq "
            f"WHERE r.seq > ? AND w.id IN ({placeholders(ids)})",
            (since, *ids),
        ).fetchone()
        return row is not None

    def evict(self, ids: Sequence[str], episode: int, details: Sequence[Detail]) -> int:
        """Move unpinned memories into the archive, under an episode; return the number moved."""
        among = f"id IN ({placeholders(ids)})"
        moved = self._session.execute(
            f"INSERT INTO archive (seq, {MEMORY_COLUMNS}, episode_seq) "
            f"SELECT seq, {MEMORY_COLUMNS}, ? FROM working_memory "
            f"WHERE {among} AND NOT pinned ORDER BY seq",
            (episode, *ids),
        ).rowcount
        self._session.execute(
            f"DELETE FROM working_memory WHERE {among} AND NOT pinned", ids
        )
        # Where some were not there or are pinned, the caller takes all of it back.
        if details and moved == len(ids):
            insert_details(self._session, details, episode)
        return moved

    def insert_log(self, entry: LogEntry) -> None:
        insert_log(self._session, entry)
