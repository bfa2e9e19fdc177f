"""Consolidation in a file: pending memories, and batches promoted to episodes."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from contextlib import AbstractContextManager, nullcontext
from datetime import datetime
from functools import partial

from mnemosyned.memory.consolidation import (
    ActivityGroup,
    WorkingActivity,
    activity_of,
)
from mnemosyned.memory.ports import Promotion
from mnemosyned.storage.common.rows import instant
from mnemosyned.storage.common.session import reads
from mnemosyned.storage.common.sleep import CommonPromoting, CommonSleep
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

    def _may_have_future(self, session: SqliteSession) -> bool:
        # To ask first keeps the bound on the index.
        future = session.scalar(
            "SELECT 1 FROM working_state WHERE future_since IS NOT NULL LIMIT 1"
        )
        return future is not None

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


class SqlitePromoting(CommonPromoting):
    """Promotions in rows. The index keeps its rows: a memory's `seq` goes with it."""

    _session: SqliteSession

    @classmethod
    def promote_in(
        cls, session: SqliteSession, promotions: Sequence[Promotion]
    ) -> None:
        """Promote batches within the transaction of a session."""
        cls(session).promote(promotions)

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
