"""Memories of an export stored in a file again, and the export and restoring of all its records."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from itertools import chain

from mnemosyned.memory.exchange import (
    AnyRecord,
    ExchangeStore,
    ExportedMemory,
    ExportFilter,
    Record,
    RestoreReport,
)
from mnemosyned.memory.intake import Known
from mnemosyned.memory.restore import PlacedMemory
from mnemosyned.storage.common.exchange import CommonRestoring, insert_states
from mnemosyned.storage.common.session import Row, writes
from mnemosyned.storage.sqlite.export import MOVED, SqliteExporting, moved_records
from mnemosyned.storage.sqlite.fulltext import index_memories
from mnemosyned.storage.sqlite.insert import known_records
from mnemosyned.storage.sqlite.rows import MEMORY_COLUMNS, memory_row
from mnemosyned.storage.sqlite.session import SqliteSession
from mnemosyned.storage.sqlite.writer import SqlitePart

_PLACES = ", ".join("?" * (1 + len(MEMORY_COLUMNS.split(", "))))
_INSERT_WORKING = (
    f"INSERT INTO working_memory (seq, {MEMORY_COLUMNS}) VALUES ({_PLACES})"
)
_INSERT_ARCHIVED = (
    f"INSERT INTO archive (seq, {MEMORY_COLUMNS}, episode_seq) VALUES ({_PLACES}, ?)"
)


class SqliteRestoring(CommonRestoring):
    """The restoring of records in one transaction."""

    _session: SqliteSession

    def __init__(self, session: SqliteSession) -> None:
        super().__init__(session, MOVED)
        self._kinds: dict[str, int] = {}

    def known_records(self, ids: Sequence[str]) -> dict[str, Known]:
        return known_records(self._session, ids)

    def taken_numbers(self, seqs: Sequence[int]) -> set[int]:
        """Return the numbers, among these, that memories of this store have."""
        rows = self._session.execute(
            "SELECT seq FROM working_memory WHERE seq = ANY(%(seqs)s) "
            "UNION ALL SELECT seq FROM archive WHERE seq = ANY(%(seqs)s)",
            seqs=list(seqs),
        )
        return {seq for (seq,) in rows}

    def last_number(self) -> int:
        """Return the highest row number that was ever given to a memory."""
        last: int | None = self._session.scalar(
            "SELECT seq FROM sqlite_sequence WHERE name = 'working_memory'"
        )
        if last is None:
            self._session.execute(
                "INSERT INTO sqlite_sequence VALUES ('working_memory', 0)"
            )
        return last or 0

    def insert_memories(
        self, memories: Sequence[PlacedMemory], *, last_number: int
    ) -> None:
        """Insert exported memories at their places, with states, details and index entries."""
        for memory, seq, home in memories:
            values: Row = (seq, *memory_row(memory))
            if memory.content_hash is not None:  # of words that were pruned
                values = (*values[:-1], memory.content_hash)
            if home is None:
                self._session.execute(_INSERT_WORKING, values)
            else:
                self._session.execute(_INSERT_ARCHIVED, (*values, home))
                self._insert_details(memory, seq)
        insert_states(self._session, memories)
        index_memories(
            self._session,
            [
                (seq, memory.content, memory.role)
                for memory, seq, _ in memories
                if memory.content
            ],
        )
        self._session.execute(
            "UPDATE sqlite_sequence SET seq = max(seq, ?) WHERE name = 'working_memory'",
            (last_number,),
        )

    def _insert_details(self, memory: ExportedMemory, seq: int) -> None:
        """Insert the exact values of an original."""
        for kind, value, sensitive in memory.details:
            self._session.execute(
                "INSERT OR IGNORE INTO detail (memory_seq, kind, value, sensitive) "
                "VALUES (?, ?, ?, ?)",
                (seq, self._kind(kind), value, sensitive),
            )

    def _kind(self, name: str) -> int:
        """Return the number of a kind of exact value, a new one for a new kind."""
        if name not in self._kinds:
            self._session.execute(
                "INSERT OR IGNORE INTO detail_kind (name) VALUES (?)", (name,)
            )
            self._kinds = dict(
                self._session.execute("SELECT name, number FROM detail_kind")
            )
        return self._kinds[name]


class SqliteExchange(SqlitePart, ExchangeStore):
    """An `ExchangeStore` on one SQLite file."""

    @contextmanager
    def export(
        self, chosen: ExportFilter
    ) -> Iterator[tuple[dict[str, int], Iterator[Record]]]:
        """Yield the expected counts by kind, and the records of an export, from one snapshot."""
        with self._readers.snapshot() as session:
            exported = SqliteExporting(session, chosen)
            yield exported.count_expected(), exported.records()

    @contextmanager
    def everything(self) -> Iterator[tuple[dict[str, int], Iterator[AnyRecord]]]:
        """Yield the expected counts by kind, and all records of a move, from one snapshot."""
        with self._readers.snapshot() as session:
            exported = SqliteExporting(session, ExportFilter())
            records = chain(exported.records(), moved_records(session))
            yield exported.count_expected(), records

    @writes
    def restore(
        self, session: SqliteSession, records: Sequence[AnyRecord]
    ) -> RestoreReport:
        """Store exported records that are not here yet, in one transaction; return the counts."""
        return SqliteRestoring(session).restore(records)
