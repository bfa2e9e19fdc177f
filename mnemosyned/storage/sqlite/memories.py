"""Memories, episodes and exact values by their rows, and the hierarchy of summaries."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence
from typing import TypeVar

from mnemosyned.storage.sqlite.rows import (
    MEMORY_COLUMNS,
)
from mnemosyned.storage.sqlite.session import SqliteSession
from mnemosyned.text.details import Detail

T = TypeVar("T")

CHUNK = 500
"""How many values one statement binds; SQLite allows more, older builds 999."""


def chunks(values: Sequence[T]) -> Iterator[Sequence[T]]:
    """Yield the values in parts small enough for one statement to bind."""
    return (values[start : start + CHUNK] for start in range(0, len(values), CHUNK))


def placeholders(values: Collection[object]) -> str:
    """Return question marks separated by commas, one for each value."""
    return ", ".join("?" * len(values))


def insert_details(
    session: SqliteSession, details: Sequence[Detail], episode_seq: int | None
) -> None:
    """Insert the exact values of originals; all of them are in one episode."""
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


def _kinds(session: SqliteSession, names: Iterable[str]) -> dict[str, int]:
    """Return the numbers of kinds of details by name; new kinds get a number."""
    kinds: dict[str, int] = dict(
        session.execute("SELECT name, number FROM detail_kind")
    )
    for kind in set(names) - kinds.keys():
        kinds[kind] = session.execute(
            "INSERT INTO detail_kind (name) VALUES (?) RETURNING number", (kind,)
        ).fetchone()[0]
    return kinds


def sensitive_details(
    session: SqliteSession, episode_seq: int
) -> list[tuple[str, str]]:
    """Return kind and value of each secret in the originals of an episode."""
    return session.execute(
        "SELECT k.name, d.value FROM archive AS a JOIN detail AS d ON d.memory_seq = a.seq "
        "JOIN detail_kind AS k ON k.number = d.kind WHERE a.episode_seq = ? AND d.sensitive",
        (episode_seq,),
    ).fetchall()


def leave_secrets(session: SqliteSession, seq: int, episode: int) -> None:
    """Mark an original's secrets as secret in the other originals of its episode.

    Call it before the original leaves the episode.
    """
    for kind, value in session.execute(
        "SELECT kind, value FROM detail WHERE memory_seq = ? AND sensitive", (seq,)
    ).fetchall():
        session.execute(
            "INSERT INTO detail (memory_seq, kind, value, sensitive) SELECT seq, ?, ?, 1 "
            "FROM archive WHERE episode_seq = ? AND seq != ? AND instr(content, ?) "
            "ON CONFLICT DO UPDATE SET sensitive = 1",
            (kind, value, episode, seq, value),
        )


def return_one(session: SqliteSession, seq: int, episode: int) -> None:
    """Move an original to working memory; keep its secrets secret in the other originals."""
    session.execute(
        f"INSERT INTO working_memory (seq, {MEMORY_COLUMNS}) "
        f"SELECT seq, {MEMORY_COLUMNS} FROM archive WHERE seq = ?",
        (seq,),
    )
    leave_secrets(session, seq, episode)
    session.execute("DELETE FROM archive WHERE seq = ?", (seq,))
