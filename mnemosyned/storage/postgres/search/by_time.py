"""Rows of a time, of an order in time, and rows that speak of a time to come."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace

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
from mnemosyned.storage.postgres.database.session import Session
from mnemosyned.storage.postgres.fulltext.terms import phrase_hashes
from mnemosyned.storage.postgres.search.filters import (
    among,
    asked_for,
    joined,
    memory_filter,
    of_source_names,
)
from mnemosyned.storage.postgres.search.statements import AnyOf, rows_with_all
from mnemosyned.storage.postgres.search.words import newest_with_all
from mnemosyned.storage.postgres.tables.rows import utc

_COLUMNS = (
    "m.owner, m.importance, m.created_at, m.seq, m.session_id, m.source, "
    f"left(m.content, {COMPARED_CHARS}) AS text"
)
_FIRST_OF_EACH = (
    "SELECT importance, created_at, seq, source, text FROM (SELECT m.*, row_number() OVER "
    "(PARTITION BY m.source ORDER BY {order}, m.seq) AS place "
    "FROM ({rows}) AS m WHERE true{where}) AS placed WHERE place <= %(most)s"
)
_LONGEST = "m.importance DESC, length(m.text) DESC"


def listed(
    session: Session, query: Query, span: TimeSpan, *, limit: int
) -> Mapping[int, float]:
    """Return the memories of a time with their scores by `scores_by_time`."""
    span = overlap(query, span)
    values: dict[str, object] = {
        "begins": utc(span.since),
        "ends": utc(span.until),
        "walked": WALKED_MAX,
        "episodes": EPISODES_MAX,
        "most": limit,
    }
    memories: list[TimedMemory] = []
    if query.tier in (None, Tier.WORKING):
        fresh = (
            f"SELECT {_COLUMNS} FROM fresh AS f "
            "JOIN memory AS m ON m.owner = f.owner AND m.seq = f.seq "
            "WHERE f.owner = %(owner)s "
            "AND f.created_at >= %(begins)s AND f.created_at < %(ends)s "
            "ORDER BY f.created_at, f.seq LIMIT %(walked)s"
        )
        memories += _first_of_each(session, query, (_LONGEST, fresh), values)
    if query.tier is not Tier.WORKING:
        archived = (
            f"SELECT {_COLUMNS} FROM "
            "(SELECT owner, seq, covers_until FROM episode WHERE owner = %(owner)s "
            "AND level = 0 AND covers_from < %(ends)s "
            "ORDER BY covers_from DESC LIMIT %(episodes)s) AS e "
            "JOIN placed AS p ON p.owner = %(owner)s AND p.episode_seq = e.seq "
            "JOIN memory AS m ON m.owner = %(owner)s AND m.seq = p.seq "
            "WHERE e.covers_until >= %(begins)s AND m.created_at >= %(begins)s "
            "AND m.created_at < %(ends)s AND m.content != '' LIMIT %(walked)s"
        )
        memories += _first_of_each(session, query, (_LONGEST, archived), values)
    return scores_by_time(memories, shown=query.limit, limit=limit)


def ordered(session: Session, query: Query) -> set[int]:
    """Return the newest or the oldest memories of the sources that a question asks for."""
    if query.subject:
        return _ordered_by_words(session, query)
    direction = "ASC" if query.order is TimeOrder.EARLIEST else "DESC"
    values: dict[str, object] = {
        "ends": utc(asked_at(query)),
        "walked": WALKED_MAX,
        "episodes": EPISODES_MAX,
        "most": ORDERED_MAX,
    }
    order = f"m.created_at {direction}"
    found: list[TimedMemory] = []
    if query.tier in (None, Tier.WORKING):
        fresh = (
            f"SELECT {_COLUMNS} FROM fresh AS f "
            "JOIN memory AS m ON m.owner = f.owner AND m.seq = f.seq "
            "WHERE f.owner = %(owner)s AND f.created_at <= %(ends)s "
            f"ORDER BY f.created_at {direction}, f.seq {direction} LIMIT %(walked)s"
        )
        found += _first_of_each(session, query, (order, fresh), values)
    if query.tier is not Tier.WORKING:
        archived = (
            f"SELECT {_COLUMNS} FROM (SELECT owner, seq FROM episode "
            "WHERE owner = %(owner)s AND level = 0 AND covers_from <= %(ends)s "
            f"ORDER BY covers_from {direction} LIMIT %(episodes)s) AS e "
            "JOIN placed AS p ON p.owner = %(owner)s AND p.episode_seq = e.seq "
            "JOIN memory AS m ON m.owner = %(owner)s AND m.seq = p.seq "
            "WHERE m.created_at <= %(ends)s AND m.content != '' LIMIT %(walked)s"
        )
        found += _first_of_each(session, query, (order, archived), values)
    return {memory.position for memory in found}


def _first_of_each(
    session: Session,
    query: Query,
    parts: tuple[str, str],
    values: Mapping[str, object],
) -> list[TimedMemory]:
    """Return the first rows of each source that pass; `parts` are the order and the rows."""
    order, rows = parts
    narrow = joined(
        [
            *among(query.sessions, query.sources),
            *of_source_names(query.source_names),
            *asked_for(query),
        ]
    )
    found = session.execute(
        _FIRST_OF_EACH.format(order=order, rows=rows, where=narrow.where),
        **values,
        **narrow.values,
    )
    return [TimedMemory._make(row) for row in found.fetchall()]


def _ordered_by_words(session: Session, query: Query) -> set[int]:
    """Return the first memories of an order that have every word of the subject."""
    subject = query.subject
    if subject is None or not subject.words:
        return set()
    narrow = memory_filter(replace(query, until=asked_at(query)))
    rows = rows_with_all(
        session,
        [_any_of(session, subject.forms(word)) for word in subject.words],
        narrow,
        limit=ORDERED_MAX,
        order="ASC" if query.order is TimeOrder.EARLIEST else "DESC",
    )
    return set(rows)


def mentioning(session: Session, query: Query) -> set[int]:
    """Return memories whose words speak of the times to come that a question names."""
    now = asked_at(query)
    ahead = times_ahead(query.spans, now)
    candidates = {
        position
        for span in ahead
        for search in mention_searches(span, now)
        for position in _said(session, query, search)
    }
    if not candidates:
        return candidates
    reader = MentionReader(ahead)
    rows = session.execute(
        f"SELECT seq, created_at, left(content, {READ_CHARS_MAX}) FROM memory "
        "WHERE owner = %(owner)s AND seq = ANY(%(candidates)s)",
        candidates=sorted(candidates),
    )
    return {
        position
        for position, created_at, text in rows.fetchall()
        if reader.speaks_of_them(text, in_zone(created_at, now.tzinfo))
    }


def _said(session: Session, query: Query, search: MentionSearch) -> list[int]:
    """Return the newest memories with the terms of a search, said within its time."""
    bounded = overlap(query, search.said)
    narrow = memory_filter(replace(query, since=bounded.since, until=bounded.until))
    about: list[AnyOf] = []
    subject = query.subject
    if subject and subject.words:  # no other is placed by what it mentions
        forms = [form for word in subject.words for form in subject.forms(word)]
        about = [_any_of(session, forms)]
    found: set[int] = set()
    for parts in search.alternatives:
        having = [*(_any_of(session, terms) for terms in parts), *about]
        found.update(newest_with_all(session, having, narrow, limit=MENTIONING_MAX))
    return sorted(found, reverse=True)[:MENTIONING_MAX]


def summary_of_period(session: Session, query: Query) -> int | None:
    """Return the summary of the one day, week or month that a question asks for."""
    span = only_time(query)
    period = period_of(span.since, span.until) if span else None
    if period is None:
        return None
    level, begins = period
    seq: int | None = session.scalar(
        "SELECT seq FROM episode WHERE owner = %(owner)s AND level = %(level)s "
        "AND period_from = %(begins)s AND NOT stale",
        level=int(level),
        begins=utc(begins),
    )
    return seq


def _any_of(session: Session, forms: Iterable[str]) -> AnyOf:
    return AnyOf.of(tuple(phrase_hashes(session.owner, form)) for form in forms)
