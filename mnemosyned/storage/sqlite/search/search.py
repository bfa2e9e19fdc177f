"""Candidates for a question with all that ranking reads of them, and places shown whole."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any, NamedTuple

from mnemosyned.domain.dates.questions import TimeSpan
from mnemosyned.domain.memory import DEFAULT_SESSION, Tier
from mnemosyned.domain.search.bm25 import READ_CHARS_MAX
from mnemosyned.domain.search.dedup import crowded
from mnemosyned.domain.search.query import Corpus, Match, Query, SearchCandidates
from mnemosyned.domain.search.ranking import NEIGHBOR_SHARES
from mnemosyned.storage.sqlite.search.by_time import listed
from mnemosyned.storage.sqlite.search.candidates import (
    CandidateLimits,
    Frequencies,
    any_of,
    newest,
    scored,
    top_candidates,
)
from mnemosyned.storage.sqlite.search.filters import (
    SqlFilter,
    episode_filter,
    in_force,
    memory_filter,
    narrowed,
)
from mnemosyned.storage.sqlite.tables.hierarchy import ancestors
from mnemosyned.storage.sqlite.tables.rows import (
    SEQ_AMONG,
    instant,
    instant_text,
)

CANDIDATES_PER_HIT = 10
CANDIDATES_MIN = 100
"""More than are shown, as the best of them share places and lift each other."""
CANDIDATES_ALIKE = 10
"""So many times more are looked at where most of them say the same."""
CANDIDATES_KEPT_PER_HIT = 4
CANDIDATES_THEN = 60
"""For each time that the question speaks of, so many of what happened then."""
GRAM_WEIGHT = 0.6
"""What a character pair is worth beside a word."""
LENDERS = 24
LENDER_WEAK = 0.5
"""What stands beside so many of the best is looked for, if they have this share of the best."""
BESIDE_REACH = 8
"""So far off in the order of arrival, as sessions may come in interleaved."""

_MATCH_FIELDS = f"session_id, importance, source, role, substr(content, 1, {READ_CHARS_MAX}), created_at"


def search(
    connection: sqlite3.Connection, query: Query, frequencies: Frequencies
) -> SearchCandidates:
    """Candidates from the tiers asked for, within one snapshot."""
    stock = _stock(connection, query, frequencies)
    if not stock.states:
        query = replace(
            query, valid_at=None, superseded=True
        )  # there is nothing to leave out
    limit = max(CANDIDATES_MIN, CANDIDATES_PER_HIT * query.limit)
    room = CandidateLimits(limit, CANDIDATES_KEPT_PER_HIT * query.limit, query.limit)
    matches, more = _matches(connection, query, stock, room)
    if more and crowded([match.content for match in matches], query.limit):
        wide = limit * CANDIDATES_ALIKE
        matches, _ = _matches(
            connection, query, stock, CandidateLimits(wide, wide, wide)
        )
    known = {match.position: match for match in matches}
    beside: dict[int, list[tuple[int, int]]] = {}
    if not query.only_then:
        beside = _beside(connection, query, matches, known, slept=stock.slept)
    memories = list(known.values())
    if not stock.slept or query.only_then or query.tier in (Tier.WORKING, Tier.ARCHIVE):
        return SearchCandidates(memories, beside=beside, corpus=stock.corpus)
    episodes = _episode_scores(connection, query, limit)
    above = ancestors(connection, _met(memories, episodes))
    return SearchCandidates(
        memories, episodes, beside=beside, corpus=stock.corpus, above=above
    )


class _Stock(NamedTuple):
    """What is known of all memories."""

    corpus: Corpus
    slept: bool
    """Whether any has gone into an episode yet."""
    states: bool
    """Whether any can have expired or been superseded."""
    rows: Mapping[str, set[int]]
    """All memories with a word of the question, for the words that had to be looked up."""


def _stock(
    connection: sqlite3.Connection, query: Query, frequencies: Frequencies
) -> _Stock:
    totals = connection.execute(
        "SELECT tier, count, characters, (SELECT EXISTS (SELECT 1 FROM memory_state)) "
        "FROM tier_totals"
    ).fetchall()
    counts = {tier: (count, characters) for tier, count, characters, _ in totals}
    working, archived = counts[Tier.WORKING], counts[Tier.ARCHIVE]
    count = working[0] + archived[0]
    known, rows = frequencies.of(connection, query.terms, count)
    corpus = Corpus(
        count=count,
        average_chars=(working[1] + archived[1]) / max(1, count),
        frequencies=known,
    )
    return _Stock(corpus, slept=archived[0] > 0, states=bool(totals[0][3]), rows=rows)


def _met(memories: Iterable[Match], episodes: Iterable[int]) -> set[int]:
    """Every episode that can take a place, whatever matched in it."""
    return {match.episode for match in memories if match.episode is not None}.union(
        episodes
    )


def _matches(
    connection: sqlite3.Connection, query: Query, stock: _Stock, room: CandidateLimits
) -> tuple[list[Match], bool]:
    """The memories that match, best first by the engine's score, and whether there may be more."""
    narrow = narrowed(connection, query)
    asked = partial(
        top_candidates, connection, query.terms, stock.corpus, rows=stock.rows
    )
    words, more = ({}, False) if query.only_then else asked(narrow, room=room)
    for span in query.spans:
        then = narrowed(
            connection, _during(query, span if query.only_then else span.widened())
        )
        told, _ = asked(then, room=room._replace(limit=CANDIDATES_THEN))
        words = {**told, **words}
    grams: dict[int, float] = {}
    if not query.only_then:
        grams = _gram_scores(connection, "memory_gram_fts", query, narrow, room.limit)
    for seq, score in grams.items():
        words[seq] = words.get(seq, 0.0) + score
    if query.only_then or not (words or _names_something(query)):
        for span in query.spans:
            told = listed(connection, query, span, limit=room.limit)
            words = {**told, **words}
            grams |= told
    return _read(connection, _sorted(words), grams), more


def _sorted(scores: Mapping[int, float]) -> dict[int, float]:
    return dict(sorted(scores.items(), key=lambda item: -item[1]))


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


def _names_something(query: Query) -> bool:
    """Whether it asks for a name or a number: where nothing has that, a list would be no answer."""
    return any(
        char.isupper() or char.isdigit() for word in query.terms.words for char in word
    )


def _during(query: Query, span: TimeSpan) -> Query:
    """The same question, held to a time it speaks of."""
    since = max(query.since, span.since) if query.since else span.since
    until = min(query.until, span.until) if query.until else span.until
    return replace(query, since=since, until=until)


def _gram_scores(
    connection: sqlite3.Connection,
    table: str,
    query: Query,
    narrow: SqlFilter,
    limit: int,
) -> dict[int, float]:
    every = (
        *query.terms.words,
        *query.terms.grams,
    )  # parts of names stand in the second index
    found = newest(connection, table, any_of(every), narrow, limit=limit)
    return {seq: GRAM_WEIGHT * score for seq, score in found}


def _episode_scores(
    connection: sqlite3.Connection, query: Query, limit: int
) -> dict[int, float]:
    narrow = episode_filter(query)
    forms = [form for word in query.terms.words for form in query.terms.forms(word)]
    found: dict[int, float] = {}
    if forms:
        found = scored(connection, "episode_fts", any_of(forms), narrow, limit=limit)
    for seq, score in _gram_scores(
        connection, "episode_gram_fts", query, narrow, limit
    ).items():
        found[seq] = found.get(seq, 0.0) + score
    return found


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


def _beside(
    connection: sqlite3.Connection,
    query: Query,
    matches: Sequence[Match],
    known: dict[int, Match],
    *,
    slept: bool,
) -> dict[int, list[tuple[int, int]]]:
    """Who stands one and two places beside the best in their session; `known` gains them."""
    beside: dict[int, list[tuple[int, int]]] = {}
    for match in matches[:LENDERS]:
        if match.score < LENDER_WEAK * matches[0].score:
            break
        if match.session == DEFAULT_SESSION:  # no session was given: no talk either
            continue
        around = _around(connection, query, match, slept=slept)
        at = next(at for at, row in enumerate(around) if row[0] == match.position)
        near = beside[match.position] = []
        for distance in range(1, len(NEIGHBOR_SHARES) + 1):
            for place in (at - distance, at + distance):
                if 0 <= place < len(around):
                    row = around[place]
                    near.append((row[0], distance))
                    if row[0] not in known:
                        known[row[0]] = _match(row, 0.0, 0.0)
    return beside


def _around(
    connection: sqlite3.Connection, query: Query, match: Match, *, slept: bool
) -> list[Sequence[Any]]:
    """The rows of its session that came in around a match, within the filters, in order."""
    reach = (
        match.position - BESIDE_REACH,
        match.position + BESIDE_REACH,
        match.session,
    )
    holds, moment = in_force(query, seq="seq")
    rows: list[Sequence[Any]] = []
    for tier, table, episode in (
        (Tier.WORKING, "working_memory", "NULL"),
        (Tier.ARCHIVE, "archive", "episode_seq"),
    ):
        if query.tier is not None and (query.tier is Tier.WORKING) != (
            tier is Tier.WORKING
        ):
            continue
        if tier is Tier.ARCHIVE and not slept:
            continue
        rows += connection.execute(
            f"SELECT seq, {episode}, {_MATCH_FIELDS} FROM {table} "
            f"WHERE seq BETWEEN ? AND ? AND session_id = ?{holds}",
            (*reach, *moment),
        )
    since = instant_text(query.since) if query.since else ""
    until = instant_text(query.until) if query.until else "~"
    return sorted(
        (row for row in rows if since <= row[-1] < until and row[4] == match.source),
        key=lambda row: row[0],
    )
