"""Vectors of memories in a table of their own, each method one transaction."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence

from mnemosyned.memory.engine_ports import (
    TEXT_CHARS_MAX,
    EmbeddingInput,
    VectorNews,
    VectorStore,
)
from mnemosyned.search.query import Match, Query
from mnemosyned.storage.sqlite.search import matches_at
from mnemosyned.storage.sqlite.session import SqliteSession
from mnemosyned.storage.sqlite.writer import SqlitePart


class SqliteVectors(SqlitePart, VectorStore):
    """A `VectorStore` in the file of a `SqliteStore`."""

    def use_model(self, name: str, identity: str) -> int:
        """Return the number of a model with this identity; add it, or update its name."""
        return self._writer.write(
            lambda session: _model_number(session, name, identity)
        )

    def newest_position(self) -> int:
        """Return the highest row number of a memory, 0 if there is none."""
        with self._readers.snapshot() as session:
            found: int = session.execute(
                "SELECT max((SELECT ifnull(max(seq), 0) FROM working_memory), "
                "(SELECT ifnull(max(seq), 0) FROM archive))"
            ).fetchone()[0]
        return found

    def without_vector(
        self, model: int, *, after: int, before: int, limit: int
    ) -> list[EmbeddingInput]:
        """Return memories between two positions without a vector of the model, the newest first."""
        with self._readers.snapshot() as session:
            rows: list[EmbeddingInput] = []
            for table in ("working_memory", "archive"):
                rows += map(
                    EmbeddingInput._make,
                    session.execute(
                        f"SELECT seq, role, substr(content, 1, {TEXT_CHARS_MAX}) FROM {table} AS m "
                        "WHERE seq > ? AND seq < ? AND content != '' AND NOT EXISTS "
                        "(SELECT 1 FROM embedding WHERE model = ? AND memory_seq = m.seq) "
                        "ORDER BY seq DESC LIMIT ?",
                        (after, before, model, limit),
                    ),
                )
        return sorted(rows, reverse=True)[:limit]

    def keep_vectors(self, model: int, vectors: Mapping[int, bytes]) -> list[int]:
        """Store vectors by their memories' positions; return the positions that were stored."""
        return self._writer.write(
            lambda session: _store_vectors(session, model, vectors)
        )

    def drop_vectors(self, positions: Sequence[int]) -> None:
        """Delete the vectors at these positions; the memories are embedded again."""
        self._writer.write(
            lambda session: session.executemany(
                "DELETE FROM embedding WHERE memory_seq = ?",
                [(position,) for position in positions],
            )
        )

    def vectors(self, model: int, *, before: int, limit: int) -> dict[int, bytes]:
        """Return up to `limit` vectors at positions before `before`, the newest first."""
        with self._readers.snapshot() as session:
            return dict(
                session.execute(
                    "SELECT memory_seq, vector FROM embedding WHERE model = ? AND memory_seq < ? "
                    "ORDER BY memory_seq DESC LIMIT ?",
                    (model, before, limit),
                ).fetchall()
            )

    def vectors_of(self, model: int, positions: Sequence[int]) -> dict[int, bytes]:
        """Return the model's vectors at these positions, by position."""
        with self._readers.snapshot() as session:
            return dict(
                session.execute(
                    "SELECT memory_seq, vector FROM embedding WHERE model = ? AND memory_seq IN "
                    "(SELECT value FROM json_each(?))",
                    (model, json.dumps(list(positions))),
                ).fetchall()
            )

    def embedded_positions(self, model: int, *, after: int, limit: int) -> list[int]:
        """Return up to `limit` positions after `after` that have a vector of the model, ascending."""
        with self._readers.snapshot() as session:
            rows = session.execute(
                "SELECT memory_seq FROM embedding WHERE model = ? AND memory_seq > ? "
                "ORDER BY memory_seq LIMIT ?",
                (model, after, limit),
            )
            return [seq for (seq,) in rows]

    def search(self, model: int, *, limit_s: float | None = None) -> None:  # noqa: ARG002 a file compares no vectors
        return None

    def news(self, model: int, *, since: int | None, limit: int) -> VectorNews | None:  # noqa: ARG002 the file has one process
        return None

    def candidates(self, query: Query, positions: Sequence[int]) -> list[Match]:
        with self._readers.snapshot() as session:
            return matches_at(session, query, positions)


def _model_number(session: SqliteSession, name: str, identity: str) -> int:
    """Return the number of the model with this identity; add it, or update its name."""
    number: int = session.execute(
        "INSERT INTO embedding_model (name, digest) VALUES (?, ?) "
        "ON CONFLICT (digest) DO UPDATE SET name = excluded.name RETURNING number",
        (name, identity),
    ).fetchone()[0]
    return number


def _store_vectors(
    session: SqliteSession, model: int, vectors: Mapping[int, bytes]
) -> list[int]:
    """Store vectors by their memories' positions; return the positions that were stored.

    Memories that were forgotten or pruned while the model worked are left out.
    """
    kept = []
    for seq, vector in vectors.items():
        written = session.execute(
            "INSERT INTO embedding (memory_seq, model, vector) SELECT ?, ?, ? "
            "WHERE EXISTS (SELECT 1 FROM working_memory WHERE seq = ?) "
            "OR EXISTS (SELECT 1 FROM archive WHERE seq = ? AND content != '') "
            "ON CONFLICT (memory_seq) DO UPDATE SET model = excluded.model, "
            "vector = excluded.vector",
            (seq, model, vector, seq, seq),
        ).rowcount
        if written:
            kept.append(seq)
    return kept
