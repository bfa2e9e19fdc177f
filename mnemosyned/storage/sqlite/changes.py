"""What each write does inside its transaction; a raised error leaves nothing behind."""

from __future__ import annotations

import sqlite3
from collections.abc import Collection, Sequence

from mnemosyned.domain.consolidation import LogEntry
from mnemosyned.domain.errors import BatchChanged, IdTaken
from mnemosyned.domain.memory import Acknowledged, Detail, Memory, content_hash
from mnemosyned.domain.ports import Draft, Promotion
from mnemosyned.storage.sqlite import learnings
from mnemosyned.storage.sqlite.grams import index_grams
from mnemosyned.storage.sqlite.indexing import index_memory
from mnemosyned.storage.sqlite.marks import note, supersede
from mnemosyned.storage.sqlite.rows import (
    EPISODE_COLUMNS,
    LOG_COLUMNS,
    MEMORY_COLUMNS,
    episode_row,
    instant,
    instant_text,
    log_row,
    memory_row,
)


def _marks(columns: str) -> str:
    return ", ".join("?" for _ in columns.split(", "))


_INSERT_MEMORY = f"INSERT INTO working_memory ({MEMORY_COLUMNS}) VALUES ({_marks(MEMORY_COLUMNS)})"
_INSERT_EPISODE = (
    f"INSERT INTO episodic_memory ({EPISODE_COLUMNS}) VALUES ({_marks(EPISODE_COLUMNS)})"
)
_INSERT_LOG = f"INSERT INTO consolidation_log ({LOG_COLUMNS}) VALUES ({_marks(LOG_COLUMNS)})"
# What was superseded or may expire does not stand for words that are said again.
_SAME = (
    "+session_id = ?1 AND content_hash = ?2 AND content = ?3 AND source IS ?4 "
    "AND seq NOT IN (SELECT memory_seq FROM memory_state)"
)
SAID_BEFORE = (
    f"SELECT id, created_at FROM working_memory WHERE {_SAME} "
    f"UNION ALL SELECT id, created_at FROM archive WHERE {_SAME} "
    "ORDER BY created_at LIMIT 1"
)


# ------------------------------------------------------------------ remember


def remember(connection: sqlite3.Connection, drafts: Sequence[Draft]) -> list[Acknowledged]:
    """Insert and index the drafts that are not known yet.

    The index comes after all rows: an insert with a trigger is a savepoint, at which FTS5 would
    write out what it has gathered, row by row (twice the time of the batch).
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
            for learning in draft.learnings:
                learnings.keep(connection, learning)
            known = Acknowledged(id=memory.id, created_at=memory.created_at, stored=True)
        if draft.supersedes:
            supersede(connection, old=draft.supersedes, new=known.id)
        acknowledged.append(known)
    for seq, memory in inserted:
        index_memory(connection, seq, memory.content, memory.role)
        if memory.valid_until:
            note(connection, seq, "valid_until", instant_text(memory.valid_until))
    return acknowledged


def _known(connection: sqlite3.Connection, draft: Draft) -> Acknowledged | None:
    memory = draft.memory
    row = connection.execute(
        "SELECT content, created_at, content_hash FROM working_memory WHERE id = ?1 "
        "UNION ALL SELECT content, created_at, content_hash FROM archive WHERE id = ?1 "
        "UNION ALL SELECT NULL, created_at, NULL FROM episodic_memory WHERE id = ?1",
        (memory.id,),
    ).fetchone()
    if row:
        pruned = row[0] == "" and row[2] == content_hash(memory.content)
        if row[0] != memory.content and not pruned:
            raise IdTaken(
                f"the id {memory.id!r} already belongs to something else; "
                "give this memory another id, or none",
                field="id",
            )
        return Acknowledged(id=memory.id, created_at=instant(row[1]), stored=False)
    if draft.dedupe:
        row = connection.execute(
            SAID_BEFORE,
            (memory.session, content_hash(memory.content), memory.content, memory.source),
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
        index_grams(connection, "episode_gram_fts", episode_seq, episode.content)
        _check_in_force(connection, promotion.spoken)
        _evict(connection, episode.summary_of, episode_seq)
        if episode.details:
            _insert_details(connection, episode.details, episode_seq)
        insert_log(connection, promotion.entry)


def _check_in_force(connection: sqlite3.Connection, ids: Collection[str]) -> None:
    if connection.execute(
        "SELECT 1 FROM memory_state AS s JOIN working_memory AS w ON w.seq = s.memory_seq "
        f"WHERE s.superseded_at IS NOT NULL AND w.id IN ({', '.join('?' * len(ids))})",
        tuple(ids),
    ).fetchone():
        raise BatchChanged("a memory of this group was superseded meanwhile; plan it again")


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


def settle(connection: sqlite3.Connection) -> None:
    """Write a page that says nothing new: its commit takes all before it to the disk."""
    connection.execute("UPDATE tier_totals SET count = count WHERE tier = 'episodic'")


def insert_log(connection: sqlite3.Connection, entry: LogEntry) -> None:
    """Write one row of the consolidation log."""
    connection.execute(_INSERT_LOG, log_row(entry))
