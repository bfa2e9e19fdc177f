"""Memories, episodes and exact values by their rows, and the hierarchy of summaries."""

from __future__ import annotations

import json
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import replace
from typing import Literal, TypeVar

from mnemosyned.memory.periods import distinct
from mnemosyned.memory.values import Episode, MemoryRecord, Tier
from mnemosyned.storage.common.episodes import BELOW
from mnemosyned.storage.common.rows import EPISODE_COLUMNS, detail_from, episode_from
from mnemosyned.storage.sqlite.rows import (
    ARCHIVE_FIELDS,
    MEMORY_COLUMNS,
    MEMORY_FIELDS,
    SEQ_AMONG,
    memory_from,
)
from mnemosyned.storage.sqlite.session import Session
from mnemosyned.text.details import Detail

T = TypeVar("T")

CHUNK = 500
"""How many values one statement binds; SQLite allows more, older builds 999."""


def chunks(values: Sequence[T]) -> Iterator[Sequence[T]]:
    """The values in runs that one statement can bind."""
    return (values[start : start + CHUNK] for start in range(0, len(values), CHUNK))


def placeholders(values: Collection[object]) -> str:
    """Return as many question marks as there are values to bind."""
    return ", ".join("?" * len(values))


def working_count(session: Session) -> int:
    """How many memories the working tier holds."""
    count: int = session.execute(
        "SELECT count FROM tier_totals WHERE tier = 'working'"
    ).fetchone()[0]
    return count


def episode_at(
    session: Session,
    key: Literal["id", "seq"],
    value: str | int,
    *,
    details: bool = False,
) -> Episode | None:
    """One episode with its provenance, and on request the exact values of its originals."""
    row = session.execute(
        f"SELECT seq, {EPISODE_COLUMNS} FROM episodic_memory WHERE {key} = ?", (value,)
    ).fetchone()
    if row is None:
        return None
    episode = episode_from(row[1:])
    made_of = session.execute(
        "SELECT id FROM episodic_memory WHERE parent_id = ? ORDER BY covers_from, seq"
        if episode.level
        else "SELECT id FROM archive WHERE episode_seq = ? ORDER BY created_at, seq",
        (episode.id if episode.level else row[0],),
    )
    return replace(
        episode,
        summary_of=tuple(id for (id,) in made_of),
        details=_details(session, episode) if details else (),
    )


def _details(session: Session, episode: Episode) -> tuple[Detail, ...]:
    """The exact values of the originals under a summary; above an episode each once."""
    rows = session.execute(
        f"{BELOW} SELECT k.name, d.value, d.sensitive, a.id, EXISTS ("
        "SELECT 1 FROM memory_state AS s WHERE s.memory_seq = a.seq "
        "AND s.superseded_at IS NOT NULL) FROM below "
        "CROSS JOIN archive AS a ON a.episode_seq = below.seq "
        "CROSS JOIN detail AS d ON d.memory_seq = a.seq JOIN detail_kind AS k ON k.number = d.kind "
        "ORDER BY a.created_at, a.seq, k.name, d.value",
        summary=episode.id,
    )
    details = tuple(detail_from(row) for row in rows)
    return distinct(details) if episode.level else details


def memories_at(session: Session, seqs: Collection[int]) -> dict[int, MemoryRecord]:
    """The memories of these rows, wherever each is."""
    positions = json.dumps(list(seqs))
    memories = _working_memories(session, positions)
    if len(memories) < len(seqs):
        memories |= _archived_memories(session, positions)
    return memories


def _working_memories(session: Session, positions: str) -> dict[int, MemoryRecord]:
    rows = session.execute(
        f"SELECT seq, {MEMORY_FIELDS} FROM working_memory WHERE {SEQ_AMONG}",
        (positions,),
    )
    return {seq: memory_from(row, tier=Tier.WORKING) for seq, *row in rows}


def _archived_memories(session: Session, positions: str) -> dict[int, MemoryRecord]:
    rows = session.execute(
        f"SELECT a.seq, e.id, {ARCHIVE_FIELDS} FROM archive AS a "
        f"JOIN episodic_memory AS e ON e.seq = a.episode_seq WHERE a.{SEQ_AMONG}",
        (positions,),
    )
    return {
        seq: memory_from(row, tier=Tier.ARCHIVE, episode=episode)
        for seq, episode, *row in rows
    }


def insert_details(
    session: Session, details: Sequence[Detail], episode_seq: int | None
) -> None:
    """Insert the details of an episode's originals."""
    seqs: dict[str, int] = dict(
        session.execute(
            "SELECT id, seq FROM archive WHERE episode_seq = ?", (episode_seq,)
        )
    )
    kinds = _kinds(session, (detail.kind for detail in details))
    session.executemany(
        "INSERT INTO detail (memory_seq, kind, value, sensitive) VALUES (?, ?, ?, ?)",
        [
            (seqs[detail.memory], kinds[detail.kind], detail.value, detail.sensitive)
            for detail in details
        ],
    )


def _kinds(session: Session, names: Iterable[str]) -> dict[str, int]:
    """The numbers of all kinds of details; new ones get one."""
    kinds: dict[str, int] = dict(
        session.execute("SELECT name, number FROM detail_kind")
    )
    for kind in set(names) - kinds.keys():
        kinds[kind] = session.execute(
            "INSERT INTO detail_kind (name) VALUES (?) RETURNING number", (kind,)
        ).fetchone()[0]
    return kinds


def sensitive_details(session: Session, episode_seq: int) -> list[tuple[str, str]]:
    """Kinds and values of the secrets that an episode's originals hold."""
    return session.execute(
        "SELECT k.name, d.value FROM archive AS a JOIN detail AS d ON d.memory_seq = a.seq "
        "JOIN detail_kind AS k ON k.number = d.kind WHERE a.episode_seq = ? AND d.sensitive",
        (episode_seq,),
    ).fetchall()


def leave_secrets(session: Session, seq: int, episode: int) -> None:
    """Before an original leaves: what it shows to be secret stays so where others hold it too."""
    for kind, value in session.execute(
        "SELECT kind, value FROM detail WHERE memory_seq = ? AND sensitive", (seq,)
    ).fetchall():
        session.execute(
            "INSERT INTO detail (memory_seq, kind, value, sensitive) SELECT seq, ?, ?, 1 "
            "FROM archive WHERE episode_seq = ? AND seq != ? AND instr(content, ?) "
            "ON CONFLICT DO UPDATE SET sensitive = 1",
            (kind, value, episode, seq, value),
        )


def return_one(session: Session, seq: int, episode: int) -> None:
    """Move an original to working memory; its secrets stay so where others hold them too."""
    session.execute(
        f"INSERT INTO working_memory (seq, {MEMORY_COLUMNS}) "
        f"SELECT seq, {MEMORY_COLUMNS} FROM archive WHERE seq = ?",
        (seq,),
    )
    leave_secrets(session, seq, episode)
    session.execute("DELETE FROM archive WHERE seq = ?", (seq,))
