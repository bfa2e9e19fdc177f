"""Roll-ups of days, weeks and months, and summaries that are stale."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import datetime

from mnemosyned.domain.errors import BatchChanged
from mnemosyned.domain.keeping.retention import StaleSummary
from mnemosyned.domain.memory import Episode
from mnemosyned.domain.ports.rollups import PendingRollups, Rollup, RollupStore
from mnemosyned.domain.sleep.consolidation import preview
from mnemosyned.domain.sleep.rollup import Child, Level, begin_of
from mnemosyned.domain.storing.rows import EPISODE_COLUMNS, episode_from
from mnemosyned.storage.postgres.database.session import Session
from mnemosyned.storage.postgres.database.transactions import (
    Transactional,
    reads,
    writes,
)
from mnemosyned.storage.postgres.tables.changing.rewrites import invalidate
from mnemosyned.storage.postgres.tables.episodes import (
    insert_episode,
    replace_rollup,
    rewrite_episode,
)
from mnemosyned.storage.postgres.tables.hierarchy import name_rollup
from mnemosyned.storage.postgres.tables.log import insert_log
from mnemosyned.storage.postgres.tables.memories import episode_at
from mnemosyned.storage.postgres.tables.rows import (
    MEMORY_FIELDS,
    MEMORY_TABLES,
    memory_from,
    utc,
)

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
