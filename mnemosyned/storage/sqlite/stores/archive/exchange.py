"""Export and exact import."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from itertools import chain

from mnemosyned.domain.exchange import ExportFilter, Restored
from mnemosyned.domain.ports.archive.exchange import (
    AnyRecord,
    ExchangeStore,
    Record,
)
from mnemosyned.storage.sqlite.database.transactions import Transactional, writes
from mnemosyned.storage.sqlite.tables.exchange.export import SqliteExporting
from mnemosyned.storage.sqlite.tables.exchange.moved import moved_records
from mnemosyned.storage.sqlite.tables.exchange.restore import SqliteRestoring


class SqliteExchange(Transactional, ExchangeStore):
    """An `ExchangeStore` on one SQLite file."""

    @contextmanager
    def export(
        self, chosen: ExportFilter
    ) -> Iterator[tuple[dict[str, int], Iterator[Record]]]:
        with self._readers.snapshot() as connection:
            exported = SqliteExporting(connection, chosen)
            yield exported.expected(), exported.records()

    @contextmanager
    def everything(self) -> Iterator[tuple[dict[str, int], Iterator[AnyRecord]]]:
        with self._readers.snapshot() as connection:
            exported = SqliteExporting(connection, ExportFilter())
            records = chain(exported.records(), moved_records(connection))
            yield exported.expected(), records

    @writes
    def restore(
        self, connection: sqlite3.Connection, records: Sequence[AnyRecord]
    ) -> Restored:
        return SqliteRestoring(connection).restore(records)
