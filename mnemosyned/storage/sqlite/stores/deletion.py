"""Forgetting: memories, learnings and names are deleted with all their traces."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable, Sequence

from mnemosyned.domain.keeping.retention import (
    ForgetFilter,
    Grace,
    Newest,
    Removal,
)
from mnemosyned.domain.ports.deletion import DeletionStore
from mnemosyned.domain.storing.intake import is_made_of_source, keys_of_forgotten
from mnemosyned.domain.storing.supersession import in_force_again
from mnemosyned.storage.sqlite.database.copies import NAMING
from mnemosyned.storage.sqlite.database.readers import Readers
from mnemosyned.storage.sqlite.database.transactions import Transactional, reads, writes
from mnemosyned.storage.sqlite.database.writer import Writer
from mnemosyned.storage.sqlite.fulltext.indexing import unindex_memory
from mnemosyned.storage.sqlite.search import selection
from mnemosyned.storage.sqlite.tables.changing.rewrites import invalidate
from mnemosyned.storage.sqlite.tables.changing.state import has_pruned, leave_secrets
from mnemosyned.storage.sqlite.tables.forgetting.forgotten import (
    keep_learnings,
    keep_memories,
)
from mnemosyned.storage.sqlite.tables.forgetting.purge import Purge, request_purge
from mnemosyned.storage.sqlite.tables.hierarchy import BELOW, chunks
from mnemosyned.storage.sqlite.tables.learnings import remove_known, remove_of_memory

KEYED_BY_MEMORY = ("memory_state", "tag", "revision")
"""The tables that keep something of a memory under its `memory_seq`, wherever the memory is. What
is made of its words (such as a vector) joins in here; `detail` goes with the archive's row."""


class SqliteDeletion(Transactional, DeletionStore):
    """A `DeletionStore` on one SQLite file."""

    def __init__(self, writer: Writer, readers: Readers, purge: Purge) -> None:
        super().__init__(writer, readers)
        self._purge = purge

    @reads
    def select(self, connection: sqlite3.Connection, choice: ForgetFilter) -> list[str]:
        return selection.chosen(connection, choice)

    @reads
    def select_learnings(
        self, connection: sqlite3.Connection, choice: ForgetFilter
    ) -> list[str]:
        return selection.chosen_learnings(connection, choice)

    @reads
    def newest(self, connection: sqlite3.Connection) -> Newest:
        memory, learning = connection.execute(
            "SELECT max((SELECT ifnull(max(seq), 0) FROM working_memory), "
            "(SELECT ifnull(max(seq), 0) FROM archive)), "
            "(SELECT ifnull(max(seq), 0) FROM learning)"
        ).fetchone()
        return Newest(memory, learning)

    @reads
    def ids_under(self, connection: sqlite3.Connection, summary: str) -> list[str]:
        rows = connection.execute(
            f"{BELOW} SELECT a.id FROM below CROSS JOIN archive AS a ON a.episode_seq = below.seq "
            "ORDER BY a.seq",
            (summary,),
        )
        return [id for (id,) in rows]

    @reads
    def preview(
        self,
        connection: sqlite3.Connection,
        ids: Sequence[str],
        *,
        learned: Sequence[str] = (),
    ) -> Removal:
        removal = Removal()
        leaving: dict[int, int] = {}
        wordless: dict[int, int] = {}
        unlearned = set(learned)
        for chunk in chunks(ids):
            marks = ", ".join("?" * len(chunk))
            (working,) = connection.execute(
                f"SELECT count(*) FROM working_memory WHERE id IN ({marks})", chunk
            ).fetchone()
            unlearned.update(
                id
                for (id,) in connection.execute(
                    f"SELECT id FROM learning WHERE memory_id IN ({marks})", chunk
                )
            )
            archived = details = 0
            for episode, count, without_words, values in connection.execute(
                "SELECT episode_seq, count(*), sum(content = ''), "
                "sum((SELECT count(*) FROM detail WHERE memory_seq = seq)) "
                f"FROM archive WHERE id IN ({marks}) GROUP BY episode_seq",
                chunk,
            ):
                leaving[episode] = leaving.get(episode, 0) + count
                wordless[episode] = wordless.get(episode, 0) + without_words
                archived += count
                details += values
            removal |= Removal(working=working, archived=archived, details=details)
        in_force, rewritten = _in_force_again(connection, ids)
        leaving |= dict.fromkeys(rewritten - leaving.keys(), 0)
        removed, emptied = _episodes_left(connection, leaving)
        return removal | Removal(
            removed=removed,
            emptied=emptied,
            learnings=len(unlearned),
            pruned=sum(wordless.values()),
            in_force=in_force,
            pruned_losing_summary=_pruned_losing_summary(connection, wordless),
        )

    @writes
    def forget(
        self,
        connection: sqlite3.Connection,
        ids: Sequence[str],
        *,
        grace: Grace | None = None,
    ) -> Removal:
        working = archived = details = unlearned = pruned = 0
        indexed: list[tuple[int, str, str]] = []
        in_force, episodes = _in_force_again(connection, ids)
        if grace:  # before any is deleted that another one refers to
            keep_memories(connection, ids, grace)
        for id in ids:
            if is_made_of_source(id):
                _leave_keys(connection, id)
            deleted = _delete_working(connection, id)
            if deleted:
                working += 1
            else:
                original = _delete_original(connection, id)
                if original is None:
                    continue
                deleted, episode, detail_count = original
                archived += 1
                pruned += not deleted[1]
                episodes.add(episode)
                details += detail_count
            unlearned += remove_of_memory(connection, id)
            indexed.append(deleted)
            _delete_state(connection, deleted[0])
        # After all rows, as when they were remembered.
        for seq, content, role in indexed:
            unindex_memory(connection, seq, content, role)
        removed, emptied = invalidate(connection, episodes)
        # Exact values of pruned ones go at once.
        if (working or archived) and (pruned or not grace):
            request_purge(connection)
        return Removal(
            working=working,
            archived=archived,
            details=details,
            learnings=unlearned,
            pruned=pruned,
            in_force=in_force,
            removed=removed,
            emptied=emptied,
        )

    @writes
    def forget_learnings(
        self,
        connection: sqlite3.Connection,
        ids: Sequence[str],
        *,
        grace: Grace | None = None,
    ) -> Removal:
        if grace:
            keep_learnings(connection, ids, grace)
        removal = Removal(learnings=remove_known(connection, ids))
        if removal.learnings and not grace:
            request_purge(connection)
        return removal

    @reads
    def orphaned_log_names(
        self, connection: sqlite3.Connection
    ) -> tuple[list[str], list[str]]:
        orphaned = []
        for column in ("session_id", "source"):
            named = " UNION ".join(
                f"SELECT {column} FROM {table} WHERE {column} != ''" for table in NAMING
            )
            rows = connection.execute(
                f"{named} "
                f"EXCEPT SELECT {column} FROM working_memory "
                f"EXCEPT SELECT {column} FROM episodic_memory"
            )
            orphaned.append([name for (name,) in rows])
        sessions, sources = orphaned
        return sessions, sources

    @writes
    def forget_names(
        self,
        connection: sqlite3.Connection,
        *,
        sessions: Iterable[str],
        sources: Iterable[str],
    ) -> None:
        for column, names, nameless in (
            ("session_id", sessions, ""),
            ("source", sources, None),
        ):
            for chunk in chunks(sorted(names)):
                marks = ", ".join("?" * len(chunk))
                alive = {
                    name
                    for table in ("working_memory", "episodic_memory")
                    for (name,) in connection.execute(
                        f"SELECT DISTINCT {column} FROM {table} WHERE {column} IN ({marks})",
                        chunk,
                    )
                }
                gone = [name for name in chunk if name not in alive]
                for table in NAMING:
                    connection.execute(
                        f"UPDATE {table} SET {column} = ? "
                        f"WHERE {column} IN ({', '.join('?' * len(gone))})",
                        (nameless, *gone),
                    )

    def purge_due(self) -> bool:
        return self._purge.due()

    def purge_deleted(self) -> bool:
        return self._purge.run()

    def beyond_purge(self) -> tuple[str, ...]:
        return ()


def _leave_keys(connection: sqlite3.Connection, id: str) -> None:
    """Keep what a memory is known by when its source is read again."""
    row = connection.execute(
        "SELECT seq, session_id, source, content_hash FROM working_memory WHERE id = ? "
        "UNION ALL "
        "SELECT seq, session_id, source, content_hash FROM archive WHERE id = ?",
        (id, id),
    ).fetchone()
    if row is None:
        return
    seq, session, source, said = row
    before = connection.execute(
        "SELECT content_hash FROM revision WHERE memory_seq = ?", (seq,)
    )
    hashes = [said, *(each for (each,) in before)]
    connection.executemany(
        "INSERT OR IGNORE INTO agent_forgotten VALUES (?)",
        [(key,) for key in keys_of_forgotten(id, session, source, hashes)],
    )


def _in_force_again(
    connection: sqlite3.Connection, ids: Sequence[str]
) -> tuple[frozenset[str], set[int]]:
    """Return what holds again without these memories, and the summaries to rewrite with it."""
    gone: set[int] = set()
    successors: dict[int, int | None] = {}
    again: set[str] = set()
    episodes: set[int] = set()
    for chunk in chunks(ids):
        marks = ", ".join("?" * len(chunk))
        rows = connection.execute(
            f"SELECT seq FROM working_memory WHERE id IN ({marks}) "
            f"UNION ALL SELECT seq FROM archive WHERE id IN ({marks})",
            (*chunk, *chunk),
        )
        gone.update(seq for (seq,) in rows)
    for places in chunks(sorted(gone)):
        marks = ", ".join("?" * len(places))
        successors.update(
            connection.execute(
                "SELECT memory_seq, superseded_by FROM memory_state "
                f"WHERE superseded_by IN ({marks}) UNION ALL "
                "SELECT memory_seq, superseded_by FROM memory_state "
                f"WHERE memory_seq IN ({marks}) AND superseded_at IS NOT NULL",
                (*places, *places),
            )
        )
    for seq in in_force_again(successors, gone):
        for id, episode in connection.execute(
            "SELECT id, NULL FROM working_memory WHERE seq = ? "
            "UNION ALL SELECT id, episode_seq FROM archive WHERE seq = ?",
            (seq, seq),
        ):
            again.add(id)
            if episode is not None and not has_pruned(connection, episode):
                episodes.add(episode)
    return frozenset(again), episodes


def _pruned_losing_summary(
    connection: sqlite3.Connection, leaving: dict[int, int]
) -> int:
    """How many pruned originals stay in these episodes when so many others leave them."""
    return sum(
        connection.execute(
            "SELECT count(*) FROM archive WHERE episode_seq = ? AND content = ''",
            (episode,),
        ).fetchone()[0]
        - count
        for episode, count in leaving.items()
    )


def _episodes_left(
    connection: sqlite3.Connection, leaving: dict[int, int]
) -> tuple[frozenset[int], frozenset[int]]:
    """Level by level: an episode that loses all it was made of goes, the others are rewritten."""
    removed: set[int] = set()
    emptied: set[int] = set()
    while leaving:  # ends, as each step goes up a level
        above: dict[int, int] = {}
        for seq, count in leaving.items():
            parts, parent = connection.execute(
                "SELECT (SELECT count(*) FROM archive WHERE episode_seq = e.seq) "
                "+ (SELECT count(*) FROM episodic_memory WHERE parent_id = e.id), "
                "(SELECT seq FROM episodic_memory WHERE id = e.parent_id) "
                "FROM episodic_memory AS e WHERE e.seq = ?",
                (seq,),
            ).fetchone()
            gone = count >= parts
            (removed if gone else emptied).add(seq)
            if parent is not None:
                above[parent] = above.get(parent, 0) + gone
        leaving = above
    return frozenset(removed), frozenset(emptied - removed)


def _delete_working(
    connection: sqlite3.Connection, id: str
) -> tuple[int, str, str] | None:
    """Delete a working memory; returns its position, text and role."""
    row: tuple[int, str, str] | None = connection.execute(
        "DELETE FROM working_memory WHERE id = ? RETURNING seq, content, role", (id,)
    ).fetchone()
    return row


def _delete_original(
    connection: sqlite3.Connection, id: str
) -> tuple[tuple[int, str, str], int, int] | None:
    """Delete an archived original; also returns its episode and number of details."""
    row = connection.execute(
        "SELECT seq, content, role, episode_seq, "
        "(SELECT count(*) FROM detail WHERE memory_seq = seq) FROM archive WHERE id = ?",
        (id,),
    ).fetchone()
    if row is None:
        return None
    seq, content, role, episode, detail_count = row
    leave_secrets(connection, seq, episode)
    connection.execute("DELETE FROM archive WHERE seq = ?", (seq,))
    return (seq, content, role), episode, detail_count


def _delete_state(connection: sqlite3.Connection, seq: int) -> None:
    """Delete the state of a memory.

    Its successor supersedes what it superseded; without one, that holds again.
    """
    connection.execute(
        "UPDATE memory_state AS older SET (superseded_by, superseded_at) = "
        "(SELECT superseded_by, iif(superseded_at IS NULL, NULL, older.superseded_at) "
        "FROM (SELECT 1) LEFT JOIN memory_state ON memory_seq = ?) WHERE superseded_by = ?",
        (seq, seq),
    )
    for table in KEYED_BY_MEMORY:
        connection.execute(f"DELETE FROM {table} WHERE memory_seq = ?", (seq,))
