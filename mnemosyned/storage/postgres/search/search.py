"""The PostgreSQL store's answers to a question: its indexes, its rows, its summaries."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence

from mnemosyned.domain.dates.spans import TimeSpan
from mnemosyned.domain.search.finding import SearchIndex, Totals
from mnemosyned.domain.search.query import Match, Query
from mnemosyned.domain.search.scores.neighbors import REACH
from mnemosyned.domain.search.words.index import Forms
from mnemosyned.storage.postgres.database.session import Session
from mnemosyned.storage.postgres.fulltext.terms import (
    gram_term_hashes,
    phrase_hashes,
)
from mnemosyned.storage.postgres.search import by_time
from mnemosyned.storage.postgres.search.bm25 import IndexSearch
from mnemosyned.storage.postgres.search.filters import (
    SqlFilter,
    asked_for,
    episode_filter,
    in_tier,
    joined,
    memory_filter,
    narrowed,
)
from mnemosyned.storage.postgres.search.kept_postings import KeptIndexes, Version
from mnemosyned.storage.postgres.search.kept_rows import KeptRows, Moment
from mnemosyned.storage.postgres.search.matches import MATCH_FIELDS, match_from
from mnemosyned.storage.postgres.search.statements import Phrase, Source, Table
from mnemosyned.storage.postgres.search.words import PostgresWords, all_words
from mnemosyned.storage.postgres.tables.hierarchy import ancestors

TOTALS = (
    "SELECT working_count + archive_count, working_characters + archive_characters, "
    "archive_count > 0, "
    "EXISTS (SELECT 1 FROM memory_state WHERE owner = %(owner)s), xmin::text, "
    "episodic_count, last_memory, rewordings FROM owner WHERE owner = %(owner)s"
)
"""The first statement of a question."""


class PostgresIndex(SearchIndex):
    """A `SearchIndex` within one snapshot of an owner's memory."""

    def __init__(self, session: Session, kept: KeptIndexes, rows: KeptRows) -> None:
        self._session = session
        self._kept = kept
        self._kept_rows = rows
        self._all_words = all_words(session)
        self._read: dict[int, Match] = {}
        """What was read of memories, with no score."""
        self._versions: dict[Table, Version] = {}

    def totals(self) -> Totals:
        row = (self._session.first or self._session.execute(TOTALS)).fetchone()
        if row is None:
            return Totals(0, 0, slept=False, states=False)
        *totals, episodes, last, rewordings = row
        self._all_words.use_kept(self._kept_rows, Moment(rewordings, last))
        self._versions = {
            "memory": (totals[0], rewordings),
            "episode": (episodes, rewordings),
        }
        return Totals(*totals)

    def words(self, query: Query | None = None) -> PostgresWords:
        narrow = narrowed(self._session, query) if query else None
        if narrow is None or not narrow.where:
            return self._all_words
        return PostgresWords(self._session, narrow, self._all_words)

    def grams(
        self, terms: Sequence[str], query: Query, *, limit: int
    ) -> Iterable[tuple[int, float]]:
        phrases = self._gram_phrases(terms)
        return self._best(("memory", "grams"), phrases, memory_filter(query), limit)

    def episodes(
        self, forms: Forms, query: Query, *, limit: int
    ) -> Iterable[tuple[int, float]]:
        phrases = [tuple(phrase_hashes(self._session.owner, form)) for form in forms]
        return self._best(("episode", "words"), phrases, episode_filter(query), limit)

    def episode_grams(
        self, terms: Sequence[str], query: Query, *, limit: int
    ) -> Iterable[tuple[int, float]]:
        phrases = self._gram_phrases(terms)
        return self._best(("episode", "grams"), phrases, episode_filter(query), limit)

    def _best(
        self, source: Source, phrases: Iterable[Phrase], narrow: SqlFilter, limit: int
    ) -> list[tuple[int, float]]:
        """The best rows of an index for any of the phrases."""
        version = self._versions[source[0]]
        search = IndexSearch(
            self._session, source, narrow, kept=self._kept, version=version
        )
        return search.best([phrase for phrase in phrases if phrase], limit=limit)

    def _gram_phrases(self, terms: Iterable[str]) -> list[tuple[int, ...]]:
        owner = self._session.owner
        return [tuple(gram_term_hashes(owner, term)) for term in terms]

    def listed(
        self, query: Query, span: TimeSpan, *, limit: int
    ) -> Mapping[int, float]:
        return by_time.listed(self._session, query, span, limit=limit)

    def ordered(self, query: Query) -> Collection[int]:
        return by_time.ordered(self._session, query)

    def mentioning(self, query: Query) -> Collection[int]:
        return by_time.mentioning(self._session, query)

    def summary_of_period(self, query: Query) -> int | None:
        return by_time.summary_of_period(self._session, query)

    def matches(
        self, scores: Mapping[int, float], grams: Mapping[int, float]
    ) -> list[Match]:
        missing = [seq for seq in scores if seq not in self._read]
        if missing:
            rows = self._session.execute(
                f"SELECT {MATCH_FIELDS} FROM memory AS m "
                "WHERE m.owner = %(owner)s AND m.seq = ANY(%(seqs)s)",
                seqs=missing,
            )
            self._read.update((row[0], match_from(row)) for row in rows.fetchall())
        read = [self._read[seq] for seq in scores if seq in self._read]
        return [
            match._replace(
                score=scores[match.position], grams=grams.get(match.position, 0.0)
            )
            for match in read
        ]

    def around(
        self, query: Query, matches: Sequence[Match], *, slept: bool
    ) -> list[list[int]]:
        del slept  # a memory has one home
        around: list[list[int]] = [[] for _ in matches]
        if not matches:
            return around
        narrow = joined([*in_tier(query.tier), *asked_for(query)])
        rows = self._session.execute(
            f"SELECT near.number - 1, {MATCH_FIELDS} "
            "FROM unnest(%(positions)s::bigint[], %(sessions)s::text[]) WITH ORDINALITY "
            "AS near (position, session, number) CROSS JOIN LATERAL (SELECT * FROM memory AS m "
            "WHERE m.owner = %(owner)s AND m.seq BETWEEN near.position - %(reach)s "
            "AND near.position + %(reach)s "
            # By the key alone: the index of sessions would read each of a long session's memories.
            f"AND m.session_id || '' = near.session{narrow.where} "
            # Without it the planner may read all memories once and join them by session.
            "OFFSET 0) AS m",
            positions=[match.position for match in matches],
            sessions=[match.session for match in matches],
            reach=REACH,
            **narrow.values,
        )
        for row in rows.fetchall():
            number, match = row[0], match_from(row[1:])
            self._read.setdefault(match.position, match)
            is_within = not (query.since and match.created_at < query.since) and not (
                query.until and match.created_at >= query.until
            )
            if match.source == matches[number].source and is_within:
                around[number].append(match.position)
        return [sorted(positions) for positions in around]

    def above(self, episodes: Collection[int]) -> dict[int, int]:
        return ancestors(self._session, episodes)
