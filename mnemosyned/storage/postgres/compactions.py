"""Compactions on a server: the statements that read an owner's memories."""

from __future__ import annotations

from datetime import datetime

from mnemosyned.memory.values import MemoryRecord
from mnemosyned.storage.common.compactions import CommonCompactions
from mnemosyned.storage.postgres.insert import SAID, PostgresIntake
from mnemosyned.storage.postgres.pool import PostgresPart
from mnemosyned.storage.postgres.session import PostgresSession

IDS_PER_QUERY = 5_000
# Ids that the product gave are no agent's own.
_SAME = (
    f"SELECT m.id FROM memory AS m WHERE m.owner = %(owner)s AND {SAID} "
    "AND m.session_id = %(session)s AND m.content = %(content)s "
    "AND m.source IS NOT DISTINCT FROM %(source)s::text AND m.role = %(role)s "
    "AND NOT starts_with(m.id, 'm-') AND (%(earliest)s::timestamptz IS NULL "
    "OR m.created_at BETWEEN %(earliest)s::timestamptz AND %(latest)s::timestamptz) "
    "ORDER BY EXISTS (SELECT 1 FROM placed AS p WHERE p.owner = %(owner)s AND p.seq = m.seq), "
    "m.seq LIMIT 1"
)


class PostgresCompactions(PostgresPart, CommonCompactions):
    """A `CompactionStore` of one owner in PostgreSQL."""

    _intake = PostgresIntake
    _parts_below = (
        'WITH RECURSIVE below (id) AS (SELECT %(id)s::text COLLATE "C" UNION '
        "SELECT c.part FROM below "
        "JOIN compacted AS c ON c.owner = %(owner)s AND c.compaction = below.id) "
        "SELECT c.compaction, c.part FROM below "
        "JOIN compacted AS c ON c.owner = %(owner)s AND c.compaction = below.id "
        "ORDER BY c.compaction, c.position"
    )

    def _same_memory(
        self,
        session: PostgresSession,
        memory: MemoryRecord,
        earliest: datetime | None,
        latest: datetime | None,
    ) -> str | None:
        """Return the id of a stored memory with the same text, session, source and role, or None.

        Only memories with an id chosen by the agent count. `earliest` and `latest` bound their
        creation.
        """
        id: str | None = session.scalar(
            _SAME,
            session=memory.session,
            content=memory.content,
            source=memory.source,
            role=memory.role,
            earliest=earliest,
            latest=latest,
        )
        return id
