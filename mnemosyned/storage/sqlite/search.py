"""Candidates for a question and pages of lists: filters, and rows by words, by time and in order."""

from __future__ import annotations

import json
from collections.abc import Collection, Iterable, Mapping, Sequence
from contextlib import AbstractContextManager
from functools import cached_property
from heapq import nlargest

from mnemosyned.memory.listing import LIST_LIMITS
from mnemosyned.memory.ports import SearchStore
from mnemosyned.memory.values import Tier
from mnemosyned.search import finding
from mnemosyned.search.query import (
    Documents,
    Match,
    Query,
    RankedResult,
    SearchCandidates,
)
from mnemosyned.search.scoring import READ_CHARS_MAX
from mnemosyned.search.words import Forms, Having, WordRows
from mnemosyned.storage.common import listing, search, state
from mnemosyned.storage.common.session import StorePart, instant
from mnemosyned.storage.sqlite.connections import SqliteEngine
from mnemosyned.storage.sqlite.fulltext import (
    GLUED,
    all_of,
    any_of,
    glued_terms,
    quote_word,
)
from mnemosyned.storage.sqlite.session import SEQ_AMONG, SqliteSession, instant_text
from mnemosyned.text.languages.tables import TimeOrder
from mnemosyned.text.terms import Terms, accent_variants


def tables_of(tier: Tier | None) -> tuple[str, ...]:
    """Return the names of the tables with the memories of a tier; of both tiers for None."""
    tables = {None: ("working_memory", "archive"), Tier.WORKING: ("working_memory",)}
    return tables.get(tier, ("archive",))


def term_conditions(terms: Terms, seq: str) -> list[listing.Condition]:
    """Return one condition per term: the text or speaker has the term. `seq` is SQL for the row number."""
    conditions: list[listing.Condition] = []
    for number, term in enumerate((*terms.words, *terms.grams)):
        forms = [term, *accent_variants(term)]
        found = {"memory_gram_fts": any_of([*forms, *map(glued_terms, forms)])}
        if term not in terms.grams:
            found["memory_fts"] = any_of(forms)
        rows = " UNION ALL ".join(
            f"SELECT rowid FROM {index} WHERE {index} MATCH %({index}_{number})s"
            for index in found
        )
        values = {f"{index}_{number}": match for index, match in found.items()}
        conditions.append(listing.Condition(f"{seq} IN ({rows})", values))
    return conditions


def query_filter(session: SqliteSession, query: Query) -> listing.Filter:
    """Return a question's filter for memories, with the row numbers in `only` if few memories can pass."""
    narrow = memory_filter(query)
    if not (query.sessions or query.tags):
        return narrow
    conditions = [
        *listing.column_conditions(query.columns, "+{}"),
        *listing.source_name_conditions(query.source_names, "+source"),
        *listing.time_conditions(query, first="+created_at", last="+created_at"),
        *listing.in_force_conditions(
            query.valid_at, superseded=query.superseded, seq="seq"
        ),
    ]
    if query.tags:  # few rows, so that the others need not be looked at
        named = listing.one_of_condition("name", "tags", query.tags)
        text = f"seq IN (SELECT memory_seq FROM tag WHERE {named.text})"
        conditions.append(named._replace(text=text))
    held = listing.join_conditions(conditions)
    rows: list[int] = []
    for table in tables_of(query.tier):
        rows += session.column(
            f"SELECT seq FROM {table} WHERE 1{held.text} LIMIT :limit",
            **held.values,
            limit=listing.FEW_MAX + 1 - len(rows),
        )
    return narrow if len(rows) > listing.FEW_MAX else narrow._replace(only=sorted(rows))


def memory_filter(query: Query) -> listing.Filter:
    """Return the SQL filter of a question for the full-text index of memories."""
    if query.selects_all:
        return listing.EVERYTHING
    column = "ifnull(w.{0}, a.{0})"
    when = column.format("created_at")
    conditions = [
        *listing.column_conditions(query.columns, column),
        *listing.source_name_conditions(query.source_names, column.format("source")),
        *listing.time_conditions(query, first=when, last=when),
    ]
    if query.tier is not None:
        table = "w" if query.tier is Tier.WORKING else "a"
        conditions.append(listing.Condition(f"{table}.seq IS NOT NULL", {}))
    joins = "LEFT JOIN working_memory AS w ON w.seq = f.rowid "
    joins += "LEFT JOIN archive AS a ON a.seq = f.rowid"
    return listing.join_conditions(
        [*conditions, *listing.asked_conditions(query, "f.rowid")],
        joins if conditions else "",
    )


def episode_filter(query: Query) -> listing.Filter:
    """Return the SQL filter of a question for the full-text indexes of summaries."""
    conditions = listing.summary_conditions(query)
    joins = "JOIN episodic_memory AS e ON e.seq = f.rowid" if conditions else ""
    return listing.join_conditions(conditions, joins)


_HOMES = ("working_memory", "archive", "episodic_memory")
_ANY = " UNION ALL ".join(
    f"SELECT 1 FROM (SELECT 1 FROM {home} WHERE id >= ? AND id < ? LIMIT 1)"
    for home in _HOMES
)
_GROUPS = (
    "SELECT session_id, source, count(*), min(created_at), max(created_at) "
    "FROM working_memory GROUP BY session_id, source UNION ALL "
    "SELECT session_id, source, sum(item_count), min(covers_from), max(covers_until) "
    "FROM episodic_memory NOT INDEXED WHERE level = 0 GROUP BY session_id, source"
)


class SqliteLists(listing.ListStore):
    """A `ListStore` on one SQLite file."""

    _groups = _GROUPS
    _searched = "+{}"

    def _existing_prefixes(
        self, session: SqliteSession, prefixes: Sequence[str]
    ) -> list[str]:
        """Return the prefixes that begin at least one stored id."""
        return [
            prefix
            for prefix in prefixes
            if session.execute(_ANY, listing.id_range(prefix) * len(_HOMES)).fetchone()
        ]

    def _tier_tables(
        self, tier: Tier | None
    ) -> Iterable[tuple[str, Sequence[listing.Condition]]]:
        """Return the table of each tier, working memory or archive, without conditions."""
        return [(table, ()) for table in tables_of(tier)]

    def _term_conditions(self, terms: Terms, seq: str) -> list[listing.Condition]:
        """Return one condition for each term: by the full-text indexes, the text or the speaker has it."""
        return term_conditions(terms, seq)

    def _few_rows_that_may_have_roles(
        self, session: SqliteSession, roles: Sequence[str]
    ) -> list[int] | None:
        """Return a few row numbers that include all memories with these roles; None if there are many."""
        if not all(any(map(str.isalnum, role)) for role in roles):
            return None
        rows = session.execute(
            "SELECT rowid FROM memory_fts WHERE memory_fts MATCH ? UNION ALL "
            "SELECT memory_seq FROM memory_state WHERE pruned_at IS NOT NULL LIMIT ?",
            (f"role : ({any_of(roles)})", LIST_LIMITS.few + 1),
        ).fetchall()
        return None if len(rows) > LIST_LIMITS.few else [seq for (seq,) in rows]


STRETCHES_MAX, GAP_MIN = 16, 1_000
"""Maximum ranges of rows, and the minimum gap between two: to begin a range costs as much as many rows."""
_AROUND = (
    "SELECT f.rowid FROM json_each(:stretches) AS stretch CROSS JOIN {table} AS f "
    "WHERE f.{table} MATCH :match AND f.rowid BETWEEN stretch.value ->> 0 AND stretch.value ->> 1 "
    "AND +f.rowid IN (SELECT value FROM json_each(:only)) ORDER BY f.rowid DESC LIMIT :limit"
)


def covering_ranges(rows: Sequence[int]) -> list[tuple[int, int]]:
    """Return a few ranges (first, last) that cover ascending row numbers, split at the widest gaps."""
    gaps = [at for at in range(1, len(rows)) if rows[at] - rows[at - 1] >= GAP_MIN]
    widest = nlargest(STRETCHES_MAX - 1, gaps, key=lambda at: rows[at] - rows[at - 1])
    begins = [0, *sorted(widest)]
    ends = [*begins[1:], len(rows)]
    return [
        (rows[begin], rows[end - 1]) for begin, end in zip(begins, ends, strict=True)
    ]


class FtsWords(WordRows):
    """The rows of words in FTS5's indexes, within the filters of a question."""

    def __init__(
        self, session: SqliteSession, narrow: listing.Filter, *, glued: bool
    ) -> None:
        """Search within a filter; `glued` is True if the index of character pairs may have words."""
        self.is_filtered = bool(narrow.joins or narrow.text)
        self.rows_if_few = narrow.only
        self._session = session
        self._narrow = narrow
        self._glued = glued
        self._select = (
            f"SELECT f.rowid FROM {{table}} AS f {narrow.joins} "
            f"WHERE {{table}} MATCH :match {narrow.text} ORDER BY f.rowid DESC LIMIT :limit"
        )
        self._values = narrow.values
        if narrow.only:
            self._select = _AROUND
            self._values = {
                "stretches": json.dumps(covering_ranges(narrow.only)),
                "only": json.dumps(narrow.only),
            }

    @cached_property
    def last(self) -> int:
        """The highest row number of all memories."""
        row = self._session.execute(
            "SELECT ifnull(max(rowid), 0) FROM memory_fts_docsize"
        ).fetchone()
        return int(row[0])

    def newest(self, having: Having, *, limit: int) -> Sequence[int]:
        """Return up to `limit` of the newest rows with a word of each part of `having`, newest first."""
        matches = {"memory_fts": all_of(having)}
        if self._glued:
            matches["memory_gram_fts"] = all_of(
                [[tuple(map(glued_terms, forms)) for forms in word] for word in having]
            )
        rows: list[int] = []
        for table, match in matches.items():
            others = self._session.column(
                self._select.format(table=table),
                match=match,
                limit=limit,
                **self._values,
            )
            rows = sorted({*rows, *others}, reverse=True)[:limit] if rows else others
        return rows

    def rows_that_pass(self, rows: Sequence[int]) -> Collection[int]:
        """Return those of the rows that pass the question's filters."""
        return self._session.column(
            "SELECT f.rowid FROM (SELECT value AS rowid FROM json_each(:rows)) AS f "
            f"{self._narrow.joins} WHERE 1 {self._narrow.text}",
            rows=list(rows),
            **self._narrow.values,
        )

    def prefetch(self, asked: Iterable[tuple[Forms, int]]) -> None:
        """Do nothing, as reading words ahead saves no time in a local file."""


_MATCHES = (
    "SELECT seq, session_id, importance, {episode}, source, role, "
    f"substr(content, 1, {READ_CHARS_MAX}), created_at FROM {{table}} WHERE {SEQ_AMONG}"
)


class SqliteIndex(search.CommonIndex):
    """A `SearchIndex` within one snapshot of a session."""

    def __init__(self, session: SqliteSession) -> None:
        self._session: SqliteSession = session
        self._glued = {"memory": False, "episode": False}
        """Whether a second index has any word that touches a script without spaces."""

    def totals(self) -> finding.OriginalTotals:
        """Return the totals that triggers keep in a table of the file, and the versions of the word index."""
        glued = quote_word(GLUED)
        rows = self._session.execute(
            # Each memory and each edit has a new number.
            "SELECT tier, count, characters, (SELECT group_concat(seq) FROM sqlite_sequence), "
            "(SELECT EXISTS (SELECT 1 FROM memory_state)), "
            "(SELECT EXISTS (SELECT 1 FROM memory_gram_fts WHERE memory_gram_fts MATCH ?)), "
            "(SELECT EXISTS (SELECT 1 FROM episode_gram_fts WHERE episode_gram_fts MATCH ?)) "
            "FROM tier_totals",
            (glued, glued),
        ).fetchall()
        counts = {tier: (count, characters) for tier, count, characters, *_ in rows}
        working, archived = counts[Tier.WORKING], counts[Tier.ARCHIVE]
        *_, numbers, states, memories, episodes = rows[0]
        self._glued = {"memory": memories, "episode": episodes}
        characters = working[1] + archived[1]
        return finding.OriginalTotals(
            working[0] + archived[0],
            characters,
            slept=archived[0] > 0,
            states=bool(states),
            version=f"{numbers} {characters}",
        )

    def word_rows(self, query: Query | None = None) -> FtsWords:
        """Return the index of words, within the filters of `query` if there is one."""
        narrow = query_filter(self._session, query) if query else listing.EVERYTHING
        return FtsWords(self._session, narrow, glued=self._glued["memory"])

    def rows_with_terms(
        self, query: Query, words: Sequence[Forms], *, summaries: bool
    ) -> finding.TermRows:
        grams = self._rows_with_grams("memory_gram_fts", query, memory_filter(query))
        if not summaries:
            return finding.TermRows(grams)
        narrow = episode_filter(query)
        rows: list[Collection[int]] = [
            self._matching_rows("episode_fts", any_of(forms), narrow) for forms in words
        ]
        if self._glued["episode"]:
            glued = [any_of(map(glued_terms, forms)) for forms in words]
            rows = [
                {*own, *self._matching_rows("episode_gram_fts", match, narrow)}
                for own, match in zip(rows, glued, strict=True)
            ]
        of_episodes = self._rows_with_grams("episode_gram_fts", query, narrow)
        return finding.TermRows(grams, rows, of_episodes)

    def _rows_with_grams(
        self, index: str, query: Query, narrow: listing.Filter
    ) -> list[list[int]]:
        """Return, for each character pair or part of a name, the newest rows in an index that have it."""
        # Parts of names are there, too.
        terms = (*query.terms.words, *query.terms.grams)
        if not self._matching_rows(index, any_of(terms), listing.EVERYTHING, limit=1):
            return [[] for _ in terms]
        return [self._matching_rows(index, quote_word(term), narrow) for term in terms]

    def newest_or_oldest_with_words(
        self, words: Sequence[Forms], query: Query
    ) -> set[int]:
        """Return the newest or oldest rows, as asked, that have all words in any form."""
        direction = "ASC" if query.order is TimeOrder.EARLIEST else "DESC"
        glued = [tuple(map(glued_terms, forms)) for forms in words]
        return {
            position
            for table, known in (("memory_fts", words), ("memory_gram_fts", glued))
            for position in self._matching_rows(
                table,
                all_of([[forms] for forms in known]),
                memory_filter(query),
                direction=direction,
                limit=finding.ORDERED_MAX,
            )
        }

    def newest_with_any_words(
        self,
        alternatives: Sequence[Sequence[Forms]],
        about: Forms,
        query: Query,
        *,
        limit: int,
    ) -> list[int]:
        """Return up to `limit` newest rows that have all words of any alternative, and one of `about`."""
        match = " OR ".join(
            f"({all_of([[terms] for terms in parts])})" for parts in alternatives
        )
        if about:
            match = f"({match}) AND ({any_of(about)})"
        return self._matching_rows(
            "memory_fts", match, memory_filter(query), limit=limit
        )

    def _matching_rows(
        self,
        table: str,
        match: str,
        narrow: listing.Filter,
        *,
        direction: str = "DESC",
        limit: int = finding.LISTED_MAX,
    ) -> list[int]:
        """Return up to `limit` matching row numbers that pass a filter, in order ASC or DESC."""
        return self._session.column(
            f"SELECT f.rowid FROM {table} AS f {narrow.joins} WHERE {table} MATCH :match "
            f"{narrow.text} ORDER BY f.rowid {direction} LIMIT :limit",
            match=match,
            limit=limit,
            **narrow.values,
        )

    def read_matches(
        self, scores: Mapping[int, float], grams: Mapping[int, float]
    ) -> list[Match]:
        """Return the memories at the rows in `scores`; `grams` has the parts of scores from character pairs."""
        matches: dict[int, Match] = {}
        positions = json.dumps(list(scores))
        for table, episode in (("working_memory", "NULL"), ("archive", "episode_seq")):
            if len(matches) == len(scores):
                break
            for seq, *fields, created_at in self._session.execute(
                _MATCHES.format(episode=episode, table=table), (positions,)
            ).fetchall():
                moment, pairs = instant(created_at), grams.get(seq, 0.0)
                matches[seq] = Match._make((seq, scores[seq], *fields, moment, pairs))
        return [matches[seq] for seq in scores if seq in matches]

    def neighbor_positions(
        self, query: Query, matches: Sequence[Match], *, slept: bool
    ) -> list[list[int]]:
        """Return, per match, the row numbers of memories around the match, in its session and source."""
        reaches = [
            (
                match.position - finding.REACH,
                match.position + finding.REACH,
                match.session,
            )
            for match in matches
        ]
        narrow = listing.join_conditions(
            [
                *listing.column_conditions(query.own_columns, "{}"),
                *listing.asked_conditions(query, "seq"),
            ]
        )
        since = instant_text(query.since) if query.since else ""
        until = instant_text(query.until) if query.until else "~"
        around: list[list[int]] = [[] for _ in matches]
        tables = ["working_memory"] if query.tier in (None, Tier.WORKING) else []
        if slept and query.tier is not Tier.WORKING:
            tables.append("archive")
        for table in tables:
            rows = self._session.execute(
                f"SELECT near.key, seq, source, created_at FROM json_each(:reaches) AS near "
                f"CROSS JOIN {table} WHERE seq BETWEEN near.value ->> 0 AND near.value ->> 1 "
                f"AND session_id = near.value ->> 2{narrow.text}",
                reaches=reaches,
                **narrow.values,
            )
            for number, seq, source, created_at in rows.fetchall():
                if source == matches[number].source and since <= created_at < until:
                    around[number].append(seq)
        return [sorted(positions) for positions in around]


class SqliteSearch(StorePart, SearchStore):
    """A `SearchStore` on one SQLite file."""

    _engine: SqliteEngine

    def one_snapshot(self) -> AbstractContextManager[None]:
        """Let all reads of this thread in the block share one connection and transaction."""
        return self._engine.readers.shared.sharing()

    def candidates(self, query: Query) -> SearchCandidates:
        """Return the memories and summaries that match a query; none for a query without words and times."""
        if not query.terms and not query.only_then:
            return SearchCandidates()
        with self._engine.reading() as session:
            frequencies = self._engine.frequencies
            return finding.find_candidates(SqliteIndex(session), query, frequencies)

    def documents(self, results: Sequence[RankedResult]) -> Documents:
        """Return the memories and episodes that ranked results refer to."""
        positions = {each for result in results for each in result.positions}
        episodes = {each.episode for each in results if each.episode is not None}
        with self._engine.reading() as session:
            found = {seq: state.episode_at(session, "seq", seq) for seq in episodes}
            return Documents(
                session.memories_at(positions),
                {seq: episode for seq, episode in found.items() if episode},
            )
