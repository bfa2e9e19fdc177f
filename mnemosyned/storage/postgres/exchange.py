"""Memories and vectors of an owner as records of an export and of a move, and stored from them again."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from mnemosyned.memory import exchange, forgetting
from mnemosyned.memory.values import Tier, column_list
from mnemosyned.storage.common.exchange import (
    TAGS_AND_REVISIONS,
    ExportSnapshot,
    PlacedMemory,
    RestoreTransaction,
    insert_states,
)
from mnemosyned.storage.postgres.memories import (
    INSERT_MEMORIES,
    INSERT_PLACED,
    detail_columns,
    values_by_column,
)
from mnemosyned.storage.postgres.session import (
    INSERT_FRESH,
    PostgresSession,
    memory_values,
    values_of,
)
from mnemosyned.storage.postgres.vectors import USE_MODEL

_ROW = column_list(prefix="m.")
_MEMORY = (
    "m.seq, m.content_hash, m.valid_until, m.superseded_at, m.pruned_at, m.held_until, "
    f"m.future_since, {_ROW}, k.episode, k.details, k.secrets, {TAGS_AND_REVISIONS}"
)
# A planner that takes an owner for small, as statistics older than its memories do, reads all of a
# table again for each row of another. It takes no `OFFSET 0` apart: what is inside it is looked up
# by its key.
_AT_KEYS = (
    f"SELECT {_MEMORY} FROM ({{keys}} OFFSET 0) AS k CROSS JOIN LATERAL ("
    f"SELECT m.seq, m.content_hash, {_ROW}, s.valid_until, s.superseded_at, s.pruned_at, "
    "h.held_until, h.future_since FROM memory AS m "
    "LEFT JOIN memory_state AS s ON s.owner = m.owner AND s.memory_seq = m.seq "
    "LEFT JOIN working_state AS h ON h.owner = m.owner AND h.memory_seq = m.seq "
    "WHERE m.owner = %(owner)s AND m.seq = k.seq AND {where} OFFSET 0) AS m ORDER BY {order}"
)
"""The memories of some keys: each a `seq`, the id of its episode, and its exact values."""
_FRESH = (
    "SELECT f.seq, NULL::text AS episode, NULL::text AS details, NULL::text AS secrets FROM fresh AS f "
    "WHERE f.owner = %(owner)s ORDER BY f.seq"
)
_PLACED = (
    "SELECT p.seq, e.id AS episode, e.seq AS episode_seq, p.details, p.secrets FROM ("
    "SELECT e.id, e.seq FROM episode AS e "
    "WHERE e.owner = %(owner)s AND {episodes} OFFSET 0) AS e CROSS JOIN LATERAL ("
    "SELECT p.seq, p.details, p.secrets FROM placed AS p "
    "WHERE p.owner = %(owner)s AND p.episode_seq = e.seq OFFSET 0) AS p ORDER BY e.seq, p.seq"
)


class PostgresExporting(ExportSnapshot):
    """The records of one snapshot."""

    _working = _AT_KEYS.format(keys=_FRESH, where="{where}", order="k.seq")
    _archived = _AT_KEYS.format(
        keys=_PLACED, where="{where}", order="k.episode_seq, k.seq"
    )
    _has_others = (
        "EXISTS (SELECT 1 FROM placed AS q CROSS JOIN LATERAL (SELECT 1 FROM memory AS o "
        "WHERE o.owner = %(owner)s AND o.seq = q.seq AND NOT ({}) OFFSET 0) AS n "
        "WHERE q.owner = %(owner)s AND q.episode_seq = e.seq OFFSET 0)"
    )
    _superseded = (
        "SELECT m.id, n.id FROM (SELECT s.memory_seq, s.superseded_by FROM memory_state AS s "
        "WHERE s.owner = %(owner)s AND s.superseded_by IS NOT NULL OFFSET 0) AS s "
        "CROSS JOIN LATERAL (SELECT m.id, m.seq, EXISTS (SELECT 1 FROM fresh AS f "
        "WHERE f.owner = %(owner)s AND f.seq = m.seq OFFSET 0) AS works FROM memory AS m "
        "WHERE m.owner = %(owner)s AND m.seq = s.memory_seq AND {} OFFSET 0) AS m "
        "CROSS JOIN LATERAL (SELECT n.id, EXISTS (SELECT 1 FROM fresh AS g "
        "WHERE g.owner = %(owner)s AND g.seq = n.seq OFFSET 0) AS works FROM memory AS n "
        "WHERE n.owner = %(owner)s AND n.seq = s.superseded_by OFFSET 0) AS n "
        "ORDER BY NOT m.works, NOT n.works, m.seq"
    )
    _vectors = (
        "SELECT n.id, m.name, m.digest, v.vector FROM embedding AS v "
        "JOIN embedding_model AS m ON m.owner = v.owner AND m.number = v.model "
        "JOIN memory AS n ON n.owner = v.owner AND n.seq = v.memory_seq "
        "WHERE v.owner = %(owner)s ORDER BY v.memory_seq"
    )

    def _read_details(
        self, plain: str | None, secret: str | None
    ) -> Iterable[tuple[str, str, bool]]:
        """Return (kind, value, is secret) of the exact values in the two columns."""
        return [(*key, mark) for key, mark in values_of(plain, secret).items()]


_INSERT_VECTOR = (
    "INSERT INTO embedding (owner, memory_seq, model, vector, version) "
    "SELECT n.owner, n.seq, m.number, %(vector)s, %(version)s FROM memory AS n "
    "JOIN embedding_model AS m ON m.owner = n.owner AND m.digest = %(digest)s "
    "WHERE n.owner = %(owner)s AND n.id = %(memory)s ON CONFLICT DO NOTHING"
)


class PostgresRestoring(RestoreTransaction):
    """The restoring of records in one transaction."""

    _session: PostgresSession

    def _highest_row_number(self) -> int:
        """Return the highest row number of a memory, which the owner's row has."""
        return int(self._session.select_value("owner", "last_memory"))

    def _insert_memories(
        self, memories: Sequence[PlacedMemory], *, last_number: int
    ) -> None:
        """Insert restored memories into working memory or archive, with index entries, and count them."""
        session = self._session
        if memories:
            session.execute(
                INSERT_MEMORIES,
                seq=[each.seq for each in memories],
                **values_by_column(
                    [_memory_row_values(session.owner, each) for each in memories]
                ),
            )
            session.grown += len(memories)
            session.note_rewording()
            working = [each for each in memories if each.home is None]
            archived = [each for each in memories if each.home is not None]
            session.execute(
                INSERT_FRESH,
                seq=[each.seq for each in working],
                created_at=[each.memory.created_at for each in working],
            )
            session.execute(
                INSERT_PLACED,
                seqs=[each.seq for each in archived],
                homes=[each.home for each in archived],
                # Of two details alike the first one counts.
                **detail_columns(
                    {
                        (kind, value): is_secret
                        for kind, value, is_secret in reversed(each.memory.details)
                    }
                    for each in archived
                ),
            )
            for tier, members in ((Tier.WORKING, working), (Tier.ARCHIVE, archived)):
                chars = sum(len(each.memory.content) for each in members)
                session.add_to_totals(tier, count=len(members), characters=chars)
            insert_states(session, memories)
        session.number_rows_above("memory", last_number)

    def _restore_vector(self, vector: exchange.KeptVector) -> exchange.Outcome:
        """Insert a vector, and its model if new; return False if one was known or the memory is missing."""
        session = self._session
        known = session.select_value("embedding_model", "1", digest=vector.digest)
        if known is None:
            session.execute(USE_MODEL, name=vector.model, digest=vector.digest)
        version = session.new_number()
        inserted = session.execute(
            _INSERT_VECTOR,
            version=version,
            memory=vector.memory,
            digest=vector.digest,
            vector=vector.vector,
        )
        return bool(inserted.rowcount)


def _memory_row_values(owner: int, placed: PlacedMemory) -> dict[str, object]:
    """Return a restored memory's row by column; a pruned memory has no index terms."""
    memory = placed.memory
    values = memory_values(memory, owner)
    if not memory.content:
        known = memory.content_hash
        values["content_hash"] = forgetting.content_hash("") if known is None else known
        values["words"], values["grams"] = [], None
    return values
