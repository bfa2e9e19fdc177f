"""What a sleep cycle writes inside its transaction; a raised error leaves nothing behind."""

from __future__ import annotations

import sqlite3
from collections.abc import Collection, Sequence

from mnemosyned.domain.consolidation import LogEntry
from mnemosyned.domain.errors import BatchChanged
from mnemosyned.domain.memory import Detail
from mnemosyned.domain.ports.store import Promotion
from mnemosyned.storage.sqlite.fulltext.indexing import index_grams
from mnemosyned.storage.sqlite.tables.rows import (
    EPISODE_COLUMNS,
    LOG_COLUMNS,
    MEMORY_COLUMNS,
    episode_row,
    log_row,
)


def _marks(columns: str) -> str:
    return ", ".join("?" for _ in columns.split(", "))


_INSERT_EPISODE = f"INSERT INTO episodic_memory ({EPISODE_COLUMNS}) VALUES ({_marks(EPISODE_COLUMNS)})"
_INSERT_LOG = (
    f"INSERT INTO consolidation_log ({LOG_COLUMNS}) VALUES ({_marks(LOG_COLUMNS)})"
)


def consolidate(
    connection: sqlite3.Connection, promotions: Sequence[Promotion]
) -> None:
    """Promote, evict and log. The index keeps its rows: a memory's `seq` goes with it."""
    for promotion in promotions:
        episode = promotion.episode
        episode_seq = connection.execute(
            _INSERT_EPISODE, episode_row(episode)
        ).lastrowid
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
        raise BatchChanged(
            "a memory of this group was superseded meanwhile; plan it again"
        )


def _evict(
    connection: sqlite3.Connection, ids: Sequence[str], episode_seq: int | None
) -> None:
    marks = ", ".join("?" * len(ids))
    moved = connection.execute(
        f"INSERT INTO archive (seq, {MEMORY_COLUMNS}, episode_seq) "
        f"SELECT seq, {MEMORY_COLUMNS}, ? FROM working_memory "
        f"WHERE id IN ({marks}) AND NOT pinned ORDER BY seq",
        (episode_seq, *ids),
    ).rowcount
    if moved != len(ids):
        raise BatchChanged(
            "a memory of this group was forgotten or moved; plan the group again"
        )
    connection.execute(f"DELETE FROM working_memory WHERE id IN ({marks})", ids)


def _insert_details(
    connection: sqlite3.Connection, details: Sequence[Detail], episode_seq: int | None
) -> None:
    seqs: dict[str, int] = dict(
        connection.execute(
            "SELECT id, seq FROM archive WHERE episode_seq = ?", (episode_seq,)
        )
    )
    kinds: dict[str, int] = dict(
        connection.execute("SELECT name, number FROM detail_kind")
    )
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
