"""Memories of an export stored on a server again, and the export and restoring of all its records."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from itertools import chain

from mnemosyned.memory.exchange import (
    AnyRecord,
    ExchangeStore,
    ExportFilter,
    Record,
    RestoreReport,
)
from mnemosyned.memory.intake import Known, content_hash
from mnemosyned.memory.restore import PlacedMemory
from mnemosyned.memory.values import MemoryRecord, Tier
from mnemosyned.storage.common.exchange import CommonRestoring, insert_states
from mnemosyned.storage.common.session import writes
from mnemosyned.storage.postgres.connections import Use
from mnemosyned.storage.postgres.export import MOVED, PostgresExporting, moved_records
from mnemosyned.storage.postgres.insert import (
    INSERT_FRESH,
    INSERT_MEMORIES,
    INSERT_PLACED,
    known_records,
    values_by_column,
)
from mnemosyned.storage.postgres.memories import detail_columns
from mnemosyned.storage.postgres.pool import PostgresPart
from mnemosyned.storage.postgres.rows import memory_values, utc
from mnemosyned.storage.postgres.session import PostgresSession


class PostgresRestoring(CommonRestoring):
    """The restoring of records in one transaction."""

    _session: PostgresSession

    def __init__(self, session: PostgresSession) -> None:
        super().__init__(session, MOVED)

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


def _insert_into_tiers(
    session: PostgresSession,
    working: Sequence[PlacedMemory],
    archived: Sequence[PlacedMemory],
) -> None:
    """Insert restored memories into working memory or under their episodes, and update the totals."""
    session.execute(
        INSERT_FRESH,
        seq=[each.seq for each in working],
        created_at=[utc(each.memory.created_at) for each in working],
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
    record = MemoryRecord(
        id=memory.id,
        session=memory.session,
        source=memory.source,
        role=memory.role,
        content=memory.content,
        importance=memory.importance,
        pinned=memory.pinned,
        metadata=memory.metadata,
        created_at=memory.created_at,
    )
    values = memory_values(record, owner)
    if not memory.content:
        known = memory.content_hash
        values["content_hash"] = content_hash("") if known is None else known
        values["words"], values["grams"] = [], None
    return values


READER_S = 600
"""Seconds that whoever reads an export may take for a part of it, which others do not wait for."""


class PostgresExchange(PostgresPart, ExchangeStore):
    """An `ExchangeStore` of one owner in PostgreSQL."""

    @contextmanager
    def export(
        self, chosen: ExportFilter
    ) -> Iterator[tuple[dict[str, int], Iterator[Record]]]:
        """Yield the expected counts by kind, and the records of an export, from one snapshot."""
        with self._pool.reading(self._owner, use=Use.STREAM) as session:
            session.execute(
                f"SET LOCAL idle_in_transaction_session_timeout = '{READER_S}s'"
            )
            exported = PostgresExporting(session, chosen)
            yield exported.count_expected(), exported.records()

    @contextmanager
    def everything(self) -> Iterator[tuple[dict[str, int], Iterator[AnyRecord]]]:
        """Yield the expected counts by kind, and all records of a move, from one snapshot."""
        with self._pool.reading(self._owner, use=Use.STREAM) as session:
            exported = PostgresExporting(session, ExportFilter())
            records = chain(exported.records(), moved_records(session))
            yield exported.count_expected(), records

    @writes
    def restore(
        self, session: PostgresSession, records: Sequence[AnyRecord]
    ) -> RestoreReport:
        """Store exported records that are not here yet, in one transaction; return the counts."""
        return PostgresRestoring(session).restore(records)
