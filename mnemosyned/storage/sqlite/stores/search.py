"""Search: candidates for a question, and the documents of an answer."""

from __future__ import annotations

import sqlite3
from collections.abc import Sequence

from mnemosyned.domain.memory import Episode
from mnemosyned.domain.ports.search import SearchStore
from mnemosyned.domain.search.finding import find
from mnemosyned.domain.search.query import (
    Documents,
    Query,
    RankedResult,
    SearchCandidates,
)
from mnemosyned.domain.search.words.frequencies import Frequencies
from mnemosyned.storage.sqlite.database.readers import Readers
from mnemosyned.storage.sqlite.database.transactions import Transactional, reads
from mnemosyned.storage.sqlite.database.writer import Writer
from mnemosyned.storage.sqlite.search.search import SqliteIndex
from mnemosyned.storage.sqlite.tables.memories import episode_at, memories_at


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
            return find(SqliteIndex(connection), query, self._frequencies)

    @reads
    def documents(
        self, connection: sqlite3.Connection, results: Sequence[RankedResult]
    ) -> Documents:
        asked = {place.memory for place in results if place.memory is not None}
        asked.update(position for place in results for position, _ in place.lines)
        memories = memories_at(connection, asked)
        episodes: dict[int, Episode] = {}
        for place in results:
            if place.episode is not None and (
                episode := episode_at(connection, "seq", place.episode)
            ):
                episodes[place.episode] = episode
        return Documents(memories, episodes)
