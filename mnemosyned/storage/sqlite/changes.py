"""What each write does inside its transaction; a raised error leaves nothing behind."""

from __future__ import annotations

import sqlite3
from collections.abc import Sequence

from mnemosyned.domain.consolidation import LogEntry, preview
from mnemosyned.domain.errors import BatchChanged, IdTaken
from mnemosyned.domain.memory import Acknowledged, Detail, Episode, Memory, Tier, content_hash
from mnemosyned.domain.ports import Draft, Promotion
from mnemosyned.domain.terms import grams
from mnemosyned.storage.sqlite.rows import (
    EPISODE_COLUMNS,
    LOG_COLUMNS,
    MEMORY_COLUMNS,
    episode_row,
    instant,
    log_row,
    memory_row,
)

INDEXES = ("memory_fts", "episode_fts", "memory_gram_fts", "episode_gram_fts")
SCRUB_PAGES = 500
SCRUB_STEPS_MAX = 10_000

_INSERT_MEMORY = f"INSERT INTO working_memory ({MEMORY_COLUMNS}) VALUES ({', '.join('?' * 10)})"
_INSERT_EPISODE = f"INSERT INTO episodic_memory ({EPISODE_COLUMNS}) VALUES ({', '.join('?' * 11)})"
_INSERT_LOG = f"INSERT INTO consolidation_log ({LOG_COLUMNS}) VALUES ({', '.join('?' * 15)})"


# ------------------------------------------------------------------ remember


def remember(connection: sqlite3.Connection, drafts: Sequence[Draft]) -> list[Acknowledged]:
    """Insert and index the drafts that are not known yet.

    The index comes after all rows: an insert with a trigger is a savepoint, at which FTS5 would
    write out what it has gathered, row by row (three times the time of the batch).
    """
    acknowledged = []
    inserted: list[tuple[int | None, Memory]] = []
    for index, draft in enumerate(drafts):
        try:
            known = _known(connection, draft)
        except IdTaken as error:
            if len(drafts) > 1:
                error.field = f"memories[{index}].id"
            raise
        if known is None:
            memory = draft.memory
            row = connection.execute(_INSERT_MEMORY, memory_row(memory))
            inserted.append((row.lastrowid, memory))
            known = Acknowledged(id=memory.id, created_at=memory.created_at, stored=True)
        acknowledged.append(known)
    for seq, memory in inserted:
        connection.execute(
            "INSERT INTO memory_fts (rowid, content, role) VALUES (?, ?, ?)",
            (seq, memory.content, memory.role),
        )
        _index_grams(connection, "memory_gram_fts", seq, memory.content)
    return acknowledged


def _known(connection: sqlite3.Connection, draft: Draft) -> Acknowledged | None:
    memory = draft.memory
    row = connection.execute(
        "SELECT content, created_at FROM working_memory WHERE id = ?1 "
        "UNION ALL SELECT content, created_at FROM archive WHERE id = ?1 "
        "UNION ALL SELECT NULL, created_at FROM episodic_memory WHERE id = ?1",
        (memory.id,),
    ).fetchone()
    if row:
        if row[0] != memory.content:
            raise IdTaken(
                f"the id {memory.id!r} already belongs to something else; "
                "give this memory another id, or none",
                field="id",
            )
        return Acknowledged(id=memory.id, created_at=instant(row[1]), stored=False)
    if draft.dedupe:
        row = connection.execute(
            "SELECT id, created_at FROM working_memory "
            "WHERE content_hash = ?1 AND content = ?2 AND session_id = ?3 AND source IS ?4 "
            "UNION ALL SELECT id, created_at FROM archive "
            "WHERE content_hash = ?1 AND content = ?2 AND session_id = ?3 AND source IS ?4 "
            "ORDER BY created_at LIMIT 1",
            (content_hash(memory.content), memory.content, memory.session, memory.source),
        ).fetchone()
        if row:
            return Acknowledged(id=row[0], created_at=instant(row[1]), stored=False)
    return None


# --------------------------------------------------------------- consolidate


def consolidate(connection: sqlite3.Connection, promotions: Sequence[Promotion]) -> None:
    """Promote, evict and log. The index keeps its rows: a memory's `seq` goes with it."""
    for promotion in promotions:
        episode = promotion.episode
        episode_seq = connection.execute(_INSERT_EPISODE, episode_row(episode)).lastrowid
        _index_grams(connection, "episode_gram_fts", episode_seq, episode.content)
        _evict(connection, episode.summary_of, episode_seq)
        if episode.details:
            _insert_details(connection, episode.details, episode_seq)
        insert_log(connection, promotion.entry)


def _evict(connection: sqlite3.Connection, ids: Sequence[str], episode_seq: int | None) -> None:
    marks = ", ".join("?" * len(ids))
    moved = connection.execute(
        f"INSERT INTO archive (seq, {MEMORY_COLUMNS}, episode_seq) "
        f"SELECT seq, {MEMORY_COLUMNS}, ? FROM working_memory "
        f"WHERE id IN ({marks}) AND NOT pinned ORDER BY seq",
        (episode_seq, *ids),
    ).rowcount
    if moved != len(ids):
        raise BatchChanged("a memory of this group was forgotten or moved; plan the group again")
    connection.execute(f"DELETE FROM working_memory WHERE id IN ({marks})", ids)


def _insert_details(
    connection: sqlite3.Connection, details: Sequence[Detail], episode_seq: int | None
) -> None:
    seqs: dict[str, int] = dict(
        connection.execute("SELECT id, seq FROM archive WHERE episode_seq = ?", (episode_seq,))
    )
    kinds: dict[str, int] = dict(connection.execute("SELECT name, number FROM detail_kind"))
    for kind in {detail.kind for detail in details} - kinds.keys():
        kinds[kind] = connection.execute(
            "INSERT INTO detail_kind (name) VALUES (?) RETURNING number", (kind,)
        ).fetchone()[0]
    connection.executemany(
        "INSERT INTO detail (memory_seq, kind, value, sensitive) VALUES (?, ?, ?, ?)",
        [
            (seqs[detail.memory], kinds[detail.kind], detail.value, detail.sensitive)
            for detail in details
        ],
    )


def insert_log(connection: sqlite3.Connection, entry: LogEntry) -> None:
    """Write one row of the consolidation log."""
    connection.execute(_INSERT_LOG, log_row(entry))


# -------------------------------------------------------------------- forget


def forget(
    connection: sqlite3.Connection, memories: Sequence[Memory], episode: Episode | None
) -> None:
    """Delete the memories, and mend or delete the summary they went into."""
    for memory in memories:
        _delete(connection, memory)
    if episode is not None:
        _rewrite(connection, episode)
    for emptied in {memory.episode for memory in memories if memory.episode}:
        if episode is None or emptied != episode.id:
            _delete_episode(connection, emptied)


def _delete(connection: sqlite3.Connection, memory: Memory) -> None:
    table = "working_memory" if memory.tier is Tier.WORKING else "archive"
    row = connection.execute(
        f"DELETE FROM {table} WHERE id = ? RETURNING seq, content, role", (memory.id,)
    ).fetchone()
    if row is None:
        raise BatchChanged("the memory moved to another tier meanwhile; try again")
    connection.execute(
        "INSERT INTO memory_fts (memory_fts, rowid, content, role) VALUES ('delete', ?, ?, ?)", row
    )
    _unindex_grams(connection, "memory_gram_fts", row[0], row[1])


def _rewrite(connection: sqlite3.Connection, episode: Episode) -> None:
    row = connection.execute(
        "SELECT seq, content FROM episodic_memory WHERE id = ?", (episode.id,)
    ).fetchone()
    kept = connection.execute("SELECT count(*) FROM archive WHERE episode_seq = ?", row[:1])
    if kept.fetchone()[0] != episode.item_count:
        raise BatchChanged("the episode changed meanwhile; try again")
    seq, content = row
    _unindex_grams(connection, "episode_gram_fts", seq, content)
    connection.execute(
        f"UPDATE episodic_memory SET ({EPISODE_COLUMNS}) = ({', '.join('?' * 11)}) WHERE seq = ?",
        (*episode_row(episode), seq),
    )
    _index_grams(connection, "episode_gram_fts", seq, episode.content)
    connection.execute(
        "UPDATE consolidation_log SET summary_preview = ? WHERE episode_id = ?",
        (preview(episode.content), episode.id),
    )


def _delete_episode(connection: sqlite3.Connection, id: str) -> None:
    row = connection.execute(
        "SELECT e.seq, e.content, EXISTS (SELECT 1 FROM archive WHERE episode_seq = e.seq) "
        "FROM episodic_memory AS e WHERE id = ?",
        (id,),
    ).fetchone()
    if row is None or row[2]:
        raise BatchChanged("the episode changed meanwhile; try again")
    connection.execute("DELETE FROM episodic_memory WHERE id = ?", (id,))
    _unindex_grams(connection, "episode_gram_fts", row[0], row[1])
    connection.execute(
        "UPDATE consolidation_log SET summary_preview = '' WHERE episode_id = ?", (id,)
    )


def scrub_step(connection: sqlite3.Connection, table: str) -> bool:
    """Merge a bounded part of an index, dropping what was deleted; False when none is left.

    FTS5 keeps deleted words in its segments until they are merged. A negative rank asks it to
    merge all segments into one, a few pages at a time.
    """
    before = connection.total_changes
    connection.execute(f"INSERT INTO {table} ({table}, rank) VALUES ('merge', ?)", (-SCRUB_PAGES,))
    return connection.total_changes - before >= 2


# --------------------------------------------------------------- second path


def _index_grams(connection: sqlite3.Connection, table: str, seq: int | None, content: str) -> None:
    if parts := grams(content):
        connection.execute(f"INSERT INTO {table} (rowid, grams) VALUES (?, ?)", (seq, parts))


def _unindex_grams(connection: sqlite3.Connection, table: str, seq: int, content: str) -> None:
    if parts := grams(content):
        connection.execute(
            f"INSERT INTO {table} ({table}, rowid, grams) VALUES ('delete', ?, ?)", (seq, parts)
        )
