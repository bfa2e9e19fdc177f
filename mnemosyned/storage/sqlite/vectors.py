"""Vectors of memories in a table of their own, each method one transaction."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from mnemosyned.memory.engine_ports import (
    TEXT_CHARS_MAX,
    EmbeddingInput,
    VectorNews,
)
from mnemosyned.search.query import Match, Query
from mnemosyned.storage.common.session import reads, writes
from mnemosyned.storage.common.vectors import CommonVectors
from mnemosyned.storage.sqlite.search import matches_at
from mnemosyned.storage.sqlite.session import SqliteSession
from mnemosyned.storage.sqlite.writer import SqlitePart


class SqliteVectors(SqlitePart, CommonVectors):
    """A `VectorStore` in the file of a `SqliteStore`."""

    @writes
    def use_model(self, session: SqliteSession, name: str, identity: str) -> int:
        """Return the number of a model with this identity; add it, or update its name."""
        number: int = session.scalar(
            "INSERT INTO embedding_model (name, digest) VALUES (?, ?) "
            "ON CONFLICT (digest) DO UPDATE SET name = excluded.name RETURNING number",
            (name, identity),
        )
        return number

    @reads
    def newest_position(self, session: SqliteSession) -> int:
        """Return the highest row number of a memory, 0 if there is none."""
        newest: int = session.scalar(
            "SELECT max((SELECT ifnull(max(seq), 0) FROM working_memory), "
            "(SELECT ifnull(max(seq), 0) FROM archive))"
        )
        return newest

    @reads
    def without_vector(
        self, session: SqliteSession, model: int, *, after: int, before: int, limit: int
    ) -> list[EmbeddingInput]:
        """Return memories between two positions without a vector of the model, the newest first."""
        rows = [
            EmbeddingInput._make(row)
            for table in ("working_memory", "archive")
            for row in session.execute(
                f"SELECT seq, role, substr(content, 1, {TEXT_CHARS_MAX}) FROM {table} AS m "
                "WHERE seq > ? AND seq < ? AND content != '' AND NOT EXISTS "
                "(SELECT 1 FROM embedding WHERE model = ? AND memory_seq = m.seq) "
                "ORDER BY seq DESC LIMIT ?",
                (after, before, model, limit),
            )
        ]
        return sorted(rows, reverse=True)[:limit]

    @writes
    def keep_vectors(
        self, session: SqliteSession, model: int, vectors: Mapping[int, bytes]
    ) -> list[int]:
        """Store vectors by their memories' positions; return the positions that were stored.

        Memories that were forgotten or pruned while the model worked are left out.
        """
        return [
            seq
            for seq, vector in vectors.items()
            if session.execute(
                "INSERT INTO embedding (memory_seq, model, vector) SELECT ?, ?, ? "
                "WHERE EXISTS (SELECT 1 FROM working_memory WHERE seq = ?) "
                "OR EXISTS (SELECT 1 FROM archive WHERE seq = ? AND content != '') "
                "ON CONFLICT (memory_seq) DO UPDATE SET model = excluded.model, "
                "vector = excluded.vector",
                (seq, model, vector, seq, seq),
            ).rowcount
        ]

    def search(self, model: int, *, limit_s: float | None = None) -> None:  # noqa: ARG002 a file compares no vectors
        return None

    def news(self, model: int, *, since: int | None, limit: int) -> VectorNews | None:  # noqa: ARG002 the file has one process
        return None

    @reads
    def candidates(
        self, session: SqliteSession, query: Query, positions: Sequence[int]
    ) -> list[Match]:
        return matches_at(session, query, positions)
