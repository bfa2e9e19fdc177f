"""Grace times: forgotten memories put back, or deleted for good."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime

from mnemosyned.domain.keeping.retention import Recoverable
from mnemosyned.domain.ports.archive.grace import GraceStore
from mnemosyned.storage.postgres.database.session import Session
from mnemosyned.storage.postgres.database.transactions import (
    Transactional,
    reads,
    writes,
)
from mnemosyned.storage.postgres.tables.forgetting.forgotten import LEARNING, put_back
from mnemosyned.storage.postgres.tables.forgetting.purge import request_purge
from mnemosyned.storage.postgres.tables.rows import utc


class PostgresGrace(Transactional, GraceStore):
    """The `GraceStore` of one owner in PostgreSQL."""

    @reads
    def kept(
        self,
        session: Session,
        ids: Sequence[str] = (),
        *,
        before: datetime | None = None,
    ) -> list[str]:
        rows = session.execute(
            "SELECT id FROM forgotten WHERE owner = %(owner)s "
            "AND (id = ANY(%(ids)s::text[]) OR call = ANY(%(ids)s::text[]) "
            "OR final_at <= %(before)s::timestamptz) ORDER BY id",
            ids=list(ids),
            before=utc(before) if before else None,
        )
        return [id for (id,) in rows]

    @writes
    def put_back(self, session: Session, keys: Sequence[str]) -> list[tuple[str, int]]:
        return put_back(session, keys)

    @writes
    def finish(self, session: Session, keys: Sequence[str]) -> int:
        deleted = session.execute(
            "DELETE FROM forgotten "
            "WHERE owner = %(owner)s AND id = ANY(%(keys)s::text[])",
            keys=list(keys),
        ).rowcount
        if deleted:
            request_purge(session)
        return deleted

    @reads
    def recoverable(self, session: Session) -> Recoverable:
        row = session.execute(
            "SELECT count(*) FILTER (WHERE NOT starts_with(id, %(learning)s)), "
            "min(final_at) FROM forgotten WHERE owner = %(owner)s",
            learning=f"{LEARNING}:",
        ).fetchone()
        return Recoverable(*row) if row else Recoverable()

    @reads
    def is_recoverable(self, session: Session, id: str) -> datetime | None:
        final_at: datetime | None = session.scalar(
            "SELECT min(final_at) FROM forgotten "
            "WHERE owner = %(owner)s AND (id = %(id)s OR call = %(id)s)",
            id=id,
        )
        return final_at
