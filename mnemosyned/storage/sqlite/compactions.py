"""Compactions in a file: the statements that read its memories."""

from __future__ import annotations

from datetime import datetime

from mnemosyned.memory.intake import content_hash
from mnemosyned.memory.values import MemoryRecord
from mnemosyned.storage.common.compactions import CommonCompactions
from mnemosyned.storage.sqlite.insert import SqliteIntake
from mnemosyned.storage.sqlite.session import SqliteSession
from mnemosyned.storage.sqlite.writer import SqlitePart

# Ids that the product gave are no agent's own.
_SAME = (
    "content_hash = :hash AND content = :content AND +session_id = :session AND source IS :source "
    "AND role = :role AND id NOT GLOB 'm-*' "
    "AND (:earliest IS NULL OR created_at BETWEEN :earliest AND :latest)"
)


class SqliteCompactions(SqlitePart, CommonCompactions):
    """A `CompactionStore` on one SQLite file."""

    _intake = SqliteIntake
    # CROSS JOIN: SQLite takes the compactions of a recursion to be many.
    _parts_below = (
        "WITH RECURSIVE below (id) AS (SELECT :id UNION "
        "SELECT c.part FROM below CROSS JOIN compacted AS c ON c.compaction = below.id) "
        "SELECT c.compaction, c.part FROM below "
        "CROSS JOIN compacted AS c ON c.compaction = below.id "
        "ORDER BY c.compaction, c.position"
    )

    def _same_memory(
        self,
        session: SqliteSession,
        memory: MemoryRecord,
        earliest: datetime | None,
        latest: datetime | None,
    ) -> str | None:
        """Return the id of a stored memory with the same text, session, source and role, or None.

        Only memories with an id chosen by the agent count. `earliest` and `latest` bound their
        creation.
        """
        id: str | None = session.scalar(
            f"SELECT id FROM working_memory WHERE {_SAME} "
            f"UNION ALL SELECT id FROM archive WHERE {_SAME} LIMIT 1",
            hash=content_hash(memory.content),
            content=memory.content,
            session=memory.session,
            source=memory.source,
            role=memory.role,
            earliest=earliest,
            latest=latest,
        )
        return id
