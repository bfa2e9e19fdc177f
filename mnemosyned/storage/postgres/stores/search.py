"""Search: candidates for a question, and the documents of an answer."""

from __future__ import annotations

from collections.abc import Sequence

from mnemosyned.domain.ports.search import SearchStore
from mnemosyned.domain.search.finding import find
from mnemosyned.domain.search.query import (
    Documents,
    Query,
    RankedResult,
    SearchCandidates,
)
from mnemosyned.domain.search.words.frequencies import Frequencies
from mnemosyned.storage.postgres.database.pool import Pool
from mnemosyned.storage.postgres.database.transactions import Transactional
from mnemosyned.storage.postgres.search.kept_postings import (
    IndexSizes,
    KeptIndexes,
    KeptPostings,
)
from mnemosyned.storage.postgres.search.kept_rows import KeptRows
from mnemosyned.storage.postgres.search.search import TOTALS, PostgresIndex
from mnemosyned.storage.postgres.tables.memories import (
    episodes_from,
    episodes_statements,
    memories_from,
    memories_statement,
)


class PostgresSearch(Transactional, SearchStore):
    """A `SearchStore` of one owner."""

    def __init__(self, pool: Pool, owner: int, frequencies: Frequencies) -> None:
        super().__init__(pool, owner)
        self._frequencies = frequencies
        self._kept = KeptIndexes(IndexSizes(), KeptPostings())
        self._kept_rows = KeptRows()

    def candidates(self, query: Query) -> SearchCandidates:
        if not query.terms and not query.only_then:
            return SearchCandidates()
        with self._pool.reading(self._owner, first=TOTALS) as session:
            index = PostgresIndex(session, self._kept, self._kept_rows)
            return find(index, query, self._frequencies)

    def documents(self, results: Sequence[RankedResult]) -> Documents:
        asked = {place.memory for place in results if place.memory is not None}
        asked.update(position for place in results for position, _ in place.lines)
        places = [place.episode for place in results if place.episode is not None]
        statements = [memories_statement(asked)]
        if places:
            statements += episodes_statements(places)
        memories, *episodes = self._pool.read(self._owner, statements)
        return Documents(memories_from(memories), episodes_from(episodes))
