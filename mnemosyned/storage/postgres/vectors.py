"""Vectors of memories in a table of their own, and their exact search by the server with pgvector."""

from __future__ import annotations

import math
import struct
from collections.abc import Iterable, Mapping, Sequence

import psycopg

from mnemosyned.memory import engine_ports
from mnemosyned.search.vectors.packing import is_four_bits, unpack
from mnemosyned.storage.common.search import VectorStore
from mnemosyned.storage.common.session import (
    Engine,
    Row,
    StorePart,
    as_method,
    reads,
    writes,
    writes_lazily,
)
from mnemosyned.storage.postgres.search import matches_at
from mnemosyned.storage.postgres.session import PostgresSession

NUMBERS_MAX = 16_000
"""Numbers that a `halfvec` of pgvector may have."""


def pgvector_text(vector: bytes) -> str | None:
    """Return a vector as pgvector's text; None if pgvector cannot store it."""
    if is_four_bits(vector):
        numbers = unpack([vector])[0].astype("f2").tolist()
    else:
        count, odd = divmod(len(vector), 2)
        if odd or not 0 < count <= NUMBERS_MAX:
            return None
        numbers = struct.unpack(f"<{count}e", vector)
    return (
        f"[{','.join(map(repr, numbers))}]"
        if all(map(math.isfinite, numbers))
        else None
    )


# No approximate index: an owner's rows are read by their key, and all are compared. `<#>` is the
# negative inner product, which is the similarity of vectors of length one.
_COMPARED = (
    "SELECT memory_seq, -(near <#> %(question)s::halfvec) FROM embedding "
    "WHERE owner = %(owner)s AND model = %(model)s AND near IS NOT NULL"
)
_NEAREST = f"{_COMPARED} ORDER BY near <#> %(question)s::halfvec LIMIT %(count)s"
_COSINES = f"{_COMPARED} AND memory_seq = ANY(%(positions)s::bigint[])"
_UNPREPARED = (
    "SELECT memory_seq, vector FROM embedding WHERE owner = %(owner)s AND near IS NULL "
    "AND memory_seq > %(after)s ORDER BY memory_seq LIMIT %(limit)s"
)
_PREPARE = (
    "UPDATE embedding AS e SET near = r.near::halfvec "
    "FROM unnest(%(seqs)s::bigint[], %(near)s::text[]) AS r (seq, near) "
    "WHERE e.owner = %(owner)s AND e.memory_seq = r.seq AND e.near IS NULL"
)


class PostgresVectorSearch(StorePart, engine_ports.StorageSearch):
    """A `StorageSearch` of one owner's vectors of one model."""

    def __init__(self, engine: Engine, model: int, *, limit_s: float | None) -> None:
        super().__init__(engine)
        self._model = model
        self._limit_ms = limit_s and max(1, round(limit_s * 1_000))
        self._prepared = 0
        """The position up to which all vectors were prepared, as far as they can be."""

    @reads
    def cosines(
        self, session: PostgresSession, question: bytes, positions: Iterable[int]
    ) -> dict[int, float]:
        """Return {row number: cosine to the question's vector}, as pgvector computes it on the server."""
        rows = self._compare(session, _COSINES, question, positions=list(positions))
        return dict(rows)

    @reads
    def nearest(
        self, session: PostgresSession, question: bytes, count: int, *, least: float
    ) -> dict[int, float]:
        """Return {row number: cosine} of the `count` nearest vectors, found by pgvector; omit low cosines."""
        rows = self._compare(session, _NEAREST, question, count=count)
        return {seq: cosine for seq, cosine in rows if cosine >= least}

    @writes_lazily
    def prepare(self, session: PostgresSession, *, limit: int) -> int:
        """Convert up to `limit` stored vectors for pgvector; return their number, 0 when all are converted."""
        rows = session.execute(
            _UNPREPARED, after=self._prepared, limit=limit
        ).fetchall()
        if not rows:
            return 0
        near = {seq: pgvector_text(vector) for seq, vector in rows}
        session.execute(_PREPARE, seqs=list(near), near=list(near.values()))
        self._prepared = rows[-1][0]
        return len(rows)

    def _compare(
        self, session: PostgresSession, sql: str, question: bytes, **values: object
    ) -> list[Row]:
        """Compare stored vectors with a question's; return the rows. Raises `ComparisonTooSlow`."""
        if self._limit_ms:
            session.execute(f"SET LOCAL statement_timeout = {self._limit_ms}")
        try:
            return session.execute(
                sql, question=pgvector_text(question), model=self._model, **values
            ).fetchall()
        except psycopg.errors.QueryCanceled as error:
            raise engine_ports.ComparisonTooSlow from error


# Pruned memories have no words in the archive.
_KEEP = (
    "INSERT INTO embedding (owner, memory_seq, model, vector, version{column}) "
    "SELECT m.owner, m.seq, %(model)s, r.vector, r.version{value} "
    "FROM unnest(%(seqs)s::bigint[], %(vectors)s::bytea[], %(versions)s::bigint[], "
    "%(near)s::text[], %(texts)s::text[]) AS r (seq, vector, version, near, text) "
    "JOIN memory AS m ON m.owner = %(owner)s AND m.seq = r.seq "
    "LEFT JOIN placed AS p ON p.owner = m.owner AND p.seq = m.seq "
    "WHERE (m.content != '' OR p.seq IS NULL) "
    f"AND (r.text IS NULL OR r.text = left(m.content, {engine_ports.TEXT_CHARS_MAX})) "
    "ON CONFLICT (owner, memory_seq) DO UPDATE SET model = excluded.model, "
    "vector = excluded.vector, version = excluded.version{update} RETURNING memory_seq"
)
_KEEP_FOR_DAEMON = _KEEP.format(column="", value="", update="")
_KEEP_FOR_SERVER = _KEEP.format(
    column=", near", value=", r.near::halfvec", update=", near = excluded.near"
)
USE_MODEL = (
    "INSERT INTO embedding_model (owner, number, name, digest) "
    "SELECT o.owner, (SELECT coalesce(max(m.number), 0) + 1 FROM embedding_model AS m "
    "WHERE m.owner = %(owner)s), %(name)s, %(digest)s "
    "FROM owner AS o WHERE o.owner = %(owner)s "
    "ON CONFLICT (owner, digest) DO UPDATE SET name = excluded.name RETURNING number"
)
_CLAIM = (
    "UPDATE embedding_model AS m SET claimant = %(claimant)s, "
    # Another model has replaced vectors of this one: a daemon that has just started embeds again.
    "done = CASE WHEN m.claimant IS DISTINCT FROM %(claimant)s AND ("
    "EXISTS (SELECT 1 FROM embedding AS v WHERE v.owner = %(owner)s AND v.model < m.number) OR "
    "EXISTS (SELECT 1 FROM embedding AS v WHERE v.owner = %(owner)s AND v.model > m.number)) "
    "THEN 0 ELSE m.done END, "
    "claimed_until = now() + %(seconds)s * interval '1 second' FROM owner AS o "
    "WHERE m.owner = %(owner)s AND m.number = %(model)s AND o.owner = %(owner)s "
    "AND (m.claimant = %(claimant)s OR m.claimed_until IS NULL OR m.claimed_until < now()) "
    "RETURNING m.number, m.done, o.last_memory, o.rewordings"
)
_FINISH = (
    "UPDATE embedding_model AS m SET claimed_until = NULL, "
    "done = CASE WHEN o.rewordings = %(rewordings)s THEN greatest(m.done, %(newest)s) "
    "ELSE m.done END FROM owner AS o "
    "WHERE m.owner = %(owner)s AND m.number = %(model)s AND o.owner = %(owner)s "
    "RETURNING o.rewordings"
)


class PostgresVectors(VectorStore):
    """A `VectorStore` of one owner in PostgreSQL, which several daemons fill."""

    def __init__(self, engine: Engine, *, searched: bool = False) -> None:
        """Store one owner's vectors; with `searched` the server compares them by pgvector."""
        super().__init__(engine)
        self._searched = searched
        self._no_news = ("", 0, 0), engine_ports.VectorNews({}, 0, 0)
        """The owner's row, the model and the vectors' version for which there was no news; the result."""

    def search(
        self, model: int, *, limit_s: float | None = None
    ) -> PostgresVectorSearch | None:
        """Return an object that compares vectors by pgvector; None if the server lacks pgvector."""
        if not self._searched:
            return None
        return PostgresVectorSearch(self._engine, model, limit_s=limit_s)

    @writes
    def register_model(self, session: PostgresSession, name: str, identity: str) -> int:
        """Return the number of the model with the fingerprint `identity`, assigned at the first use."""
        return int(session.scalar(USE_MODEL, name=name, digest=identity))

    @reads
    def known_model(self, session: PostgresSession, identity: str) -> int:
        """Return the number of the model with this fingerprint; 0 if the owner never used it."""
        number = session.select_value("embedding_model", "number", digest=identity)
        return int(number or 0)

    @writes_lazily
    def claim(
        self,
        session: PostgresSession,
        name: str,
        identity: str,
        *,
        claimant: int,
        seconds: float,
    ) -> engine_ports.VectorProgress | None:
        """Claim the embedding of the owner's memories for `seconds`, or renew the claim.

        `claimant` identifies the process. Return how far the memories have come with the model;
        None if another process holds the claim.
        """
        model = session.scalar(USE_MODEL, name=name, digest=identity)
        row = session.execute(
            _CLAIM, model=model, claimant=claimant, seconds=seconds
        ).fetchone()
        return engine_ports.VectorProgress._make(row) if row else None

    @writes
    def store_unless_edited(
        self,
        session: PostgresSession,
        model: int,
        made: Sequence[tuple[engine_ports.EmbeddingInput, bytes]],
    ) -> int:
        """Store vectors of memories whose text is still the one embedded; return how many."""
        texts = {memory.position: memory.content for memory, _ in made}
        vectors = {memory.position: vector for memory, vector in made}
        return len(self._store_vectors(session, model, vectors, texts))

    @writes_lazily
    def finish(
        self, session: PostgresSession, progress: engine_ports.VectorProgress
    ) -> bool:
        """Release the claim, and record that all memories up to the newest have been embedded.

        `progress` is what `claim` returned. Return False, and record nothing, if a text was changed
        since then.
        """
        rewordings = session.scalar(
            _FINISH,
            model=progress.model,
            newest=progress.newest,
            rewordings=progress.rewordings,
        )
        return bool(rewordings == progress.rewordings)

    @reads
    def count(self, session: PostgresSession, model: int) -> int:
        """Return the number of memories that have a vector of a model."""
        return int(session.select_value("embedding", "count(*)", model=model))

    @writes
    def store_vectors(
        self, session: PostgresSession, model: int, vectors: Mapping[int, bytes]
    ) -> list[int]:
        """Store vectors by row number of memories that still have a text; return the stored row numbers."""
        kept = self._store_vectors(session, model, vectors, {})
        return [seq for seq in vectors if seq in kept]

    @reads
    def news(
        self, session: PostgresSession, model: int, *, since: int | None, limit: int
    ) -> engine_ports.VectorNews | None:
        """Return up to `limit` vectors stored since a version number."""
        known, no_news = self._no_news
        if session.owner_version and known == (session.owner_version, model, since):
            return no_news
        newest, removals = session.execute(
            "SELECT (SELECT coalesce(max(v.version), 0) FROM embedding AS v "
            "WHERE v.owner = %(owner)s AND v.model = %(model)s), o.rewordings "
            "FROM owner AS o WHERE o.owner = %(owner)s",
            model=model,
        ).fetchone() or (0, 0)
        if since is None or newest <= since:
            no_news = engine_ports.VectorNews({}, newest, removals)
            self._no_news = (session.owner_version, model, newest), no_news
            return no_news
        rows = session.execute(
            "SELECT memory_seq, vector, version FROM embedding WHERE owner = %(owner)s "
            "AND model = %(model)s AND version > %(since)s ORDER BY version LIMIT %(limit)s",
            model=model,
            since=since,
            limit=limit,
        ).fetchall()
        vectors = {seq: vector for seq, vector, _ in rows}
        return engine_ports.VectorNews(
            vectors, rows[-1][2] if rows else newest, removals
        )

    candidates = reads(as_method(matches_at))

    def _store_vectors(
        self,
        session: PostgresSession,
        model: int,
        vectors: Mapping[int, bytes],
        texts: Mapping[int, str],
    ) -> set[int]:
        """Store vectors, except of memories whose text is no longer that in `texts`; return the row numbers."""
        return set(
            session.column(
                _KEEP_FOR_SERVER if self._searched else _KEEP_FOR_DAEMON,
                model=model,
                seqs=list(vectors),
                vectors=list(vectors.values()),
                versions=list(session.take_numbers("record", len(vectors))),
                near=[
                    (self._searched and pgvector_text(one)) or None
                    for one in vectors.values()
                ],
                texts=[texts.get(seq) for seq in vectors],
            )
        )
