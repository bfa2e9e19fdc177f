"""Compactions: the messages they took out of conversations, in order."""

from __future__ import annotations

import sqlite3
from collections.abc import Mapping, Sequence
from functools import partial

from mnemosyned.conversation.archived import ABOUT, archived_memory_ids
from mnemosyned.instants import shift
from mnemosyned.memory.ports import (
    ArchivedMessage,
    CompactionRecord,
    CompactionStore,
    NewCompaction,
    places_of,
)
from mnemosyned.memory.values import MemoryRecord, Tier, content_hash
from mnemosyned.storage.sqlite.insert import SqliteIntake
from mnemosyned.storage.sqlite.rows import (
    ARCHIVE_FIELDS,
    MEMORY_FIELDS,
    instant,
    instant_text,
    memory_from,
)
from mnemosyned.storage.sqlite.writer import Transactional, reads, writes

IDS_PER_QUERY = 500


class SqliteCompactions(Transactional, CompactionStore):
    """A `CompactionStore` on one SQLite file."""

    @writes
    def add(
        self, connection: sqlite3.Connection, compactions: Sequence[NewCompaction]
    ) -> list[str]:
        places, drafts = places_of(compactions, partial(_home, connection))
        SqliteIntake(connection).remember(drafts)
        for compaction in compactions:
            _insert(connection, compaction, places)
        return list(dict.fromkeys(places.values()))

    @reads
    def get(
        self, connection: sqlite3.Connection, id: str
    ) -> tuple[CompactionRecord, list[MemoryRecord]] | None:
        row = connection.execute(
            "SELECT id, session_id, source, policy, created_at FROM compaction WHERE id = ?",
            (id,),
        ).fetchone()
        if row is None:
            return None
        *_, session, source, policy, created_at = row
        compacted = CompactionRecord(
            id=id,
            session=session,
            source=source,
            policy=policy,
            created_at=instant(created_at),
        )
        ids = list(dict.fromkeys(archived_memory_ids(_below(connection, id), id)))
        memories = _memories(connection, ids)
        return compacted, [memories[id] for id in ids if id in memories]

    @reads
    def find_by_summary(
        self,
        connection: sqlite3.Connection,
        text: str,
        *,
        session: str,
        source: str | None,
    ) -> str | None:
        row = connection.execute(
            "SELECT id FROM compaction WHERE text_hash = ? AND session_id = ? AND source IS ? "
            "ORDER BY created_at DESC LIMIT 1",
            (content_hash(text), session, source),
        ).fetchone()
        return row[0] if row else None


def _home(connection: sqlite3.Connection, taken: ArchivedMessage) -> str | None:
    """The memory that holds this message already, by its id or as the agent remembered it.

    What a compaction took out before is another message, although it may say the same.
    """
    memory = taken.draft.memory
    row = connection.execute(
        "SELECT id FROM working_memory WHERE id = ? "
        "UNION ALL SELECT id FROM archive WHERE id = ?",
        (memory.id, memory.id),
    ).fetchone()
    if row is None and taken.may_reuse:
        same = (
            "content_hash = ? AND content = ? AND +session_id = ? AND source IS ? "
            "AND role = ? AND id NOT GLOB 'm-*' AND (? IS NULL OR created_at BETWEEN ? AND ?)"
        )
        earliest = latest = None
        if taken.has_timestamp:
            earliest = instant_text(shift(memory.created_at, -ABOUT))
            latest = instant_text(shift(memory.created_at, ABOUT))
        row = connection.execute(
            f"SELECT id FROM working_memory WHERE {same} "
            f"UNION ALL SELECT id FROM archive WHERE {same} LIMIT 1",
            (
                content_hash(memory.content),
                memory.content,
                memory.session,
                memory.source,
                memory.role,
                earliest,
                earliest,
                latest,
            )
            * 2,
        ).fetchone()
    return row[0] if row else None


def _insert(
    connection: sqlite3.Connection, compacting: NewCompaction, places: Mapping[str, str]
) -> None:
    record = compacting.record
    new = connection.execute(
        "INSERT OR IGNORE INTO compaction VALUES (?, ?, ?, ?, ?, ?)",
        (
            record.id,
            record.session,
            record.source,
            record.policy,
            content_hash(compacting.text),
            instant_text(record.created_at),
        ),
    ).rowcount
    if new:
        parts = compacting.part_ids(places)
        connection.executemany(
            "INSERT INTO compacted VALUES (?, ?, ?)",
            [(record.id, position, part) for position, part in enumerate(parts)],
        )


def _below(connection: sqlite3.Connection, id: str) -> dict[str, list[str]]:
    """The parts of a compaction and of all those it goes on from, each in its order."""
    rows = connection.execute(
        "WITH RECURSIVE below (id) AS (SELECT ? UNION "
        "SELECT c.part FROM below CROSS JOIN compacted AS c ON c.compaction = below.id) "
        "SELECT c.compaction, c.part FROM below "
        "CROSS JOIN compacted AS c ON c.compaction = below.id "
        "ORDER BY c.compaction, c.position",
        (id,),
    )
    parts: dict[str, list[str]] = {}
    for compaction, part in rows:
        parts.setdefault(compaction, []).append(part)
    return parts


def _memories(
    connection: sqlite3.Connection, ids: Sequence[str]
) -> dict[str, MemoryRecord]:
    memories: dict[str, MemoryRecord] = {}
    for start in range(0, len(ids), IDS_PER_QUERY):
        chunk = ids[start : start + IDS_PER_QUERY]
        marks = ", ".join("?" * len(chunk))
        for row in connection.execute(
            f"SELECT {MEMORY_FIELDS} FROM working_memory WHERE id IN ({marks})", chunk
        ):
            memory = memory_from(row, tier=Tier.WORKING)
            memories[memory.id] = memory
        for row in connection.execute(
            f"SELECT {ARCHIVE_FIELDS}, e.id FROM archive AS a "
            f"JOIN episodic_memory AS e ON e.seq = a.episode_seq WHERE a.id IN ({marks})",
            chunk,
        ):
            *fields, episode = row
            memory = memory_from(tuple(fields), tier=Tier.ARCHIVE, episode=episode)
            memories[memory.id] = memory
    return memories
