"""Edits of memories in a file: rows, index entries and exact values; pins."""

from __future__ import annotations

from collections.abc import Sequence

from mnemosyned.memory.edit import EditTarget, details_with
from mnemosyned.memory.fields import EDITED_FIELDS, column_list
from mnemosyned.memory.intake import content_hash
from mnemosyned.storage.common.edits import CommonChanges, CommonEditing
from mnemosyned.storage.common.session import writes
from mnemosyned.storage.sqlite.fulltext import index_memories, unindex_memory
from mnemosyned.storage.sqlite.memories import (
    insert_details,
    leave_secrets,
    return_one,
    sensitive_details,
)
from mnemosyned.storage.sqlite.session import SqliteSession
from mnemosyned.storage.sqlite.writer import SqlitePart

_EDITED = column_list(EDITED_FIELDS)


class SqliteEditing(CommonEditing):
    """The edits of one transaction."""

    _session: SqliteSession

    _edited = (
        f"SELECT seq, NULL, {_EDITED} FROM working_memory WHERE id = :id UNION ALL "
        f"SELECT seq, episode_seq, {_EDITED} FROM archive WHERE id = :id"
    )

    def _memory_table(self, target: EditTarget) -> str:
        return "working_memory" if target.episode is None else "archive"

    def _write_words(self, target: EditTarget) -> None:
        """Write the text and the index entries of an edited memory, and delete its vector."""
        session, seq = self._session, target.seq
        before, after = target.edit.before, target.edit.after
        if before.content != after.content:
            session.execute(
                f"UPDATE {self._memory_table(target)} SET content = ?, content_hash = ? WHERE seq = ?",
                (after.content, content_hash(after.content), seq),
            )
        unindex_memory(session, seq, before.content, before.role)
        index_memories(session, [(seq, after.content, after.role)])
        session.execute("DELETE FROM embedding WHERE memory_seq = ?", (seq,))

    def _restate_details(self, target: EditTarget, episode: int) -> None:
        """Extract an edited original's exact values again; keep its secrets secret in other originals."""
        session, seq = self._session, target.seq
        leave_secrets(session, seq, episode)
        session.execute("DELETE FROM detail WHERE memory_seq = ?", (seq,))
        secrets = sensitive_details(session, episode)
        insert_details(session, details_with(target.edit.after, secrets), episode)
        leave_secrets(session, seq, episode)

    def move_back(self, seq: int, episode: int) -> None:
        return_one(self._session, seq, episode)


class SqliteChanges(SqlitePart, CommonChanges):
    """A `ChangeStore` on one SQLite file."""

    _editing = SqliteEditing

    @writes
    def pin(self, session: SqliteSession, ids: Sequence[str], *, pinned: bool) -> int:
        """Pin or unpin working memories; return how many of the ids are working memories."""
        changed = 0
        for id in ids:
            if not pinned:
                session.execute(
                    "UPDATE working_state SET held_until = NULL "
                    "WHERE memory_seq = (SELECT seq FROM working_memory WHERE id = ?)",
                    (id,),
                )
            changed += session.execute(
                "UPDATE working_memory SET pinned = ? WHERE id = ?", (int(pinned), id)
            ).rowcount
        return changed
