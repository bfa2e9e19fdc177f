"""SQL filters by session, source, tier, time, tags and validity."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Any, NamedTuple

from mnemosyned.memory.values import Tier
from mnemosyned.search.query import Query
from mnemosyned.storage.sqlite.rows import instant_text
from mnemosyned.storage.sqlite.session import Session

FEW_MAX = 5_000
"""So many rows of the sessions asked for are named before the words are looked for."""


class SqlFilter(NamedTuple):
    """Joins, conditions and bound values that narrow a search."""

    joins: str
    where: str
    values: Sequence[Any]
    only: Sequence[int] | None = None
    """All rows that pass, ascending, where they are so few that words are looked for around them
    alone: a session has lines side by side, and a common word a million."""


EVERYTHING = SqlFilter("", "", ())


def in_force(query: Query, seq: str = "f.rowid") -> tuple[str, list[str]]:
    """Leaves out what has expired and, unless asked for, what was superseded."""
    past = [] if query.superseded else ["s.superseded_at IS NOT NULL"]
    moment = [instant_text(query.valid_at)] if query.valid_at else []
    past += ["s.valid_until <= ?"] if moment else []
    if not past:
        return "", []
    gone = f"s.memory_seq = {seq} AND ({' OR '.join(past)})"
    return f" AND NOT EXISTS (SELECT 1 FROM memory_state AS s WHERE {gone})", moment


def tagged(tags: Sequence[str], seq: str = "seq") -> tuple[list[str], list[Any]]:
    """Conditions that hold for memories with one of these tags."""
    if not tags:
        return [], []
    marks = ", ".join("?" * len(tags))
    named = f"t.memory_seq = {seq} AND t.name IN ({marks})"
    return [f"EXISTS (SELECT 1 FROM tag AS t WHERE {named})"], list(tags)


def asked_for(query: Query, seq: str = "f.rowid") -> tuple[str, list[Any]]:
    """Keep what is in force and has one of the tags asked for."""
    holds, moment = in_force(query, seq=seq)
    clauses, tags = tagged(query.tags, seq=seq)
    return holds + "".join(f" AND {clause}" for clause in clauses), [*moment, *tags]


def among(
    sessions: Sequence[str], sources: Sequence[str], *, column: str = "{}"
) -> tuple[list[str], list[Any]]:
    """Conditions that hold to these sessions and sources; `column` says how one is read."""
    clauses: list[str] = []
    values: list[Any] = []
    for name, wanted in (("session_id", sessions), ("source", sources)):
        if wanted:
            marks = ", ".join("?" * len(wanted))
            clauses.append(f"{column.format(name)} IN ({marks})")
            values.extend(wanted)
    return clauses, values


def of_sources(sources: Sequence[str | None]) -> tuple[str, list[str]]:
    """Return the condition that holds for these sources, and for no source where None is one.

    One list of values, as SQLite bounds the depth of a chain of conditions.
    """
    named = [source for source in sources if source is not None]
    clause = f"source IN ({', '.join('?' * len(named))})"
    if len(named) < len(sources):
        clause = f"({clause} OR source IS NULL)"
    return clause, named


def of_source_names(
    names: Sequence[str], *, column: str = "{}"
) -> tuple[list[str], list[Any]]:
    """Return conditions that hold for sources whose names contain one of these words."""
    if not names:
        return [], []
    source = column.format("source")
    either = " OR ".join([f"{source} LIKE ?"] * len(names))
    return [f"({either})"], [f"%{name}%" for name in names]


def within(
    since: datetime | None, until: datetime | None, *, first: str, last: str
) -> tuple[list[str], list[Any]]:
    """Conditions that hold what lasts from one column to another to this stretch of time."""
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
    """The conditions of a question on sessions, sources and time."""
    clauses, values = among(query.sessions, query.sources, column=column)
    named, names = of_source_names(query.source_names, column=column)
    dated, moments = within(query.since, query.until, first=first, last=last)
    return clauses + named + dated, values + names + moments


def narrowed(session: Session, query: Query) -> SqlFilter:
    """The filters of a question for the originals, and the rows that pass if those are few.

    Only sessions and tags are known row by row: the index of sessions is the one that says what was
    said before.
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
    holds, moment = in_force(query, seq="seq")
    where = " AND ".join(clauses) + holds
    rows: list[int] = []
    for table in _homes(query.tier):
        found = session.execute(
            f"SELECT seq FROM {table} WHERE {where} LIMIT ?",
            (*values, *moment, FEW_MAX + 1 - len(rows)),
        )
        rows += [seq for (seq,) in found]
    return narrow if len(rows) > FEW_MAX else narrow._replace(only=sorted(rows))


def _homes(tier: Tier | None) -> tuple[str, ...]:
    """The tables of the originals that a tier has, or all."""
    if tier is None:
        return ("working_memory", "archive")
    return ("working_memory",) if tier is Tier.WORKING else ("archive",)


def memory_filter(query: Query) -> SqlFilter:
    """The filters of a question, for the index over the originals."""
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
    holds, moment = asked_for(query)
    return SqlFilter(joins if clauses else "", where + holds, [*values, *moment])


def episode_filter(query: Query) -> SqlFilter:
    """The filters of a question, for the indexes over summaries; these have no tags."""
    clauses, values = _named_and_dated(
        query, column="e.{}", first="e.covers_from", last="e.covers_until"
    )
    if query.tags:
        clauses.append("0")
    joins = "JOIN episodic_memory AS e ON e.seq = f.rowid" if clauses else ""
    return SqlFilter(joins, "".join(f" AND {clause}" for clause in clauses), values)
