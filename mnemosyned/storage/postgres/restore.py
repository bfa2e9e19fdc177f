"""Memories of an export stored on a server again, and the export and restoring of all its records."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from mnemosyned.memory.exchange import KeptVector, Outcome
from mnemosyned.memory.intake import Known, content_hash
from mnemosyned.memory.restore import PlacedMemory
from mnemosyned.memory.values import Tier
from mnemosyned.storage.common.exchange import (
    CommonExchange,
    CommonRestoring,
    insert_states,
)
from mnemosyned.storage.postgres.connections import Use
from mnemosyned.storage.postgres.export import PostgresExporting
from mnemosyned.storage.postgres.insert import (
    INSERT_FRESH,
    INSERT_MEMORIES,
    INSERT_PLACED,
    known_records,
    values_by_column,
)
from mnemosyned.storage.postgres.memories import detail_columns
from mnemosyned.storage.postgres.pool import PostgresPart
from mnemosyned.storage.postgres.rows import memory_values
from mnemosyned.storage.postgres.session import PostgresSession

_INSERT_MODEL = (
    "INSERT INTO embedding_model (owner, number, name, digest) "
    "SELECT o.owner, (SELECT coalesce(max(m.number), 0) + 1 FROM embedding_model AS m "
    "WHERE m.owner = %(owner)s), %(name)s, %(digest)s "
    "FROM owner AS o WHERE o.owner = %(owner)s ON CONFLICT DO NOTHING"
)
_INSERT_VECTOR = (
    "INSERT INTO embedding (owner, memory_seq, model, vector, version) "
    "SELECT n.owner, n.seq, m.number, %(vector)s, %(version)s FROM memory AS n "
    "JOIN embedding_model AS m ON m.owner = n.owner AND m.digest = %(digest)s "
    "WHERE n.owner = %(owner)s AND n.id = %(memory)s ON CONFLICT DO NOTHING"
)


class PostgresRestoring(CommonRestoring):
    """The restoring of records in one transaction."""

    _session: PostgresSession

    def known_records(self, ids: Sequence[str]) -> dict[str, Known]:
        return known_records(self._session, ids)

    def taken_numbers(self, seqs: Sequence[int]) -> set[int]:
        """Return the numbers, among these, that memories of this store have."""
        rows = self._session.execute(
            "SELECT seq FROM memory WHERE owner = %(owner)s "
            "AND seq = ANY(%(seqs)s::bigint[])",
            seqs=list(seqs),
        )
        return {seq for (seq,) in rows}

    def last_number(self) -> int:
        """Return the highest row number that was ever given to a memory."""
        last: int = self._session.scalar(
            "SELECT last_memory FROM owner WHERE owner = %(owner)s"
        )
        return last

    def insert_memories(
        self, memories: Sequence[PlacedMemory], *, last_number: int
    ) -> None:
        """Insert exported memories at their places, with states, details and index entries."""
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
            _insert_into_tiers(
                session,
                [each for each in memories if each.home is None],
                [each for each in memories if each.home is not None],
            )
            insert_states(session, memories)
        session.skip_numbers("memory", last_number)

    def _restore_vector(self, vector: KeptVector) -> Outcome:
        """Store the vector of a memory that has none; return whether it was stored."""
        session = self._session
        known = session.scalar(
            "SELECT 1 FROM embedding_model WHERE owner = %(owner)s AND digest = %(digest)s",
            digest=vector.digest,
        )
        if known is None:
            session.execute(_INSERT_MODEL, name=vector.model, digest=vector.digest)
        version = session.new_number()
        inserted = session.execute(
            _INSERT_VECTOR,
            version=version,
            memory=vector.memory,
            digest=vector.digest,
            vector=vector.vector,
        )
        return bool(inserted.rowcount)


def _insert_into_tiers(
    session: PostgresSession,
    working: Sequence[PlacedMemory],
    archived: Sequence[PlacedMemory],
) -> None:
    """Insert restored memories into working memory or under their episodes, and update the totals."""
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
        )._asdict(),
    )
    for tier, members in ((Tier.WORKING, working), (Tier.ARCHIVE, archived)):
        characters = sum(len(each.memory.content) for each in members)
        session.add_to_totals(tier, count=len(members), characters=characters)


def _memory_row_values(owner: int, placed: PlacedMemory) -> dict[str, object]:
    """Return the values of a restored memory's row; a pruned memory has no index terms."""
    memory = placed.memory
    values = memory_values(memory, owner)
    if not memory.content:
        known = memory.content_hash
        values["content_hash"] = content_hash("") if known is None else known
        values["words"], values["grams"] = [], None
    return values


READER_S = 600
"""Seconds that whoever reads an export may take for a part of it, which others do not wait for."""


class PostgresExchange(PostgresPart, CommonExchange):
    """An `ExchangeStore` of one owner in PostgreSQL."""

    _exporting = PostgresExporting
    _restoring = PostgresRestoring

    @contextmanager
    def _snapshot(self) -> Iterator[PostgresSession]:
        """Open a session that reads one snapshot, for as long as the reader takes."""
        with self._pool.reading(self._owner, use=Use.STREAM) as session:
            session.execute(
                f"SET LOCAL idle_in_transaction_session_timeout = '{READER_S}s'"
            )
            yield session
