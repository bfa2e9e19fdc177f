"""The SQLite store's answers to a question: its indexes, its rows, its summaries."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Collection, Iterable, Mapping, Sequence
from functools import cached_property
from typing import Any

from mnemosyned.domain.dates.spans import TimeSpan
from mnemosyned.domain.memory import Tier
from mnemosyned.domain.search.finding import SearchIndex, Totals
from mnemosyned.domain.search.query import Match, Query
from mnemosyned.domain.search.scores.neighbors import REACH
from mnemosyned.domain.search.words.bm25 import READ_CHARS_MAX
from mnemosyned.domain.search.words.index import Forms
from mnemosyned.storage.sqlite.fulltext.indexing import glued_terms
from mnemosyned.storage.sqlite.search import by_time
from mnemosyned.storage.sqlite.search.candidates import (
    FtsWords,
    has_glued,
    newest,
    scored,
)
from mnemosyned.storage.sqlite.search.expressions import any_of
from mnemosyned.storage.sqlite.search.filters import (
    EVERYTHING,
    asked_for,
    episode_filter,
    memory_filter,
    narrowed,
)
from mnemosyned.storage.sqlite.tables.hierarchy import ancestors
from mnemosyned.storage.sqlite.tables.rows import SEQ_AMONG, instant, instant_text

_MATCH_FIELDS = f"session_id, importance, source, role, substr(content, 1, {READ_CHARS_MAX}), created_at"


class SqliteIndex(SearchIndex):
    """A `SearchIndex` within one snapshot of a connection."""

    def __init__(self, connection: sqlite3.Connection) -> None:
        self._connection = connection

    def totals(self) -> Totals:
        rows = self._connection.execute(
            "SELECT tier, count, characters, (SELECT EXISTS (SELECT 1 FROM memory_state)) "
            "FROM tier_totals"
        ).fetchall()
        counts = {tier: (count, characters) for tier, count, characters, _ in rows}
        working, archived = counts[Tier.WORKING], counts[Tier.ARCHIVE]
        return Totals(
            working[0] + archived[0],
            working[1] + archived[1],
            slept=archived[0] > 0,
            states=bool(rows[0][3]),
        )

    def words(self, query: Query | None = None) -> FtsWords:
        narrow = narrowed(self._connection, query) if query else EVERYTHING
        return FtsWords(self._connection, narrow, glued=self._has_glued)

    @cached_property
    def _has_glued(self) -> bool:
        return has_glued(self._connection, "memory_gram_fts")

    def grams(
        self, terms: Sequence[str], query: Query, *, limit: int
    ) -> Iterable[tuple[int, float]]:
        return newest(
            self._connection,
            "memory_gram_fts",
            any_of(terms),
            memory_filter(query),
            limit=limit,
        )

    def episodes(
        self, forms: Forms, query: Query, *, limit: int
    ) -> Iterable[tuple[int, float]]:
        narrow = episode_filter(query)
        found = dict(
            scored(self._connection, "episode_fts", any_of(forms), narrow, limit=limit)
        )
        if has_glued(self._connection, "episode_gram_fts"):
            match = any_of(map(glued_terms, forms))
            for seq, score in newest(
                self._connection, "episode_gram_fts", match, narrow, limit=limit
            ):
                found[seq] = found.get(seq, 0.0) + score
        return found.items()

    def episode_grams(
        self, terms: Sequence[str], query: Query, *, limit: int
    ) -> Iterable[tuple[int, float]]:
        return newest(
            self._connection,
            "episode_gram_fts",
            any_of(terms),
            episode_filter(query),
            limit=limit,
        )

    def listed(
        self, query: Query, span: TimeSpan, *, limit: int
    ) -> Mapping[int, float]:
        return by_time.listed(self._connection, query, span, limit=limit)

    def ordered(self, query: Query) -> Collection[int]:
        return by_time.ordered(self._connection, query)

    def mentioning(self, query: Query) -> Collection[int]:
        return by_time.mentioning(self._connection, query)

    def summary_of_period(self, query: Query) -> int | None:
        return by_time.summary_of_period(self._connection, query)

    def matches(
        self, scores: Mapping[int, float], grams: Mapping[int, float]
    ) -> list[Match]:
        return _read(self._connection, scores, grams)

    def around(
        self, query: Query, matches: Sequence[Match], *, slept: bool
    ) -> list[list[int]]:
        return _around(self._connection, query, matches, slept=slept)

    def above(self, episodes: Collection[int]) -> dict[int, int]:
        return ancestors(self._connection, episodes)


def matches_at(
    connection: sqlite3.Connection, query: Query, positions: Sequence[int]
) -> list[Match]:
    """The memories at these positions that lie within the filters; their words have no score.

    Pruned ones are none of them: positions may come from vectors that were dropped meanwhile.
    """
    narrow = memory_filter(query)
    rows = connection.execute(
        f"SELECT f.rowid FROM (SELECT value AS rowid FROM json_each(?)) AS f {narrow.joins} "
        f"WHERE f.rowid IN (SELECT seq FROM memory_text WHERE seq = f.rowid) {narrow.where}",
        (json.dumps(list(positions)), *narrow.values),
    )
    return _read(connection, {seq: 0.0 for (seq,) in rows}, {})


def _read(
    connection: sqlite3.Connection,
    scores: Mapping[int, float],
    grams: Mapping[int, float],
) -> list[Match]:
    """The candidates, in the order of their scores."""
    matches: dict[int, Match] = {}
    positions = json.dumps(list(scores))
    for table, episode in (("working_memory", "NULL"), ("archive", "episode_seq")):
        if len(matches) == len(scores):
            break
        for row in connection.execute(
            f"SELECT seq, {episode}, {_MATCH_FIELDS} FROM {table} WHERE {SEQ_AMONG}",
            (positions,),
        ).fetchall():
            matches[row[0]] = _match(row, scores[row[0]], grams.get(row[0], 0.0))
    return [matches[seq] for seq in scores if seq in matches]


def _match(row: Sequence[Any], score: float, grams: float) -> Match:
    seq, episode, session, importance, source, role, content, created_at = row
    moment = instant(created_at)
    return Match(
        seq, score, session, importance, episode, source, role, content, moment, grams
    )


def _around(
    connection: sqlite3.Connection,
    query: Query,
    matches: Sequence[Match],
    *,
    slept: bool,
) -> list[list[int]]:
    """The positions of its session that came in around each match, within the filters, in order."""
    reaches = [
        (match.position - REACH, match.position + REACH, match.session)
        for match in matches
    ]
    holds, moment = asked_for(query, seq="seq")
    since = instant_text(query.since) if query.since else ""
    until = instant_text(query.until) if query.until else "~"
    around: list[list[int]] = [[] for _ in matches]
    for table in _tables(query.tier, slept=slept):
        rows = connection.execute(
            f"SELECT near.key, seq, source, created_at FROM json_each(?) AS near "
            f"CROSS JOIN {table} WHERE seq BETWEEN near.value ->> 0 AND near.value ->> 1 "
            f"AND session_id = near.value ->> 2{holds}",
            (json.dumps(reaches), *moment),
        )
        for number, seq, source, created_at in rows.fetchall():
            if source == matches[number].source and since <= created_at < until:
                around[number].append(seq)
    return [sorted(positions) for positions in around]


def _tables(tier: Tier | None, *, slept: bool) -> list[str]:
    """Return the tables of the originals that a tier has."""
    tables = ["working_memory"] if tier in (None, Tier.WORKING) else []
    return [*tables, "archive"] if slept and tier is not Tier.WORKING else tables
