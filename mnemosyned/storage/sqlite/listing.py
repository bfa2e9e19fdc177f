"""Pages of memories, summaries, sessions and sources, in the order of time.

Working memory has an index by time. The archive is read episode by episode, in the order of the
times these cover, until no episode that is left can hold a record of the page: an index over a
million originals would take as much room as a third of their words. Filters that few rows pass are
looked up first.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, NamedTuple

from mnemosyned.memory.listing import (
    LIST_LIMITS,
    ListFilter,
    ListOrder,
    RecordKind,
)
from mnemosyned.memory.values import Tier
from mnemosyned.storage.common.listing import CommonLists, ListKey
from mnemosyned.storage.sqlite.filters import (
    place_conditions,
    tag_condition,
    time_conditions,
)
from mnemosyned.storage.sqlite.fulltext import any_of
from mnemosyned.storage.sqlite.rows import SEQ_AMONG, instant_text
from mnemosyned.storage.sqlite.session import SqliteSession
from mnemosyned.storage.sqlite.writer import SqlitePart

_LAST = "\U0010ffff"
_HOMES = ("working_memory", "archive", "episodic_memory")
_ANY = " UNION ALL ".join(
    f"SELECT 1 FROM (SELECT 1 FROM {home} WHERE id >= ? AND id < ? LIMIT 1)"
    for home in _HOMES
)


def id_range(prefix: str) -> tuple[str, str]:
    """Return the bounds of the ids with a prefix: the first is included, the last is not."""
    return prefix, prefix + _LAST


def prefixes_of_ids(session: SqliteSession, prefixes: Sequence[str]) -> list[str]:
    """Return the prefixes with which at least one id of a memory or summary begins."""
    return [
        prefix
        for prefix in prefixes
        if session.scalar(f"{_ANY} LIMIT 1", id_range(prefix) * len(_HOMES))
    ]


ORDERS = {ListOrder.NEWEST: ("DESC", "<"), ListOrder.OLDEST: ("ASC", ">")}


class ListCondition(NamedTuple):
    """A condition on rows, with its values."""

    text: str
    values: Sequence[Any]


# ------------------------------------------------------------------- memories


def _memory_keys(
    session: SqliteSession, wanted: ListFilter, prefixes: Sequence[str]
) -> list[ListKey]:
    """Return the sort keys of one page of matching memories, and of one memory more."""
    keys: list[ListKey] = []
    homes = {
        None: ("working_memory", "archive"),
        Tier.WORKING: ("working_memory",),
    }.get(wanted.tier, ("archive",))
    for home in homes:
        conditions = _memory_conditions(wanted, RecordKind.MEMORY, prefixes)
        rows = _rows_if_few(session, home, wanted, prefixes)
        if rows is not None:
            among_rows = ListCondition(SEQ_AMONG, [json.dumps(rows)])
            keys += _keys_where(session, home, [among_rows, *conditions], wanted)
        elif home == "archive":
            keys += _archive_keys(session, conditions, wanted)
        else:
            keys += _keys_where(session, home, conditions, wanted)
    return keys


def _memory_conditions(
    wanted: ListFilter, kind: RecordKind, prefixes: Sequence[str]
) -> list[ListCondition]:
    """Return the conditions on single memories."""
    named, names = place_conditions(wanted.sessions, wanted.sources, column="+{}")
    dated, moments = time_conditions(
        wanted.since, wanted.until, first="created_at", last="created_at"
    )
    clauses = [
        ListCondition(" AND ".join(["1", *named]), names),
        ListCondition(" AND ".join(["1", *dated]), moments),
    ]
    if wanted.roles:
        clauses.append(_one_of_condition("role", wanted.roles))
    if wanted.pinned is not None:
        clauses.append(ListCondition("pinned" if wanted.pinned else "NOT pinned", []))
    clauses += [
        ListCondition(text, wanted.tags) for text in tag_condition(wanted.tags)[0]
    ]
    if prefixes:
        clauses.append(_id_prefix_condition(prefixes))
    if wanted.valid_at:
        clauses.append(_in_force_condition(instant_text(wanted.valid_at)))
    if wanted.after:
        clauses.append(_after_cursor_condition(wanted, kind, "created_at"))
    return clauses


def _one_of_condition(column: str, names: Sequence[str]) -> ListCondition:
    return ListCondition(f"{column} IN ({', '.join('?' * len(names))})", names)


def _id_prefix_condition(prefixes: Sequence[str], column: str = "+id") -> ListCondition:
    """Return the condition for ids with one of these prefixes; `id` as column uses the index."""
    either = " OR ".join([f"({column} >= ? AND {column} < ?)"] * len(prefixes))
    bounds = [bound for prefix in prefixes for bound in id_range(prefix)]
    return ListCondition(f"({either})", bounds)


def _in_force_condition(moment: str) -> ListCondition:
    """Return the condition that hides memories superseded or expired at a moment."""
    return ListCondition(
        "NOT EXISTS (SELECT 1 FROM memory_state AS s WHERE s.memory_seq = seq "
        "AND (s.superseded_at IS NOT NULL OR s.valid_until <= ?))",
        [moment],
    )


def _after_cursor_condition(
    wanted: ListFilter, kind: RecordKind, column: str
) -> ListCondition:
    """Return the condition for records after the last one of the previous page."""
    place = wanted.after
    assert place is not None  # noqa: S101 asked for only with a cursor
    _, beyond = ORDERS[wanted.order]
    moment = instant_text(place.moment)
    return ListCondition(
        f"({column}, seq) {beyond} (?, ?)", [moment, place.seq_among(kind)]
    )


def _rows_if_few(
    session: SqliteSession,
    home: str,
    wanted: ListFilter,
    prefixes: Sequence[str],
) -> list[int] | None:
    """Return the rows that pass the most selective indexed filter; None if many, or without one."""
    if prefixes:
        clause = _id_prefix_condition(prefixes, "id")
    elif wanted.tags:
        return _rows_with_tags(session, wanted.tags)
    elif wanted.pinned:
        clause = ListCondition("pinned", [])
    elif wanted.sessions:
        clause = _one_of_condition("+session_id", wanted.sessions)
    elif wanted.roles and all(any(map(str.isalnum, role)) for role in wanted.roles):
        return _rows_of_roles(session, wanted.roles)
    else:
        return None
    return _rows_where(session, home, clause)


def _rows_where(
    session: SqliteSession, home: str, clause: ListCondition
) -> list[int] | None:
    """Return the row numbers that an indexed condition selects; None if they are many."""
    rows = session.execute(
        f"SELECT seq FROM {home} WHERE {clause.text} LIMIT ?",
        (*clause.values, LIST_LIMITS.few + 1),
    ).fetchall()
    return None if len(rows) > LIST_LIMITS.few else [seq for (seq,) in rows]


def _rows_with_tags(session: SqliteSession, tags: Sequence[str]) -> list[int] | None:
    """Return the row numbers of memories with any of these tags; None if they are many."""
    clause = _one_of_condition("name", tags)
    rows = session.execute(
        f"SELECT memory_seq FROM tag WHERE {clause.text} LIMIT ?",
        (*clause.values, LIST_LIMITS.few + 1),
    ).fetchall()
    return None if len(rows) > LIST_LIMITS.few else [seq for (seq,) in rows]


def _rows_of_roles(session: SqliteSession, roles: Sequence[str]) -> list[int] | None:
    """Return the rows of memories with these speakers, by the full-text index; None if many."""
    rows = session.execute(
        "SELECT rowid FROM memory_fts WHERE memory_fts MATCH ? UNION ALL "
        "SELECT memory_seq FROM memory_state WHERE pruned_at IS NOT NULL LIMIT ?",
        (f"role : ({any_of(roles)})", LIST_LIMITS.few + 1),
    ).fetchall()
    return None if len(rows) > LIST_LIMITS.few else [seq for (seq,) in rows]


def _keys_where(
    session: SqliteSession,
    home: str,
    conditions: Iterable[ListCondition],
    wanted: ListFilter,
) -> list[ListKey]:
    """Return the sort keys of memories that match conditions, one more than a page holds."""
    where, values = _join_conditions(conditions)
    direction, _ = ORDERS[wanted.order]
    rows = session.execute(
        f"SELECT created_at, seq FROM {home} WHERE {where} "
        f"ORDER BY created_at {direction}, seq {direction} LIMIT ?",
        (*values, wanted.limit + 1),
    )
    return [ListKey(moment, RecordKind.MEMORY, seq) for moment, seq in rows]


def _join_conditions(conditions: Iterable[ListCondition]) -> tuple[str, list[Any]]:
    """Return the conditions joined by AND, and all of their values."""
    texts: list[str] = []
    values: list[Any] = []
    for clause in conditions:
        texts.append(clause.text)
        values += clause.values
    return " AND ".join(texts) or "1", values


# -------------------------------------------------------------------- archive


def _archive_keys(
    session: SqliteSession, conditions: Sequence[ListCondition], wanted: ListFilter
) -> list[ListKey]:
    """Return the sort keys of a page of originals; read episodes until no other can hold one."""
    newest = wanted.order is ListOrder.NEWEST
    keys: list[ListKey] = []
    for episodes, bound in _episodes_in_order(session, wanted):
        among_episodes = ListCondition(
            "episode_seq IN (SELECT value FROM json_each(?))", [json.dumps(episodes)]
        )
        keys += _keys_where(session, "archive", [among_episodes, *conditions], wanted)
        keys.sort(reverse=newest)
        del keys[wanted.limit + 1 :]
        if bound is None or len(keys) <= wanted.limit:
            continue
        last = keys[-1].moment
        if last > bound if newest else last < bound:
            break
    return keys


def _episodes_in_order(
    session: SqliteSession, wanted: ListFilter
) -> Iterator[tuple[list[int], str | None]]:
    """Yield row numbers of episodes in list order, with a bound on the times of the rest.

    The bound is None after the last episodes.
    """
    direction, _ = ORDERS[wanted.order]
    edge = "covers_until" if wanted.order is ListOrder.NEWEST else "covers_from"
    where, values = _join_conditions(
        [ListCondition("level = 0", []), *_episode_conditions(wanted)]
    )
    rows = session.execute(
        f"SELECT seq, {edge} FROM episodic_memory WHERE {where} ORDER BY {edge} {direction}",
        values,
    )
    size = LIST_LIMITS.episodes_first
    waiting = rows.fetchmany(size)
    while waiting:
        size = min(2 * size, LIST_LIMITS.episodes_max)
        following = rows.fetchmany(size)
        yield [seq for seq, _ in waiting], following[0][1] if following else None
        waiting = following


def _episode_conditions(wanted: ListFilter) -> list[ListCondition]:
    """Return the conditions on episodes whose originals may match a filter."""
    named, names = place_conditions(wanted.sessions, wanted.sources, column="+{}")
    dated, moments = time_conditions(
        wanted.since, wanted.until, first="covers_from", last="covers_until"
    )
    clauses = [
        ListCondition(" AND ".join(["1", *dated]), moments),
        ListCondition(" AND ".join(["1", *named]), names),
    ]
    if wanted.after:
        moment = instant_text(wanted.after.moment)
        newest = wanted.order is ListOrder.NEWEST
        beyond = "covers_from <= ?" if newest else "covers_until >= ?"
        clauses.append(ListCondition(beyond, [moment]))
    return clauses


# ------------------------------------------------------------------ summaries


def _summary_keys(
    session: SqliteSession, wanted: ListFilter, prefixes: Sequence[str]
) -> list[ListKey]:
    """Return the sort keys of one page of matching summaries, and of one summary more."""
    direction, _ = ORDERS[wanted.order]
    moment = "period_from" if wanted.level else "covers_from"
    named, names = place_conditions(wanted.sessions, wanted.sources, column="+{}")
    dated, moments = time_conditions(
        wanted.since, wanted.until, first="covers_from", last="covers_until"
    )
    clauses = [
        ListCondition(" AND ".join(["1", *named]), names),
        ListCondition(" AND ".join(["1", *dated]), moments),
    ]
    if wanted.level is not None:
        clauses.append(ListCondition("level = ?", [wanted.level]))
    if wanted.level:
        clauses.append(ListCondition("period_from IS NOT NULL", []))
    if prefixes:
        rows = _rows_where(
            session, "episodic_memory", _id_prefix_condition(prefixes, "id")
        )
        few = None if rows is None else ListCondition(SEQ_AMONG, [json.dumps(rows)])
        clauses.append(few or _id_prefix_condition(prefixes))
    if wanted.after:
        clauses.append(_after_cursor_condition(wanted, RecordKind.SUMMARY, moment))
    where, values = _join_conditions(clauses)
    keys = session.execute(
        f"SELECT {moment}, seq FROM episodic_memory WHERE {where} "
        f"ORDER BY {moment} {direction}, seq {direction} LIMIT ?",
        (*values, wanted.limit + 1),
    )
    return [ListKey(start, RecordKind.SUMMARY, seq) for start, seq in keys]


_GROUPS = (
    "SELECT session_id, source, count(*), min(created_at), max(created_at) "
    "FROM working_memory GROUP BY session_id, source UNION ALL "
    "SELECT session_id, source, sum(item_count), min(covers_from), max(covers_until) "
    "FROM episodic_memory NOT INDEXED WHERE level = 0 GROUP BY session_id, source"
)


_COUNT_SINCE = (
    "SELECT (SELECT count(*) FROM working_memory WHERE created_at >= :since) + "
    "(SELECT count(*) FROM episodic_memory AS e CROSS JOIN archive AS a "
    "ON a.episode_seq = e.seq WHERE e.level = 0 AND e.covers_until >= :since "
    "AND a.created_at >= :since)"
)


class SqliteLists(SqlitePart, CommonLists):
    """A `ListStore` on one SQLite file."""

    _groups = _GROUPS
    _count_since = _COUNT_SINCE
    _prefixes_of_ids = staticmethod(prefixes_of_ids)
    _memory_keys = staticmethod(_memory_keys)
    _summary_keys = staticmethod(_summary_keys)
