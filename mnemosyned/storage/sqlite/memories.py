"""Memories by their rows: new ones, messages known by their words, vectors, and moves to the archive."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from itertools import chain
from typing import cast

from mnemosyned.memory.ports import Promotion
from mnemosyned.memory.values import Episode, MemoryRecord
from mnemosyned.search.query import Match, Query
from mnemosyned.storage.common import records, sleep, state
from mnemosyned.storage.common.search import VectorStore
from mnemosyned.storage.common.session import reads, writes
from mnemosyned.storage.sqlite import connections, fulltext
from mnemosyned.storage.sqlite.search import SqliteIndex, memory_filter
from mnemosyned.storage.sqlite.session import MEMORY_COLUMNS, SqliteSession, memory_row

TOGETHER = 50
"""Memories in one statement, which binds all values of each: older builds of SQLite bind at most 999."""
# Two statements, so that they stay prepared whatever the size of a batch.
_PLACES = f"({', '.join('?' for _ in MEMORY_COLUMNS.split(', '))})"
_INSERT = {
    count: f"INSERT INTO working_memory ({MEMORY_COLUMNS}) VALUES {', '.join([_PLACES] * count)}"
    for count in (1, TOGETHER)
}
INSERT_NUMBERED = (
    f"INSERT INTO working_memory (seq, {MEMORY_COLUMNS}) "
    f"VALUES (?, {_PLACES.removeprefix('(')}"
)


# What was superseded or may expire does not stand for words that are said again.
_SAME = (
    "+session_id = :session AND content_hash = :hash AND content = :content "
    "AND source IS :source AND seq NOT IN (SELECT memory_seq FROM memory_state)"
)
SAID_BEFORE = (
    f"SELECT id, created_at FROM working_memory WHERE {_SAME} "
    f"UNION ALL SELECT id, created_at FROM archive WHERE {_SAME} "
    "ORDER BY created_at LIMIT 1"
)


# Ids that the product gave are no agent's own.
_SAME_MESSAGE = (
    "content_hash = :hash AND content = :content AND +session_id = :session AND source IS :source "
    "AND role = :role AND id NOT GLOB 'm-*' "
    "AND (:earliest IS NULL OR created_at BETWEEN :earliest AND :latest)"
)
SAME_MESSAGE = (
    f"SELECT id FROM working_memory WHERE {_SAME_MESSAGE} "
    f"UNION ALL SELECT id FROM archive WHERE {_SAME_MESSAGE} LIMIT 1"
)


@dataclass
class SqliteIntake(records.IntakeTransaction):
    """New memories on their way into working memory and its index."""

    _session: SqliteSession = field(init=False)
    _said = SAID_BEFORE
    same_message = SAME_MESSAGE
    _inserted: list[tuple[int, MemoryRecord]] = field(default_factory=list)

    def _insert_memories(self, memories: Sequence[MemoryRecord]) -> None:
        """Insert memories into working memory with tags and validity, without index entries."""
        before = len(self._inserted)
        whole = len(memories) - len(memories) % TOGETHER
        shares = [memories[at : at + TOGETHER] for at in range(0, whole, TOGETHER)]
        shares += [[memory] for memory in memories[whole:]]
        for share in shares:
            values = list(chain.from_iterable(map(memory_row, share)))
            insert = self._session.execute(_INSERT[len(share)], values)
            last = cast("int", insert.lastrowid)
            seqs = range(last - len(share) + 1, last + 1)
            self._inserted += zip(seqs, share, strict=True)
        for seq, memory in self._inserted[before:]:
            if memory.tags or memory.valid_until:
                state.insert_tags_and_validity(self._session, seq, memory)

    def _finish_intake(self) -> int:
        # Indexed after all rows: an insert with a trigger is a savepoint, at which FTS5 would write
        # out what it has gathered, row by row (twice the time of the batch).
        """Add the inserted memories to the full-text indexes; return how many memories the working tier has."""
        texts = [(seq, memory.content, memory.role) for seq, memory in self._inserted]
        fulltext.index_memories(self._session, texts)
        count = "SELECT count FROM tier_totals WHERE tier = 'working'"
        return int(self._session.execute(count).fetchone()[0])


class SqliteVectors(VectorStore):
    """A `VectorStore` in the file of a `SqliteStore`."""

    @writes
    def register_model(self, session: SqliteSession, name: str, identity: str) -> int:
        """Return the number of the model with the fingerprint `identity`, assigned at the first use."""
        number: int = session.scalar(
            "INSERT INTO embedding_model (name, digest) VALUES (:name, :digest) "
            "ON CONFLICT (digest) DO UPDATE SET name = excluded.name RETURNING number",
            name=name,
            digest=identity,
        )
        return number

    @writes
    def store_vectors(
        self, session: SqliteSession, model: int, vectors: Mapping[int, bytes]
    ) -> list[int]:
        """Store vectors by row number of memories that still have a text; return the stored row numbers."""
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

    @reads
    def candidates(
        self, session: SqliteSession, query: Query, positions: Sequence[int]
    ) -> list[Match]:
        # Pruned memories are left out: row numbers may come from vectors that were deleted since.
        """Return the memories at these row numbers that pass a query's filters, with score 0."""
        narrow = memory_filter(query)
        rows = session.column(
            "SELECT f.rowid FROM (SELECT value AS rowid FROM json_each(:positions)) AS f "
            f"{narrow.joins} WHERE f.rowid IN (SELECT seq FROM memory_text WHERE seq = f.rowid) "
            f"{narrow.text}",
            positions=list(positions),
            **narrow.values,
        )
        return SqliteIndex(session).read_matches(dict.fromkeys(rows, 0.0), {})


class SqliteSleep(sleep.SleepStore):
    """A `SleepStore` on one SQLite file."""

    _engine: connections.SqliteEngine

    def _may_have_future_memories(self, session: SqliteSession) -> bool:
        # To ask first keeps the bound on the index.
        """Return whether any working memory was noticed to be dated in the future."""
        future = session.scalar(
            "SELECT 1 FROM working_state WHERE future_since IS NOT NULL LIMIT 1"
        )
        return future is not None

    def consolidate(
        self, groups: Sequence[Sequence[Promotion]], *, durable: bool = True
    ) -> list[Exception | None]:
        """Store each group by itself, with as few commits as possible; return None or the error for each."""
        works = [partial(self._promote, promotions=group) for group in groups]
        return self._engine.writer.write_each(works, durable=durable)

    def _archive_originals(
        self, session: SqliteSession, episodes: Mapping[int, Episode]
    ) -> int:
        """Copy the originals of episodes, except pinned ones, to the archive table; return how many moved."""
        among = "WHERE id = ANY(%(ids)s::text[]) AND NOT pinned"
        total = 0
        for seq, episode in episodes.items():
            ids = list(episode.summary_of)
            moved = session.execute(
                f"INSERT INTO archive (seq, {MEMORY_COLUMNS}, episode_seq) "
                f"SELECT seq, {MEMORY_COLUMNS}, %(episode)s FROM working_memory {among} "
                "ORDER BY seq",
                ids=ids,
                episode=seq,
            ).rowcount
            session.execute(f"DELETE FROM working_memory {among}", ids=ids)
            # Where some were not there or are pinned, the caller takes all of it back.
            if episode.details and moved == len(ids):
                session.insert_episode_details(episode.details, seq)
            total += moved
        return total
