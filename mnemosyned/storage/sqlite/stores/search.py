"""Search: candidates for a question, and the documents of an answer."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Sequence

from mnemosyned.domain.memory import (
    Episode,
    MemoryRecord,
    Tier,
)
from mnemosyned.domain.ports.search import SearchStore
from mnemosyned.domain.search.query import (
    Documents,
    Query,
    RankedResult,
    SearchCandidates,
)
from mnemosyned.storage.sqlite.database.readers import Readers
from mnemosyned.storage.sqlite.database.transactions import Transactional, reads
from mnemosyned.storage.sqlite.database.writer import Writer
from mnemosyned.storage.sqlite.search.frequencies import Frequencies
from mnemosyned.storage.sqlite.search.search import search
from mnemosyned.storage.sqlite.tables.memories import episode_at
from mnemosyned.storage.sqlite.tables.rows import (
    ARCHIVE_FIELDS,
    MEMORY_FIELDS,
    SEQ_AMONG,
    memory_from,
)


class SqliteSearch(Transactional, SearchStore):
    """A `SearchStore` on one SQLite file."""

    def __init__(
        self, writer: Writer, readers: Readers, frequencies: Frequencies
    ) -> None:
        super().__init__(writer, readers)
        self._frequencies = frequencies

    def candidates(self, query: Query) -> SearchCandidates:
        if not query.terms and not query.only_then:
            return SearchCandidates()
        with self._readers.snapshot() as connection:
            return search(connection, query, self._frequencies)

    @reads
    def documents(
        self, connection: sqlite3.Connection, results: Sequence[RankedResult]
    ) -> Documents:
        asked = {place.memory for place in results} - {None}
        asked.update(position for place in results for position, _ in place.lines)
        positions = json.dumps(list(asked))
        memories = _working_memories(connection, positions)
        if len(memories) < len(asked):
            memories |= _archived_memories(connection, positions)
        episodes: dict[int, Episode] = {}
        for place in results:
            if place.episode is not None and (
                episode := episode_at(connection, "seq", place.episode)
            ):
                episodes[place.episode] = episode
        return Documents(memories, episodes)


def _working_memories(
    connection: sqlite3.Connection, positions: str
) -> dict[int, MemoryRecord]:
    rows = connection.execute(
        f"SELECT seq, {MEMORY_FIELDS} FROM working_memory WHERE {SEQ_AMONG}",
        (positions,),
    )
    return {seq: memory_from(row, tier=Tier.WORKING) for seq, *row in rows}


def _archived_memories(
    connection: sqlite3.Connection, positions: str
) -> dict[int, MemoryRecord]:
    rows = connection.execute(
        f"SELECT a.seq, e.id, {ARCHIVE_FIELDS} FROM archive AS a "
        f"JOIN episodic_memory AS e ON e.seq = a.episode_seq WHERE a.{SEQ_AMONG}",
        (positions,),
    )
    return {
        seq: memory_from(row, tier=Tier.ARCHIVE, episode=episode)
        for seq, episode, *row in rows
    }
