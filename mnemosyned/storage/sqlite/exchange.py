"""Memories and vectors of a file as records of an export and of a move, and stored from them again."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import product

import msgspec

from mnemosyned.memory import exchange
from mnemosyned.memory.values import column_list
from mnemosyned.storage.common.exchange import (
    TAGS_AND_REVISIONS,
    ExportSnapshot,
    PlacedMemory,
    RestoreTransaction,
    insert_states,
)
from mnemosyned.storage.common.session import Row
from mnemosyned.storage.sqlite.fulltext import index_memories
from mnemosyned.storage.sqlite.memories import INSERT_NUMBERED
from mnemosyned.storage.sqlite.session import MEMORY_COLUMNS, SqliteSession, memory_row

_MEMORIES = (
    "SELECT m.seq, m.content_hash, s.valid_until, s.superseded_at, s.pruned_at, {held}, "
    f"{column_list(prefix='m.')}, {{home}}, NULL, {TAGS_AND_REVISIONS} FROM {{tables}} "
    "LEFT JOIN memory_state AS s ON s.memory_seq = m.seq "
)
_DETAILS = (
    "(SELECT json_group_array(json_array(k.name, d.value, d.sensitive)) FROM detail AS d "
    "JOIN detail_kind AS k ON k.number = d.kind WHERE d.memory_seq = m.seq)"
)


class SqliteExporting(ExportSnapshot):
    """The records of one snapshot."""

    _working = (
        _MEMORIES.format(
            held="h.held_until, h.future_since",
            home="NULL, NULL",
            tables="working_memory AS m",
        )
        + "LEFT JOIN working_state AS h ON h.memory_seq = m.seq WHERE {where} ORDER BY m.seq"
    )
    _archived = (
        _MEMORIES.format(
            held="NULL, NULL",
            home=f"e.id, {_DETAILS}",
            tables="episodic_memory AS e CROSS JOIN archive AS m ON m.episode_seq = e.seq",
        )
        + "WHERE {episodes} AND {where} ORDER BY e.seq, m.seq"
    )
    _has_others = (
        "EXISTS (SELECT 1 FROM archive AS o WHERE o.episode_seq = e.seq AND NOT ({}))"
    )
    _superseded = (
        " UNION ALL ".join(
            f"SELECT m.id, n.id, {place}, m.seq FROM memory_state AS s "
            f"JOIN {table} AS m ON m.seq = s.memory_seq "
            f"JOIN {other} AS n ON n.seq = s.superseded_by "
            "WHERE s.superseded_by IS NOT NULL AND {0}"
            for place, (table, other) in enumerate(
                product(SqliteSession.memory_tables, repeat=2)
            )
        )
        + " ORDER BY 3, 4"
    )
    _vectors = (
        "SELECT n.id, m.name, m.digest, v.vector FROM embedding AS v "
        "JOIN embedding_model AS m ON m.number = v.model "
        "JOIN (SELECT seq, id FROM working_memory UNION ALL SELECT seq, id FROM archive) AS n "
        "ON n.seq = v.memory_seq ORDER BY v.memory_seq"
    )

    def _read_details(
        self, plain: str | None, secret: str | None
    ) -> Iterable[tuple[str, str, bool]]:
        """Return (kind, value, is secret) of the exact values in `plain`, a list of both kinds."""
        del secret  # marked in that list
        values = msgspec.json.decode(plain or "[]")
        return [(kind, value, bool(mark)) for kind, value, mark in values]


_INSERT_ARCHIVED = (
    f"INSERT INTO archive (seq, {MEMORY_COLUMNS}, episode_seq) "
    f"VALUES (?, ?, {', '.join('?' for _ in MEMORY_COLUMNS.split(', '))})"
)


class SqliteRestoring(RestoreTransaction):
    """The restoring of records in one transaction."""

    _session: SqliteSession

    def _highest_row_number(self) -> int:
        """Return the highest row number that SQLite has given a memory; begin its count at 0 in a new file."""
        last: int | None = self._session.scalar(
            "SELECT seq FROM sqlite_sequence WHERE name = 'working_memory'"
        )
        if last is None:
            self._session.execute(
                "INSERT INTO sqlite_sequence VALUES ('working_memory', 0)"
            )
        return last or 0

    def _insert_memories(
        self, memories: Sequence[PlacedMemory], *, last_number: int
    ) -> None:
        """Insert restored memories, with index entries, exact values and states, under their row numbers."""
        for memory, seq, home in memories:
            values: Row = (seq, *memory_row(memory))
            if memory.content_hash is not None:  # of words that were pruned
                values = (*values[:-1], memory.content_hash)
            if home is None:
                self._session.execute(INSERT_NUMBERED, values)
            else:
                self._session.execute(_INSERT_ARCHIVED, (*values, home))
        insert_states(self._session, memories)
        self._session.insert_details(
            [
                (seq, *detail)
                for memory, seq, home in memories
                if home is not None
                for detail in memory.details
            ],
        )
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

    def _restore_vector(self, vector: exchange.KeptVector) -> exchange.Outcome:
        """Insert a vector, and its model if new; return False if one was known, None without the memory."""
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
