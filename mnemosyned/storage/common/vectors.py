"""Vectors of memories in a table of their own, read and deleted by position."""

from __future__ import annotations

from collections.abc import Sequence

from mnemosyned.memory.engine_ports import VectorStore
from mnemosyned.storage.common.session import (
    CommonSession,
    EngineSession,
    Transactional,
    reads,
    writes,
)

_OF_MODEL = "SELECT memory_seq, vector FROM embedding WHERE owner = %(owner)s AND model = %(model)s"


class CommonVectors(Transactional, VectorStore):
    """The part of a `VectorStore` that is alike in both engines."""

    @writes
    def drop_vectors(self, session: CommonSession, positions: Sequence[int]) -> None:
        """Delete the vectors at these positions; the memories are embedded again."""
        session.execute(
            "DELETE FROM embedding WHERE owner = %(owner)s "
            "AND memory_seq = ANY(%(positions)s::bigint[])",
            positions=list(positions),
        )
        if positions:
            self._requeue(session, positions)

    def _requeue(self, session: EngineSession, positions: Sequence[int]) -> None:
        """Let memories whose vectors were deleted be embedded again, if a mark passes them by."""

    @reads
    def vectors(
        self, session: CommonSession, model: int, *, before: int, limit: int
    ) -> dict[int, bytes]:
        """Return up to `limit` vectors at positions before `before`, the newest first."""
        rows = session.execute(
            f"{_OF_MODEL} AND memory_seq < %(before)s "
            "ORDER BY memory_seq DESC LIMIT %(limit)s",
            model=model,
            before=before,
            limit=limit,
        )
        return dict(rows.fetchall())

    @reads
    def vectors_of(
        self, session: CommonSession, model: int, positions: Sequence[int]
    ) -> dict[int, bytes]:
        """Return the model's vectors at these positions, by position."""
        rows = session.execute(
            f"{_OF_MODEL} AND memory_seq = ANY(%(positions)s::bigint[])",
            model=model,
            positions=list(positions),
        )
        return dict(rows.fetchall())

    @reads
    def embedded_positions(
        self, session: CommonSession, model: int, *, after: int, limit: int
    ) -> list[int]:
        """Return up to `limit` positions after `after` that have a vector of the model, ascending."""
        rows = session.execute(
            "SELECT memory_seq FROM embedding WHERE owner = %(owner)s AND model = %(model)s "
            "AND memory_seq > %(after)s ORDER BY memory_seq LIMIT %(limit)s",
            model=model,
            after=after,
            limit=limit,
        )
        return [seq for (seq,) in rows]
