"""Memories and learnings forgotten with a grace period, which may be put back until it ends."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime

from mnemosyned.memory.ports import GraceStore
from mnemosyned.memory.values import Recoverable
from mnemosyned.storage.common.rows import optional_instant
from mnemosyned.storage.common.session import (
    CommonSession,
    Transactional,
    reads,
    writes,
)
from mnemosyned.storage.common.state import request_purge

LEARNING = "learning"
"""Begins the key of a learning that was forgotten by itself."""
INSERT_FORGOTTEN = (
    "INSERT INTO forgotten (owner, id, call, final_at, data) "
    "VALUES (%(owner)s, %(id)s, %(call)s, %(final_at)s, %(data)s) ON CONFLICT "
)
REPLACE_FORGOTTEN = (
    f"{INSERT_FORGOTTEN} (owner, id) DO UPDATE SET call = excluded.call, "
    "final_at = excluded.final_at, data = excluded.data"
)


class CommonGrace(Transactional, GraceStore):
    """The part of a `GraceStore` that reads no memory's data, which engines store differently."""

    @reads
    def recoverable_keys(
        self,
        session: CommonSession,
        ids: Sequence[str] = (),
        *,
        before: datetime | None = None,
    ) -> list[str]:
        """Return the keys of forgotten items with these ids or calls, or final by `before`.

        `before` None selects by ids and calls only.
        """
        rows = session.execute(
            "SELECT id FROM forgotten WHERE owner = %(owner)s "
            "AND (id = ANY(%(ids)s::text[]) OR call = ANY(%(ids)s::text[]) "
            "OR final_at <= %(before)s::timestamptz) ORDER BY id",
            ids=list(ids),
            before=before,
        )
        return [id for (id,) in rows]

    @writes
    def finish(self, session: CommonSession, keys: Sequence[str]) -> int:
        """Delete recoverable items for good by their keys; return the number of deleted items."""
        deleted = session.execute(
            "DELETE FROM forgotten WHERE owner = %(owner)s AND id = ANY(%(keys)s::text[])",
            keys=list(keys),
        ).rowcount
        if deleted:
            request_purge(session)
        return deleted

    @reads
    def recoverable(self, session: CommonSession) -> Recoverable:
        """Return the number of recoverable memories, and the end of the first grace period."""
        row = session.execute(
            "SELECT count(*) FILTER (WHERE id NOT LIKE %(learning)s), min(final_at) "
            "FROM forgotten WHERE owner = %(owner)s",
            learning=f"{LEARNING}:%",
        ).fetchone()
        count, final_at = row or (0, None)
        return Recoverable(count, optional_instant(final_at))

    @reads
    def recoverable_until(self, session: CommonSession, id: str) -> datetime | None:
        """Return the end of the grace period of a forgotten memory or call; None if there is none."""
        final_at = session.scalar(
            "SELECT min(final_at) FROM forgotten "
            "WHERE owner = %(owner)s AND (id = %(id)s OR call = %(id)s)",
            id=id,
        )
        return optional_instant(final_at)
