"""Single memories and episodes: remembered, and read by id."""

from __future__ import annotations

import sqlite3
from collections.abc import Sequence

from mnemosyned.domain.errors import NotFound
from mnemosyned.domain.memory import (
    Episode,
    MemoryRecord,
    Tier,
)
from mnemosyned.domain.ports.records import Draft, RecordStore, Remembered
from mnemosyned.domain.storing.rows import EPISODE_COLUMNS
from mnemosyned.domain.storing.supersession import HISTORY_MAX
from mnemosyned.storage.sqlite.database.transactions import Transactional, reads, writes
from mnemosyned.storage.sqlite.tables.changing.state import position_of
from mnemosyned.storage.sqlite.tables.hierarchy import BELOW, chunks, placeholders
from mnemosyned.storage.sqlite.tables.insert import SqliteIntake
from mnemosyned.storage.sqlite.tables.memories import episode_at, working_count
from mnemosyned.storage.sqlite.tables.rows import (
    ARCHIVE_FIELDS,
    MEMORY_FIELDS,
    episode_from,
    memory_from,
)


class SqliteRecords(Transactional, RecordStore):
    """A `RecordStore` on one SQLite file."""

    @writes
    def remember(
        self, connection: sqlite3.Connection, drafts: Sequence[Draft]
    ) -> Remembered:
        return SqliteIntake(connection).remember(drafts)

    @reads
    def get(self, connection: sqlite3.Connection, id: str) -> MemoryRecord | Episode:
        record = _memory(connection, id) or episode_at(
            connection, "id", id, details=True
        )
        if record is None:
            raise NotFound(
                f"nothing has the id {id!r}; `recall` shows the ids that exist",
                field="id",
            )
        return record

    @reads
    def originals(
        self, connection: sqlite3.Connection, episode: str
    ) -> list[MemoryRecord]:
        rows = connection.execute(
            f"{BELOW} SELECT below.id, {ARCHIVE_FIELDS} FROM below "
            "CROSS JOIN archive AS a ON a.episode_seq = below.seq ORDER BY a.created_at, a.seq",
            (episode,),
        ).fetchall()
        return [memory_from(row[1:], tier=Tier.ARCHIVE, episode=row[0]) for row in rows]

    @reads
    def summaries(
        self, connection: sqlite3.Connection, ids: Sequence[str]
    ) -> list[Episode]:
        rows = []
        for chunk in chunks(ids):
            rows += connection.execute(
                f"SELECT {EPISODE_COLUMNS} FROM episodic_memory "
                f"WHERE id IN ({placeholders(chunk)})",
                chunk,
            ).fetchall()
        return sorted(
            map(episode_from, rows),
            key=lambda summary: (summary.covers_from, summary.id),
        )

    @reads
    def working(
        self, connection: sqlite3.Connection, ids: Sequence[str]
    ) -> list[MemoryRecord]:
        rows = connection.execute(
            f"SELECT {MEMORY_FIELDS} FROM working_memory "
            f"WHERE id IN ({', '.join('?' * len(ids))}) ORDER BY created_at, seq",
            ids,
        ).fetchall()
        return [memory_from(row, tier=Tier.WORKING) for row in rows]

    @reads
    def existing(
        self, connection: sqlite3.Connection, ids: Sequence[str]
    ) -> list[MemoryRecord]:
        found = (_memory(connection, id) for id in ids)
        return [memory for memory in found if memory]

    @reads
    def working_count(self, connection: sqlite3.Connection) -> int:
        return working_count(connection)

    @reads
    def history(self, connection: sqlite3.Connection, id: str) -> list[MemoryRecord]:
        position = position_of(connection, id)
        older: list[MemoryRecord] = []
        waiting: Sequence[int] = [position[0]] if position else []
        while waiting and len(older) < HISTORY_MAX:
            marks = ", ".join("?" * len(waiting))
            waiting = [
                seq
                for (seq,) in connection.execute(
                    f"SELECT memory_seq FROM memory_state WHERE superseded_by IN ({marks}) "
                    "ORDER BY superseded_at DESC, memory_seq DESC LIMIT ?",
                    (*waiting, HISTORY_MAX),
                )
            ]
            for seq in waiting:
                older += _memory_at(connection, seq)
        return older[:HISTORY_MAX]


def _memory(connection: sqlite3.Connection, id: str) -> MemoryRecord | None:
    """The memory of this id, wherever it is."""
    row = connection.execute(
        f"SELECT {MEMORY_FIELDS} FROM working_memory WHERE id = ?", (id,)
    ).fetchone()
    if row:
        return memory_from(row, tier=Tier.WORKING)
    row = connection.execute(
        f"SELECT e.id, {ARCHIVE_FIELDS} FROM archive AS a "
        "JOIN episodic_memory AS e ON e.seq = a.episode_seq WHERE a.id = ?",
        (id,),
    ).fetchone()
    return memory_from(row[1:], tier=Tier.ARCHIVE, episode=row[0]) if row else None


def _memory_at(connection: sqlite3.Connection, seq: int) -> list[MemoryRecord]:
    row = connection.execute(
        f"SELECT {MEMORY_FIELDS} FROM working_memory WHERE seq = ?", (seq,)
    ).fetchone()
    if row:
        return [memory_from(row, tier=Tier.WORKING)]
    row = connection.execute(
        f"SELECT e.id, {ARCHIVE_FIELDS} FROM archive AS a "
        "JOIN episodic_memory AS e ON e.seq = a.episode_seq WHERE a.seq = ?",
        (seq,),
    ).fetchone()
    return [memory_from(row[1:], tier=Tier.ARCHIVE, episode=row[0])] if row else []
