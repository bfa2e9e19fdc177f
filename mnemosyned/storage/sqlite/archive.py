"""The archive of a file: originals pruned, and moved back to working memory."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime

from mnemosyned.storage.common.archive import CommonRetention, CommonUndo
from mnemosyned.storage.common.session import writes
from mnemosyned.storage.common.state import set_state
from mnemosyned.storage.sqlite.fulltext import unindex_memory
from mnemosyned.storage.sqlite.memories import return_one
from mnemosyned.storage.sqlite.rows import MEMORY_COLUMNS
from mnemosyned.storage.sqlite.session import SqliteSession
from mnemosyned.storage.sqlite.writer import SqlitePart


class SqliteRetention(SqlitePart, CommonRetention):
    """A `RetentionStore` on one SQLite file."""

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


class SqliteUndo(SqlitePart, CommonUndo):
    """An `UndoStore` on one SQLite file."""

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
