"""Roll-ups of days, weeks and months, and summaries that are stale."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable, Sequence
from datetime import datetime

from mnemosyned.domain.errors import BatchChanged
from mnemosyned.domain.keeping.retention import (
    StaleSummary,
)
from mnemosyned.domain.memory import (
    Episode,
    Tier,
)
from mnemosyned.domain.ports.rollups import PendingRollups, Rollup, RollupStore
from mnemosyned.domain.sleep.consolidation import preview
from mnemosyned.domain.sleep.rollup import Child, Level, begin_of
from mnemosyned.domain.storing.rows import EPISODE_COLUMNS
from mnemosyned.storage.sqlite.database.transactions import Transactional, reads, writes
from mnemosyned.storage.sqlite.fulltext.indexing import (
    index_episode_grams,
    unindex_episode_grams,
)
from mnemosyned.storage.sqlite.tables.changing.rewrites import invalidate
from mnemosyned.storage.sqlite.tables.hierarchy import chunks, name_rollup, placeholders
from mnemosyned.storage.sqlite.tables.log import insert_log
from mnemosyned.storage.sqlite.tables.memories import episode_at
from mnemosyned.storage.sqlite.tables.rows import (
    ARCHIVE_FIELDS,
    EPISODE_PLACEHOLDERS,
    EPISODE_WRITTEN,
    Row,
    episode_from,
    episode_row,
    instant,
    instant_text,
    memory_from,
)

_BEGINS = "ifnull(period_from, covers_from)"


_CHILD = (
    f"SELECT id, {_BEGINS}, item_count, parent_id, length(content) FROM episodic_memory"
)


class SqliteRollups(Transactional, RollupStore):
    """A `RollupStore` on one SQLite file."""

    @reads
    def pending(
        self,
        connection: sqlite3.Connection,
        *,
        to_level: Level,
        before: datetime,
        limit: int,
        opened: Iterable[datetime] = (),
    ) -> PendingRollups:
        fresh = _children(
            connection,
            f"WHERE level = ? AND parent_id IS NULL AND {_BEGINS} < ? ORDER BY {_BEGINS} LIMIT ?",
            (to_level - 1, instant_text(before), limit),
        )
        existing = dict(
            connection.execute(
                "SELECT period_from, id FROM episodic_memory WHERE level = ? AND stale LIMIT ?",
                (to_level, limit),
            ).fetchall()
        )
        begun = {begin_of(to_level, child.covers_from) for child in fresh}
        for begins in {instant_text(moment) for moment in begun.union(opened)}:
            row = connection.execute(
                "SELECT period_from, id FROM episodic_memory WHERE level = ? AND period_from = ?",
                (to_level, begins),
            ).fetchone()
            existing.update([row] if row else [])
        for id in existing.values():
            fresh += _children(connection, "WHERE parent_id = ?", (id,))
        return PendingRollups(
            fresh, {instant(begins): id for begins, id in existing.items()}
        )

    @writes
    def write(self, connection: sqlite3.Connection, rollup: Rollup) -> None:
        episode = rollup.episode
        _check_unchanged(connection, rollup)
        row = connection.execute(
            "SELECT seq, id, content, index_terms, parent_id FROM episodic_memory "
            "WHERE level = ? AND period_from = ?",
            (
                episode.level,
                instant_text(episode.period_from) if episode.period_from else None,
            ),
        ).fetchone()
        if row is None:
            seq = connection.execute(
                f"INSERT INTO episodic_memory ({EPISODE_WRITTEN}) "
                f"VALUES ({EPISODE_PLACEHOLDERS})",
                episode_row(episode, rollup.index_terms),
            ).lastrowid
        else:
            seq = _rewrite(connection, rollup, row)
        index_episode_grams(connection, seq, episode.content, rollup.index_terms)
        for chunk in chunks(list(rollup.members)):
            connection.execute(
                f"UPDATE episodic_memory SET parent_id = ? WHERE id IN ({placeholders(chunk)})",
                (episode.id, *chunk),
            )
        # An edit may have renamed a member since it was read.
        name_rollup(connection, episode.id)
        insert_log(connection, rollup.entry)

    @reads
    def next_stale(
        self, connection: sqlite3.Connection, *, highest: Level = Level.MONTH
    ) -> StaleSummary | None:
        row = connection.execute(
            "SELECT s.mark, s.episode_seq, e.level FROM emptied_episode AS s "
            "CROSS JOIN episodic_memory AS e ON e.seq = s.episode_seq "
            "WHERE e.level <= ? ORDER BY e.level, s.mark LIMIT 1",
            (highest,),
        ).fetchone()
        # They tell what to mask in originals. What is above an episode is made of summaries, which
        # hold no secrets, and a month has a great many details.
        episode = (
            episode_at(connection, "seq", row[1], details=not row[2]) if row else None
        )
        if episode is None:
            return None
        originals = connection.execute(
            f"SELECT {ARCHIVE_FIELDS} FROM archive AS a WHERE a.episode_seq = ? "
            "ORDER BY a.created_at, a.seq",
            (row[1],),
        )
        children = connection.execute(
            f"SELECT {EPISODE_COLUMNS} FROM episodic_memory WHERE parent_id = ? "
            "ORDER BY covers_from, seq",
            (episode.id,),
        )
        return StaleSummary(
            token=row[0],
            episode=episode,
            originals=tuple(
                memory_from(one, tier=Tier.ARCHIVE, episode=episode.id)
                for one in originals
            ),
            children=tuple(episode_from(one) for one in children),
        )

    @reads
    def index_terms(
        self, connection: sqlite3.Connection, ids: Sequence[str]
    ) -> dict[str, str]:
        known: dict[str, str] = {}
        for chunk in chunks(ids):
            known.update(
                connection.execute(
                    "SELECT id, index_terms FROM episodic_memory "
                    f"WHERE id IN ({placeholders(chunk)})",
                    chunk,
                ).fetchall()
            )
        return known

    @writes
    def rewrite(
        self,
        connection: sqlite3.Connection,
        token: int,
        episode: Episode,
        *,
        index_terms: str = "",
    ) -> None:
        row = connection.execute(
            "DELETE FROM emptied_episode WHERE mark = ? RETURNING episode_seq", (token,)
        ).fetchone()
        if row is None:
            raise BatchChanged("the episode was changed concurrently; retry")
        (seq,) = row
        connection.execute(
            f"UPDATE episodic_memory SET ({EPISODE_WRITTEN}) = ({EPISODE_PLACEHOLDERS}) WHERE seq = ?",
            (*episode_row(episode, index_terms), seq),
        )
        index_episode_grams(connection, seq, episode.content, index_terms)
        connection.execute(
            "UPDATE consolidation_log SET summary_preview = ?, summarizer = ? WHERE episode_id = ?",
            (preview(episode.content), episode.summarizer, episode.id),
        )
        # A summary above that was written meanwhile read this one while it was empty.
        above = connection.execute(
            "SELECT seq FROM episodic_memory WHERE id = ? "
            "AND seq NOT IN (SELECT episode_seq FROM emptied_episode)",
            (episode.parent,),
        ).fetchall()
        invalidate(connection, [seq for (seq,) in above])


def _children(connection: sqlite3.Connection, where: str, values: Row) -> list[Child]:
    return [
        Child(
            id=id,
            covers_from=instant(begins),
            item_count=items,
            parent=parent,
            chars=chars,
        )
        for id, begins, items, parent, chars in connection.execute(
            f"{_CHILD} {where}", values
        )
    ]


def _check_unchanged(connection: sqlite3.Connection, rollup: Rollup) -> None:
    """Raise `BatchChanged` if a member changed: forgotten text must not return with the summary."""
    seen = 0
    for chunk in chunks(list(rollup.members)):
        for id, content in connection.execute(
            f"SELECT id, content FROM episodic_memory WHERE id IN ({placeholders(chunk)})",
            chunk,
        ):
            seen += content == rollup.members[id]
    if seen != len(rollup.members):
        raise BatchChanged(
            "a summary of this period was changed concurrently; the next cycle retries it"
        )


def _rewrite(connection: sqlite3.Connection, rollup: Rollup, row: Row) -> int:
    episode = rollup.episode
    seq: int = row[0]
    _, id, content, index_terms, parent = row
    if id != episode.id:
        raise BatchChanged(
            "the summary of this period was rewritten concurrently; the next cycle retries it"
        )
    unindex_episode_grams(connection, seq, content, index_terms)
    connection.execute(
        "UPDATE episodic_memory SET stale = 0, session_id = ?, source = ?, content = ?, "
        "index_terms = ?, item_count = ?, covers_from = ?, covers_until = ?, summarizer = ?, created_at = ? "
        "WHERE seq = ?",
        (
            episode.session,
            episode.source,
            episode.content,
            rollup.index_terms,
            episode.item_count,
            instant_text(episode.covers_from),
            instant_text(episode.covers_until),
            episode.summarizer,
            instant_text(episode.created_at),
            seq,
        ),
    )
    connection.execute("UPDATE episodic_memory SET stale = 1 WHERE id = ?", (parent,))
    return seq
