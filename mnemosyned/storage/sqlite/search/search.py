"""Candidates for a question, with everything that ranking reads."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any, NamedTuple

from mnemosyned.domain.memory import Tier
from mnemosyned.domain.search.bm25 import READ_CHARS_MAX
from mnemosyned.domain.search.by_time import FIRST_SCORE
from mnemosyned.domain.search.candidates import (
    WEIGHTS,
    CandidateLimits,
    may_list_by_time,
    needs_more,
    within_span,
)
from mnemosyned.domain.search.neighbors import REACH, nearest, with_neighbors
from mnemosyned.domain.search.query import Corpus, Match, Query, SearchCandidates
from mnemosyned.storage.sqlite.search.by_time import (
    listed,
    mentioning,
    ordered,
    summary_of_period,
)
from mnemosyned.storage.sqlite.search.candidates import (
    LookedUp,
    newest,
    scored,
    top_candidates,
)
from mnemosyned.storage.sqlite.search.expressions import any_of
from mnemosyned.storage.sqlite.search.filters import (
    SqlFilter,
    asked_for,
    episode_filter,
    memory_filter,
    narrowed,
)
from mnemosyned.storage.sqlite.search.frequencies import Frequencies
from mnemosyned.storage.sqlite.tables.hierarchy import ancestors
from mnemosyned.storage.sqlite.tables.rows import (
    SEQ_AMONG,
    instant,
    instant_text,
)

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
    limits = CandidateLimits.of(query)
    timed = _timed(connection, query)
    matches, more = _matches(connection, query, stock, limits)
    if more and needs_more(matches, query):
        matches, _ = _matches(connection, query, stock, limits.widened())
    matches = _with_timed(connection, matches, timed)
    known = {match.position: match for match in matches}
    beside: dict[int, list[tuple[int, int]]] = {}
    if not query.only_then:
        beside = _beside(connection, query, matches, known, slept=stock.slept)
    memories = list(known.values())
    if not stock.slept or query.only_then or query.tier in (Tier.WORKING, Tier.ARCHIVE):
        return SearchCandidates(
            memories,
            beside=beside,
            corpus=stock.corpus,
            mentioning=timed.mentioning,
            summary=timed.summary if stock.slept else None,
        )
    episodes = _episode_scores(connection, query, stock.corpus, limits.total)
    above = ancestors(connection, _met(memories, episodes))
    return SearchCandidates(
        memories,
        episodes,
        beside=beside,
        corpus=stock.corpus,
        above=above,
        mentioning=timed.mentioning,
    )


class _Timed(NamedTuple):
    """Memories that a question's time selects, whatever their words."""

    scores: Mapping[int, float]
    mentioning: frozenset[int]
    summary: int | None


def _timed(connection: sqlite3.Connection, query: Query) -> _Timed:
    """Return what lies in the time of a question, is of its order, or speaks of its time."""
    if not (query.spans or query.order):
        return _Timed({}, frozenset(), None)
    mentions = mentioning(connection, query) if query.spans else set()
    scores: dict[int, float] = dict.fromkeys(mentions, FIRST_SCORE)
    if query.asked:
        asked = replace(query, source_names=query.asked.names)
        scores |= _of_source(connection, asked)
    is_summary = query.only_then and not query.asked
    summary = summary_of_period(connection, query) if is_summary else None
    return _Timed(scores, frozenset(mentions), summary)


def _of_source(connection: sqlite3.Connection, query: Query) -> dict[int, float]:
    """Return what lies in the times of a question, or is of its order, in the source asked for."""
    scores: dict[int, float] = {}
    for span in query.spans:
        scores |= listed(connection, query, span, limit=WEIGHTS.per_time_span)
    if query.order and not query.spans:
        scores |= dict.fromkeys(ordered(connection, query), FIRST_SCORE)
    return scores


def _with_timed(
    connection: sqlite3.Connection, matches: Sequence[Match], timed: _Timed
) -> list[Match]:
    """Return the matches with those that only their time selects."""
    known = {match.position for match in matches}
    missing = {
        position: score
        for position, score in timed.scores.items()
        if position not in known
    }
    if not missing:
        return list(matches)
    return [*matches, *_read(connection, _sorted(missing), missing)]


class _Stock(NamedTuple):
    """Statistics of the whole store."""

    corpus: Corpus
    slept: bool
    """Whether any has gone into an episode yet."""
    states: bool
    """Whether any can have expired or been superseded."""
    looked_up: LookedUp


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
    corpus = replace(
        known,
        count=count,
        average_chars=(working[1] + archived[1]) / max(1, count),
    )
    return _Stock(
        corpus,
        slept=archived[0] > 0,
        states=bool(totals[0][3]),
        looked_up=LookedUp(rows),
    )


def _met(memories: Iterable[Match], episodes: Iterable[int]) -> set[int]:
    """Every episode that can take a place, whatever matched in it."""
    return {match.episode for match in memories if match.episode is not None}.union(
        episodes
    )


def _matches(
    connection: sqlite3.Connection, query: Query, stock: _Stock, limits: CandidateLimits
) -> tuple[list[Match], bool]:
    """The memories that match, best first by the engine's score, and whether there may be more."""
    narrow = narrowed(connection, query)
    asked = partial(
        top_candidates, connection, query.terms, stock.corpus, looked_up=stock.looked_up
    )
    words, more = ({}, False) if query.only_then else asked(narrow, limits=limits)
    for span in query.spans:
        then = narrowed(connection, within_span(query, span))
        told, _ = asked(then, limits=limits.for_time_span())
        words = {**told, **words}
    grams: dict[int, float] = {}
    if not query.only_then:
        grams = _gram_scores(connection, "memory_gram_fts", query, narrow, limits.total)
    for seq, score in grams.items():
        words[seq] = words.get(seq, 0.0) + score
    if query.only_then or (not words and may_list_by_time(query)):
        for span in query.spans:
            told = listed(connection, query, span, limit=limits.total)
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
    return {seq: WEIGHTS.gram * score for seq, score in found}


def _episode_scores(
    connection: sqlite3.Connection, query: Query, corpus: Corpus, limit: int
) -> dict[int, float]:
    narrow = episode_filter(query)
    forms = [
        form for word in query.terms.words for form in corpus.forms(query.terms, word)
    ]
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
    best = list(with_neighbors(matches))
    around = _around(connection, query, best, slept=slept)
    beside: dict[int, list[tuple[int, int]]] = {}
    for match, positions in zip(best, around, strict=True):
        beside[match.position] = [
            (positions[index], distance)
            for index, distance in nearest(positions, match.position)
        ]
    near = {position for pairs in beside.values() for position, _ in pairs}
    missing = dict.fromkeys(sorted(near - known.keys()), 0.0)
    known.update((match.position, match) for match in _read(connection, missing, {}))
    return beside


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
