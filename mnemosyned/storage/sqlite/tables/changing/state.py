"""State of single memories: validity, supersession, pruning and their secrets."""

from __future__ import annotations

import sqlite3
from functools import partial
from typing import Literal

from mnemosyned.domain.storing.supersession import Position, latest_in_chain
from mnemosyned.storage.sqlite.tables.changing.rewrites import invalidate


def set_state(
    connection: sqlite3.Connection,
    seq: int | None,
    what: Literal["valid_until", "superseded_at", "superseded_by", "pruned_at"],
    value: str | int,
) -> None:
    """Set one field of a memory's state."""
    connection.execute(
        f"INSERT INTO memory_state (memory_seq, {what}) VALUES (?, ?) "
        f"ON CONFLICT (memory_seq) DO UPDATE SET {what} = excluded.{what}",
        (seq, value),
    )


def leave_secrets(connection: sqlite3.Connection, seq: int, episode: int) -> None:
    """Before an original leaves: what it shows to be secret stays so where others hold it too."""
    for kind, value in connection.execute(
        "SELECT kind, value FROM detail WHERE memory_seq = ? AND sensitive", (seq,)
    ).fetchall():
        connection.execute(
            "INSERT INTO detail (memory_seq, kind, value, sensitive) SELECT seq, ?, ?, 1 "
            "FROM archive WHERE episode_seq = ? AND seq != ? AND instr(content, ?) "
            "ON CONFLICT DO UPDATE SET sensitive = 1",
            (kind, value, episode, seq, value),
        )


def supersede(connection: sqlite3.Connection, *, old: str, new: str) -> None:
    """Have one memory take another's place, and that of all that took it before.

    Raises `NotFound` and `InvalidRequest`. The episode that speaks of the old one is emptied, to
    be rewritten without it.
    """
    latest = latest_in_chain(
        old,
        new,
        position_of=partial(position_of, connection),
        successor_of=partial(_successor_of, connection),
    )
    if latest is None:
        return
    (seq, episode), new_seq = latest
    (moment,) = connection.execute(
        "SELECT created_at FROM working_memory WHERE seq = ? "
        "UNION ALL SELECT created_at FROM archive WHERE seq = ?",
        (new_seq, new_seq),
    ).fetchone()
    set_state(connection, seq, "superseded_at", moment)
    set_state(connection, seq, "superseded_by", new_seq)
    # With pruned originals, the summary is all that is left of their words: it stays.
    if episode is not None and not has_pruned(connection, episode):
        invalidate(connection, [episode])


def position_of(connection: sqlite3.Connection, id: str) -> Position | None:
    """A memory's position and its episode's."""
    row: Position | None = connection.execute(
        "SELECT seq, NULL FROM working_memory WHERE id = ? "
        "UNION ALL SELECT seq, episode_seq FROM archive WHERE id = ?",
        (id, id),
    ).fetchone()
    return row


def _successor_of(connection: sqlite3.Connection, seq: int) -> Position | None:
    """The memory that took the place of another."""
    row: Position | None = connection.execute(
        "SELECT s.superseded_by, a.episode_seq FROM memory_state AS s "
        "LEFT JOIN archive AS a ON a.seq = s.superseded_by "
        "WHERE s.memory_seq = ? AND s.superseded_by IS NOT NULL",
        (seq,),
    ).fetchone()
    return row


def has_pruned(connection: sqlite3.Connection, episode: int) -> bool:
    """Whether the words of some of an episode's originals are gone."""
    row = connection.execute(
        "SELECT 1 FROM archive WHERE episode_seq = ? AND content = ''", (episode,)
    ).fetchone()
    return row is not None
