"""Memories, episodes and exact values by their rows, and the hierarchy of summaries."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import replace
from typing import Literal, TypeVar

from mnemosyned.memory.periods import Level, distinct
from mnemosyned.memory.rows import EPISODE_COLUMNS, detail_from
from mnemosyned.memory.values import Episode, MemoryRecord, Tier
from mnemosyned.storage.sqlite.rows import (
    ARCHIVE_FIELDS,
    MEMORY_FIELDS,
    SEQ_AMONG,
    episode_from,
    memory_from,
)
from mnemosyned.text.details import Detail

T = TypeVar("T")

CHUNK = 500
"""How many values one statement binds; SQLite allows more, older builds 999."""

BELOW = """
    WITH RECURSIVE below (id, seq) AS (
        SELECT id, seq FROM episodic_memory WHERE id = ?
        UNION ALL
        SELECT e.id, e.seq FROM below JOIN episodic_memory AS e ON e.parent_id = below.id
    )
"""
"""A summary and all summaries under it; the first value bound is its id.

What lies under them is joined by CROSS JOIN, which keeps SQLite from reading a whole table first:
it takes the summaries of a recursion to be many.
"""

ABOVE = """
    WITH RECURSIVE above (id, seq, parent_id) AS (
        SELECT id, seq, parent_id FROM episodic_memory WHERE id = ?
        UNION ALL
        SELECT e.id, e.seq, e.parent_id FROM above
        JOIN episodic_memory AS e ON e.id = above.parent_id
    )
"""
"""The same upwards: a summary, and those it went into."""


def ancestors(connection: sqlite3.Connection, seqs: Iterable[int]) -> dict[int, int]:
    """Map these summaries, and those above them, to the roll-up that each went into.

    Both are the `seq` of a summary.
    """
    parents: dict[int, int] = {}
    asked = set(seqs)
    for _ in Level:
        upper: set[int] = set()
        for chunk in chunks(sorted(asked)):
            for seq, parent in connection.execute(
                "SELECT e.seq, p.seq FROM episodic_memory AS e "
                f"JOIN episodic_memory AS p ON p.id = e.parent_id WHERE e.seq IN ({placeholders(chunk)})",
                chunk,
            ):
                parents[seq] = parent
                upper.add(parent)
        asked = upper - parents.keys()
        if not asked:
            break
    return parents


def name_rollup(connection: sqlite3.Connection, id: str) -> None:
    """Give a day, week or month the session and source that all below it have, if they agree."""
    connection.execute(
        "UPDATE episodic_memory SET (session_id, source) = ("
        "SELECT iif(min(session_id) = max(session_id), min(session_id), ''), "
        "iif(min(ifnull(source, '')) = max(ifnull(source, '')), min(source), NULL) "
        "FROM episodic_memory WHERE parent_id = ?) WHERE id = ?",
        (id, id),
    )


def chunks(values: Sequence[T]) -> Iterator[Sequence[T]]:
    """The values in runs that one statement can bind."""
    return (values[start : start + CHUNK] for start in range(0, len(values), CHUNK))


def placeholders(values: Collection[object]) -> str:
    """Return as many question marks as there are values to bind."""
    return ", ".join("?" * len(values))


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


def insert_details(
    connection: sqlite3.Connection, details: Sequence[Detail], episode_seq: int | None
) -> None:
    """Insert the details of an episode's originals."""
    seqs: dict[str, int] = dict(
        connection.execute(
            "SELECT id, seq FROM archive WHERE episode_seq = ?", (episode_seq,)
        )
    )
    kinds = _kinds(connection, (detail.kind for detail in details))
    connection.executemany(
        "INSERT INTO detail (memory_seq, kind, value, sensitive) VALUES (?, ?, ?, ?)",
        [
            (seqs[detail.memory], kinds[detail.kind], detail.value, detail.sensitive)
            for detail in details
        ],
    )


def _kinds(connection: sqlite3.Connection, names: Iterable[str]) -> dict[str, int]:
    """The numbers of all kinds of details; new ones get one."""
    kinds: dict[str, int] = dict(
        connection.execute("SELECT name, number FROM detail_kind")
    )
    for kind in set(names) - kinds.keys():
        kinds[kind] = connection.execute(
            "INSERT INTO detail_kind (name) VALUES (?) RETURNING number", (kind,)
        ).fetchone()[0]
    return kinds


def sensitive_details(
    connection: sqlite3.Connection, episode_seq: int
) -> list[tuple[str, str]]:
    """Kinds and values of the secrets that an episode's originals hold."""
    return connection.execute(
        "SELECT k.name, d.value FROM archive AS a JOIN detail AS d ON d.memory_seq = a.seq "
        "JOIN detail_kind AS k ON k.number = d.kind WHERE a.episode_seq = ? AND d.sensitive",
        (episode_seq,),
    ).fetchall()
