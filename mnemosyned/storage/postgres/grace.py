"""Memories forgotten with a grace period, put back on a server."""

from __future__ import annotations

from mnemosyned.memory.values import MemoryRecord
from mnemosyned.storage.common.grace import CommonGrace
from mnemosyned.storage.postgres.insert import insert_again, insert_new, newest_number
from mnemosyned.storage.postgres.pool import PostgresPart
from mnemosyned.storage.postgres.session import PostgresSession


class PostgresGrace(PostgresPart, CommonGrace):
    """The `GraceStore` of one owner in PostgreSQL."""

    def _insert(
        self, session: PostgresSession, memory: MemoryRecord, seq: int | None
    ) -> int:
        """Insert a memory into working memory with tags and validity; return its row number.

        The number is new if `seq` is None.
        """
        if seq is None:
            insert_new(session, [memory])
            return newest_number(session)
        insert_again(session, memory, seq)
        return seq
