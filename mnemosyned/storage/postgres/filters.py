"""SQL filters by session, source, tier, time, tags and validity."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from typing import NamedTuple

from mnemosyned.memory.values import Tier
from mnemosyned.search.query import Query
from mnemosyned.storage.postgres.rows import utc
from mnemosyned.storage.postgres.session import PostgresSession

FEW_MAX = 5_000
"""So many rows of the sessions asked for are named before the words are looked for."""
_HOMES = {Tier.WORKING: "fresh", Tier.ARCHIVE: "placed"}


class Condition(NamedTuple):
    """A condition, and the values that it binds by name."""

    text: str
    values: Mapping[str, object]


class PostgresFilter(NamedTuple):
    """Conditions, each after an `AND`, and bound values that narrow a search."""

    where: str
    values: Mapping[str, object]
    only: Sequence[int] | None = None
    """All rows that pass, ascending, where they are so few that words are looked for around them
    alone: a session has lines side by side, and a common word a million."""


EVERYTHING = PostgresFilter("", {})


def join_conditions(conditions: Iterable[Condition]) -> PostgresFilter:
    """Join conditions with AND into one filter; their values have different names."""
    where, values = "", dict[str, object]()
    for condition in conditions:
        where += f" AND {condition.text}"
        values |= condition.values
    return PostgresFilter(where, values)


def in_force_condition(
    *, valid_at: datetime | None, superseded: bool = False
) -> list[Condition]:
    """Return the conditions that hide expired memories and, unless asked for, superseded ones."""
    past = [] if superseded else ["s.superseded_at IS NOT NULL"]
    values: dict[str, object] = {}
    if valid_at:
        past.append("s.valid_until <= %(valid_at)s")
        values["valid_at"] = utc(valid_at)
    if not past:
        return []
    gone = f"s.owner = %(owner)s AND s.memory_seq = m.seq AND ({' OR '.join(past)})"
    return [
        Condition(f"NOT EXISTS (SELECT 1 FROM memory_state AS s WHERE {gone})", values)
    ]


def tag_condition(tags: Sequence[str], *, row_by_row: bool = False) -> list[Condition]:
    """Return the condition for memories with at least one of these tags.

    No statistics tell how many memories have a tag, and the planner takes every tag for a rare one:
    `row_by_row` makes it check the tags of rows that pass the other conditions.
    """
    if not tags:
        return []
    offset = " OFFSET 0" if row_by_row else ""  # keeps the subquery from being joined
    text = (
        "EXISTS (SELECT 1 FROM tag AS t WHERE t.owner = %(owner)s "
        f"AND t.memory_seq = m.seq AND t.name = ANY(%(tags)s::text[]){offset})"
    )
    return [Condition(text, {"tags": list(tags)})]


def asked_conditions(query: Query) -> list[Condition]:
    """Return the conditions of a question on validity and tags."""
    holding = in_force_condition(valid_at=query.valid_at, superseded=query.superseded)
    return [*holding, *tag_condition(query.tags, row_by_row=True)]


def place_conditions(
    sessions: Sequence[str], sources: Sequence[str], *, table: str = "m"
) -> list[Condition]:
    """Return the conditions for memories of these sessions and sources; empty ones select all."""
    conditions: list[Condition] = []
    if sessions:
        text = f"{table}.session_id = ANY(%(sessions)s::text[])"
        conditions.append(Condition(text, {"sessions": list(sessions)}))
    if sources:
        text = f"{table}.source = ANY(%(sources)s::text[])"
        conditions.append(Condition(text, {"sources": list(sources)}))
    return conditions


def source_condition(sources: Sequence[str | None], *, table: str) -> list[Condition]:
    """Return the condition for rows of these sources; None stands for rows without a source."""
    if not sources:
        return []
    named = [source for source in sources if source is not None]
    text = f"{table}.source = ANY(%(sources)s::text[])"
    if len(named) < len(sources):
        text = f"({text} OR {table}.source IS NULL)"
    return [Condition(text, {"sources": named})]


def source_name_condition(names: Sequence[str], *, table: str = "m") -> list[Condition]:
    """Return the condition for sources with a word in their name, in any case."""
    if not names:
        return []
    patterns = ["%" + name.replace("\\", "\\\\") + "%" for name in names]
    text = f"{table}.source ILIKE ANY(%(source_names)s::text[])"
    return [Condition(text, {"source_names": patterns})]


def time_conditions(
    since: datetime | None, until: datetime | None, *, first: str, last: str
) -> list[Condition]:
    """Return the conditions for rows whose time, from `first` to `last`, overlaps a period."""
    conditions: list[Condition] = []
    if since:
        conditions.append(Condition(f"{last} >= %(since)s", {"since": utc(since)}))
    if until:
        conditions.append(Condition(f"{first} < %(until)s", {"until": utc(until)}))
    return conditions


def tier_condition(tier: Tier | None) -> list[Condition]:
    """Return the condition for originals of a tier; none for both tiers."""
    if tier is None:
        return []
    home = _HOMES.get(tier, "placed")
    text = f"EXISTS (SELECT 1 FROM {home} AS h WHERE h.owner = %(owner)s AND h.seq = m.seq)"
    return [Condition(text, {})]


def memory_filter(query: Query) -> PostgresFilter:
    """Return a question's filters on originals; the statement calls them `memory AS m`."""
    return join_conditions(
        [
            *place_conditions(query.sessions, query.sources),
            *source_name_condition(query.source_names),
            *time_conditions(
                query.since, query.until, first="m.created_at", last="m.created_at"
            ),
            *tier_condition(query.tier),
            *asked_conditions(query),
        ]
    )


def episode_filter(query: Query) -> PostgresFilter:
    """Return a question's filters on summaries, `episode AS e`; summaries have no tags."""
    conditions = [
        *place_conditions(query.sessions, query.sources, table="e"),
        *source_name_condition(query.source_names, table="e"),
        *time_conditions(
            query.since, query.until, first="e.covers_from", last="e.covers_until"
        ),
    ]
    if query.tags:
        conditions.append(Condition("false", {}))
    return join_conditions(conditions)


def query_filter(session: PostgresSession, query: Query) -> PostgresFilter:
    """Return a question's filters on originals, with the rows that pass if they are few.

    Only sessions and tags can name the rows.
    """
    narrow = memory_filter(query)
    if not (query.sessions or query.tags):
        return narrow
    # The tags are read once: those whose memories they lead to are not looked up again.
    held = memory_filter(replace(query, tags=()))
    rows = session.execute(
        f"SELECT m.seq FROM {_narrowest(query)} WHERE m.owner = %(owner)s{held.where} "
        "LIMIT %(few)s",
        **narrow.values,
        few=FEW_MAX + 1,
    ).fetchall()
    if len(rows) > FEW_MAX:
        return narrow
    return narrow._replace(only=sorted(seq for (seq,) in rows))


def _narrowest(query: Query) -> str:
    """Return the FROM clause that reads a question's originals, by tags if it names any."""
    if not query.tags:
        return "memory AS m"
    # One tag names each memory once.
    distinct = "DISTINCT " if len(query.tags) > 1 else ""
    return (
        f"(SELECT {distinct}n.memory_seq AS seq FROM tag AS n WHERE n.owner = %(owner)s "
        "AND n.name = ANY(%(tags)s::text[])) AS n "
        "JOIN memory AS m ON m.owner = %(owner)s AND m.seq = n.seq"
    )
