"""Export and exact import."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from itertools import chain

from mnemosyned.domain.exchange import ExportFilter, Restored
from mnemosyned.domain.ports.archive.exchange import (
    AnyRecord,
    ExchangeStore,
    Record,
)
from mnemosyned.storage.postgres.database.connections import Use
from mnemosyned.storage.postgres.database.session import Session
from mnemosyned.storage.postgres.database.transactions import Transactional, writes
from mnemosyned.storage.postgres.tables.exchange.export import PostgresExporting
from mnemosyned.storage.postgres.tables.exchange.moved import moved_records
from mnemosyned.storage.postgres.tables.exchange.restore import PostgresRestoring

READER_S = 600
"""Seconds that whoever reads an export may take for a part of it, which others do not wait for."""


class PostgresExchange(Transactional, ExchangeStore):
    """An `ExchangeStore` of one owner in PostgreSQL."""

    @contextmanager
    def export(
        self, chosen: ExportFilter
    ) -> Iterator[tuple[dict[str, int], Iterator[Record]]]:
        with self._pool.reading(self._owner, use=Use.STREAM) as session:
            session.execute(
                f"SET LOCAL idle_in_transaction_session_timeout = '{READER_S}s'"
            )
            exported = PostgresExporting(session, chosen)
            yield exported.expected(), exported.records()

    @contextmanager
    def everything(self) -> Iterator[tuple[dict[str, int], Iterator[AnyRecord]]]:
        with self._pool.reading(self._owner, use=Use.STREAM) as session:
            exported = PostgresExporting(session, ExportFilter())
            records = chain(exported.records(), moved_records(session))
            yield exported.expected(), records

    @writes
    def restore(self, session: Session, records: Sequence[AnyRecord]) -> Restored:
        return PostgresRestoring(session).restore(records)
