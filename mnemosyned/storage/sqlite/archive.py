"""The archive of a file: originals pruned, and moved back to working memory."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import datetime
from itertools import groupby
from operator import itemgetter

from mnemosyned.memory.forgetting import EpisodeWords
from mnemosyned.storage.common.archive import CommonRetention, CommonUndo
from mnemosyned.storage.common.rows import instant
from mnemosyned.storage.common.session import Row, reads, writes
from mnemosyned.storage.common.state import set_state
from mnemosyned.storage.sqlite.fulltext import unindex_memory
from mnemosyned.storage.sqlite.memories import return_one
from mnemosyned.storage.sqlite.rows import MEMORY_COLUMNS
from mnemosyned.storage.sqlite.session import SqliteSession
from mnemosyned.storage.sqlite.writer import SqlitePart


class SqliteRetention(SqlitePart, CommonRetention):
    """A `RetentionStore` on one SQLite file."""

    def _has_words(self, session: SqliteSession, seq: int) -> bool:
        """Return whether an original still has its text, as it was not pruned."""
        found = session.scalar(
            "SELECT 1 FROM archive WHERE seq = ? AND content != ''", (seq,)
        )
        return found is not None

    def _return_pinned(self, session: SqliteSession, seq: int, episode: int) -> None:
        """Move an original to working memory, pinned; keep its secrets secret in other originals."""
        return_one(session, seq, episode)
        session.execute("UPDATE working_memory SET pinned = 1 WHERE seq = ?", (seq,))

    @writes
    def prune(
        self, session: SqliteSession, ids: Sequence[str], *, now: datetime
    ) -> int:
        """Delete the text of these originals; return the number pruned. Details and provenance stay."""
        pruned = 0
        for id in ids:
            row = session.execute(
                "SELECT seq, content, role FROM archive WHERE id = ? AND content != ''",
                (id,),
            ).fetchone()
            if row is None:  # forgotten or restored meanwhile
                continue
            unindex_memory(session, *row)
            session.execute(
                "UPDATE archive SET content = '', metadata = '{}' WHERE seq = ?",
                row[:1],
            )
            for table in ("embedding", "revision"):
                session.execute(f"DELETE FROM {table} WHERE memory_seq = ?", row[:1])
            set_state(session, row[0], "pruned_at", now)
            pruned += 1
        return pruned

    def _episode_words(self, session: SqliteSession) -> Iterator[EpisodeWords]:
        """Yield the episodes with unpruned originals, the oldest first."""
        rows = session.execute(
            "SELECT e.covers_from, e.covers_until, e.seq, a.id, a.created_at, length(a.content) "
            "FROM episodic_memory AS e JOIN archive AS a ON a.episode_seq = e.seq "
            "WHERE a.content != '' ORDER BY e.covers_from, e.seq"
        )
        for (begins, ends, _), group in groupby(rows, key=itemgetter(0, 1, 2)):
            originals = ((id, instant(moment), size) for *_, id, moment, size in group)
            yield EpisodeWords(instant(begins), instant(ends), originals)


class SqliteUndo(SqlitePart, CommonUndo):
    """An `UndoStore` on one SQLite file."""

    @reads
    def last_cycle(self, session: SqliteSession) -> str | None:
        """Return the id of the newest cycle with an episode that can be undone, or None."""
        cycle: str | None = session.scalar(
            "SELECT cycle_id FROM consolidation_log AS l "
            "WHERE episode_id IS NOT NULL AND level = 0 AND undone_at IS NULL AND EXISTS ("
            "SELECT 1 FROM episodic_memory AS e JOIN archive AS a ON a.episode_seq = e.seq "
            "WHERE e.id = l.episode_id AND a.content != '') ORDER BY l.id DESC LIMIT 1"
        )
        return cycle

    def _read_episode_row(self, session: SqliteSession, id: str) -> Row | None:
        """Return an episode's number, parent, times, and counts of originals and pruned originals."""
        row: Row | None = session.execute(
            "SELECT seq, parent_id, covers_from, covers_until, "
            "(SELECT count(*) FROM archive WHERE episode_seq = e.seq), "
            "(SELECT count(*) FROM archive WHERE episode_seq = e.seq AND content = '') "
            "FROM episodic_memory AS e WHERE id = ?",
            (id,),
        ).fetchone()
        return row

    def _return_originals(self, session: SqliteSession, episode: int) -> list[int]:
        """Move all originals of an episode to working memory; return their row numbers."""
        seqs = session.execute(
            "SELECT seq FROM archive WHERE episode_seq = ?", (episode,)
        ).fetchall()
        session.execute(
            f"INSERT INTO working_memory (seq, {MEMORY_COLUMNS}) "
            f"SELECT seq, {MEMORY_COLUMNS} FROM archive WHERE episode_seq = ?",
            (episode,),
        )
        session.execute("DELETE FROM archive WHERE episode_seq = ?", (episode,))
        return [seq for (seq,) in seqs]
