"""Memories of an export stored in a file again, and the export and restoring of all its records."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import AbstractContextManager

from mnemosyned.memory.exchange import ExportedMemory, KeptVector, Outcome
from mnemosyned.memory.intake import Known
from mnemosyned.memory.restore import PlacedMemory
from mnemosyned.storage.common.exchange import (
    CommonExchange,
    CommonRestoring,
    insert_states,
)
from mnemosyned.storage.common.session import Row
from mnemosyned.storage.sqlite.export import SqliteExporting
from mnemosyned.storage.sqlite.fulltext import index_memories
from mnemosyned.storage.sqlite.insert import INSERT_NUMBERED, known_records
from mnemosyned.storage.sqlite.rows import MEMORY_COLUMNS, memory_row
from mnemosyned.storage.sqlite.session import SqliteSession
from mnemosyned.storage.sqlite.writer import SqlitePart

_INSERT_ARCHIVED = (
    f"INSERT INTO archive (seq, {MEMORY_COLUMNS}, episode_seq) "
    f"VALUES (?, ?, {', '.join('?' for _ in MEMORY_COLUMNS.split(', '))})"
)


class SqliteRestoring(CommonRestoring):
    """The restoring of records in one transaction."""

    _session: SqliteSession

    def __init__(self, session: SqliteSession) -> None:
        super().__init__(session)
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
                self._session.execute(INSERT_NUMBERED, values)
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

    def _restore_vector(self, vector: KeptVector) -> Outcome:
        """Store the vector of a memory that has none; return None if the memory is missing."""
        session = self._session
        session.execute(
            "INSERT OR IGNORE INTO embedding_model (name, digest) VALUES (?, ?)",
            (vector.model, vector.digest),
        )
        position = session.position_of(vector.memory)
        if position is None:
            return None
        inserted = session.execute(
            "INSERT OR IGNORE INTO embedding (memory_seq, model, vector) "
            "SELECT ?, number, ? FROM embedding_model WHERE digest = ?",
            (position[0], vector.vector, vector.digest),
        )
        return bool(inserted.rowcount)

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


class SqliteExchange(SqlitePart, CommonExchange):
    """An `ExchangeStore` on one SQLite file."""

    _exporting = SqliteExporting
    _restoring = SqliteRestoring

    def _snapshot(self) -> AbstractContextManager[SqliteSession]:
        return self._readers.snapshot()
