"""Candidates for a question: rows by words, by time and by order in time, with their summaries."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager
from itertools import chain, islice

from mnemosyned.errors import NotFound
from mnemosyned.memory.ports import SearchStore
from mnemosyned.search import finding, scoring, weights
from mnemosyned.search.query import (
    Documents,
    Match,
    Query,
    RankedResult,
    SearchCandidates,
)
from mnemosyned.search.words import Forms
from mnemosyned.storage.common.listing import (
    EVERYTHING,
    Filter,
    asked_conditions,
    column_conditions,
    join_conditions,
    time_conditions,
)
from mnemosyned.storage.common.rows import EPISODE_COLUMNS, episode_from
from mnemosyned.storage.common.search import CommonIndex
from mnemosyned.storage.common.session import Row, StorePart
from mnemosyned.storage.postgres import fulltext, listing, pool, postings
from mnemosyned.storage.postgres.session import (
    MEMORIES_AT,
    PostgresSession,
    Statement,
    memory_from,
)
from mnemosyned.storage.postgres.words import (
    PostgresWords,
    merge_newest,
    newest_with_all,
)
from mnemosyned.text.languages.tables import TimeOrder

_EPISODE = (
    "SELECT p.episode_seq FROM placed AS p WHERE p.owner = %(owner)s AND p.seq = m.seq"
)
MATCH_FIELDS = (
    f"m.seq, ({_EPISODE}), m.session_id, m.importance, m.source, m.role, "
    f"left(m.content, {scoring.READ_CHARS_MAX}), m.created_at"
)
"""Columns of `memory AS m`, for `match_from`. No join: whatever the planner expects, the archive is
looked up row by row."""


def match_from(row: Row, *, score: float = 0.0, grams: float = 0.0) -> Match:
    """Return a match from a row of `MATCH_FIELDS`, with its scores."""
    seq, episode, session, importance, source, role, content, created_at = row
    return Match(
        seq,
        score,
        session,
        importance,
        episode,
        source,
        role,
        content,
        created_at,
        grams,
    )


_AROUND_IT = (
    "SELECT m.seq, m.session_id, m.importance, m.source, m.role, m.content, m.created_at "
    "FROM memory AS m WHERE m.owner = %(owner)s AND m.seq {within} "
    # By the key alone: the index of sessions would read each of a long session's memories.
    "AND m.session_id || '' = near.session AND m.source IS NOT DISTINCT FROM near.source"
    "{{where}} ORDER BY m.seq {direction} LIMIT %(most)s"
)
_BEFORE = _AROUND_IT.format(
    within="BETWEEN near.position - %(reach)s AND near.position - 1", direction="DESC"
)
_AFTER = _AROUND_IT.format(
    within="BETWEEN near.position + 1 AND near.position + %(reach)s", direction="ASC"
)
_AROUND = (
    f"SELECT near.number - 1, {MATCH_FIELDS} "
    # Not planned anew for each number of positions, which the planner cannot see in a SELECT.
    "FROM unnest((SELECT %(positions)s::bigint[]), (SELECT %(sessions)s::text[]), "
    "(SELECT %(sources)s::text[])) WITH ORDINALITY AS near (position, session, source, number) "
    f"CROSS JOIN LATERAL (({_BEFORE}) UNION ALL ({_AFTER})) AS m"
)


def matches_at(
    session: PostgresSession, query: Query, positions: Sequence[int]
) -> list[Match]:
    """Return the memories at these row numbers that pass a question's filters, without scores.

    Pruned memories are left out: row numbers may come from vectors that were deleted in the meantime.
    """
    narrow = listing.memory_filter(query)
    rows = session.execute(
        f"SELECT {MATCH_FIELDS} FROM memory AS m WHERE m.owner = %(owner)s "
        "AND m.seq = ANY(%(positions)s::bigint[]) "
        f"AND (m.content != '' OR NOT EXISTS ({_EPISODE})){narrow.text}",
        **narrow.values,
        positions=list(positions),
    )
    found = {row[0]: match_from(row) for row in rows}
    return [found[position] for position in positions if position in found]


TOTALS = (
    "SELECT working_count + archive_count, working_characters + archive_characters, "
    "archive_count > 0, "
    "EXISTS (SELECT 1 FROM memory_state WHERE owner = %(owner)s), xmin::text, "
    "last_memory, rewordings FROM owner WHERE owner = %(owner)s"
)
"""The first statement of a question."""


class PostgresIndex(CommonIndex):
    """A `SearchIndex` within one snapshot of an owner's memory."""

    def __init__(
        self,
        session: PostgresSession,
        kept: postings.RowCache,
    ) -> None:
        self._session: PostgresSession = session
        self._kept = kept
        self._all_words = PostgresWords(session, EVERYTHING)
        self._read: dict[int, Row] = {}
        """Rows of `MATCH_FIELDS` by row number, as far as they were read."""

    def totals(self) -> finding.OriginalTotals:
        """Return the totals in the owner's row; from now on the word index uses cached rows of that state."""
        row = (self._session.first or self._session.execute(TOTALS)).fetchone()
        if row is None:
            raise NotFound("this owner was removed from the database")
        *totals, last, rewordings = row
        self._session.owner_version = totals[-1]
        self._all_words.use_cache(self._kept, postings.Moment(rewordings, last))
        return finding.OriginalTotals(*totals)

    def word_rows(self, query: Query | None = None) -> PostgresWords:
        """Return the index of words, within the filters of `query` if there is one."""
        narrow = listing.query_filter(self._session, query) if query else None
        if narrow is None or not narrow.text:
            return self._all_words
        return PostgresWords(self._session, narrow, self._all_words)

    def rows_with_terms(
        self, query: Query, words: Sequence[Forms], *, summaries: bool
    ) -> finding.TermRows:
        """Return the rows of a question's terms, read in one statement."""
        owner, most = self._session.owner, finding.LISTED_MAX
        grams = [
            postings.AnyOf.from_phrases([tuple(fulltext.gram_term_hashes(owner, term))])
            for term in (*query.terms.words, *query.terms.grams)
        ]
        terms: dict[postings.Source, list[postings.AnyOf]] = {
            ("memory", "grams"): grams
        }
        narrows: dict[postings.Source, Filter] = {
            ("memory", "grams"): listing.memory_filter(query)
        }
        if summaries:
            narrow = listing.episode_filter(query)
            having = [postings.AnyOf.from_forms(owner, forms) for forms in words]
            terms |= {("episode", "words"): having, ("episode", "grams"): grams}
            narrows |= {("episode", "words"): narrow, ("episode", "grams"): narrow}
        asked = [
            postings.Asked(term, most, source=source)
            for source, of_source in terms.items()
            for term in of_source
        ]
        found = postings.look_up_rows(self._session, asked, narrows, newest=True)
        rows = iter([merge_newest(parts, most) for parts in found])
        return finding.TermRows(
            *(list(islice(rows, len(each))) for each in terms.values())
        )

    def newest_or_oldest_with_words(
        self, words: Sequence[Forms], query: Query
    ) -> set[int]:
        """Return the newest or oldest rows, as asked, that have all words in any form."""
        rows = postings.rows_with_all(
            self._session,
            [postings.AnyOf.from_forms(self._session.owner, forms) for forms in words],
            listing.memory_filter(query),
            limit=finding.ORDERED_MAX,
            order="ASC" if query.order is TimeOrder.EARLIEST else "DESC",
        )
        return set(rows)

    def newest_with_any_words(
        self,
        alternatives: Sequence[Sequence[Forms]],
        about: Forms,
        query: Query,
        *,
        limit: int,
    ) -> list[int]:
        """Return up to `limit` newest rows that have all words of any alternative, and one of `about`."""
        narrow, owner = listing.memory_filter(query), self._session.owner
        found: set[int] = set()
        for parts in alternatives:
            words = [*parts, about] if about else parts
            having = [postings.AnyOf.from_forms(owner, forms) for forms in words]
            found.update(newest_with_all(self._session, having, narrow, limit=limit))
        return sorted(found, reverse=True)[:limit]

    def read_matches(
        self, scores: Mapping[int, float], grams: Mapping[int, float]
    ) -> list[Match]:
        """Return the memories at the rows in `scores`; `grams` has the parts of scores from character pairs."""
        missing = [seq for seq in scores if seq not in self._read]
        if missing:
            rows = self._session.execute(
                f"SELECT {MATCH_FIELDS} FROM memory AS m "
                "WHERE m.owner = %(owner)s AND m.seq = ANY(%(seqs)s)",
                seqs=missing,
            )
            self._read.update((row[0], row) for row in rows.fetchall())
        return [
            match_from(self._read[seq], score=score, grams=grams.get(seq, 0.0))
            for seq, score in scores.items()
            if seq in self._read
        ]

    def neighbor_positions(
        self, query: Query, matches: Sequence[Match], *, slept: bool
    ) -> list[list[int]]:
        """Return, per match, its row number among those of memories near it, in its session and source."""
        del slept  # a memory has one home
        around = [[match.position] for match in matches]
        if not matches:
            return around
        narrow = join_conditions(
            [
                *listing.tier_condition(query.tier),
                *column_conditions(query.own_columns),
                *time_conditions(query, first="m.created_at", last="m.created_at"),
                *asked_conditions(query),
            ]
        )
        rows = self._session.execute(
            _AROUND.format(where=narrow.text),
            positions=[match.position for match in matches],
            sessions=[match.session for match in matches],
            sources=[match.source for match in matches],
            reach=finding.REACH,
            most=len(weights.WEIGHTS.neighbors),
            **narrow.values,
        )
        for number, *row in rows.fetchall():
            self._read.setdefault(row[0], tuple(row))
            around[number].append(row[0])
        return [sorted(positions) for positions in around]


class PostgresSearch(StorePart, SearchStore):
    """A `SearchStore` of one owner."""

    _engine: pool.PostgresEngine

    def __init__(self, engine: pool.PostgresEngine) -> None:
        super().__init__(engine)
        self._kept = postings.RowCache()

    def one_snapshot(self) -> AbstractContextManager[None]:
        """Let all reads of the owner by this thread in the block share one transaction."""
        return self._engine.pool.shared.sharing(self._engine.owner)

    def candidates(self, query: Query) -> SearchCandidates:
        """Return the memories and summaries that match a query; read the totals along with the beginning."""
        if not query.terms and not query.only_then:
            return SearchCandidates()
        with self._engine.pool.reading(self._engine.owner, first=TOTALS) as session:
            index = PostgresIndex(session, self._kept)
            return finding.find_candidates(index, query, self._engine.frequencies)

    def documents(self, results: Sequence[RankedResult]) -> Documents:
        """Return the memories and episodes that ranked results refer to."""
        asked = {position for result in results for position in result.positions}
        places = [result.episode for result in results if result.episode is not None]
        statements: list[Statement] = [(MEMORIES_AT, {"seqs": list(asked)})]
        if places:
            statements.append((_EPISODES, {"seqs": places}))
        rows, *episodes = self._engine.pool.read(self._engine.owner, statements)
        memories = {row[0]: memory_from(row[1:]) for row in rows}
        found = {
            seq: episode_from(row, summary_of=(*originals, *summaries))
            for seq, originals, summaries, *row in chain.from_iterable(episodes)
        }
        return Documents(memories, found)


# The ids of what each is made of are in its row: as rows of their own they took longer to read here.
_EPISODES = (
    "SELECT e.seq, ARRAY(SELECT m.id FROM memory AS m WHERE m.owner = %(owner)s "
    "AND m.seq = ANY(ARRAY(SELECT p.seq FROM placed AS p "
    "WHERE p.owner = %(owner)s AND p.episode_seq = e.seq)) ORDER BY m.created_at, m.seq), "
    "ARRAY(SELECT c.id FROM episode AS c WHERE c.owner = %(owner)s AND c.parent_id = e.id "
    f"ORDER BY c.covers_from, c.seq), {EPISODE_COLUMNS} FROM episode AS e "
    "WHERE e.owner = %(owner)s AND e.seq = ANY(%(seqs)s)"
)
