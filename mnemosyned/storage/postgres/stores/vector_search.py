"""Search of vectors by the server, with pgvector: exact, among the rows of one owner."""

from __future__ import annotations

from collections.abc import Iterable

import psycopg

from mnemosyned.domain.ports.vectors import ComparisonTooSlow, StorageSearch
from mnemosyned.storage.postgres.database.pool import Pool
from mnemosyned.storage.postgres.database.session import Row, Session
from mnemosyned.storage.postgres.database.transactions import (
    Transactional,
    reads,
    writes_lazily,
)
from mnemosyned.storage.postgres.tables.embedding import halfvec

# No approximate index: an owner's rows are read by their key, and all are compared. `<#>` is the
# negative inner product, which is the similarity of vectors of length one.
_NEAREST = (
    "SELECT memory_seq, -(near <#> %(question)s::halfvec) FROM embedding "
    "WHERE owner = %(owner)s AND model = %(model)s AND near IS NOT NULL "
    "ORDER BY near <#> %(question)s::halfvec LIMIT %(count)s"
)
_COSINES = (
    "SELECT memory_seq, -(near <#> %(question)s::halfvec) FROM embedding "
    "WHERE owner = %(owner)s AND model = %(model)s AND near IS NOT NULL "
    "AND memory_seq = ANY(%(positions)s::bigint[])"
)
_UNPREPARED = (
    "SELECT memory_seq, vector FROM embedding WHERE owner = %(owner)s AND near IS NULL "
    "AND memory_seq > %(after)s ORDER BY memory_seq LIMIT %(limit)s"
)
_PREPARE = (
    "UPDATE embedding AS e SET near = r.near::halfvec "
    "FROM unnest(%(seqs)s::bigint[], %(near)s::text[]) AS r (seq, near) "
    "WHERE e.owner = %(owner)s AND e.memory_seq = r.seq AND e.near IS NULL"
)


class PostgresVectorSearch(Transactional, StorageSearch):
    """A `StorageSearch` of one owner's vectors of one model."""

    def __init__(
        self, pool: Pool, owner: int, model: int, *, limit_s: float | None
    ) -> None:
        super().__init__(pool, owner)
        self._model = model
        self._limit_ms = limit_s and max(1, round(limit_s * 1_000))
        self._prepared = 0
        """The position up to which all vectors were prepared, as far as they can be."""

    @reads
    def cosines(
        self, session: Session, question: bytes, positions: Iterable[int]
    ) -> dict[int, float]:
        rows = self._compared(session, _COSINES, question, positions=list(positions))
        return dict(rows)

    @reads
    def nearest(
        self, session: Session, question: bytes, count: int, *, least: float
    ) -> dict[int, float]:
        rows = self._compared(session, _NEAREST, question, count=count)
        return {seq: cosine for seq, cosine in rows if cosine >= least}

    @writes_lazily
    def prepare(self, session: Session, *, limit: int) -> int:
        rows = session.execute(
            _UNPREPARED, after=self._prepared, limit=limit
        ).fetchall()
        if not rows:
            return 0
        near = {seq: halfvec(vector) for seq, vector in rows}
        session.execute(_PREPARE, seqs=list(near), near=list(near.values()))
        self._prepared = rows[-1][0]
        return len(rows)

    def _compared(
        self, session: Session, sql: str, question: bytes, **values: object
    ) -> list[Row]:
        """The rows of a comparison. Raises `ComparisonTooSlow`."""
        if self._limit_ms:
            session.execute(f"SET LOCAL statement_timeout = {self._limit_ms}")
        try:
            return session.execute(
                sql, question=halfvec(question), model=self._model, **values
            ).fetchall()
        except psycopg.errors.QueryCanceled as error:
            raise ComparisonTooSlow from error
