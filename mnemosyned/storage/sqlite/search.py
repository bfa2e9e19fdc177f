"""Candidates for a question: rows by words, by time and by order in time, with their summaries."""

from __future__ import annotations

import json
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import cached_property
from heapq import nlargest
from typing import Any

from mnemosyned.instants import in_zone
from mnemosyned.memory.periods import period_of
from mnemosyned.memory.ports import SearchStore
from mnemosyned.memory.values import Episode, Tier
from mnemosyned.search.bm25 import READ_CHARS_MAX
from mnemosyned.search.finding import (
    COMPARED_CHARS,
    EPISODES_MAX,
    ORDERED_MAX,
    REACH,
    SCORED_MAX,
    WALKED_MAX,
    OriginalTotals,
    SearchIndex,
    TimedMemory,
    asked_time,
    find_candidates,
    only_time_asked,
    overlapping_span,
    scores_by_time,
)
from mnemosyned.search.query import (
    Documents,
    Match,
    Query,
    RankedResult,
    SearchCandidates,
)
from mnemosyned.search.words import Forms, Frequencies, Having, WordRows
from mnemosyned.storage.common.episodes import ancestors, episode_at
from mnemosyned.storage.common.rows import instant
from mnemosyned.storage.common.session import reads
from mnemosyned.storage.sqlite.connections import Readers
from mnemosyned.storage.sqlite.filters import (
    EVERYTHING,
    SqliteFilter,
    asked_conditions,
    episode_filter,
    memory_filter,
    place_conditions,
    query_filter,
    source_name_condition,
)
from mnemosyned.storage.sqlite.fulltext import (
    GLUED,
    all_of,
    any_of,
    glued_terms,
    quote_word,
)
from mnemosyned.storage.sqlite.rows import SEQ_AMONG, instant_text
from mnemosyned.storage.sqlite.session import SqliteSession
from mnemosyned.storage.sqlite.writer import SqlitePart, Writer
from mnemosyned.text.dates.mentions import (
    MENTION_CHARS_MAX,
    MENTIONING_MAX,
    MentionReader,
    MentionSearch,
    mention_searches,
    select_times_ahead,
)
from mnemosyned.text.dates.spans import TimeSpan
from mnemosyned.text.languages.tables import TimeOrder

_COLUMNS = (
    "importance, created_at, {0}seq, session_id, source, substr(content, 1, ?) AS text"
)
_FIRST_OF_EACH = (
    "SELECT importance, created_at, seq, source, text FROM (SELECT *, row_number() OVER "
    "(PARTITION BY source ORDER BY %s, seq) AS place "
    "FROM (%s) WHERE %s) WHERE place <= ?"
)
_LONGEST = "importance DESC, length(text) DESC"


def rows_of_span(
    session: SqliteSession, query: Query, span: TimeSpan, *, limit: int
) -> dict[int, float]:
    """Return the row numbers of memories from a time span, with the scores of `scores_by_time`."""
    span = overlapping_span(query, span)
    reach = (instant_text(span.since), instant_text(span.until))
    where, values = _filter_conditions(query)
    rows: list[tuple[Any, ...]] = []
    if query.tier in (None, Tier.WORKING):
        fresh = (
            f"SELECT {_COLUMNS.format('')} FROM working_memory "
            "WHERE created_at >= ? AND created_at < ? ORDER BY created_at LIMIT ?"
        )
        rows += session.execute(
            _FIRST_OF_EACH % (_LONGEST, fresh, where),
            (COMPARED_CHARS, *reach, WALKED_MAX, *values, limit),
        )
    if query.tier is not Tier.WORKING:
        archived = (
            f"SELECT {_COLUMNS.format('a.')} FROM "
            "(SELECT seq, covers_until FROM episodic_memory WHERE level = 0 AND covers_from < ? "
            "ORDER BY covers_from DESC LIMIT ?) AS e "
            "JOIN archive AS a ON a.episode_seq = e.seq WHERE e.covers_until >= ? "
            "AND a.created_at >= ? AND a.created_at < ? AND a.content != '' LIMIT ?"
        )
        begun = (reach[1], EPISODES_MAX, reach[0])
        rows += session.execute(
            _FIRST_OF_EACH % (_LONGEST, archived, where),
            (COMPARED_CHARS, *begun, *reach, WALKED_MAX, *values, limit),
        )
    memories = [
        TimedMemory(importance, instant(created_at), position, source, beginning)
        for importance, created_at, position, source, beginning in rows
    ]
    return scores_by_time(memories, shown=query.limit, limit=limit)


def rows_in_time_order(session: SqliteSession, query: Query) -> set[int]:
    """Return the row numbers of the newest or oldest memories of the sources in a question."""
    if query.subject:
        return _rows_with_subject(session, query)
    direction = "ASC" if query.order is TimeOrder.EARLIEST else "DESC"
    where, values = _filter_conditions(query)
    until = instant_text(asked_time(query))
    found: set[int] = set()
    if query.tier in (None, Tier.WORKING):
        fresh = (
            f"SELECT {_COLUMNS.format('')} FROM working_memory "
            f"WHERE created_at <= ? ORDER BY created_at {direction} LIMIT ?"
        )
        found |= _first_of_each_source(
            session, (direction, fresh, where), (until, WALKED_MAX, *values)
        )
    if query.tier is not Tier.WORKING:
        archived = (
            f"SELECT {_COLUMNS.format('a.')} FROM "
            "(SELECT seq FROM episodic_memory WHERE level = 0 AND covers_from <= ? "
            f"ORDER BY covers_from {direction} LIMIT ?) AS e "
            "JOIN archive AS a ON a.episode_seq = e.seq "
            "WHERE a.created_at <= ? AND a.content != '' LIMIT ?"
        )
        found |= _first_of_each_source(
            session,
            (direction, archived, where),
            (until, EPISODES_MAX, until, WALKED_MAX, *values),
        )
    return found


def _first_of_each_source(
    session: SqliteSession,
    parts: tuple[str, str, str],
    values: Sequence[Any],
) -> set[int]:
    """Return the first rows in time of each source.

    `parts` are the sort direction, the rows and the condition.
    """
    direction, rows, where = parts
    first = session.execute(
        _FIRST_OF_EACH % (f"created_at {direction}", rows, where),
        (COMPARED_CHARS, *values, ORDERED_MAX),
    )
    return {position for _, _, position, _, _ in first}


def _rows_with_subject(session: SqliteSession, query: Query) -> set[int]:
    """Return the first memories in the question's time order that have all words of its subject."""
    subject = query.subject
    if subject is None:
        return set()
    narrow = memory_filter(replace(query, until=asked_time(query)))
    direction = "ASC" if query.order is TimeOrder.EARLIEST else "DESC"
    forms = [subject.forms(word) for word in subject.words]
    glued = [tuple(map(glued_terms, known)) for known in forms]
    found: set[int] = set()
    for table, words in (("memory_fts", forms), ("memory_gram_fts", glued)):
        rows = session.execute(
            f"SELECT f.rowid FROM {table} AS f {narrow.joins} "
            f"WHERE {table} MATCH ? {narrow.where} ORDER BY f.rowid {direction} LIMIT ?",
            (all_of([[known] for known in words]), *narrow.values, ORDERED_MAX),
        )
        found.update(position for (position,) in rows)
    return found


def rows_mentioning_time(session: SqliteSession, query: Query) -> set[int]:
    """Return the row numbers of memories whose text mentions a future time in the question."""
    now = asked_time(query)
    ahead = select_times_ahead(query.spans, now)
    candidates = {
        position
        for span in ahead
        for search in mention_searches(span, now)
        for position in _rows_with_mention(session, query, search)
    }
    if not candidates:
        return candidates
    reader = MentionReader(ahead)
    return {
        position
        for position, created_at, text in _read_text_beginnings(session, candidates)
        if reader.mentions_any_time(text, in_zone(instant(created_at), now.tzinfo))
    }


def _read_text_beginnings(
    session: SqliteSession, positions: Collection[int]
) -> Iterator[tuple[int, str, str]]:
    """Yield the row number, time and beginning of the text of each memory."""
    asked = (MENTION_CHARS_MAX, json.dumps(sorted(positions)))
    for table in ("working_memory", "archive"):
        yield from session.execute(
            f"SELECT seq, created_at, substr(content, 1, ?) FROM {table} WHERE {SEQ_AMONG}",
            asked,
        )


def _rows_with_mention(
    session: SqliteSession, query: Query, search: MentionSearch
) -> set[int]:
    """Return the newest memories with the terms of a search for mentions, created in its time."""
    bounded = overlapping_span(query, search.said)
    narrow = memory_filter(replace(query, since=bounded.since, until=bounded.until))
    match = " OR ".join(
        f"({all_of([[terms] for terms in parts])})" for parts in search.alternatives
    )
    subject = query.subject
    if subject and subject.words:  # no other is placed by what it mentions
        forms = [form for word in subject.words for form in subject.forms(word)]
        match = f"({match}) AND ({any_of(forms)})"
    rows = session.execute(
        f"SELECT f.rowid FROM memory_fts AS f {narrow.joins} "
        f"WHERE memory_fts MATCH ? {narrow.where} ORDER BY f.rowid DESC LIMIT ?",
        (match, *narrow.values, MENTIONING_MAX),
    )
    return {position for (position,) in rows}


def summary_of_period(session: SqliteSession, query: Query) -> int | None:
    """Return the row number of the summary of the one period in the question, or None."""
    span = only_time_asked(query)
    period = period_of(span.since, span.until) if span else None
    if period is None:
        return None
    level, begins = period
    row = session.execute(
        "SELECT seq FROM episodic_memory WHERE level = ? AND period_from = ? AND NOT stale",
        (int(level), instant_text(begins)),
    ).fetchone()
    return row[0] if row else None


def _filter_conditions(query: Query) -> tuple[str, Sequence[Any]]:
    """Return a question's conditions on session, source, validity and tags, with their values."""
    clauses, values = place_conditions(query.sessions, query.sources)
    named, names = source_name_condition(query.source_names)
    clauses, values = clauses + named, values + names
    holds, moment = asked_conditions(query, seq="seq")
    return " AND ".join(["1", *clauses]) + holds, [*values, *moment]


STRETCHES_MAX, GAP_MIN = 16, 1_000
"""To begin a stretch costs as much as a common word's rows in one of a thousand."""


def scores_of_matches(
    session: SqliteSession,
    table: str,
    match: str,
    narrow: SqliteFilter,
    *,
    limit: int,
) -> list[tuple[int, float]]:
    """Return the best rows of an index for an FTS5 expression, with BM25 scores; higher is better."""
    return session.execute(
        f"SELECT f.rowid, -bm25({table}) AS score FROM {table} AS f {narrow.joins} "
        f"WHERE {table} MATCH ? {narrow.where} ORDER BY score DESC LIMIT ?",
        (match, *narrow.values, limit),
    ).fetchall()


def has_glued(session: SqliteSession, table: str) -> bool:
    """Return whether a second index has any word that touches a script without spaces."""
    row = session.execute(
        f"SELECT 1 FROM {table} WHERE {table} MATCH ? LIMIT 1", (quote_word(GLUED),)
    ).fetchone()
    return row is not None


_AROUND = (
    "SELECT f.rowid FROM json_each(?) AS stretch CROSS JOIN {table} AS f "
    "WHERE f.{table} MATCH ? AND f.rowid BETWEEN stretch.value ->> 0 AND stretch.value ->> 1 "
    "AND +f.rowid IN (SELECT value FROM json_each(?)) ORDER BY f.rowid DESC LIMIT ?"
)


def covering_ranges(rows: Sequence[int]) -> list[tuple[int, int]]:
    """Return a few ranges (first, last) that together cover the rows; the widest gaps are left out."""
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
        self, session: SqliteSession, narrow: SqliteFilter, *, glued: bool
    ) -> None:
        """Search words within a filter; `glued` tells whether the second index may have words."""
        self._session = session
        self._narrow = narrow
        self._glued = glued
        self._select = (
            f"SELECT f.rowid FROM {{table}} AS f {narrow.joins} "
            f"WHERE {{table}} MATCH ? {narrow.where} ORDER BY f.rowid DESC LIMIT ?"
        )
        self._joined: tuple[str, ...] = ()
        self._values: tuple[Any, ...] = tuple(narrow.values)
        if narrow.only:
            self._select = _AROUND
            self._joined = (json.dumps(covering_ranges(narrow.only)),)
            self._values = (json.dumps(narrow.only),)

    @property
    def is_filtered(self) -> bool:
        return bool(self._narrow.joins or self._narrow.where)

    @property
    def rows_if_few(self) -> Sequence[int] | None:
        return self._narrow.only

    @cached_property
    def last(self) -> int:
        """The highest row number in the index, 0 if it is empty."""
        row = self._session.execute(
            "SELECT ifnull(max(rowid), 0) FROM memory_fts_docsize"
        ).fetchone()
        return int(row[0])

    def newest(self, having: Having, *, limit: int) -> Sequence[int]:
        """Return up to `limit` of the newest rows that have all of these words, the newest first."""
        rows = self._newest("memory_fts", all_of(having), limit)
        if not self._glued:
            return rows
        glued = [[tuple(map(glued_terms, forms)) for forms in word] for word in having]
        others = self._newest("memory_gram_fts", all_of(glued), limit)
        return sorted({*rows, *others}, reverse=True)[:limit] if others else rows

    def _newest(self, table: str, match: str, limit: int) -> list[int]:
        """Return up to `limit` of the newest rows of an index table for an FTS5 expression."""
        rows = self._session.execute(
            self._select.format(table=table),
            (*self._joined, match, *self._values, limit),
        )
        return [seq for (seq,) in rows.fetchall()]

    def rows_that_pass(self, rows: Sequence[int]) -> Collection[int]:
        """Return the rows among `rows` that pass the filters."""
        found = self._session.execute(
            "SELECT f.rowid FROM (SELECT value AS rowid FROM json_each(?)) AS f "
            f"{self._narrow.joins} WHERE 1 {self._narrow.where}",
            (json.dumps(rows), *self._narrow.values),
        )
        return [seq for (seq,) in found.fetchall()]

    def expect(self, asked: Iterable[tuple[Forms, int]]) -> None:
        """Do nothing: reading words ahead saves no time in a local file."""


def best_of_newest(
    session: SqliteSession,
    table: str,
    match: str,
    narrow: SqliteFilter,
    *,
    limit: int,
) -> list[tuple[int, float]]:
    """Return the best rows by BM25 among the newest rows of an index that match an FTS5 expression."""
    return session.execute(
        "SELECT seq, score FROM ("
        f"SELECT f.rowid AS seq, -bm25({table}) AS score "
        f"FROM {table} AS f {narrow.joins} WHERE {table} MATCH ? {narrow.where} "
        "ORDER BY f.rowid DESC LIMIT ?) ORDER BY score DESC LIMIT ?",
        (match, *narrow.values, SCORED_MAX, limit),
    ).fetchall()


_MATCH_FIELDS = f"session_id, importance, source, role, substr(content, 1, {READ_CHARS_MAX}), created_at"


class SqliteIndex(SearchIndex):
    """A `SearchIndex` within one snapshot of a session."""

    def __init__(self, session: SqliteSession) -> None:
        self._session = session

    def totals(self) -> OriginalTotals:
        """Return the counts and sizes of all memories, for BM25."""
        rows = self._session.execute(
            "SELECT tier, count, characters, (SELECT EXISTS (SELECT 1 FROM memory_state)) "
            "FROM tier_totals"
        ).fetchall()
        counts = {tier: (count, characters) for tier, count, characters, _ in rows}
        working, archived = counts[Tier.WORKING], counts[Tier.ARCHIVE]
        return OriginalTotals(
            working[0] + archived[0],
            working[1] + archived[1],
            slept=archived[0] > 0,
            states=bool(rows[0][3]),
        )

    def word_rows(self, query: Query | None = None) -> FtsWords:
        """Return access to the rows of words, among all memories or within a question's filters."""
        narrow = query_filter(self._session, query) if query else EVERYTHING
        return FtsWords(self._session, narrow, glued=self._has_glued)

    @cached_property
    def _has_glued(self) -> bool:
        return has_glued(self._session, "memory_gram_fts")

    def best_by_grams(
        self, terms: Sequence[str], query: Query, *, limit: int
    ) -> Iterable[tuple[int, float]]:
        """Search the newest memories by character pairs; return row numbers with BM25, best first."""
        return best_of_newest(
            self._session,
            "memory_gram_fts",
            any_of(terms),
            memory_filter(query),
            limit=limit,
        )

    def best_episodes(
        self, forms: Forms, query: Query, *, limit: int
    ) -> Iterable[tuple[int, float]]:
        """Search summaries by words; return row numbers with their BM25, best first."""
        narrow = episode_filter(query)
        found = dict(
            scores_of_matches(
                self._session, "episode_fts", any_of(forms), narrow, limit=limit
            )
        )
        if has_glued(self._session, "episode_gram_fts"):
            match = any_of(map(glued_terms, forms))
            for seq, score in best_of_newest(
                self._session, "episode_gram_fts", match, narrow, limit=limit
            ):
                found[seq] = found.get(seq, 0.0) + score
        return found.items()

    def best_episodes_by_grams(
        self, terms: Sequence[str], query: Query, *, limit: int
    ) -> Iterable[tuple[int, float]]:
        """Search the newest summaries by character pairs; return row numbers with their BM25."""
        return best_of_newest(
            self._session,
            "episode_gram_fts",
            any_of(terms),
            episode_filter(query),
            limit=limit,
        )

    def memories_of_time(
        self, query: Query, span: TimeSpan, *, limit: int
    ) -> Mapping[int, float]:
        """Return the row numbers of memories from a time span, with scores by importance."""
        return rows_of_span(self._session, query, span, limit=limit)

    def first_in_order(self, query: Query) -> Collection[int]:
        return rows_in_time_order(self._session, query)

    def memories_mentioning_time(self, query: Query) -> Collection[int]:
        return rows_mentioning_time(self._session, query)

    def summary_of_period(self, query: Query) -> int | None:
        return summary_of_period(self._session, query)

    def read_matches(
        self, scores: Mapping[int, float], grams: Mapping[int, float]
    ) -> list[Match]:
        """Read the memories with these row numbers, in the order of `scores`."""
        return _read_matches(self._session, scores, grams)

    def positions_around(
        self, query: Query, matches: Sequence[Match], *, slept: bool
    ) -> list[list[int]]:
        """Return for each match the sorted row numbers around it, in its session and source."""
        return _positions_around_matches(self._session, query, matches, slept=slept)

    def rollups_above(self, episodes: Collection[int]) -> dict[int, int]:
        return ancestors(self._session, episodes)


def matches_at(
    session: SqliteSession, query: Query, positions: Sequence[int]
) -> list[Match]:
    """Read the memories with these row numbers that pass the filters, as matches without scores.

    Pruned memories are left out: row numbers may come from vectors that were deleted meanwhile.
    """
    narrow = memory_filter(query)
    rows = session.execute(
        f"SELECT f.rowid FROM (SELECT value AS rowid FROM json_each(?)) AS f {narrow.joins} "
        f"WHERE f.rowid IN (SELECT seq FROM memory_text WHERE seq = f.rowid) {narrow.where}",
        (json.dumps(list(positions)), *narrow.values),
    )
    return _read_matches(session, {seq: 0.0 for (seq,) in rows}, {})


def _read_matches(
    session: SqliteSession,
    scores: Mapping[int, float],
    grams: Mapping[int, float],
) -> list[Match]:
    """Read the memories with these row numbers as matches, in the order of their scores."""
    matches: dict[int, Match] = {}
    positions = json.dumps(list(scores))
    for table, episode in (("working_memory", "NULL"), ("archive", "episode_seq")):
        if len(matches) == len(scores):
            break
        for row in session.execute(
            f"SELECT seq, {episode}, {_MATCH_FIELDS} FROM {table} WHERE {SEQ_AMONG}",
            (positions,),
        ).fetchall():
            seq, home, session_id, importance, source, role, content, created = row
            matches[seq] = Match(
                seq,
                scores[seq],
                session_id,
                importance,
                home,
                source,
                role,
                content,
                instant(created),
                grams.get(seq, 0.0),
            )
    return [matches[seq] for seq in scores if seq in matches]


def _positions_around_matches(
    session: SqliteSession,
    query: Query,
    matches: Sequence[Match],
    *,
    slept: bool,
) -> list[list[int]]:
    """Return for each match the sorted row numbers around it, in its session and source."""
    reaches = [
        (match.position - REACH, match.position + REACH, match.session)
        for match in matches
    ]
    holds, moment = asked_conditions(query, seq="seq")
    since = instant_text(query.since) if query.since else ""
    until = instant_text(query.until) if query.until else "~"
    around: list[list[int]] = [[] for _ in matches]
    tables = ["working_memory"] if query.tier in (None, Tier.WORKING) else []
    if slept and query.tier is not Tier.WORKING:
        tables.append("archive")
    for table in tables:
        rows = session.execute(
            f"SELECT near.key, seq, source, created_at FROM json_each(?) AS near "
            f"CROSS JOIN {table} WHERE seq BETWEEN near.value ->> 0 AND near.value ->> 1 "
            f"AND session_id = near.value ->> 2{holds}",
            (json.dumps(reaches), *moment),
        )
        for number, seq, source, created_at in rows.fetchall():
            if source == matches[number].source and since <= created_at < until:
                around[number].append(seq)
    return [sorted(positions) for positions in around]


class SqliteSearch(SqlitePart, SearchStore):
    """A `SearchStore` on one SQLite file."""

    def __init__(
        self, writer: Writer, readers: Readers, frequencies: Frequencies
    ) -> None:
        super().__init__(writer, readers)
        self._frequencies = frequencies

    def candidates(self, query: Query) -> SearchCandidates:
        """Return the candidates for a question, with what ranking reads, from one snapshot."""
        if not query.terms and not query.only_then:
            return SearchCandidates()
        with self._readers.snapshot() as session:
            return find_candidates(SqliteIndex(session), query, self._frequencies)

    @reads
    def documents(
        self, session: SqliteSession, results: Sequence[RankedResult]
    ) -> Documents:
        """Return the memories and episodes of ranked results that still exist."""
        asked = {place.memory for place in results if place.memory is not None}
        asked.update(position for place in results for position, _ in place.lines)
        memories = session.memories_at(asked)
        episodes: dict[int, Episode] = {}
        for place in results:
            if place.episode is not None and (
                episode := episode_at(session, "seq", place.episode)
            ):
                episodes[place.episode] = episode
        return Documents(memories, episodes)
