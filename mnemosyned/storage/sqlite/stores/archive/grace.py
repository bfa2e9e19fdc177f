"""Grace times: forgotten memories put back, or deleted for good."""

from __future__ import annotations

import sqlite3
from collections.abc import Sequence
from datetime import datetime

from mnemosyned.domain.keeping.retention import Recoverable
from mnemosyned.domain.ports.archive.grace import GraceStore
from mnemosyned.storage.sqlite.database.transactions import Transactional, reads, writes
from mnemosyned.storage.sqlite.tables.forgetting.forgotten import LEARNING, put_back
from mnemosyned.storage.sqlite.tables.forgetting.purge import request_purge
from mnemosyned.storage.sqlite.tables.rows import instant_text, optional_instant


class SqliteGrace(Transactional, GraceStore):
    """The `GraceStore` on one SQLite file."""

    @reads
    def kept(
        self,
        connection: sqlite3.Connection,
        ids: Sequence[str] = (),
        *,
        before: datetime | None = None,
    ) -> list[str]:
        keys: dict[str, None] = {}
        for id in ids:
            keys.update(
                connection.execute(
                    "SELECT id, NULL FROM forgotten WHERE id = ? OR call = ?",
                    (id, id),
                )
            )
        if before:
            keys.update(
                connection.execute(
                    "SELECT id, NULL FROM forgotten WHERE final_at <= ?",
                    (instant_text(before),),
                )
            )
        return list(keys)

    @writes
    def put_back(
        self, connection: sqlite3.Connection, keys: Sequence[str]
    ) -> list[tuple[str, int]]:
        return put_back(connection, keys)

    @writes
    def finish(self, connection: sqlite3.Connection, keys: Sequence[str]) -> int:
        deleted = connection.executemany(
            "DELETE FROM forgotten WHERE id = ?", [(key,) for key in keys]
        ).rowcount
        if deleted:
            request_purge(connection)
        return deleted

    @reads
    def recoverable(self, connection: sqlite3.Connection) -> Recoverable:
        count, final_at = connection.execute(
            "SELECT ifnull(sum(id NOT GLOB ?), 0), min(final_at) FROM forgotten",
            (f"{LEARNING}:*",),
        ).fetchone()
        return Recoverable(count, optional_instant(final_at))

    @reads
    def is_recoverable(
        self, connection: sqlite3.Connection, id: str
    ) -> datetime | None:
        (final_at,) = connection.execute(
            "SELECT min(final_at) FROM forgotten WHERE id = ? OR call = ?", (id, id)
        ).fetchone()
        return optional_instant(final_at)
