"""Pages of memories, summaries, sessions and sources, in the order of time.

Working memory has an index by time. The archive is read episode by episode, in the order of the
times these cover, until no episode that is left can hold a record of the page. Filters that few
rows pass are looked up first.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import datetime

from mnemosyned.memory.listing import (
    LIST_LIMITS,
    ListFilter,
    ListOrder,
    RecordKind,
)
from mnemosyned.memory.values import Tier
from mnemosyned.storage.common.listing import CommonLists, ListKey
from mnemosyned.storage.postgres.filters import (
    Condition,
    in_force_condition,
    join_conditions,
    place_conditions,
    tag_condition,
    tier_condition,
    time_conditions,
)
from mnemosyned.storage.postgres.fulltext import phrase_hashes
from mnemosyned.storage.postgres.pool import PostgresPart
from mnemosyned.storage.postgres.rows import utc
from mnemosyned.storage.postgres.session import PostgresSession

_LAST = "\U0010ffff"
_BEGINNING = (
    "SELECT r.low FROM unnest(%(lows)s::text[], %(highs)s::text[]) "
    "WITH ORDINALITY AS r (low, high, number) WHERE "
    + " OR ".join(
        f"EXISTS (SELECT 1 FROM {table} AS t WHERE t.owner = %(owner)s "
        "AND t.id >= r.low AND t.id < r.high)"
        for table in ("memory", "episode")
    )
    + " ORDER BY r.number"
)


def prefixes_of_ids(session: PostgresSession, prefixes: Sequence[str]) -> list[str]:
    """Return the prefixes with which at least one id of a memory or summary begins."""
    lows = list(prefixes)
    highs = [prefix + _LAST for prefix in prefixes]
    rows = session.execute(_BEGINNING, lows=lows, highs=highs)
    return [prefix for (prefix,) in rows]


def id_prefix_condition(prefixes: Sequence[str], *, table: str = "m") -> Condition:
    """Return the condition for ids that begin with a prefix."""
    ranges: list[str] = []
    values: dict[str, object] = {}
    for number, prefix in enumerate(prefixes):
        low, high = f"low_{number}", f"high_{number}"
        ranges.append(f"({table}.id >= %({low})s AND {table}.id < %({high})s)")
        values |= {low: prefix, high: prefix + _LAST}
    return Condition(f"({' OR '.join(ranges)})", values)


ORDERS = {ListOrder.NEWEST: ("DESC", "<"), ListOrder.OLDEST: ("ASC", ">")}
_FRESH = "fresh AS f JOIN memory AS m ON m.owner = f.owner AND m.seq = f.seq"
_PLACED = "placed AS p JOIN memory AS m ON m.owner = p.owner AND m.seq = p.seq"
# Words have roles among them; with those that were pruned, the words went.
_SPOKEN = (
    "SELECT m.seq FROM memory_index AS m WHERE m.owner = %(owner)s "
    "AND m.role = ANY(%(roles)s::text[]) AND ({said}) UNION ALL "
    "SELECT s.memory_seq FROM memory_state AS s "
    "WHERE s.owner = %(owner)s AND s.pruned_at IS NOT NULL LIMIT %(most)s"
)


# ------------------------------------------------------------------- memories


def _memory_keys(
    session: PostgresSession, wanted: ListFilter, prefixes: Sequence[str]
) -> list[ListKey]:
    """Return the sort keys of one page of matching memories, and of one memory more."""
    conditions = _memory_conditions(wanted, prefixes)
    rows = _rows_if_few(session, wanted, prefixes)
    if rows is not None:
        held = [_rows_condition("m", rows), *tier_condition(wanted.tier), *conditions]
        return _keys_where(session, "memory AS m", held, wanted)
    keys: list[ListKey] = []
    if wanted.tier is not Tier.ARCHIVE:
        by_time = _memory_conditions(wanted, prefixes, table="f")
        keys += _keys_where(session, _FRESH, by_time, wanted, table="f")
    if wanted.tier is not Tier.WORKING:
        keys += _archive_keys(session, conditions, wanted)
    return keys


def _memory_conditions(
    wanted: ListFilter, prefixes: Sequence[str], *, table: str = "m"
) -> list[Condition]:
    """Return the conditions on single memories; `table` has the times by which rows are sorted."""
    moment = f"{table}.created_at"
    conditions = [
        *place_conditions(wanted.sessions, wanted.sources),
        *time_conditions(wanted.since, wanted.until, first=moment, last=moment),
        *tag_condition(wanted.tags, row_by_row=True),
    ]
    if wanted.roles:
        text = "m.role = ANY(%(roles)s::text[])"
        conditions.append(Condition(text, {"roles": list(wanted.roles)}))
    if wanted.pinned is not None:
        conditions.append(
            Condition("m.pinned" if wanted.pinned else "NOT m.pinned", {})
        )
    if prefixes:
        conditions.append(id_prefix_condition(prefixes))
    if wanted.valid_at:
        conditions += in_force_condition(valid_at=wanted.valid_at)
    return conditions + _after_cursor_conditions(
        wanted, RecordKind.MEMORY, moment, f"{table}.seq"
    )


def _rows_condition(table: str, rows: Sequence[int]) -> Condition:
    """Return the condition for rows with these numbers."""
    return Condition(f"{table}.seq = ANY(%(rows)s::bigint[])", {"rows": list(rows)})


def _after_cursor_conditions(
    wanted: ListFilter, kind: RecordKind, moment: str, seq: str
) -> list[Condition]:
    """Return the condition for records after the last one of the previous page; none on the first."""
    place = wanted.after
    if place is None:
        return []
    _, beyond = ORDERS[wanted.order]
    text = f"({moment}, {seq}) {beyond} (%(after)s, %(after_seq)s)"
    values = {"after": utc(place.moment), "after_seq": place.seq_among(kind)}
    return [Condition(text, values)]


def _rows_if_few(
    session: PostgresSession, wanted: ListFilter, prefixes: Sequence[str]
) -> list[int] | None:
    """Return the rows that pass the most selective indexed filter; None if many, or without one."""
    if prefixes:
        return _rows_where(session, "memory", [id_prefix_condition(prefixes)])
    if wanted.tags:
        named = Condition("m.name = ANY(%(tags)s::text[])", {"tags": list(wanted.tags)})
        return _rows_where(session, "tag", [named], seq="memory_seq")
    if wanted.pinned:
        return _rows_where(session, "memory", [Condition("m.pinned", {})])
    if wanted.sessions:
        return _rows_where(session, "memory", place_conditions(wanted.sessions, ()))
    if wanted.roles:
        return _rows_of_roles(session, wanted.roles)
    return None


def _rows_where(
    session: PostgresSession,
    home: str,
    conditions: Iterable[Condition],
    *,
    table: str = "m",
    seq: str = "seq",
) -> list[int] | None:
    """Return the row numbers that indexed conditions select in a table; None if they are many."""
    narrow = join_conditions(conditions)
    return _read_rows_if_few(
        session,
        f"SELECT {table}.{seq} FROM {home} AS {table} "
        f"WHERE {table}.owner = %(owner)s{narrow.where} LIMIT %(most)s",
        narrow.values,
    )


def _rows_of_roles(session: PostgresSession, roles: Sequence[str]) -> list[int] | None:
    """Return the rows of memories with these speakers, by the full-text index; None if many."""
    words = [phrase_hashes(session.owner, role) for role in roles]
    if not all(words):
        return None
    names = [f"words_{number}" for number in range(len(words))]
    said = " OR ".join(f"m.words @> %({name})s::integer[]" for name in names)
    values = {"roles": list(roles), **dict(zip(names, words, strict=True))}
    return _read_rows_if_few(session, _SPOKEN.format(said=said), values)


def _read_rows_if_few(
    session: PostgresSession, statement: str, values: Mapping[str, object]
) -> list[int] | None:
    """Return the row numbers that a statement selects; None if there are more than the limit."""
    most = LIST_LIMITS.few + 1
    rows = session.execute(statement, **values, most=most).fetchall()
    return None if len(rows) == most else [seq for (seq,) in rows]


def _keys_where(
    session: PostgresSession,
    tables: str,
    conditions: Iterable[Condition],
    wanted: ListFilter,
    *,
    table: str = "m",
) -> list[ListKey]:
    """Return the sort keys of memories that match conditions, one more than a page holds."""
    narrow = join_conditions(conditions)
    direction, _ = ORDERS[wanted.order]
    rows = session.execute(
        f"SELECT {table}.created_at, {table}.seq FROM {tables} "
        f"WHERE {table}.owner = %(owner)s{narrow.where} "
        f"ORDER BY {table}.created_at {direction}, {table}.seq {direction} LIMIT %(most)s",
        **narrow.values,
        most=wanted.limit + 1,
    )
    return [ListKey(moment, RecordKind.MEMORY, seq) for moment, seq in rows]


# -------------------------------------------------------------------- archive


def _archive_keys(
    session: PostgresSession, conditions: Sequence[Condition], wanted: ListFilter
) -> list[ListKey]:
    """Return the sort keys of a page of originals; read episodes until no other can hold one."""
    newest = wanted.order is ListOrder.NEWEST
    keys: list[ListKey] = []
    for episodes, bound in _episodes_in_order(session, wanted):
        text = "p.owner = %(owner)s AND p.episode_seq = ANY(%(episodes)s::bigint[])"
        held = Condition(text, {"episodes": episodes})
        keys += _keys_where(session, _PLACED, [held, *conditions], wanted)
        keys.sort(reverse=newest)
        del keys[wanted.limit + 1 :]
        if bound is None or len(keys) <= wanted.limit:
            continue
        last = keys[-1].moment
        if last > bound if newest else last < bound:
            break
    return keys


def _episodes_in_order(
    session: PostgresSession, wanted: ListFilter
) -> Iterator[tuple[list[int], datetime | None]]:
    """Yield row numbers of episodes in list order, with a bound on the times of the rest.

    The bound is None after the last episodes.
    """
    direction, beyond = ORDERS[wanted.order]
    edge = "covers_until" if wanted.order is ListOrder.NEWEST else "covers_from"
    conditions = [Condition("e.level = 0", {}), *_episode_conditions(wanted)]
    read: list[Condition] = []
    size = LIST_LIMITS.episodes_first
    while True:
        narrow = join_conditions([*conditions, *read])
        rows = session.execute(
            f"SELECT e.seq, e.{edge} FROM episode AS e "
            f"WHERE e.owner = %(owner)s{narrow.where} "
            f"ORDER BY e.{edge} {direction}, e.seq {direction} LIMIT %(most)s",
            **narrow.values,
            most=size + 1,
        ).fetchall()
        bound = rows[size][1] if len(rows) > size else None
        yield [seq for seq, _ in rows[:size]], bound
        if bound is None:
            return
        seq, moment = rows[size - 1]
        text = f"(e.{edge}, e.seq) {beyond} (%(edge)s, %(edge_seq)s)"
        read = [Condition(text, {"edge": moment, "edge_seq": seq})]
        size = min(2 * size, LIST_LIMITS.episodes_max)


def _episode_conditions(wanted: ListFilter) -> list[Condition]:
    """Return the conditions on episodes whose originals may match a filter."""
    conditions = [
        *place_conditions(wanted.sessions, wanted.sources, table="e"),
        *time_conditions(
            wanted.since, wanted.until, first="e.covers_from", last="e.covers_until"
        ),
    ]
    if wanted.after:
        newest = wanted.order is ListOrder.NEWEST
        text = "e.covers_from <= %(after)s" if newest else "e.covers_until >= %(after)s"
        conditions.append(Condition(text, {"after": utc(wanted.after.moment)}))
    return conditions


# ------------------------------------------------------------------ summaries


def _summary_keys(
    session: PostgresSession, wanted: ListFilter, prefixes: Sequence[str]
) -> list[ListKey]:
    """Return the sort keys of one page of matching summaries, and of one summary more."""
    direction, _ = ORDERS[wanted.order]
    moment = "e.period_from" if wanted.level else "e.covers_from"
    conditions = [
        *place_conditions(wanted.sessions, wanted.sources, table="e"),
        *time_conditions(
            wanted.since, wanted.until, first="e.covers_from", last="e.covers_until"
        ),
    ]
    if wanted.level is not None:
        conditions.append(Condition("e.level = %(level)s", {"level": wanted.level}))
    if wanted.level:
        conditions.append(Condition("e.period_from IS NOT NULL", {}))
    if prefixes:
        named = id_prefix_condition(prefixes, table="e")
        rows = _rows_where(session, "episode", [named], table="e")
        conditions.append(named if rows is None else _rows_condition("e", rows))
    conditions += _after_cursor_conditions(wanted, RecordKind.SUMMARY, moment, "e.seq")
    narrow = join_conditions(conditions)
    keys = session.execute(
        f"SELECT {moment}, e.seq FROM episode AS e WHERE e.owner = %(owner)s{narrow.where} "
        f"ORDER BY {moment} {direction}, e.seq {direction} LIMIT %(most)s",
        **narrow.values,
        most=wanted.limit + 1,
    )
    return [ListKey(start, RecordKind.SUMMARY, seq) for start, seq in keys]


_GROUPS = (
    "SELECT session_id, source, count, first, last FROM ("
    "SELECT 0 AS home, m.session_id, m.source, count(*) AS count, "
    "min(f.created_at) AS first, max(f.created_at) AS last "
    "FROM fresh AS f JOIN memory AS m ON m.owner = f.owner AND m.seq = f.seq "
    "WHERE f.owner = %(owner)s GROUP BY m.session_id, m.source UNION ALL "
    "SELECT 1, e.session_id, e.source, sum(e.item_count)::bigint, "
    "min(e.covers_from), max(e.covers_until) FROM episode AS e "
    "WHERE e.owner = %(owner)s AND e.level = 0 GROUP BY e.session_id, e.source) AS g "
    "ORDER BY home, session_id, source NULLS FIRST"
)
_COUNT_SINCE = (
    "SELECT (SELECT count(*) FROM fresh AS f "
    "WHERE f.owner = %(owner)s AND f.created_at >= %(since)s) + "
    "(SELECT count(*) FROM episode AS e "
    "JOIN placed AS p ON p.owner = e.owner AND p.episode_seq = e.seq "
    "JOIN memory AS m ON m.owner = p.owner AND m.seq = p.seq "
    "WHERE e.owner = %(owner)s AND e.level = 0 AND e.covers_until >= %(since)s "
    "AND m.created_at >= %(since)s)"
)


class PostgresLists(PostgresPart, CommonLists):
    """A `ListStore` of one owner in PostgreSQL."""

    _groups = _GROUPS
    _count_since = _COUNT_SINCE
    _prefixes_of_ids = staticmethod(prefixes_of_ids)
    _memory_keys = staticmethod(_memory_keys)
    _summary_keys = staticmethod(_summary_keys)
