"""What is said of single memories: pinned, valid until, superseded, pruned."""

from __future__ import annotations

import sqlite3
from collections.abc import Sequence
from typing import Literal

from mnemosyned.domain.errors import InvalidRequest, NotFound
from mnemosyned.domain.memory import MemoryRecord, Tier
from mnemosyned.storage.sqlite.tables.rewrites import empty
from mnemosyned.storage.sqlite.tables.rows import (
    ARCHIVE_FIELDS,
    MEMORY_FIELDS,
    memory_from,
)

HISTORY_MAX = 100
"""How far a chain of memories that superseded each other is followed."""


def note(
    connection: sqlite3.Connection,
    seq: int | None,
    what: Literal["valid_until", "superseded_at", "superseded_by", "pruned_at"],
    value: str | int,
) -> None:
    """Say one thing more of a memory."""
    connection.execute(
        f"INSERT INTO memory_state (memory_seq, {what}) VALUES (?1, ?2) "
        f"ON CONFLICT (memory_seq) DO UPDATE SET {what} = ?2",
        (seq, value),
    )


def passing(connection: sqlite3.Connection) -> set[str]:
    """The ids of the working memories that are superseded or will expire."""
    rows = connection.execute(
        "SELECT w.id FROM memory_state AS s JOIN working_memory AS w ON w.seq = s.memory_seq "
        "WHERE s.valid_until IS NOT NULL OR s.superseded_at IS NOT NULL"
    )
    return {id for (id,) in rows}


def pin(connection: sqlite3.Connection, id: str, *, pinned: bool) -> bool:
    """Pin a working memory, or let it go; False where the working tier has none of this id.

    What is let go is held back by no undo either.
    """
    if not pinned:
        connection.execute(
            "UPDATE working_state SET held_until = NULL "
            "WHERE memory_seq = (SELECT seq FROM working_memory WHERE id = ?)",
            (id,),
        )
    return (
        connection.execute(
            "UPDATE working_memory SET pinned = ? WHERE id = ?", (int(pinned), id)
        ).rowcount
        == 1
    )


def supersede(connection: sqlite3.Connection, *, old: str, new: str) -> None:
    """Have one memory take another's place, and that of all that took it before.

    Raises `NotFound` and `InvalidRequest`. The episode that speaks of the old one is emptied, to
    be rewritten without it.
    """
    found, successor = _place(connection, old), _place(connection, new)
    if found is None or successor is None:
        raise NotFound(
            f"no memory has the id {old!r}, so none supersedes it", field="supersedes"
        )
    seq, episode = found
    for _ in range(HISTORY_MAX):
        if seq == successor[0]:  # it does already: the same call again
            return
        row = connection.execute(
            "SELECT superseded_by FROM memory_state WHERE memory_seq = ?", (seq,)
        ).fetchone()
        if row is None or row[0] is None:
            break
        seq = row[0]
        episode = _episode_of(connection, seq)
    else:
        raise InvalidRequest(
            f"{old} was superseded over {HISTORY_MAX} times; forget it first",
            field="supersedes",
        )
    moment = connection.execute(
        "SELECT created_at FROM working_memory WHERE seq = ?1 "
        "UNION ALL SELECT created_at FROM archive WHERE seq = ?1",
        successor[:1],
    ).fetchone()
    note(connection, seq, "superseded_at", moment[0])
    note(connection, seq, "superseded_by", successor[0])
    # With pruned originals, the summary is all that is left of their words: it stays.
    if episode is not None and not has_pruned(connection, episode):
        empty(connection, [episode])


def _place(connection: sqlite3.Connection, id: str) -> tuple[int, int | None] | None:
    """A memory's position and its episode's."""
    row: tuple[int, int | None] | None = connection.execute(
        "SELECT seq, NULL FROM working_memory WHERE id = ?1 "
        "UNION ALL SELECT seq, episode_seq FROM archive WHERE id = ?1",
        (id,),
    ).fetchone()
    return row


def _episode_of(connection: sqlite3.Connection, seq: int) -> int | None:
    row = connection.execute(
        "SELECT episode_seq FROM archive WHERE seq = ?", (seq,)
    ).fetchone()
    return row[0] if row else None


def has_pruned(connection: sqlite3.Connection, episode: int) -> bool:
    """Whether the words of some of an episode's originals are gone."""
    return (
        connection.execute(
            "SELECT 1 FROM archive WHERE episode_seq = ? AND content = ''", (episode,)
        ).fetchone()
        is not None
    )


def history(connection: sqlite3.Connection, id: str) -> list[MemoryRecord]:
    """What this memory took the place of, the newest first."""
    found = _place(connection, id)
    older: list[MemoryRecord] = []
    waiting: Sequence[int] = [found[0]] if found else []
    while waiting and len(older) < HISTORY_MAX:
        marks = ", ".join("?" * len(waiting))
        waiting = [
            seq
            for (seq,) in connection.execute(
                f"SELECT memory_seq FROM memory_state WHERE superseded_by IN ({marks}) "
                "ORDER BY superseded_at DESC LIMIT ?",
                (*waiting, HISTORY_MAX),
            )
        ]
        for seq in waiting:
            older += _at(connection, seq)
    return older[:HISTORY_MAX]


def _at(connection: sqlite3.Connection, seq: int) -> list[MemoryRecord]:
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
