"""SQL conditions of filters that both engines have alike: by column, time, tags and validity."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from typing import NamedTuple

from mnemosyned.memory.fields import MemoryFilter
from mnemosyned.search.query import Query


class Condition(NamedTuple):
    """A condition of a common statement, and the values that it binds by name."""

    text: str
    values: Mapping[str, object]


def join_conditions(conditions: Iterable[Condition]) -> Condition:
    """Join conditions, each after an `AND`; their values have different names."""
    text, values = "", dict[str, object]()
    for condition in conditions:
        text += f" AND {condition.text}"
        values |= condition.values
    return Condition(text, values)


def one_of_condition(column: str, name: str, values: Sequence[object]) -> Condition:
    """Return the condition for texts of a column among some values, which it binds by `name`."""
    return Condition(f"{column} = ANY(%({name})s::text[])", {name: list(values)})


def column_conditions(
    wanted: Mapping[str, Sequence[str]], column: str = "m.{}"
) -> list[Condition]:
    """Return the conditions for rows with one of the `wanted` values in each column.

    `column` formats a column's name.
    """
    return [
        one_of_condition(column.format(name), name, values)
        for name, values in wanted.items()
    ]


def covering_conditions(chosen: MemoryFilter, column: str = "e.{}") -> list[Condition]:
    """Return the conditions for summaries `e` whose originals may match a filter."""
    return [
        *column_conditions(chosen.summary_columns, column),
        *time_conditions(chosen, first="e.covers_from", last="e.covers_until"),
    ]


def summary_conditions(query: Query) -> list[Condition]:
    """Return the conditions of a question on summaries `e`; they have nothing that only memories have."""
    return [
        *covering_conditions(query),
        *source_name_conditions(query.source_names, "e.source"),
        *([Condition("1 = 0", {})] if query.excludes_summaries else []),
    ]


def time_conditions(chosen: MemoryFilter, *, first: str, last: str) -> list[Condition]:
    """Return the conditions for rows whose time, from `first` to `last`, overlaps the filter's."""
    conditions: list[Condition] = []
    if chosen.since:
        conditions.append(Condition(f"{last} >= %(since)s", {"since": chosen.since}))
    if chosen.until:
        conditions.append(Condition(f"{first} < %(until)s", {"until": chosen.until}))
    return conditions


def tag_conditions(
    tags: Sequence[str], seq: str = "m.seq", *, row_by_row: bool = True
) -> list[Condition]:
    """Return the condition for memories, by row number, with at least one of these tags.

    No statistics tell how many memories have a tag, and the planner of PostgreSQL takes every tag for
    a rare one: `row_by_row` makes it check the tags of rows that pass the other conditions.
    """
    if not tags:
        return []
    offset = " OFFSET 0" if row_by_row else ""  # keeps the subquery from being joined
    named = one_of_condition("t.name", "tags", tags)
    text = (
        "EXISTS (SELECT 1 FROM tag AS t WHERE t.owner = %(owner)s "
        f"AND t.memory_seq = {seq} AND {named.text}{offset})"
    )
    return [named._replace(text=text)]


def in_force_conditions(
    valid_at: datetime | None, *, superseded: bool = False, seq: str = "m.seq"
) -> list[Condition]:
    """Return the condition that hides expired memories and, unless asked for, superseded ones."""
    past = [] if superseded else ["s.superseded_at IS NOT NULL"]
    values: dict[str, object] = {}
    if valid_at:
        past.append("s.valid_until <= %(valid_at)s")
        values["valid_at"] = valid_at
    if not past:
        return []
    gone = f"s.owner = %(owner)s AND s.memory_seq = {seq} AND ({' OR '.join(past)})"
    return [
        Condition(f"NOT EXISTS (SELECT 1 FROM memory_state AS s WHERE {gone})", values)
    ]


def asked_conditions(query: Query, seq: str = "m.seq") -> list[Condition]:
    """Return the conditions of a question on validity and tags."""
    return [
        *in_force_conditions(query.valid_at, superseded=query.superseded, seq=seq),
        *tag_conditions(query.tags, seq),
    ]


def source_condition(sources: Sequence[str | None], column: str) -> Condition:
    """Return the condition for rows of these sources; None stands for rows without a source."""
    named = [source for source in sources if source is not None]
    condition = one_of_condition(column, "sources", named)
    if len(named) == len(sources):
        return condition
    return condition._replace(text=f"({condition.text} OR {column} IS NULL)")


def source_name_conditions(names: Sequence[str], column: str) -> list[Condition]:
    """Return the condition for sources whose name contains one of these words, in any case."""
    if not names:
        return []
    values = {f"source_name_{place}": f"%{name}%" for place, name in enumerate(names)}
    either = " OR ".join(f"{column} ILIKE %({name})s" for name in values)
    return [Condition(f"({either})", values)]
