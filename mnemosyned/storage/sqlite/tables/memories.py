"""Memories and episodes by their rows, and the size of the working tier."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Collection
from dataclasses import replace
from typing import Literal

from mnemosyned.domain.memory import Detail, Episode, MemoryRecord, Tier
from mnemosyned.domain.sleep.rollup import distinct
from mnemosyned.domain.storing.rows import EPISODE_COLUMNS, detail_from
from mnemosyned.storage.sqlite.tables.hierarchy import BELOW
from mnemosyned.storage.sqlite.tables.rows import (
    ARCHIVE_FIELDS,
    MEMORY_FIELDS,
    SEQ_AMONG,
    episode_from,
    memory_from,
)


def working_count(connection: sqlite3.Connection) -> int:
    """How many memories the working tier holds."""
    count: int = connection.execute(
        "SELECT count FROM tier_totals WHERE tier = 'working'"
    ).fetchone()[0]
    return count


def episode_at(
    connection: sqlite3.Connection,
    key: Literal["id", "seq"],
    value: str | int,
    *,
    details: bool = False,
) -> Episode | None:
    """One episode with its provenance, and on request the exact values of its originals."""
    row = connection.execute(
        f"SELECT seq, {EPISODE_COLUMNS} FROM episodic_memory WHERE {key} = ?", (value,)
    ).fetchone()
    if row is None:
        return None
    episode = episode_from(row[1:])
    made_of = connection.execute(
        "SELECT id FROM episodic_memory WHERE parent_id = ? ORDER BY covers_from, seq"
        if episode.level
        else "SELECT id FROM archive WHERE episode_seq = ? ORDER BY created_at, seq",
        (episode.id if episode.level else row[0],),
    )
    return replace(
        episode,
        summary_of=tuple(id for (id,) in made_of),
        details=_details(connection, episode) if details else (),
    )


def _details(connection: sqlite3.Connection, episode: Episode) -> tuple[Detail, ...]:
    """The exact values of the originals under a summary; above an episode each once."""
    rows = connection.execute(
        f"{BELOW} SELECT k.name, d.value, d.sensitive, a.id, EXISTS ("
        "SELECT 1 FROM memory_state AS s WHERE s.memory_seq = a.seq "
        "AND s.superseded_at IS NOT NULL) FROM below "
        "CROSS JOIN archive AS a ON a.episode_seq = below.seq "
        "CROSS JOIN detail AS d ON d.memory_seq = a.seq JOIN detail_kind AS k ON k.number = d.kind "
        "ORDER BY a.created_at, a.seq, k.name, d.value",
        (episode.id,),
    )
    details = tuple(detail_from(row) for row in rows)
    return distinct(details) if episode.level else details


def memories_at(
    connection: sqlite3.Connection, seqs: Collection[int]
) -> dict[int, MemoryRecord]:
    """The memories of these rows, wherever each is."""
    positions = json.dumps(list(seqs))
    memories = _working_memories(connection, positions)
    if len(memories) < len(seqs):
        memories |= _archived_memories(connection, positions)
    return memories


def _working_memories(
    connection: sqlite3.Connection, positions: str
) -> dict[int, MemoryRecord]:
    rows = connection.execute(
        f"SELECT seq, {MEMORY_FIELDS} FROM working_memory WHERE {SEQ_AMONG}",
        (positions,),
    )
    return {seq: memory_from(row, tier=Tier.WORKING) for seq, *row in rows}


def _archived_memories(
    connection: sqlite3.Connection, positions: str
) -> dict[int, MemoryRecord]:
    rows = connection.execute(
        f"SELECT a.seq, e.id, {ARCHIVE_FIELDS} FROM archive AS a "
        f"JOIN episodic_memory AS e ON e.seq = a.episode_seq WHERE a.{SEQ_AMONG}",
        (positions,),
    )
    return {
        seq: memory_from(row, tier=Tier.ARCHIVE, episode=episode)
        for seq, episode, *row in rows
    }
