"""Filters of a search on a server."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import NamedTuple

from mnemosyned.memory.values import Tier
from mnemosyned.search.query import Query
from mnemosyned.storage.common.filters import (
    Condition,
    asked_conditions,
    column_conditions,
    join_conditions,
    source_name_conditions,
    summary_conditions,
    time_conditions,
)
from mnemosyned.storage.postgres.session import PostgresSession

FEW_MAX = 5_000
"""So many rows of the sessions asked for are named before the words are looked for."""
_HOMES = {Tier.WORKING: "fresh", Tier.ARCHIVE: "placed"}


class PostgresFilter(NamedTuple):
    """Conditions, each after an `AND`, and bound values that narrow a search."""

    where: str
    values: Mapping[str, object]
    only: Sequence[int] | None = None
    """All rows that pass, ascending, where they are so few that words are looked for around them
    alone: a session has lines side by side, and a common word a million."""


EVERYTHING = PostgresFilter("", {})


def tier_condition(tier: Tier | None) -> list[Condition]:
    """Return the condition for originals of a tier; none for both tiers."""
    if tier is None:
        return []
    home = _HOMES.get(tier, "placed")
    text = f"EXISTS (SELECT 1 FROM {home} AS h WHERE h.owner = %(owner)s AND h.seq = m.seq)"
    return [Condition(text, {})]


def postgres_filter(conditions: Iterable[Condition]) -> PostgresFilter:
    """Return the filter that joins conditions."""
    return PostgresFilter(*join_conditions(conditions))


def memory_filter(query: Query) -> PostgresFilter:
    """Return a question's filters on originals; the statement calls them `memory AS m`."""
    return postgres_filter(
        [
            *column_conditions(query.columns),
            *source_name_conditions(query.source_names, "m.source"),
            *time_conditions(query, first="m.created_at", last="m.created_at"),
            *tier_condition(query.tier),
            *asked_conditions(query),
        ]
    )


def episode_filter(query: Query) -> PostgresFilter:
    """Return a question's filters on summaries, `episode AS e`."""
    return postgres_filter(summary_conditions(query))


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
