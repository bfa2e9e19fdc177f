"""Consolidation: the log of cycles, roll-ups of days, weeks and months, and stale summaries."""

from __future__ import annotations

from abc import abstractmethod
from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import replace
from datetime import datetime
from typing import Any

from mnemosyned.errors import BatchChanged
from mnemosyned.instants import calendar_time, from_calendar_time
from mnemosyned.memory import consolidation, forgetting
from mnemosyned.memory.periods import Child, Level, begin_of
from mnemosyned.memory.ports import PendingRollups, Promotion, Rollup
from mnemosyned.memory.values import Episode
from mnemosyned.storage.common import listing, rows, state
from mnemosyned.storage.common.session import (
    CommonSession,
    EngineSession,
    Result,
    StorePart,
    as_method,
    instant,
    reads,
    writes,
)

RECENT_LOG_ROWS = 500
"""Log rows from which the present speed of a model is computed."""


def insert_log(
    session: CommonSession,
    entry: consolidation.LogEntry,
    *,
    id: int | None = None,
) -> None:
    """Insert a log entry under the number `id`, or under a new one."""
    rows.LOG.add(session, entry, id=session.new_number("log") if id is None else id)


_WORKING = (
    "fresh AS f JOIN memory AS m ON m.owner = f.owner AND m.seq = f.seq "
    "LEFT JOIN working_state AS w ON w.owner = f.owner AND w.memory_seq = f.seq"
)


class SleepStore(StorePart):
    """The working tier as a sleep cycle reads it, and the changes that a cycle writes."""

    @reads
    def pending(
        self, session: CommonSession, selection: consolidation.Selection, *, limit: int
    ) -> list[consolidation.Pending]:
        """Return up to `limit` working memories of a selection, oldest first, neither pinned nor held back.

        A memory dated after `selection.now` is included if `note_future` noticed it before `selection.before`.
        """
        where, values = self._pending_filter(session, selection)
        pending = session.execute(
            "SELECT m.id, m.session_id, m.source, m.created_at, length(m.content) "
            f"FROM {_WORKING} WHERE {where} "
            "ORDER BY f.created_at, f.seq LIMIT %(limit)s",
            limit=limit,
            **values,
        )
        columns = "id, session_id, source, created_at, chars"
        kind = consolidation.Pending
        return [kind(**rows.record_fields(kind, columns, row)) for row in pending]

    @reads
    def count_due(
        self, session: CommonSession, selection: consolidation.Selection, *, limit: int
    ) -> int:
        """Count working memories of a selection, neither pinned nor held by an undo, up to `limit`."""
        where, values = self._pending_filter(session, selection)
        count: int = session.scalar(
            "SELECT count(*) FROM "
            f"(SELECT 1 FROM {_WORKING} WHERE {where} LIMIT %(limit)s) AS due",
            limit=limit,
            **values,
        )
        return count

    def _pending_filter(
        self, session: CommonSession, selection: consolidation.Selection
    ) -> tuple[str, dict[str, Any]]:
        """Return SQL conditions and bind values for `pending` and `count_due`."""
        clauses = ["f.owner = %(owner)s", "NOT m.pinned"]
        values: dict[str, Any] = {}
        if selection.now:
            values["now"] = selection.now
            clauses.append("(w.held_until IS NULL OR w.held_until <= %(now)s)")
        if selection.before:
            values["before"] = selection.before
            aged = "f.created_at < %(before)s"
            if selection.now and self._may_have_future_memories(session):
                future = "f.created_at > %(now)s AND w.future_since < %(before)s"
                aged = f"({aged} OR ({future}))"
            clauses.append(aged)
        if selection.session is not None:
            values["session"] = selection.session
            clauses.append("m.session_id = %(session)s")
        if selection.sources:
            named = listing.source_condition(selection.sources, "m.source")
            clauses.append(named.text)
            values |= named.values
        return " AND ".join(clauses), values

    def _may_have_future_memories(self, session: EngineSession) -> bool:  # noqa: ARG002
        """Return whether any memory may be dated in the future; True if the engine cannot tell."""
        return True

    @reads
    def ids_excluded_from_summaries(self, session: CommonSession) -> set[str]:
        """Return the ids of working memories that no summary may mention: superseded, or with an expiry."""
        return set(
            session.column(
                "SELECT m.id FROM memory_state AS s "
                "JOIN fresh AS f ON f.owner = s.owner AND f.seq = s.memory_seq "
                "JOIN memory AS m ON m.owner = s.owner AND m.seq = s.memory_seq "
                "WHERE s.owner = %(owner)s "
                "AND (s.valid_until IS NOT NULL OR s.superseded_at IS NOT NULL)"
            )
        )

    @reads
    def newest_revision(self, session: CommonSession) -> int:
        """Return the revision number of the latest edit of any memory; 0 if there is none."""
        newest: int = session.select_value("revision", "coalesce(max(seq), 0)")
        return newest

    @reads
    def chars_per_s(self, session: CommonSession, summarizer: str) -> float | None:
        """Return how many characters a second a summarizer recently read; None without data."""
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

    record_failure = writes(as_method(insert_log))

    @reads
    def log(
        self,
        snapshot: CommonSession,
        *,
        limit: int,
        session: str | None = None,
        cycle: str | None = None,
        after: int | None = None,
    ) -> list[consolidation.LogEntry]:
        """Return up to `limit` entries of the consolidation log, the newest first.

        `session` and `cycle` limit them to a session and to a cycle, `after` to entries older than
        the one with this number; None sets no limit.
        """
        return rows.LOG.find(
            snapshot,
            "AND (%(session)s::text IS NULL OR session_id = %(session)s) "
            "AND (%(cycle)s::text IS NULL OR cycle_id = %(cycle)s) "
            "AND (%(after)s::bigint IS NULL OR id < %(after)s) "
            "ORDER BY id DESC LIMIT %(limit)s",
            session=session,
            cycle=cycle,
            after=after,
            limit=limit,
        )

    @reads
    def activity(
        self, session: CommonSession, *, fresh: datetime, now: datetime, limit: int
    ) -> consolidation.WorkingActivity:
        """Return counts and sizes of the oldest `limit` working memories, for the triggers of sleep.

        `by_source` counts memories created before `fresh`. Memories that an undo holds back beyond `now` are
        not movable.
        """
        groups = session.execute(
            "SELECT session_id, source, stays, count(*), sum(characters), sum(bytes), "
            "min(created_at), count(*) FILTER (WHERE created_at < %(fresh)s) FROM ("
            "SELECT m.session_id, m.source, m.created_at, length(m.content) AS characters, "
            "octet_length(m.content) AS bytes, "
            "m.pinned OR coalesce(w.held_until > %(now)s, false) AS stays "
            f"FROM {_WORKING} WHERE f.owner = %(owner)s "
            "ORDER BY f.created_at, f.seq LIMIT %(limit)s) AS oldest "
            "GROUP BY session_id, source, stays",
            now=now,
            fresh=fresh,
            limit=limit,
        )
        return consolidation.activity_of(
            consolidation.ActivityGroup._make((*sizes, instant(oldest), seasoned))
            for *sizes, oldest, seasoned in groups
        )

    def claim(self) -> AbstractContextManager[Callable[[], bool]]:
        """Keep other processes from consolidating this memory while the block runs.

        Yields a function that returns whether the claim is still valid; a process that lost it must end its
        cycle. Raises `SleepInProgress` if another process consolidates. By default, there is no other
        process.
        """
        return nullcontext(lambda: True)

    @abstractmethod
    def consolidate(
        self, groups: Sequence[Sequence[Promotion]], *, durable: bool = True
    ) -> list[Exception | None]:
        """Store the episodes of each group, and move their originals to the archive.

        Each group is stored entirely or not at all, independent of the others. Return, for each group, None
        or its error: `BatchChanged` if one of its memories has changed. Without `durable`, a power failure
        may undo all groups until the next durable write or `flush`.
        """

    def _promote(self, session: EngineSession, promotions: Sequence[Promotion]) -> None:
        """Store each episode of a group with its log row, and move the originals to the archive.

        Raises `BatchChanged` if an original was superseded, edited, moved or deleted since it was
        read.
        """
        _check_originals_unchanged(session, promotions)
        episodes = {
            session.insert_episode(each.episode, each.index_terms): each.episode
            for each in promotions
        }
        originals = sum(len(episode.summary_of) for episode in episodes.values())
        if self._archive_originals(session, episodes) != originals:
            raise _changed_group_error("changed concurrently")
        for promotion in promotions:
            insert_log(session, promotion.entry)

    @abstractmethod
    def _archive_originals(
        self, session: EngineSession, episodes: Mapping[int, Episode]
    ) -> int:
        """Move the originals of episodes, except pinned ones, to the archive; return how many moved.

        `episodes` are by row number, with the originals' exact values.
        """


def _check_originals_unchanged(
    session: CommonSession, promotions: Sequence[Promotion]
) -> None:
    """Raise `BatchChanged` if an original was edited since it was read, or is superseded but in the summary."""

    def find_any(
        ids: Collection[str], table: str, condition: str, **values: object
    ) -> Result:
        """Select one row of `table` under a `condition`, for any working memory with one of the ids."""
        return session.execute(
            "SELECT 1 FROM fresh AS f "
            "JOIN memory AS m ON m.owner = f.owner AND m.seq = f.seq "
            f"JOIN {table} AS s ON s.owner = m.owner AND s.memory_seq = m.seq "
            f"WHERE m.owner = %(owner)s AND {session.of_ids} AND {condition} LIMIT 1",
            ids=list(ids),
            **values,
        )

    spoken = [id for promotion in promotions for id in promotion.spoken]
    read: dict[int, list[str]] = defaultdict(list)
    for promotion in promotions:
        if promotion.revision is not None:
            read[promotion.revision] += promotion.episode.summary_of
    superseded = find_any(spoken, "memory_state", "s.superseded_at IS NOT NULL")
    edited = [
        find_any(ids, "revision", "s.seq > %(since)s", since=since)
        for since, ids in read.items()
    ]
    # Read after all were sent, as a server answers them together.
    if superseded.fetchone():
        raise _changed_group_error("superseded concurrently")
    if any(found.fetchone() for found in edited):
        raise _changed_group_error("edited since")


def _changed_group_error(how: str) -> BatchChanged:
    """Return the error for a group with a changed memory; `how` is the change, such as "edited since"."""
    return BatchChanged(f"a memory of this group was {how}; the next cycle retries it")


_BEGINS = "coalesce(period_from, covers_from)"
_CHILD = (
    f"SELECT id, {_BEGINS}, item_count, parent_id, length(content) FROM episode "
    "WHERE owner = %(owner)s"
)


class RollupStore(StorePart):
    """Roll-ups and stale summaries."""

    @reads
    def pending(
        self,
        session: CommonSession,
        *,
        to_level: Level,
        before: datetime,
        limit: int,
        opened: Iterable[datetime] = (),
    ) -> PendingRollups:
        """Return summaries to be rolled up into `to_level`, and the existing roll-ups to replace.

        First come up to `limit` summaries that have no roll-up and are from before the calendar time
        `before`, then the members of roll-ups to replace: stale ones, and those of a period that has such
        a summary or begins at a time in `opened`.
        """
        fresh = _read_children(
            session,
            to_level,
            f"AND level = %(level)s AND parent_id IS NULL AND {_BEGINS} < %(before)s "
            f"ORDER BY {_BEGINS}, seq LIMIT %(limit)s",
            level=to_level - 1,
            before=from_calendar_time(before) if to_level is Level.DAY else before,
            limit=limit,
        )
        stale = session.execute(
            "SELECT period_from, id FROM episode WHERE owner = %(owner)s "
            "AND level = %(level)s AND stale ORDER BY seq LIMIT %(limit)s",
            level=int(to_level),
            limit=limit,
        ).fetchall()
        begun = {begin_of(to_level, child.covers_from) for child in fresh}
        if begins := sorted(begun.union(opened)):
            stale += session.select(
                "episode", "period_from, id", level=int(to_level), period_from=begins
            ).fetchall()
        existing = {instant(begins): id for begins, id in sorted(stale)}
        if existing:
            fresh += _read_children(
                session,
                to_level,
                "AND parent_id = ANY(%(ids)s::text[]) ORDER BY seq",
                ids=list(existing.values()),
            )
        return PendingRollups(fresh, existing)

    @writes
    def write(self, session: CommonSession, rollup: Rollup) -> None:
        """Insert or replace the roll-up of a period, as the parent of its members, and log the roll-up.

        The parent of a replaced roll-up becomes stale. Raises `BatchChanged` if a member was changed or the
        roll-up replaced since they were read.
        """
        episode, members = rollup.episode, rollup.members
        # With another text, one that was forgotten would return.
        contents = session.select("episode", "id, content", id=list(members))
        if dict(contents.fetchall()) != members:
            raise BatchChanged(
                "a summary of this period was changed concurrently; the next cycle retries it"
            )
        row = session.select(
            "episode",
            "seq, id, parent_id",
            level=int(episode.level),
            period_from=episode.period_from,
        ).fetchone()
        if row is None:
            session.insert_episode(episode, rollup.index_terms)
        else:
            seq, id, parent = row
            if id != episode.id:
                raise BatchChanged(
                    "the summary of this period was rewritten concurrently; "
                    "the next cycle retries it"
                )
            session.write_episode(seq, episode, rollup.index_terms, is_rollup=True)
            session.update("episode", {"stale": True}, id=parent)
        session.update("episode", {"parent_id": episode.id}, id=list(members))
        # An edit may have renamed a member since it was read.
        state.name_rollup(session, episode.id)
        insert_log(session, rollup.entry)

    @reads
    def next_stale(
        self, session: CommonSession, *, highest: Level = Level.MONTH
    ) -> forgetting.StaleSummary | None:
        """Return the next summary to be rewritten, with its originals or members, or None.

        Summaries of the lowest level come first; levels above `highest` are left out.
        """
        row = session.execute(
            "SELECT s.mark, s.episode_seq, e.level FROM emptied_episode AS s "
            "CROSS JOIN episode AS e WHERE s.owner = %(owner)s AND e.owner = %(owner)s "
            "AND e.seq = s.episode_seq AND e.level <= %(highest)s "
            "ORDER BY e.level, s.mark LIMIT 1",
            highest=int(highest),
        ).fetchone()
        if row is None:
            return None
        mark, seq, level = row
        # They tell what to mask in originals. What is above an episode is made of summaries, which
        # hold no secrets, and a month has a great many details.
        episode = state.episode_at(session, "seq", seq, details=not level)
        if episode is None:
            return None
        children = session.select(
            "episode",
            rows.EPISODE_COLUMNS,
            "ORDER BY covers_from, seq",
            parent_id=episode.id,
        )
        return forgetting.StaleSummary(
            token=mark,
            episode=episode,
            originals=tuple(session.memories(episode.summary_of).values())
            if level == 0
            else (),
            children=tuple(map(rows.episode_from, children)),
        )

    @reads
    def index_terms(self, session: CommonSession, ids: Sequence[str]) -> dict[str, str]:
        """Return the stored index terms of the summaries with these ids, by id."""
        indexed = session.select("episode", "id, index_terms", id=ids)
        return dict(indexed.fetchall())

    @writes
    def rewrite(
        self,
        session: CommonSession,
        token: int,
        episode: Episode,
        *,
        index_terms: str = "",
    ) -> None:
        """Write the new text of an emptied summary, and empty its parent, if any, to be rewritten.

        `token` is the mark in the `StaleSummary`. Raises `BatchChanged` if the summary was marked
        again since it was read.
        """
        marked = session.delete("emptied_episode", "RETURNING episode_seq", mark=token)
        row = marked.fetchone()
        if row is None:
            raise BatchChanged("the episode was changed concurrently; retry")
        seq = row[0]
        session.write_episode(seq, episode, index_terms)
        session.update(
            "consolidation_log",
            {
                "summary_preview": consolidation.log_preview(episode.content),
                "summarizer": episode.summarizer,
            },
            episode_id=episode.id,
        )
        if episode.parent is None:
            return
        # A summary above that was written meanwhile read this one while it was empty.
        state.invalidate(
            session,
            session.column(
                "SELECT e.seq FROM episode AS e WHERE e.owner = %(owner)s "
                "AND e.id = %(parent)s AND NOT EXISTS (SELECT 1 FROM emptied_episode AS s "
                "WHERE s.owner = %(owner)s AND s.episode_seq = e.seq)",
                parent=episode.parent,
            ),
        )


def _read_children(
    session: CommonSession, to_level: Level, condition: str, **values: object
) -> list[Child]:
    """Return the summaries that meet an SQL condition with bind `values`, as members of a roll-up."""
    child_rows = session.execute(f"{_CHILD} {condition}", **values)
    columns = "id, covers_from, item_count, parent_id, chars"
    children = [Child(**rows.record_fields(Child, columns, row)) for row in child_rows]
    if to_level is not Level.DAY:
        return children
    return [
        replace(child, covers_from=calendar_time(child.covers_from))
        for child in children
    ]
