"""Ids by their beginning, by ranges of the index."""

from __future__ import annotations

import sqlite3
from collections.abc import Sequence

_LAST = "\U0010ffff"
_HOMES = ("working_memory", "archive", "episodic_memory")
_ANY = " UNION ALL ".join(
    f"SELECT 1 FROM (SELECT 1 FROM {home} WHERE id >= ? AND id < ? LIMIT 1)"
    for home in _HOMES
)


def id_range(prefix: str) -> tuple[str, str]:
    """Return the bounds of the ids that begin so: the first is included, the last is not."""
    return prefix, prefix + _LAST


def beginning(connection: sqlite3.Connection, prefixes: Sequence[str]) -> list[str]:
    """Keep the prefixes with which an id begins."""
    return [prefix for prefix in prefixes if _exists(connection, prefix)]


def _exists(connection: sqlite3.Connection, prefix: str) -> bool:
    row = connection.execute(
        f"{_ANY} LIMIT 1", id_range(prefix) * len(_HOMES)
    ).fetchone()
    return row is not None
