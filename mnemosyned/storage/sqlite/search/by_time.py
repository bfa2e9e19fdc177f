"""Rows of a time, of an order in time, and rows that speak of a time to come."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Collection, Iterator, Sequence
from dataclasses import replace
from typing import Any

from mnemosyned.domain.dates.mentions import (
    MENTIONING_MAX,
    READ_CHARS_MAX,
    MentionReader,
    MentionSearch,
    mention_searches,
    times_ahead,
)
from mnemosyned.domain.dates.spans import TimeSpan
from mnemosyned.domain.instants import in_zone
from mnemosyned.domain.languages.language import TimeOrder
from mnemosyned.domain.memory import Tier
from mnemosyned.domain.search.by_time import (
    COMPARED_CHARS,
    EPISODES_MAX,
    ORDERED_MAX,
    WALKED_MAX,
    TimedMemory,
    asked_at,
    only_time,
    scores_by_time,
)
from mnemosyned.domain.search.candidates import overlap
from mnemosyned.domain.search.query import Query
from mnemosyned.domain.sleep.rollup import period_of
from mnemosyned.storage.sqlite.fulltext.indexing import glued_terms
from mnemosyned.storage.sqlite.search.expressions import all_of, any_of
from mnemosyned.storage.sqlite.search.filters import (
    among,
    asked_for,
    memory_filter,
    of_source_names,
)
from mnemosyned.storage.sqlite.tables.rows import SEQ_AMONG, instant, instant_text

_COLUMNS = (
    "importance, created_at, {0}seq, session_id, source, substr(content, 1, ?) AS text"
)
_FIRST_OF_EACH = (
    "SELECT importance, created_at, seq, source, text FROM (SELECT *, row_number() OVER "
    "(PARTITION BY source ORDER BY %s, seq) AS place "
    "FROM (%s) WHERE %s) WHERE place <= ?"
)
_LONGEST = "importance DESC, length(text) DESC"


def listed(
    connection: sqlite3.Connection, query: Query, span: TimeSpan, *, limit: int
) -> dict[int, float]:
    """Return the memories of a time with their scores by `scores_by_time`."""
    span = overlap(query, span)
    reach = (instant_text(span.since), instant_text(span.until))
    where, values = _within(query)
    rows: list[tuple[Any, ...]] = []
    if query.tier in (None, Tier.WORKING):
        fresh = (
            f"SELECT {_COLUMNS.format('')} FROM working_memory "
            "WHERE created_at >= ? AND created_at < ? ORDER BY created_at LIMIT ?"
        )
        rows += connection.execute(
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
        rows += connection.execute(
            _FIRST_OF_EACH % (_LONGEST, archived, where),
            (COMPARED_CHARS, *begun, *reach, WALKED_MAX, *values, limit),
        )
    memories = [
        TimedMemory(importance, instant(created_at), position, source, beginning)
        for importance, created_at, position, source, beginning in rows
    ]
    return scores_by_time(memories, shown=query.limit, limit=limit)


def ordered(connection: sqlite3.Connection, query: Query) -> set[int]:
    """Return the newest or the oldest memories of the sources that a question asks for."""
    if query.subject:
        return _ordered_by_words(connection, query)
    direction = "ASC" if query.order is TimeOrder.EARLIEST else "DESC"
    where, values = _within(query)
    until = instant_text(asked_at(query))
    found: set[int] = set()
    if query.tier in (None, Tier.WORKING):
        fresh = (
            f"SELECT {_COLUMNS.format('')} FROM working_memory "
            f"WHERE created_at <= ? ORDER BY created_at {direction} LIMIT ?"
        )
        found |= _first_of_each(
            connection, (direction, fresh, where), (until, WALKED_MAX, *values)
        )
    if query.tier is not Tier.WORKING:
        archived = (
            f"SELECT {_COLUMNS.format('a.')} FROM "
            "(SELECT seq FROM episodic_memory WHERE level = 0 AND covers_from <= ? "
            f"ORDER BY covers_from {direction} LIMIT ?) AS e "
            "JOIN archive AS a ON a.episode_seq = e.seq "
            "WHERE a.created_at <= ? AND a.content != '' LIMIT ?"
        )
        found |= _first_of_each(
            connection,
            (direction, archived, where),
            (until, EPISODES_MAX, until, WALKED_MAX, *values),
        )
    return found


def _first_of_each(
    connection: sqlite3.Connection,
    parts: tuple[str, str, str],
    values: Sequence[Any],
) -> set[int]:
    """Return the first rows in time of each source; `parts` are direction, rows and condition."""
    direction, rows, where = parts
    first = connection.execute(
        _FIRST_OF_EACH % (f"created_at {direction}", rows, where),
        (COMPARED_CHARS, *values, ORDERED_MAX),
    )
    return {position for _, _, position, _, _ in first}


def _ordered_by_words(connection: sqlite3.Connection, query: Query) -> set[int]:
    """Return the first memories of an order that have every word of the subject."""
    subject = query.subject
    if subject is None:
        return set()
    narrow = memory_filter(replace(query, until=asked_at(query)))
    direction = "ASC" if query.order is TimeOrder.EARLIEST else "DESC"
    forms = [subject.forms(word) for word in subject.words]
    glued = [tuple(map(glued_terms, known)) for known in forms]
    found: set[int] = set()
    for table, words in (("memory_fts", forms), ("memory_gram_fts", glued)):
        rows = connection.execute(
            f"SELECT f.rowid FROM {table} AS f {narrow.joins} "
            f"WHERE {table} MATCH ? {narrow.where} ORDER BY f.rowid {direction} LIMIT ?",
            (all_of([[known] for known in words]), *narrow.values, ORDERED_MAX),
        )
        found.update(position for (position,) in rows)
    return found


def mentioning(connection: sqlite3.Connection, query: Query) -> set[int]:
    """Return memories whose words speak of the times to come that a question names."""
    now = asked_at(query)
    ahead = times_ahead(query.spans, now)
    candidates = {
        position
        for span in ahead
        for search in mention_searches(span, now)
        for position in _said(connection, query, search)
    }
    if not candidates:
        return candidates
    reader = MentionReader(ahead)
    return {
        position
        for position, created_at, text in _beginnings(connection, candidates)
        if reader.speaks_of_them(text, in_zone(instant(created_at), now.tzinfo))
    }


def _beginnings(
    connection: sqlite3.Connection, positions: Collection[int]
) -> Iterator[tuple[int, str, str]]:
    """Yield memories with their time and the part of their text that is read for times."""
    asked = (READ_CHARS_MAX, json.dumps(sorted(positions)))
    for table in ("working_memory", "archive"):
        yield from connection.execute(
            f"SELECT seq, created_at, substr(content, 1, ?) FROM {table} WHERE {SEQ_AMONG}",
            asked,
        )


def _said(
    connection: sqlite3.Connection, query: Query, search: MentionSearch
) -> set[int]:
    """Return the newest memories with the terms of a search, said within its time."""
    bounded = overlap(query, search.said)
    narrow = memory_filter(replace(query, since=bounded.since, until=bounded.until))
    match = " OR ".join(
        f"({all_of([[terms] for terms in parts])})" for parts in search.alternatives
    )
    subject = query.subject
    if subject and subject.words:  # no other is placed by what it mentions
        forms = [form for word in subject.words for form in subject.forms(word)]
        match = f"({match}) AND ({any_of(forms)})"
    rows = connection.execute(
        f"SELECT f.rowid FROM memory_fts AS f {narrow.joins} "
        f"WHERE memory_fts MATCH ? {narrow.where} ORDER BY f.rowid DESC LIMIT ?",
        (match, *narrow.values, MENTIONING_MAX),
    )
    return {position for (position,) in rows}


def summary_of_period(connection: sqlite3.Connection, query: Query) -> int | None:
    """Return the summary of the one day, week or month that a question asks for."""
    span = only_time(query)
    period = period_of(span.since, span.until) if span else None
    if period is None:
        return None
    level, begins = period
    row = connection.execute(
        "SELECT seq FROM episodic_memory WHERE level = ? AND period_from = ? AND NOT stale",
        (int(level), instant_text(begins)),
    ).fetchone()
    return row[0] if row else None


def _within(query: Query) -> tuple[str, Sequence[Any]]:
    """Return conditions for sessions, sources and validity."""
    clauses, values = among(query.sessions, query.sources)
    named, names = of_source_names(query.source_names)
    clauses, values = clauses + named, values + names
    holds, moment = asked_for(query, seq="seq")
    return " AND ".join(["1", *clauses]) + holds, [*values, *moment]
