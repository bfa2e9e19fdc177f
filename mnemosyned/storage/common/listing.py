"""Pages of memories and summaries in the order of time, totals of sessions and sources, and filters.

Working memory has an index by time. The archive is read episode by episode, in the order of the
times these cover, until no remaining episode can contain a record of the page: an index over a
million originals would take as much room as a third of their words. Filters that few rows pass
are looked up first; their conditions by column, time, tags and validity are those of every search
and list.
"""

from __future__ import annotations

import json
from abc import abstractmethod
from bisect import bisect_right
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from functools import partial
from itertools import accumulate
from typing import Any, NamedTuple

from mnemosyned.instants import in_zone
from mnemosyned.memory.injections import InjectionOutcome
from mnemosyned.memory.listing import (
    LIST_LIMITS,
    ListFilter,
    ListOrder,
    ListPage,
    MemoryGroup,
    Place,
    ProjectTotals,
    RecordKind,
    SessionTotals,
    SourceTotals,
    session_totals,
    source_totals,
    stored_spellings,
)
from mnemosyned.memory.values import MemoryFilter, Tier
from mnemosyned.search.query import Query
from mnemosyned.storage.common import endings, state
from mnemosyned.storage.common.session import (
    CommonSession,
    EngineSession,
    StorePart,
    instant,
    reads,
    replace_by,
    writes_lazily,
)
from mnemosyned.storage.common.surroundings import project_sessions, projects_of
from mnemosyned.text.terms import Terms


class Condition(NamedTuple):
    """A condition of a common statement, and the values that it binds by name."""

    text: str
    values: Mapping[str, object]


class Filter(NamedTuple):
    """Conditions, each after ` AND `, bound values and joins that narrow a statement."""

    text: str
    values: Mapping[str, object]
    joins: str = ""
    only: Sequence[int] | None = None
    """All rows that pass, ascending, where they are so few that words are looked for around them
    alone: a session has lines side by side, and a common word a million."""


EVERYTHING = Filter("", {})
FEW_MAX = 5_000
"""Maximum rows of the given sessions that are selected by number before words are looked up."""


def join_conditions(conditions: Iterable[Condition], joins: str = "") -> Filter:
    """Return one filter with the text and values of all conditions; `joins` is SQL for further tables."""
    text, values = "", dict[str, object]()
    for condition in conditions:
        text += f" AND {condition.text}"
        values |= condition.values
    return Filter(text, values, joins)


def one_of_condition(column: str, name: str, values: Sequence[object]) -> Condition:
    """Return the condition that a text column has one of `values`, bound under `name`."""
    return Condition(f"{column} = ANY(%({name})s::text[])", {name: list(values)})


def column_conditions(
    wanted: Mapping[str, Sequence[str]], column: str = "m.{}"
) -> list[Condition]:
    """Return a condition per column of `wanted`, true for the listed values; `column` formats names as SQL."""
    return [
        one_of_condition(column.format(name), name, values)
        for name, values in wanted.items()
    ]


def covering_conditions(chosen: MemoryFilter, column: str = "e.{}") -> list[Condition]:
    """Return the conditions for summaries (table alias `e`) that may include memories which pass a filter."""
    return [
        *column_conditions(chosen.summary_columns, column),
        *time_conditions(chosen, first="e.covers_from", last="e.covers_until"),
    ]


def summary_conditions(query: Query) -> list[Condition]:
    """Return the conditions for summaries (table alias `e`) that pass the filters of a question.

    A filter by something that only memories have lets no summary pass.
    """
    return [
        *covering_conditions(query),
        *source_name_conditions(query.source_names, "e.source"),
        *([Condition("1 = 0", {})] if query.excludes_summaries else []),
    ]


def time_conditions(chosen: MemoryFilter, *, first: str, last: str) -> list[Condition]:
    """Return the conditions that a row's time overlaps the filter's, from `since` until `until`.

    `first` and `last` are the columns with the beginning and the end of the row's time.
    """
    conditions: list[Condition] = []
    if chosen.since:
        conditions.append(Condition(f"{last} >= %(since)s", {"since": chosen.since}))
    if chosen.until:
        conditions.append(Condition(f"{first} < %(until)s", {"until": chosen.until}))
    return conditions


def tag_conditions(
    tags: Sequence[str], seq: str = "m.seq", *, row_by_row: bool = True
) -> list[Condition]:
    """Return the condition for memories with at least one of these tags; no condition without tags.

    `seq` is the column with the row number. `row_by_row` makes PostgreSQL check the tags only of rows
    that pass the other conditions. Its planner takes every tag for a rare one, and would begin with the tag.
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
    """Return the condition that leaves out memories expired by `valid_at` and superseded ones.

    With `superseded`, superseded ones pass; with `valid_at` None, expired ones. `seq` is the column with the
    row number.
    """
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
    """Return a question's conditions on the validity, supersession and tags of memories."""
    return [
        *in_force_conditions(query.valid_at, superseded=query.superseded, seq=seq),
        *tag_conditions(query.tags, seq),
    ]


def source_condition(sources: Sequence[str | None], column: str) -> Condition:
    """Return the condition for rows with any of these sources; None stands for no source."""
    named = [source for source in sources if source is not None]
    condition = one_of_condition(column, "sources", named)
    if len(named) == len(sources):
        return condition
    return condition._replace(text=f"({condition.text} OR {column} IS NULL)")


def source_name_conditions(names: Sequence[str], column: str) -> list[Condition]:
    """Return the condition for sources that contain any of these words, in any case; none without words."""
    if not names:
        return []
    values = {f"source_name_{place}": f"%{name}%" for place, name in enumerate(names)}
    either = " OR ".join(f"{column} ILIKE %({name})s" for name in values)
    return [Condition(f"({either})", values)]


class ListKey(NamedTuple):
    """A record's key in the order of a list."""

    moment: Any
    """The time of the record, as the engine stores it."""
    kind: RecordKind
    seq: int


class MemoryTable(NamedTuple):
    """The tables of a tier in a FROM clause, of which `m` has the columns of memories."""

    tables: str
    sorted: str = "m"
    """The table with the times by which memories are sorted."""


_WORKING = MemoryTable(
    "fresh AS f JOIN memory AS m ON m.owner = f.owner AND m.seq = f.seq", "f"
)
_ARCHIVED = MemoryTable(
    "placed AS p JOIN memory AS m ON m.owner = p.owner AND m.seq = p.seq"
)
_OF_EPISODE = "p.owner = %(owner)s AND p.episode_seq"
"""Begins the condition for originals of some episodes: the column of an original's episode."""
ORDERS = {ListOrder.NEWEST: ("DESC", "<"), ListOrder.OLDEST: ("ASC", ">")}
_LAST = "\U0010ffff"


def id_range(prefix: str) -> tuple[str, str]:
    """Return the bounds of all ids with a prefix: the first is included, the last is not."""
    return prefix, prefix + _LAST


def _prefix_condition(prefixes: Sequence[str], column: str) -> Condition:
    """Return the condition for ids in a column that begin with any of these prefixes."""
    ranges: list[str] = []
    values: dict[str, object] = {}
    for number, prefix in enumerate(prefixes):
        low, high = f"low_{number}", f"high_{number}"
        ranges.append(f"({column} >= %({low})s AND {column} < %({high})s)")
        values[low], values[high] = id_range(prefix)
    return Condition(f"({' OR '.join(ranges)})", values)


def _number_condition(column: str, name: str, numbers: Sequence[int]) -> Condition:
    """Return the condition for rows with any of these numbers in a column, bound under `name`."""
    return Condition(f"{column} = ANY(%({name})s::bigint[])", {name: list(numbers)})


def _cursor_conditions(
    wanted: ListFilter, kind: RecordKind, moment: str, seq: str
) -> list[Condition]:
    """Return the condition for records of a kind after the previous page; none on the first page."""
    place = wanted.after
    if place is None:
        return []
    _, beyond = ORDERS[wanted.order]
    text = f"({moment}, {seq}) {beyond} (%(after)s, %(after_seq)s)"
    return [
        Condition(text, {"after": place.moment, "after_seq": place.seq_among(kind)})
    ]


def _numbers_if_few(
    session: CommonSession, statement: str, condition: Condition
) -> list[int] | None:
    """Return the row numbers that a statement selects under a further condition; None if many."""
    rows = session.execute(
        f"{statement}{condition.text} LIMIT %(few)s",
        **condition.values,
        few=LIST_LIMITS.few + 1,
    ).fetchall()
    return None if len(rows) > LIST_LIMITS.few else [seq for (seq,) in rows]


FIGURE_DAYS_MAX = 400


def _decode_times(text: str) -> Counter[int]:
    """Return a histogram of recall times, {step: count}, from its JSON."""
    return Counter({int(step): count for step, count in json.loads(text).items()})


class ListStore(StorePart):
    """Lists and counts what is kept, without a question, and keeps figures of each day."""

    _groups: str
    """Session, source, count, first and last time of memories, by tier, session and source."""
    _searched: str = "{}"
    """Formats the name of a column that no index by time is read for."""

    @abstractmethod
    def _existing_prefixes(
        self, session: EngineSession, prefixes: Sequence[str]
    ) -> list[str]:
        """Return the prefixes with which the id of at least one memory or summary begins."""

    @abstractmethod
    def _tier_tables(
        self, tier: Tier | None
    ) -> Iterable[tuple[str, Sequence[Condition]]]:
        """Return the tables of a tier (None: of both), with conditions on alias `m` to exclude other tiers."""

    @abstractmethod
    def _few_rows_that_may_have_roles(
        self, session: EngineSession, roles: Sequence[str]
    ) -> list[int] | None:
        """Return a few row numbers that include all memories with these roles; None if there are many.

        They also include pruned memories, whose roles no index has, and memories with similar roles.
        """

    @abstractmethod
    def _term_conditions(self, terms: Terms, seq: str) -> list[Condition]:
        """Return the conditions for memories with each of the terms, by the full-text indexes."""

    @reads
    def page(self, session: CommonSession, wanted: ListFilter) -> ListPage:
        """Return one page of the memories and summaries that match a filter."""
        keys: list[ListKey] = []
        if wanted.project:
            names = set(project_sessions(session, wanted.project, LIST_LIMITS.sessions))
            names = names.intersection(wanted.sessions or names)
            if not names:
                return ListPage([], [], None)
            wanted = replace(wanted, sessions=tuple(sorted(names)))
        prefixes: list[str] = []
        if wanted.id_prefix:
            prefixes = stored_spellings(
                wanted.id_prefix, partial(self._existing_prefixes, session)
            )
        if prefixes or not wanted.id_prefix:
            if wanted.selects_memories:
                keys += self._memory_keys(session, wanted, prefixes)
            if wanted.selects_summaries:
                keys += self._summary_keys(session, wanted, prefixes)
        keys.sort(reverse=wanted.order is ListOrder.NEWEST)
        shown = keys[: wanted.limit]
        seqs = [key.seq for key in shown if key.kind is RecordKind.MEMORY]
        memories = session.memories_at(seqs)
        summaries = [
            state.episode_at(session, "seq", key.seq)
            for key in shown
            if key.kind is RecordKind.SUMMARY
        ]
        following = None
        if len(keys) > wanted.limit:
            last = shown[-1]
            following = Place(moment=instant(last.moment), kind=last.kind, seq=last.seq)
        return ListPage(
            [memories[seq] for seq in seqs],
            [summary for summary in summaries if summary],
            following,
            {
                id: max(ends)
                for id, statements in endings.read_ended(
                    session, [memory.id for memory in memories.values()]
                ).items()
                if (ends := [each.at for each in statements if not each.clause])
            },
        )

    @reads
    def sessions(self, session: CommonSession) -> list[SessionTotals]:
        """Return the totals of every session, the session with the newest memory first."""
        groups = self._memory_groups(session)
        names = list(dict.fromkeys(group.session for group in groups))
        return session_totals(groups, projects_of(session, names))

    @reads
    def sources(self, session: CommonSession) -> list[SourceTotals]:
        """Return the totals of each source, the source with the newest memory first."""
        return source_totals(self._memory_groups(session))

    @reads
    def projects(self, session: CommonSession, limit: int) -> list[ProjectTotals]:
        """Return totals of up to `limit` projects of agents' sessions, the last seen first."""
        rows = session.execute(
            "SELECT s.project, coalesce(sum(w.count), 0) + coalesce(sum((SELECT "
            "sum(e.item_count) FROM episode AS e WHERE e.owner = %(owner)s "
            "AND e.session_id = s.session_id AND e.level = 0)), 0), count(*), "
            "max(s.seen_at) AS seen FROM agent_session AS s LEFT JOIN ("
            f"SELECT m.session_id, count(*) AS count FROM {_WORKING.tables} "
            "WHERE m.owner = %(owner)s GROUP BY m.session_id) AS w "
            "ON w.session_id = s.session_id WHERE s.owner = %(owner)s AND s.project != '' "
            "GROUP BY s.project ORDER BY seen DESC, s.project LIMIT %(limit)s",
            limit=limit,
        )
        return [
            ProjectTotals(
                project=name, count=int(count), sessions=sessions, last=instant(seen)
            )
            for name, count, sessions, seen in rows
        ]

    def _memory_groups(self, session: CommonSession) -> list[MemoryGroup]:
        """Return counts and first and last times of memories, by tier, session and source."""
        return [
            MemoryGroup(name, source, memories, instant(first), instant(last))
            for name, source, memories, first, last in session.execute(self._groups)
        ]

    @reads
    def count_periods(
        self, session: CommonSession, bounds: Sequence[datetime]
    ) -> list[tuple[int, int]]:
        """Return the numbers of memories and of injections in each period between ascending `bounds`."""
        # In UTC, compared ten times sooner; those leapt over lie after the end of the leap.
        latest_first = (in_zone(bound, UTC) for bound in reversed(bounds))
        bounds = list(accumulate(latest_first, min))[::-1]
        span = {"since": bounds[0], "until": bounds[-1]}
        within = "created_at >= %(since)s AND created_at < %(until)s"
        told = session.execute(
            f"SELECT created_at FROM injection WHERE owner = %(owner)s AND {within} "
            "AND outcome != %(missed)s",
            missed=str(InjectionOutcome.SAID_AGAIN),
            **span,
        ).fetchall()
        rows = session.execute(
            f"SELECT created_at FROM fresh WHERE owner = %(owner)s AND {within}", **span
        ).fetchall()
        originals, cut = _count_originals(session, bounds)
        held = _number_condition(_OF_EPISODE, "episodes", cut)
        rows += session.execute(
            f"SELECT m.created_at FROM {_ARCHIVED.tables} "
            f"WHERE m.owner = %(owner)s AND {held.text}",
            **held.values,
        )
        given, said = (
            Counter(bisect_right(bounds, instant(moment)) for (moment,) in moments)
            for moments in (told, rows)
        )
        originals.update(said)
        return [(originals[end], given[end]) for end in range(1, len(bounds))]

    @reads
    def figures(self, session: CommonSession) -> dict[str, tuple[Counter[int], int]]:
        """Return {day: (histogram of recall times, bytes on disk)}, with days such as 2026-03-09."""
        rows = session.select(
            "daily_figures", "day, recall_times, bytes_on_disk", "ORDER BY day"
        )
        return {day: (_decode_times(times), size) for day, times, size in rows}

    @writes_lazily
    def add_figures(
        self, session: CommonSession, day: str, times: Counter[int], size: int
    ) -> None:
        """Add recalls to a day's histogram, and replace its bytes on disk; keep `FIGURE_DAYS_MAX` days."""
        session.lock()
        saved = session.select_value("daily_figures", "recall_times", day=day)
        session.insert(
            "daily_figures",
            replace_by("day", ("recall_times", "bytes_on_disk")),
            day=day,
            recall_times=json.dumps(times + _decode_times(saved or "{}")),
            bytes_on_disk=size,
        )
        session.keep_newest("daily_figures", "day", "day", FIGURE_DAYS_MAX)

    def _memory_keys(
        self, session: CommonSession, wanted: ListFilter, prefixes: Sequence[str]
    ) -> list[ListKey]:
        """Return the sort keys of a page of matching memories, and of at least one memory beyond, if any."""
        conditions = self._memory_conditions(wanted, prefixes)
        rows = self._rows_if_few(session, wanted, prefixes)
        keys: list[ListKey] = []
        if rows is not None:
            among = _number_condition("m.seq", "rows", rows)
            for table, of_tier in self._tier_tables(wanted.tier):
                held = [among, *of_tier, *conditions]
                keys += _keys_where(session, MemoryTable(f"{table} AS m"), held, wanted)
            return keys
        if wanted.tier is not Tier.ARCHIVE:
            by_time = self._memory_conditions(wanted, prefixes, _WORKING.sorted)
            keys += _keys_where(session, _WORKING, by_time, wanted)
        archived: list[ListKey] = []
        newest = wanted.order is ListOrder.NEWEST
        in_order = self._episodes_in_order(session, wanted)
        for episodes, bound in in_order if wanted.tier is not Tier.WORKING else ():
            held = [_number_condition(_OF_EPISODE, "episodes", episodes), *conditions]
            archived += _keys_where(session, _ARCHIVED, held, wanted)
            archived.sort(reverse=newest)
            del archived[wanted.limit + 1 :]
            if bound is None or len(archived) <= wanted.limit:
                continue
            last = archived[-1].moment
            if last > bound if newest else last < bound:
                break
        return keys + archived

    def _memory_conditions(
        self, wanted: ListFilter, prefixes: Sequence[str], table: str = "m"
    ) -> list[Condition]:
        """Return a filter's conditions for memories (alias `m`) with one of the `prefixes` of ids, if any.

        Times and row numbers are compared in `table`, by which the rows are sorted.
        """
        searched, moment = self._searched, f"{table}.created_at"
        conditions = [
            *column_conditions(wanted.columns, searched.format("m.{}")),
            *time_conditions(wanted, first=moment, last=moment),
            *tag_conditions(wanted.tags),
        ]
        if wanted.pinned is not None:
            text = "m.pinned" if wanted.pinned else "NOT m.pinned"
            conditions.append(Condition(text, {}))
        if prefixes:
            conditions.append(_prefix_condition(prefixes, searched.format("m.id")))
        if wanted.valid_at:
            conditions += in_force_conditions(wanted.valid_at)
        if wanted.terms:
            conditions += self._term_conditions(wanted.terms, searched.format("m.seq"))
        seq = f"{table}.seq"
        return conditions + _cursor_conditions(wanted, RecordKind.MEMORY, moment, seq)

    def _rows_if_few(
        self, session: CommonSession, wanted: ListFilter, prefixes: Sequence[str]
    ) -> list[int] | None:
        """Return the row numbers that an indexed part of a filter selects; None if it has none, or for many."""
        if prefixes:
            return self._few_where(
                session, wanted.tier, _prefix_condition(prefixes, "m.id")
            )
        if wanted.tags:
            return _numbers_if_few(
                session,
                "SELECT t.memory_seq FROM tag AS t WHERE t.owner = %(owner)s AND ",
                one_of_condition("t.name", "tags", wanted.tags),
            )
        rows = None
        if wanted.terms:
            parts = self._term_conditions(wanted.terms, "m.seq")
            named = Condition(
                " AND ".join(each.text for each in parts), join_conditions(parts).values
            )
            rows = self._few_where(session, wanted.tier, named)
        if rows is not None:
            return rows
        if wanted.pinned:
            return self._few_where(session, wanted.tier, Condition("m.pinned", {}))
        if wanted.sessions:
            column = self._searched.format("m.session_id")
            named = one_of_condition(column, "sessions", wanted.sessions)
            return self._few_where(session, wanted.tier, named)
        return (
            self._few_rows_that_may_have_roles(session, wanted.roles)
            if wanted.roles
            else None
        )

    def _few_where(
        self, session: CommonSession, tier: Tier | None, condition: Condition
    ) -> list[int] | None:
        """Return the row numbers of a tier's memories that meet a condition on alias `m`; None if many."""
        numbers: list[int] = []
        for table, _ in self._tier_tables(tier):
            statement = f"SELECT m.seq FROM {table} AS m WHERE m.owner = %(owner)s AND "
            found = _numbers_if_few(session, statement, condition)
            if found is None or len(numbers) + len(found) > LIST_LIMITS.few:
                return None
            numbers += found
        return numbers

    def _episodes_in_order(
        self, session: CommonSession, wanted: ListFilter
    ) -> Iterator[tuple[list[int], Any]]:
        """Yield lists of row numbers of episodes in list order, each with a bound on times.

        The bound is the latest time that originals of further episodes can have, or the earliest in
        a list from the oldest; None after the last episodes.
        """
        direction, beyond = ORDERS[wanted.order]
        newest = wanted.order is ListOrder.NEWEST
        edge = "e.covers_until" if newest else "e.covers_from"
        conditions = covering_conditions(wanted, self._searched.format("e.{}"))
        if wanted.after:
            text = (
                "e.covers_from <= %(after)s"
                if newest
                else "e.covers_until >= %(after)s"
            )
            conditions.append(Condition(text, {"after": wanted.after.moment}))
        read: list[Condition] = []
        # Each step looks the words up again.
        size = LIST_LIMITS.episodes_first * (16 if wanted.terms else 1)
        while True:
            narrow = join_conditions([*conditions, *read])
            rows = session.execute(
                f"SELECT e.seq, {edge} FROM episode AS e "
                f"WHERE e.owner = %(owner)s AND e.level = 0{narrow.text} "
                f"ORDER BY {edge} {direction}, e.seq {direction} LIMIT %(most)s",
                **narrow.values,
                most=size + 1,
            ).fetchall()
            bound = rows[size][1] if len(rows) > size else None
            yield [seq for seq, _ in rows[:size]], bound
            if bound is None:
                return
            seq, moment = rows[size - 1]
            text = f"({edge}, e.seq) {beyond} (%(edge)s, %(edge_seq)s)"
            read = [Condition(text, {"edge": moment, "edge_seq": seq})]
            size = min(2 * size, LIST_LIMITS.episodes_max)

    def _summary_keys(
        self, session: CommonSession, wanted: ListFilter, prefixes: Sequence[str]
    ) -> list[ListKey]:
        """Return the sort keys of a page of matching summaries, and of one summary beyond, if any."""
        direction, _ = ORDERS[wanted.order]
        searched = self._searched
        moment = "e.period_from" if wanted.level else "e.covers_from"
        conditions = covering_conditions(wanted, searched.format("e.{}"))
        if wanted.level is not None:
            conditions.append(Condition("e.level = %(level)s", {"level": wanted.level}))
        if wanted.level:
            conditions.append(Condition("e.period_from IS NOT NULL", {}))
        if prefixes:
            rows = _numbers_if_few(
                session,
                "SELECT e.seq FROM episode AS e WHERE e.owner = %(owner)s AND ",
                _prefix_condition(prefixes, "e.id"),
            )
            conditions.append(
                _prefix_condition(prefixes, searched.format("e.id"))
                if rows is None
                else _number_condition("e.seq", "rows", rows)
            )
        kind = RecordKind.SUMMARY
        conditions += _cursor_conditions(wanted, kind, moment, "e.seq")
        narrow = join_conditions(conditions)
        keys = session.execute(
            f"SELECT {moment}, e.seq FROM episode AS e WHERE e.owner = %(owner)s{narrow.text} "
            f"ORDER BY {moment} {direction}, e.seq {direction} LIMIT %(most)s",
            **narrow.values,
            most=wanted.limit + 1,
        )
        return [ListKey(start, kind, seq) for start, seq in keys]


def _keys_where(
    session: CommonSession,
    home: MemoryTable,
    conditions: Iterable[Condition],
    wanted: ListFilter,
) -> list[ListKey]:
    """Return the sort keys of memories that meet conditions, up to one more than a page holds."""
    tables, table = home
    narrow = join_conditions(conditions)
    direction, _ = ORDERS[wanted.order]
    rows = session.execute(
        f"SELECT {table}.created_at, {table}.seq FROM {tables} "
        f"WHERE {table}.owner = %(owner)s{narrow.text} "
        f"ORDER BY {table}.created_at {direction}, {table}.seq {direction} LIMIT %(most)s",
        **narrow.values,
        most=wanted.limit + 1,
    )
    return [ListKey(moment, RecordKind.MEMORY, seq) for moment, seq in rows]


def _count_originals(
    session: CommonSession, bounds: Sequence[datetime]
) -> tuple[Counter[int], list[int]]:
    """Return {period number: number of originals}, and row numbers of the episodes that are not counted.

    `bounds` are the times between periods; period 1 begins with the first. Not counted are episodes that span
    several periods. An up-to-date roll-up within one period is counted instead of the episodes below it.
    """
    outdated = set(
        session.column(
            "SELECT seq FROM episode WHERE owner = %(owner)s AND level > 0 AND stale "
            "UNION SELECT episode_seq FROM emptied_episode WHERE owner = %(owner)s"
        )
    )
    outdated.update(state.ancestors(session, outdated).values())
    counts, cut = Counter[int](), list[int]()
    step: Condition | None = Condition("parent_id IS NULL", {})
    while step:  # ends, as each step goes down a level
        beyond: list[str] = []
        for id, seq, level, first, last, count in session.execute(
            "SELECT id, seq, level, covers_from, covers_until, item_count FROM episode "
            f"WHERE owner = %(owner)s AND {step.text} "
            "AND covers_until >= %(since)s AND covers_from < %(until)s",
            since=bounds[0],
            until=bounds[-1],
            **step.values,
        ):
            period, end = (
                bisect_right(bounds, instant(each)) for each in (first, last)
            )
            if period == end and not (level and seq in outdated):
                counts[period] += count
            elif level:
                beyond.append(id)
            else:
                cut.append(seq)
        step = one_of_condition("parent_id", "above", beyond) if beyond else None
    return counts, cut
