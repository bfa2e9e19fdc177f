"""Pages of lists in a file, and filters of its memories."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

from mnemosyned.memory.listing import LIST_LIMITS
from mnemosyned.memory.values import Tier
from mnemosyned.search.query import Query
from mnemosyned.storage.common.listing import (
    Condition,
    ListStore,
    asked_conditions,
    column_conditions,
    id_range,
    in_force_conditions,
    join_conditions,
    one_of_condition,
    source_name_conditions,
    summary_conditions,
    time_conditions,
)
from mnemosyned.storage.sqlite.fulltext import any_of, glued_terms
from mnemosyned.storage.sqlite.session import SqliteSession
from mnemosyned.text.terms import Terms, accent_variants

FEW_MAX = 5_000
"""So many rows of the sessions asked for are named before the words are looked for."""


class SqliteFilter(NamedTuple):
    """Joins, conditions and bound values that narrow a search."""

    joins: str
    where: str
    values: Mapping[str, object]
    only: Sequence[int] | None = None
    """All rows that pass, ascending, where they are so few that words are looked for around them
    alone: a session has lines side by side, and a common word a million."""


EVERYTHING = SqliteFilter("", "", {})


def tables_of(tier: Tier | None) -> tuple[str, ...]:
    """Return the names of the tables with the memories of a tier; of both tiers for None."""
    tables = {None: ("working_memory", "archive"), Tier.WORKING: ("working_memory",)}
    return tables.get(tier, ("archive",))


def term_conditions(terms: Terms, seq: str) -> list[Condition]:
    """Return the conditions for rows whose full-text index entries have each of the terms."""
    conditions: list[Condition] = []
    for number, term in enumerate((*terms.words, *terms.grams)):
        forms = [term, *accent_variants(term)]
        found = {"memory_gram_fts": any_of([*forms, *map(glued_terms, forms)])}
        if term not in terms.grams:
            found["memory_fts"] = any_of(forms)
        rows = " UNION ALL ".join(
            f"SELECT rowid FROM {index} WHERE {index} MATCH %({index}_{number})s"
            for index in found
        )
        values = {f"{index}_{number}": match for index, match in found.items()}
        conditions.append(Condition(f"{seq} IN ({rows})", values))
    return conditions


def query_filter(session: SqliteSession, query: Query) -> SqliteFilter:
    """Return a question's filter for memories: by row number if at most `FEW_MAX` pass sessions or tags."""
    narrow = memory_filter(query)
    if not (query.sessions or query.tags):
        return narrow
    conditions = [
        *column_conditions(query.columns, "+{}"),
        *source_name_conditions(query.source_names, "+source"),
        *time_conditions(query, first="+created_at", last="+created_at"),
        *in_force_conditions(query.valid_at, superseded=query.superseded, seq="seq"),
    ]
    if query.tags:  # few rows, so that the others need not be looked at
        named = one_of_condition("name", "tags", query.tags)
        text = f"seq IN (SELECT memory_seq FROM tag WHERE {named.text})"
        conditions.append(named._replace(text=text))
    held = join_conditions(conditions)
    rows: list[int] = []
    for table in tables_of(query.tier):
        rows += session.column(
            f"SELECT seq FROM {table} WHERE 1{held.text} LIMIT :limit",
            **held.values,
            limit=FEW_MAX + 1 - len(rows),
        )
    return narrow if len(rows) > FEW_MAX else narrow._replace(only=sorted(rows))


def memory_filter(query: Query) -> SqliteFilter:
    """Return the filter that a question sets for a search in the full-text index of memories."""
    if query.selects_all:
        return EVERYTHING
    column = "ifnull(w.{0}, a.{0})"
    when = column.format("created_at")
    conditions = [
        *column_conditions(query.columns, column),
        *source_name_conditions(query.source_names, column.format("source")),
        *time_conditions(query, first=when, last=when),
    ]
    if query.tier is not None:
        table = "w" if query.tier is Tier.WORKING else "a"
        conditions.append(Condition(f"{table}.seq IS NOT NULL", {}))
    joins = "LEFT JOIN working_memory AS w ON w.seq = f.rowid "
    joins += "LEFT JOIN archive AS a ON a.seq = f.rowid"
    narrow = join_conditions([*conditions, *asked_conditions(query, "f.rowid")])
    return SqliteFilter(joins if conditions else "", *narrow)


def episode_filter(query: Query) -> SqliteFilter:
    """Return the filter that a question sets for a search in the full-text indexes of summaries."""
    conditions = summary_conditions(query)
    joins = "JOIN episodic_memory AS e ON e.seq = f.rowid" if conditions else ""
    return SqliteFilter(joins, *join_conditions(conditions))


_HOMES = ("working_memory", "archive", "episodic_memory")
_ANY = " UNION ALL ".join(
    f"SELECT 1 FROM (SELECT 1 FROM {home} WHERE id >= ? AND id < ? LIMIT 1)"
    for home in _HOMES
)
_GROUPS = (
    "SELECT session_id, source, count(*), min(created_at), max(created_at) "
    "FROM working_memory GROUP BY session_id, source UNION ALL "
    "SELECT session_id, source, sum(item_count), min(covers_from), max(covers_until) "
    "FROM episodic_memory NOT INDEXED WHERE level = 0 GROUP BY session_id, source"
)


class SqliteLists(ListStore):
    """A `ListStore` on one SQLite file."""

    _groups = _GROUPS
    _searched = "+{}"

    def _prefixes_of_ids(
        self, session: SqliteSession, prefixes: Sequence[str]
    ) -> list[str]:
        return [
            prefix
            for prefix in prefixes
            if session.execute(_ANY, id_range(prefix) * len(_HOMES)).fetchone()
        ]

    def _tables_by_number(
        self, tier: Tier | None
    ) -> Iterable[tuple[str, Sequence[Condition]]]:
        return [(table, ()) for table in tables_of(tier)]

    def _term_conditions(self, terms: Terms, seq: str) -> list[Condition]:
        return term_conditions(terms, seq)

    def _rows_of_roles(
        self, session: SqliteSession, roles: Sequence[str]
    ) -> list[int] | None:
        if not all(any(map(str.isalnum, role)) for role in roles):
            return None
        rows = session.execute(
            "SELECT rowid FROM memory_fts WHERE memory_fts MATCH ? UNION ALL "
            "SELECT memory_seq FROM memory_state WHERE pruned_at IS NOT NULL LIMIT ?",
            (f"role : ({any_of(roles)})", LIST_LIMITS.few + 1),
        ).fetchall()
        return None if len(rows) > LIST_LIMITS.few else [seq for (seq,) in rows]
