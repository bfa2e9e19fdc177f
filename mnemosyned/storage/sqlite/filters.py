"""SQL filters by session, source, tier, time, tags and validity."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Any, NamedTuple

from mnemosyned.memory.values import Tier
from mnemosyned.search.query import Query
from mnemosyned.storage.sqlite.rows import instant_text
from mnemosyned.storage.sqlite.session import SqliteSession

FEW_MAX = 5_000
"""So many rows of the sessions asked for are named before the words are looked for."""


class SqliteFilter(NamedTuple):
    """Joins, conditions and bound values that narrow a search."""

    joins: str
    where: str
    values: Sequence[Any]
    only: Sequence[int] | None = None
    """All rows that pass, ascending, where they are so few that words are looked for around them
    alone: a session has lines side by side, and a common word a million."""


EVERYTHING = SqliteFilter("", "", ())


def in_force_condition(query: Query, seq: str = "f.rowid") -> tuple[str, list[str]]:
    """Return the condition that hides expired memories and, unless asked for, superseded ones.

    `seq` is the column of the memory's row number.
    """
    past = [] if query.superseded else ["s.superseded_at IS NOT NULL"]
    moment = [instant_text(query.valid_at)] if query.valid_at else []
    past += ["s.valid_until <= ?"] if moment else []
    if not past:
        return "", []
    gone = f"s.memory_seq = {seq} AND ({' OR '.join(past)})"
    return f" AND NOT EXISTS (SELECT 1 FROM memory_state AS s WHERE {gone})", moment


def tag_condition(tags: Sequence[str], seq: str = "seq") -> tuple[list[str], list[Any]]:
    """Return the condition for memories with at least one of these tags."""
    if not tags:
        return [], []
    marks = ", ".join("?" * len(tags))
    named = f"t.memory_seq = {seq} AND t.name IN ({marks})"
    return [f"EXISTS (SELECT 1 FROM tag AS t WHERE {named})"], list(tags)


def asked_conditions(query: Query, seq: str = "f.rowid") -> tuple[str, list[Any]]:
    """Return the conditions of a question on validity and tags."""
    holds, moment = in_force_condition(query, seq=seq)
    clauses, tags = tag_condition(query.tags, seq=seq)
    return holds + "".join(f" AND {clause}" for clause in clauses), [*moment, *tags]


def place_conditions(
    sessions: Sequence[str], sources: Sequence[str], *, column: str = "{}"
) -> tuple[list[str], list[Any]]:
    """Return the conditions for sessions and sources; `column` formats a column's name."""
    clauses: list[str] = []
    values: list[Any] = []
    for name, wanted in (("session_id", sessions), ("source", sources)):
        if wanted:
            marks = ", ".join("?" * len(wanted))
            clauses.append(f"{column.format(name)} IN ({marks})")
            values.extend(wanted)
    return clauses, values


def source_condition(sources: Sequence[str | None]) -> tuple[str, list[str]]:
    """Return the condition for rows of these sources; None stands for rows without a source.

    The values are bound as one list, as SQLite bounds the depth of a chain of conditions.
    """
    named = [source for source in sources if source is not None]
    clause = f"source IN ({', '.join('?' * len(named))})"
    if len(named) < len(sources):
        clause = f"({clause} OR source IS NULL)"
    return clause, named


def source_name_condition(
    names: Sequence[str], *, column: str = "{}"
) -> tuple[list[str], list[Any]]:
    """Return the condition for sources whose name contains one of these words, in any case."""
    if not names:
        return [], []
    source = column.format("source")
    either = " OR ".join([f"{source} LIKE ?"] * len(names))
    return [f"({either})"], [f"%{name}%" for name in names]


def time_conditions(
    since: datetime | None, until: datetime | None, *, first: str, last: str
) -> tuple[list[str], list[Any]]:
    """Return the conditions for rows whose time, from `first` to `last`, overlaps a period."""
    clauses: list[str] = []
    values: list[Any] = []
    if since:
        clauses.append(f"{last} >= ?")
        values.append(instant_text(since))
    if until:
        clauses.append(f"{first} < ?")
        values.append(instant_text(until))
    return clauses, values


def _named_and_dated(
    query: Query, *, column: str, first: str, last: str
) -> tuple[list[str], list[Any]]:
    """Return the conditions of a question on sessions, sources and time."""
    clauses, values = place_conditions(query.sessions, query.sources, column=column)
    named, names = source_name_condition(query.source_names, column=column)
    dated, moments = time_conditions(query.since, query.until, first=first, last=last)
    return clauses + named + dated, values + names + moments


def query_filter(session: SqliteSession, query: Query) -> SqliteFilter:
    """Return a question's filters on originals, with the rows that pass if they are few.

    Only sessions and tags can name the rows.
    """
    narrow = memory_filter(query)
    if not (query.sessions or query.tags):
        return narrow
    clauses, values = _named_and_dated(
        query, column="+{}", first="created_at", last="created_at"
    )
    if query.tags:  # few rows, so that the others need not be looked at
        marks = ", ".join("?" * len(query.tags))
        clauses.append(f"seq IN (SELECT memory_seq FROM tag WHERE name IN ({marks}))")
        values += query.tags
    holds, moment = in_force_condition(query, seq="seq")
    where = " AND ".join(clauses) + holds
    rows: list[int] = []
    tables = {
        None: ("working_memory", "archive"),
        Tier.WORKING: ("working_memory",),
    }.get(query.tier, ("archive",))
    for table in tables:
        found = session.execute(
            f"SELECT seq FROM {table} WHERE {where} LIMIT ?",
            (*values, *moment, FEW_MAX + 1 - len(rows)),
        )
        rows += [seq for (seq,) in found]
    return narrow if len(rows) > FEW_MAX else narrow._replace(only=sorted(rows))


def memory_filter(query: Query) -> SqliteFilter:
    """Return a question's filters for a search in the index of originals."""
    column = "ifnull(w.{0}, a.{0})"
    when = column.format("created_at")
    clauses, values = _named_and_dated(query, column=column, first=when, last=when)
    if query.tier is Tier.WORKING:
        clauses.append("w.seq IS NOT NULL")
    elif query.tier is not None:
        clauses.append("a.seq IS NOT NULL")
    joins = "LEFT JOIN working_memory AS w ON w.seq = f.rowid "
    joins += "LEFT JOIN archive AS a ON a.seq = f.rowid"
    where = "".join(f" AND {clause}" for clause in clauses)
    holds, moment = asked_conditions(query)
    return SqliteFilter(joins if clauses else "", where + holds, [*values, *moment])


def episode_filter(query: Query) -> SqliteFilter:
    """Return a question's filters for a search in the indexes of summaries, which have no tags."""
    clauses, values = _named_and_dated(
        query, column="e.{}", first="e.covers_from", last="e.covers_until"
    )
    if query.tags:
        clauses.append("0")
    joins = "JOIN episodic_memory AS e ON e.seq = f.rowid" if clauses else ""
    return SqliteFilter(joins, "".join(f" AND {clause}" for clause in clauses), values)
