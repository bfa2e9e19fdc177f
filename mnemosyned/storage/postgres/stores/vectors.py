"""Vectors of memories in a table of their own."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from mnemosyned.domain.ports.vectors import (
    TEXT_CHARS_MAX,
    EmbeddingInput,
    VectorNews,
    VectorStore,
)
from mnemosyned.domain.search.query import Match, Query
from mnemosyned.storage.postgres.database.session import Session
from mnemosyned.storage.postgres.database.transactions import (
    Transactional,
    reads,
    writes,
)
from mnemosyned.storage.postgres.search.matches import matches_at
from mnemosyned.storage.postgres.tables.owners.owner import take_numbers

_WITHOUT = (
    f"SELECT m.seq, m.role, left(m.content, {TEXT_CHARS_MAX}) FROM memory AS m "
    "WHERE m.owner = %(owner)s AND m.seq > %(after)s AND m.seq < %(before)s "
    "AND m.content != '' AND NOT EXISTS (SELECT 1 FROM embedding AS v "
    "WHERE v.owner = %(owner)s AND v.memory_seq = m.seq AND v.model = %(model)s) "
    "ORDER BY m.seq DESC LIMIT %(limit)s"
)
# Pruned memories have no words in the archive.
_KEEP = (
    "INSERT INTO embedding (owner, memory_seq, model, vector, version) "
    "SELECT m.owner, m.seq, %(model)s, r.vector, r.version FROM "
    "unnest(%(seqs)s::bigint[], %(vectors)s::bytea[], %(versions)s::bigint[]) "
    "AS r (seq, vector, version) "
    "JOIN memory AS m ON m.owner = %(owner)s AND m.seq = r.seq "
    "LEFT JOIN placed AS p ON p.owner = m.owner AND p.seq = m.seq "
    "WHERE m.content != '' OR p.seq IS NULL "
    "ON CONFLICT (owner, memory_seq) DO UPDATE SET model = excluded.model, "
    "vector = excluded.vector, version = excluded.version RETURNING memory_seq"
)


class PostgresVectors(Transactional, VectorStore):
    """A `VectorStore` of one owner in PostgreSQL."""

    @writes
    def use_model(self, session: Session, name: str, identity: str) -> int:
        number: int = session.scalar(
            "INSERT INTO embedding_model (owner, number, name, digest) "
            "SELECT o.owner, (SELECT coalesce(max(m.number), 0) + 1 FROM embedding_model AS m "
            "WHERE m.owner = %(owner)s), %(name)s, %(digest)s "
            "FROM owner AS o WHERE o.owner = %(owner)s "
            "ON CONFLICT (owner, digest) DO UPDATE SET name = excluded.name RETURNING number",
            name=name,
            digest=identity,
        )
        return number

    @reads
    def newest_position(self, session: Session) -> int:
        newest: int = session.scalar(
            "SELECT coalesce(max(seq), 0) FROM memory WHERE owner = %(owner)s"
        )
        return newest

    @reads
    def without_vector(
        self, session: Session, model: int, *, after: int, before: int, limit: int
    ) -> list[EmbeddingInput]:
        rows = session.execute(
            _WITHOUT, model=model, after=after, before=before, limit=limit
        )
        return list(map(EmbeddingInput._make, rows))

    @writes
    def keep_vectors(
        self, session: Session, model: int, vectors: Mapping[int, bytes]
    ) -> list[int]:
        rows = session.execute(
            _KEEP,
            model=model,
            seqs=list(vectors),
            vectors=list(vectors.values()),
            versions=list(take_numbers(session, "record", len(vectors))),
        )
        kept = {seq for (seq,) in rows}
        return [seq for seq in vectors if seq in kept]

    @writes
    def drop_vectors(self, session: Session, positions: Sequence[int]) -> None:
        session.execute(
            "DELETE FROM embedding WHERE owner = %(owner)s "
            "AND memory_seq = ANY(%(positions)s::bigint[])",
            positions=list(positions),
        )

    @reads
    def vectors(
        self, session: Session, model: int, *, before: int, limit: int
    ) -> dict[int, bytes]:
        rows = session.execute(
            "SELECT memory_seq, vector FROM embedding WHERE owner = %(owner)s "
            "AND model = %(model)s AND memory_seq < %(before)s "
            "ORDER BY memory_seq DESC LIMIT %(limit)s",
            model=model,
            before=before,
            limit=limit,
        )
        return dict(rows.fetchall())

    @reads
    def vectors_of(
        self, session: Session, model: int, positions: Sequence[int]
    ) -> dict[int, bytes]:
        rows = session.execute(
            "SELECT memory_seq, vector FROM embedding WHERE owner = %(owner)s "
            "AND model = %(model)s AND memory_seq = ANY(%(positions)s::bigint[])",
            model=model,
            positions=list(positions),
        )
        return dict(rows.fetchall())

    @reads
    def embedded(
        self, session: Session, model: int, *, after: int, limit: int
    ) -> list[int]:
        rows = session.execute(
            "SELECT memory_seq FROM embedding WHERE owner = %(owner)s "
            "AND model = %(model)s AND memory_seq > %(after)s "
            "ORDER BY memory_seq LIMIT %(limit)s",
            model=model,
            after=after,
            limit=limit,
        )
        return [seq for (seq,) in rows]

    @reads
    def news(
        self, session: Session, model: int, *, since: int | None, limit: int
    ) -> VectorNews | None:
        newest, removals = session.execute(
            "SELECT (SELECT coalesce(max(v.version), 0) FROM embedding AS v "
            "WHERE v.owner = %(owner)s AND v.model = %(model)s), o.rewordings "
            "FROM owner AS o WHERE o.owner = %(owner)s",
            model=model,
        ).fetchone() or (0, 0)
        if since is None or newest <= since:
            return VectorNews({}, newest, removals)
        rows = session.execute(
            "SELECT memory_seq, vector, version FROM embedding WHERE owner = %(owner)s "
            "AND model = %(model)s AND version > %(since)s ORDER BY version LIMIT %(limit)s",
            model=model,
            since=since,
            limit=limit,
        ).fetchall()
        vectors = {seq: vector for seq, vector, _ in rows}
        return VectorNews(vectors, rows[-1][2] if rows else newest, removals)

    @reads
    def candidates(
        self, session: Session, query: Query, positions: Sequence[int]
    ) -> list[Match]:
        return matches_at(session, query, positions)
