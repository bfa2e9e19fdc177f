"""Forgetting: memories and learnings selected by a filter, deleted with all traces, and put back.

Secure delete: forgotten words leave index segments, pages and the write-ahead log.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Sequence
from functools import partial
from typing import cast

from mnemosyned.memory.forgetting import ForgetFilter, is_named_in, name_matcher
from mnemosyned.memory.values import NAMING_FIELDS, MemoryRecord
from mnemosyned.storage.common import listing, state
from mnemosyned.storage.common.forgetting import (
    DeletionStore,
    FoundMemory,
    chosen_conditions,
)
from mnemosyned.storage.common.session import reads
from mnemosyned.storage.sqlite import connections, fulltext, memories, search
from mnemosyned.storage.sqlite.session import SqliteSession, memory_row

CHECKPOINT_TRIES = 40
CHECKPOINT_PAUSE_S = 0.05
"""Pause between tries, two seconds in all: our own reads have ended by then; others may read for ever."""


_TABLES = {
    "working_memory": "content",
    "archive": "iif(content != '', content, ifnull("
    "(SELECT group_concat(value, ' ') FROM detail WHERE memory_seq = seq), ''))",
}
"""Tables, with the text of their memories; a pruned memory has only its exact values left."""
_NAMED = ", ".join(f"ifnull({field.column}, '')" for field in NAMING_FIELDS)
_FORMER = " || ' ' || ".join(
    f"ifnull(r.fields ->> '{name}', '')"
    for name in ("role", *(field.name for field in NAMING_FIELDS if field.editable))
)
_EARLIER = (
    f"ifnull((SELECT group_concat(ifnull(r.content, '') || ' ' || {_FORMER}, ' ') "
    "FROM revision AS r WHERE r.memory_seq = {table}.seq), '')"
)
"""Texts and fields of a memory before its edits."""


KEYED_BY_MEMORY = ("memory_state", "tag", "revision")
"""Tables with rows of a memory under its `memory_seq`, in both tiers. Tables derived from its text, such as
vectors, belong here, too; `detail` is deleted with the row of the archive."""


class SqliteDeletion(DeletionStore):
    """A `DeletionStore` on one SQLite file."""

    _engine: connections.SqliteEngine

    # Not row by row, as sources have no index.
    _unless_named = (
        "EXCEPT SELECT {0} FROM working_memory EXCEPT SELECT {0} FROM episodic_memory"
    )

    def __init__(
        self, engine: connections.SqliteEngine, *, checkpoint: Callable[[], object]
    ) -> None:
        """Store the parts; `checkpoint` copies the log into the file while others read and write."""
        super().__init__(engine)
        self._checkpoint = checkpoint
        self._purging = threading.Lock()

    @reads
    def select(self, session: SqliteSession, choice: ForgetFilter) -> list[str]:
        """Return the ids of the memories that match a filter."""
        narrow = listing.join_conditions(
            [
                *chosen_conditions(choice, "memory"),
                *listing.tag_conditions(choice.tags, "seq"),
                *(search.term_conditions(choice.terms, "seq") if choice.terms else ()),
            ]
        )
        named = name_matcher(choice.person) if choice.person else None
        ids: list[str] = []
        for table, text in _TABLES.items():
            columns = (
                f"id, role, {_NAMED}, {text}, {_EARLIER.format(table=table)}"
                if named
                else "id"
            )
            rows = session.execute(
                f"SELECT {columns} FROM {table} WHERE 1{narrow.text} ORDER BY seq",
                **narrow.values,
            )
            ids += [id for id, *texts in rows if is_named_in(texts, named)]
        return ids

    def _find(self, session: SqliteSession, ids: Sequence[str]) -> list[FoundMemory]:
        """Return the stored memories with these ids, by row number, with lengths in bytes."""
        size = "length(CAST(content AS BLOB))"
        rows = session.execute(
            f"SELECT seq, id, {size}, NULL, 0, session_id FROM working_memory "
            "WHERE id = ANY(%(ids)s::text[]) UNION ALL "
            f"SELECT seq, id, {size}, episode_seq, "
            "(SELECT count(*) FROM detail WHERE memory_seq = seq), session_id FROM archive "
            "WHERE id = ANY(%(ids)s::text[]) ORDER BY seq",
            ids=list(ids),
        )
        return list(map(FoundMemory._make, rows))

    def _delete(self, session: SqliteSession, found: Sequence[FoundMemory]) -> None:
        """Delete memories with all rows and index entries, and mark their secrets in other originals."""
        indexed: list[tuple[int, str, str]] = []
        for memory in found:
            table = "working_memory"
            if memory.episode is not None:
                table = "archive"
                session.share_secret_marks(memory.seq, memory.episode)
            indexed += session.execute(
                f"DELETE FROM {table} WHERE seq = ? RETURNING seq, content, role",
                (memory.seq,),
            ).fetchall()
            for beside in KEYED_BY_MEMORY:
                session.execute(
                    f"DELETE FROM {beside} WHERE memory_seq = ?", (memory.seq,)
                )
        # After all rows, as when they were remembered.
        for seq, content, role in indexed:
            fulltext.unindex_memory(session, seq, content, role)

    def _insert_memory(
        self, session: SqliteSession, memory: MemoryRecord, seq: int | None
    ) -> int:
        """Insert a memory into working memory with its full-text index entries; return the row number."""
        inserted = session.execute(memories.INSERT_NUMBERED, (seq, *memory_row(memory)))
        number = cast("int", inserted.lastrowid)
        state.insert_tags_and_validity(session, number, memory)
        fulltext.index_memories(session, [(number, memory.content, memory.role)])
        return number

    def purge_deleted(self) -> bool:
        # No write waits for the disk: a purge that a power failure undoes is run again.
        """Purge deleted text from indexes, file and log; return False if a reader prevents it."""
        with self._purging:
            with self._engine.reading() as session:
                newest = session.scalar("SELECT max(asked) FROM scrub_due")
            if newest is None:
                return True
            for index in fulltext.INDEXES:
                self._purge_index(index)
            clean = self._engine.writer.compact() and self._empty_log()
            if clean:
                settle = "DELETE FROM scrub_due WHERE asked <= ?"
                self._engine.write(
                    lambda session: session.execute(settle, (newest,)), durable=False
                )
        return clean

    def _purge_index(self, index: str) -> None:
        """Merge an index step by step until no deleted entry is left in it.

        Each step is a transaction, so that writers wait for one step only. An index with too many
        levels is rebuilt.
        """
        depth = self._engine.write(
            partial(fulltext.index_depth, index=index), durable=False
        )
        if depth is None or depth > fulltext.DEPTH_MAX:
            self._engine.write(
                partial(fulltext.rebuild_index, index=index), durable=False
            )
            return
        for step in range(fulltext.MERGE_STEPS_MAX):
            merge = partial(fulltext.merge_step, index=index, step=step)
            if not self._engine.write(merge, durable=False):
                break

    def _empty_log(self) -> bool:
        """Copy the write-ahead log into the file, and truncate the log.

        Return False if a reader prevents it. Most of the log is copied while others read; for the
        rest the readers of this process are paused for moments.
        """
        self._checkpoint()
        for _ in range(CHECKPOINT_TRIES):
            with self._engine.readers.pause(wait_s=CHECKPOINT_PAUSE_S) as alone:
                if alone and self._engine.writer.checkpoint():
                    return True
            time.sleep(CHECKPOINT_PAUSE_S)
        return False
