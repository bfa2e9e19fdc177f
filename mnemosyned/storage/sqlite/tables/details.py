"""Exact values of originals as rows."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable, Sequence

from mnemosyned.domain.memory import Detail


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
