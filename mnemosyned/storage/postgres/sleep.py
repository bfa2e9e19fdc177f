"""Consolidation on a server: pending memories, and batches promoted to episodes."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from contextlib import AbstractContextManager
from datetime import datetime

from mnemosyned.errors import DatabaseUnreachable, MemoryBusy
from mnemosyned.memory.consolidation import (
    ActivityGroup,
    WorkingActivity,
    activity_of,
)
from mnemosyned.memory.ports import Promotion
from mnemosyned.storage.common.session import reads
from mnemosyned.storage.common.sleep import CommonPromoting, CommonSleep
from mnemosyned.storage.postgres.insert import evict
from mnemosyned.storage.postgres.pool import PostgresPart
from mnemosyned.storage.postgres.rows import (
    OF_IDS,
    utc,
)
from mnemosyned.storage.postgres.session import PostgresSession
from mnemosyned.text.details import Detail

_ACTIVITY = (
    "SELECT m.session_id, m.source, "
    "m.pinned OR coalesce(w.held_until > %(now)s, false) AS stays, "
    "count(*), sum(length(m.content)), sum(octet_length(m.content)), min(m.created_at), "
    "count(*) FILTER (WHERE m.created_at < %(fresh)s) FROM ("
    "SELECT owner, seq FROM fresh WHERE owner = %(owner)s "
    "ORDER BY created_at, seq LIMIT %(limit)s) AS f "
    "JOIN memory AS m ON m.owner = %(owner)s AND m.seq = f.seq "
    "LEFT JOIN working_state AS w ON w.owner = %(owner)s AND w.memory_seq = f.seq "
    "GROUP BY m.session_id, m.source, stays"
)

PROMOTION_TRIES = 10
"""Waits of a group for its owner's row, of two seconds each."""


class PostgresSleep(PostgresPart, CommonSleep):
    """A `SleepStore` of one owner in PostgreSQL."""

    @reads
    def activity(
        self, session: PostgresSession, *, fresh: datetime, now: datetime, limit: int
    ) -> WorkingActivity:
        """Return the state of working memory from its first `limit` rows, for the triggers.

        `by_source` counts memories created before `fresh`. Memories held back beyond `now` by an
        undo do not count as movable.
        """
        groups = session.execute(_ACTIVITY, now=utc(now), fresh=utc(fresh), limit=limit)
        return activity_of(map(ActivityGroup._make, groups))

    def claim(self) -> AbstractContextManager[Callable[[], bool]]:
        return self._pool.claims.sleep_claim(self._owner)

    def consolidate(
        self, groups: Sequence[Sequence[Promotion]], *, durable: bool = True
    ) -> list[Exception | None]:
        """Promote each group of batches in a transaction; return an error or None for each group."""
        outcomes: list[Exception | None] = []
        for promotions in groups:
            error = self._promote_batch(promotions, durable=durable)
            outcomes.append(error)
            if isinstance(error, DatabaseUnreachable):
                # The others would wait as long for nothing.
                outcomes += [error] * (len(groups) - len(outcomes))
                break
        return outcomes

    def _promote_batch(
        self, promotions: Sequence[Promotion], *, durable: bool
    ) -> Exception | None:
        """Promote a group in one transaction; return the error, or None.

        No request waits for it: it waits longer for others' writes, and holds no connection
        meanwhile.
        """
        for tries_left in reversed(range(PROMOTION_TRIES)):
            try:
                with self._pool.writing(self._owner, durable=durable) as session:
                    PostgresPromoting(session).promote(promotions)
            except MemoryBusy as error:
                if not tries_left:
                    return error
            except Exception as error:  # noqa: BLE001 it belongs to this group
                return error
            else:
                break
        return None


class PostgresPromoting(CommonPromoting):
    """Promotions in rows; no index of words of an original is touched."""

    _session: PostgresSession

    def any_superseded(self, ids: Collection[str]) -> bool:
        """Return whether one of these working memories was superseded."""
        found = self._session.scalar(
            "SELECT 1 FROM memory AS m "
            "JOIN fresh AS f ON f.owner = m.owner AND f.seq = m.seq "
            "JOIN memory_state AS s ON s.owner = m.owner AND s.memory_seq = m.seq "
            f"WHERE m.owner = %(owner)s AND {OF_IDS} "
            "AND s.superseded_at IS NOT NULL LIMIT 1",
            ids=list(ids),
        )
        return found is not None

    def any_edited(self, ids: Sequence[str], *, since: int) -> bool:
        """Return whether one of these working memories was edited after revision `since`."""
        found = self._session.scalar(
            "SELECT 1 FROM memory AS m "
            "JOIN fresh AS f ON f.owner = m.owner AND f.seq = m.seq "
            "JOIN revision AS r ON r.owner = m.owner AND r.memory_seq = m.seq "
            f"WHERE m.owner = %(owner)s AND {OF_IDS} "
            "AND r.seq > %(since)s LIMIT 1",
            ids=list(ids),
            since=since,
        )
        return found is not None

    def evict(self, ids: Sequence[str], episode: int, details: Sequence[Detail]) -> int:
        return evict(self._session, ids, episode, details)
