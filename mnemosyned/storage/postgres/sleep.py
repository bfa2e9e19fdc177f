"""Consolidation: pending memories, promoted batches, roll-ups, stale summaries and the log of cycles."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Sequence
from contextlib import AbstractContextManager
from datetime import datetime
from typing import Any

from mnemosyned.errors import BatchChanged, DatabaseUnreachable, MemoryBusy
from mnemosyned.memory.consolidation import (
    Activity,
    ActivityGroup,
    LogEntry,
    Pending,
    Selection,
    activity_of,
    preview,
)
from mnemosyned.memory.forgetting import StaleSummary
from mnemosyned.memory.intake import Promoting
from mnemosyned.memory.periods import Child, Level, begin_of
from mnemosyned.memory.ports import (
    PendingRollups,
    Promotion,
    Rollup,
    RollupStore,
    SleepStore,
)
from mnemosyned.memory.rows import (
    EPISODE_COLUMNS,
    LOG_COLUMNS,
    LOG_FIELDS,
    episode_from,
    log_entry_from,
    pending_from,
)
from mnemosyned.memory.values import Episode
from mnemosyned.storage.postgres.insert import evict
from mnemosyned.storage.postgres.memories import (
    episode_at,
    insert_episode,
    name_rollup,
    replace_rollup,
    rewrite_episode,
)
from mnemosyned.storage.postgres.pool import Transactional, reads, writes
from mnemosyned.storage.postgres.rows import (
    MEMORY_FIELDS,
    MEMORY_TABLES,
    OF_IDS,
    log_values,
    memory_from,
    pass_number,
    take_numbers,
    utc,
)
from mnemosyned.storage.postgres.session import Session
from mnemosyned.storage.postgres.state import invalidate
from mnemosyned.text.details import Detail

_NAMES = [name.strip('"') for name in LOG_COLUMNS.split(", ")]
_INSERT = (
    f"INSERT INTO consolidation_log (owner, id, undone_at, {LOG_COLUMNS}) "
    "VALUES (%(owner)s, %(id)s, %(undone_at)s, "
    f"{', '.join(f'%({name})s' for name in _NAMES)})"
)


def insert_log(session: Session, entry: LogEntry) -> None:
    """Write one row of the consolidation log."""
    (id,) = take_numbers(session, "log", 1)
    session.execute(_INSERT, id=id, undone_at=None, **log_values(entry))


def restore_log(session: Session, entry: LogEntry) -> None:
    """Write a row as it was; it has its number again, unless another has that now."""
    taken = session.scalar(
        "SELECT 1 FROM consolidation_log WHERE owner = %(owner)s AND id = %(id)s",
        id=entry.id,
    )
    if taken:
        (id,) = take_numbers(session, "log", 1)
    else:
        id = entry.id
        pass_number(session, "log", id)
    undone_at = utc(entry.undone_at) if entry.undone_at else None
    session.execute(_INSERT, id=id, undone_at=undone_at, **log_values(entry))


RECENT_LOG_ROWS = 500
"""Log rows from which the present speed of a model is computed."""

_WORKING = (
    "fresh AS f JOIN memory AS m ON m.owner = f.owner AND m.seq = f.seq "
    "LEFT JOIN working_state AS w ON w.owner = f.owner AND w.memory_seq = f.seq"
)
_ACTIVITY = (
    "SELECT m.session_id, m.source, "
    "m.pinned OR coalesce(w.held_until > %(now)s, false) AS stays, "
    "count(*), sum(length(m.content)), sum(octet_length(m.content)), min(m.created_at), "
    "count(*) FILTER (WHERE m.created_at < %(fresh)s) FROM ("
    "SELECT owner, seq FROM fresh WHERE owner = %(owner)s "
    "ORDER BY created_at, seq LIMIT %(limit)s) AS f "
    "JOIN memory AS m ON m.owner = %(owner)s AND m.seq = f.seq "
    "LEFT JOIN working_state AS w ON w.owner = %(owner)s AND w.memory_seq = f.seq "
    "GROUP BY m.session_id, m.source, stays"
)

PROMOTION_TRIES = 10
"""Waits of a group for its owner's row, of two seconds each."""


class PostgresSleep(Transactional, SleepStore):
    """A `SleepStore` of one owner in PostgreSQL."""

    @reads
    def activity(
        self, session: Session, *, fresh: datetime, now: datetime, limit: int
    ) -> Activity:
        groups = session.execute(_ACTIVITY, now=utc(now), fresh=utc(fresh), limit=limit)
        return activity_of(map(ActivityGroup._make, groups))

    def claim(self) -> AbstractContextManager[Callable[[], bool]]:
        return self._pool.claims.sleep_claim(self._owner)

    @reads
    def newest_revision(self, session: Session) -> int:
        newest: int = session.scalar(
            "SELECT coalesce(max(seq), 0) FROM revision WHERE owner = %(owner)s"
        )
        return newest

    @reads
    def pending(
        self, session: Session, selection: Selection, *, limit: int
    ) -> list[Pending]:
        where, values = _pending_filter(selection)
        rows = session.execute(
            "SELECT m.id, m.session_id, m.source, m.created_at, length(m.content) "
            f"FROM {_WORKING} WHERE {where} "
            "ORDER BY f.created_at, f.seq LIMIT %(limit)s",
            limit=limit,
            **values,
        )
        return list(map(pending_from, rows))

    @reads
    def count_due(self, session: Session, selection: Selection, *, limit: int) -> int:
        where, values = _pending_filter(selection)
        count: int = session.scalar(
            "SELECT count(*) FROM "
            f"(SELECT 1 FROM {_WORKING} WHERE {where} LIMIT %(limit)s) AS due",
            limit=limit,
            **values,
        )
        return count

    @reads
    def ids_excluded_from_summaries(self, session: Session) -> set[str]:
        rows = session.execute(
            "SELECT m.id FROM memory_state AS s "
            "JOIN fresh AS f ON f.owner = s.owner AND f.seq = s.memory_seq "
            "JOIN memory AS m ON m.owner = s.owner AND m.seq = s.memory_seq "
            "WHERE s.owner = %(owner)s "
            "AND (s.valid_until IS NOT NULL OR s.superseded_at IS NOT NULL)"
        )
        return {id for (id,) in rows}

    @reads
    def chars_per_s(self, session: Session, summarizer: str) -> float | None:
        row = session.execute(
            "SELECT sum(chars_before)::float8, sum(duration_s) FROM ("
            "SELECT * FROM consolidation_log WHERE owner = %(owner)s "
            "ORDER BY id DESC LIMIT %(most)s) AS recent "
            "WHERE summarizer = %(summarizer)s AND fallback_reason IS NULL "
            "AND status = 'promoted'",
            most=RECENT_LOG_ROWS,
            summarizer=summarizer,
        ).fetchone()
        chars, seconds = row or (None, None)
        return chars / seconds if chars and seconds else None

    def consolidate(
        self, groups: Sequence[Sequence[Promotion]], *, durable: bool = True
    ) -> list[Exception | None]:
        outcomes: list[Exception | None] = []
        for promotions in groups:
            error = self._promoted(promotions, durable=durable)
            outcomes.append(error)
            if isinstance(error, DatabaseUnreachable):
                # The others would wait as long for nothing.
                outcomes += [error] * (len(groups) - len(outcomes))
                break
        return outcomes

    def _promoted(
        self, promotions: Sequence[Promotion], *, durable: bool
    ) -> Exception | None:
        """Promote one group in a transaction; the error that kept it from that.

        Nobody waits for it: it waits for others' writes for longer than a request does, without a
        connection in between.
        """
        for tries_left in reversed(range(PROMOTION_TRIES)):
            try:
                with self._pool.writing(self._owner, durable=durable) as session:
                    _Promoting(session).promote(promotions)
            except MemoryBusy as error:
                if not tries_left:
                    return error
            except Exception as error:  # noqa: BLE001 it belongs to this group
                return error
            else:
                break
        return None

    @writes
    def record_failure(self, session: Session, entry: LogEntry) -> None:
        insert_log(session, entry)

    @reads
    def log(
        self,
        snapshot: Session,
        *,
        limit: int,
        session: str | None = None,
        cycle: str | None = None,
    ) -> list[LogEntry]:
        rows = snapshot.execute(
            f"SELECT {LOG_FIELDS} FROM consolidation_log WHERE owner = %(owner)s "
            "AND (%(session)s::text IS NULL OR session_id = %(session)s) "
            "AND (%(cycle)s::text IS NULL OR cycle_id = %(cycle)s) "
            "ORDER BY id DESC LIMIT %(limit)s",
            session=session,
            cycle=cycle,
            limit=limit,
        )
        return list(map(log_entry_from, rows))


def _pending_filter(selection: Selection) -> tuple[str, dict[str, Any]]:
    clauses = ["f.owner = %(owner)s", "NOT m.pinned"]
    values: dict[str, Any] = {}
    if selection.now:
        values["now"] = utc(selection.now)
        clauses.append("(w.held_until IS NULL OR w.held_until <= %(now)s)")
    if selection.before:
        values["before"] = utc(selection.before)
        aged = "f.created_at < %(before)s"
        if selection.now:
            future = "f.created_at > %(now)s AND w.future_since < %(before)s"
            aged = f"({aged} OR ({future}))"
        clauses.append(aged)
    if selection.session is not None:
        values["session"] = selection.session
        clauses.append("m.session_id = %(session)s")
    if selection.sources:
        values["sources"] = [name for name in selection.sources if name is not None]
        named = "m.source = ANY(%(sources)s::text[])"
        if None in selection.sources:
            named = f"({named} OR m.source IS NULL)"
        clauses.append(named)
    return " AND ".join(clauses), values


class _Promoting(Promoting):
    """Promotions in rows; no index of words of an original is touched."""

    def __init__(self, session: Session) -> None:
        self._session = session

    def insert(self, promotion: Promotion) -> int:
        return insert_episode(self._session, promotion.episode, promotion.index_terms)

    def any_superseded(self, ids: Collection[str]) -> bool:
        found = self._session.scalar(
            "SELECT 1 FROM memory AS m "
            "JOIN fresh AS f ON f.owner = m.owner AND f.seq = m.seq "
            "JOIN memory_state AS s ON s.owner = m.owner AND s.memory_seq = m.seq "
            f"WHERE m.owner = %(owner)s AND {OF_IDS} "
            "AND s.superseded_at IS NOT NULL LIMIT 1",
            ids=list(ids),
        )
        return found is not None

    def any_edited(self, ids: Sequence[str], *, since: int) -> bool:
        found = self._session.scalar(
            "SELECT 1 FROM memory AS m "
            "JOIN fresh AS f ON f.owner = m.owner AND f.seq = m.seq "
            "JOIN revision AS r ON r.owner = m.owner AND r.memory_seq = m.seq "
            f"WHERE m.owner = %(owner)s AND {OF_IDS} "
            "AND r.seq > %(since)s LIMIT 1",
            ids=list(ids),
            since=since,
        )
        return found is not None

    def evict(self, ids: Sequence[str], episode: int, details: Sequence[Detail]) -> int:
        return evict(self._session, ids, episode, details)

    def insert_log(self, entry: LogEntry) -> None:
        insert_log(self._session, entry)


_BEGINS = "coalesce(period_from, covers_from)"
_CHILD = (
    f"SELECT id, {_BEGINS}, item_count, parent_id, length(content) FROM episode "
    "WHERE owner = %(owner)s"
)
_STALE = (
    "SELECT s.mark, s.episode_seq, e.level FROM emptied_episode AS s "
    "JOIN episode AS e ON e.owner = s.owner AND e.seq = s.episode_seq "
    "WHERE s.owner = %(owner)s AND e.level <= %(highest)s ORDER BY e.level, s.mark LIMIT 1"
)


class PostgresRollups(Transactional, RollupStore):
    """A `RollupStore` of one owner in PostgreSQL."""

    @reads
    def pending(
        self,
        session: Session,
        *,
        to_level: Level,
        before: datetime,
        limit: int,
        opened: Iterable[datetime] = (),
    ) -> PendingRollups:
        fresh = _children(
            session,
            f"AND level = %(level)s AND parent_id IS NULL AND {_BEGINS} < %(before)s "
            f"ORDER BY {_BEGINS}, seq LIMIT %(limit)s",
            level=to_level - 1,
            before=utc(before),
            limit=limit,
        )
        begun = {begin_of(to_level, child.covers_from) for child in fresh}
        existing: dict[datetime, str] = dict(
            session.execute(
                "(SELECT period_from, id FROM episode "
                "WHERE owner = %(owner)s AND level = %(level)s AND stale "
                "ORDER BY seq LIMIT %(limit)s) UNION "
                "SELECT period_from, id FROM episode WHERE owner = %(owner)s "
                "AND level = %(level)s AND period_from = ANY(%(begun)s::timestamptz[]) "
                "ORDER BY 1, 2",
                level=int(to_level),
                limit=limit,
                begun=[utc(moment) for moment in begun.union(opened)],
            ).fetchall()
        )
        fresh += _children(
            session,
            "AND parent_id = ANY(%(ids)s::text[]) ORDER BY seq",
            ids=list(existing.values()),
        )
        return PendingRollups(fresh, existing)

    @writes
    def write(self, session: Session, rollup: Rollup) -> None:
        episode = rollup.episode
        _check_unchanged(session, rollup)
        row = session.execute(
            "SELECT seq, id, parent_id FROM episode WHERE owner = %(owner)s "
            "AND level = %(level)s AND period_from = %(begins)s::timestamptz",
            level=int(episode.level),
            begins=utc(episode.period_from) if episode.period_from else None,
        ).fetchone()
        if row is None:
            insert_episode(session, episode, rollup.index_terms)
        else:
            seq, id, parent = row
            if id != episode.id:
                raise BatchChanged(
                    "the summary of this period was rewritten concurrently; "
                    "the next cycle retries it"
                )
            replace_rollup(session, seq, episode, rollup.index_terms)
            session.execute(
                "UPDATE episode SET stale = true "
                "WHERE owner = %(owner)s AND id = %(parent)s::text",
                parent=parent,
            )
        session.execute(
            "UPDATE episode SET parent_id = %(id)s "
            "WHERE owner = %(owner)s AND id = ANY(%(members)s::text[])",
            id=episode.id,
            members=list(rollup.members),
        )
        # An edit may have renamed a member since it was read.
        name_rollup(session, episode.id)
        insert_log(session, rollup.entry)

    @reads
    def next_stale(
        self, session: Session, *, highest: Level = Level.MONTH
    ) -> StaleSummary | None:
        row = session.execute(_STALE, highest=int(highest)).fetchone()
        if row is None:
            return None
        mark, seq, level = row
        # They tell what to mask in originals. What is above an episode is made of summaries, which
        # hold no secrets, and a month has a great many details.
        episode = episode_at(session, "seq", seq, details=not level)
        if episode is None:
            return None
        originals = session.execute(
            f"SELECT {MEMORY_FIELDS} FROM {MEMORY_TABLES} "
            "WHERE m.owner = %(owner)s AND p.episode_seq = %(seq)s "
            "ORDER BY m.created_at, m.seq",
            seq=seq,
        )
        children = session.execute(
            f"SELECT {EPISODE_COLUMNS} FROM episode "
            "WHERE owner = %(owner)s AND parent_id = %(id)s ORDER BY covers_from, seq",
            id=episode.id,
        )
        return StaleSummary(
            token=mark,
            episode=episode,
            originals=tuple(map(memory_from, originals)),
            children=tuple(map(episode_from, children)),
        )

    @reads
    def index_terms(self, session: Session, ids: Sequence[str]) -> dict[str, str]:
        rows = session.execute(
            "SELECT id, index_terms FROM episode "
            "WHERE owner = %(owner)s AND id = ANY(%(ids)s::text[])",
            ids=list(ids),
        )
        return dict(rows.fetchall())

    @writes
    def rewrite(
        self, session: Session, token: int, episode: Episode, *, index_terms: str = ""
    ) -> None:
        seq = session.scalar(
            "DELETE FROM emptied_episode WHERE owner = %(owner)s AND mark = %(mark)s "
            "RETURNING episode_seq",
            mark=token,
        )
        if seq is None:
            raise BatchChanged("the episode was changed concurrently; retry")
        rewrite_episode(session, seq, episode, index_terms)
        session.execute(
            "UPDATE consolidation_log SET summary_preview = %(preview)s, "
            "summarizer = %(summarizer)s WHERE owner = %(owner)s AND episode_id = %(id)s",
            preview=preview(episode.content),
            summarizer=episode.summarizer,
            id=episode.id,
        )
        if episode.parent is None:
            return
        # A summary above that was written meanwhile read this one while it was empty.
        above = session.execute(
            "SELECT e.seq FROM episode AS e WHERE e.owner = %(owner)s "
            "AND e.id = %(parent)s AND NOT EXISTS (SELECT 1 FROM emptied_episode AS s "
            "WHERE s.owner = %(owner)s AND s.episode_seq = e.seq)",
            parent=episode.parent,
        ).fetchall()
        invalidate(session, [seq for (seq,) in above])


def _children(session: Session, which: str, **values: object) -> list[Child]:
    return [
        Child(
            id=id, covers_from=begins, item_count=items, parent=parent, chars=characters
        )
        for id, begins, items, parent, characters in session.execute(
            f"{_CHILD} {which}", **values
        )
    ]


def _check_unchanged(session: Session, rollup: Rollup) -> None:
    """Raise `BatchChanged` if a member changed: forgotten text must not return with the summary."""
    rows = session.execute(
        "SELECT id, content FROM episode "
        "WHERE owner = %(owner)s AND id = ANY(%(members)s::text[])",
        members=list(rollup.members),
    )
    unchanged = sum(content == rollup.members[id] for id, content in rows)
    if unchanged != len(rollup.members):
        raise BatchChanged(
            "a summary of this period was changed concurrently; the next cycle retries it"
        )
