"""Ids by their beginning, in upper or lower case, by ranges of the index."""

from __future__ import annotations

import sqlite3

SPELLINGS_MAX = 200
"""Spellings of a prefix that are followed; ids that differ in case alone are few."""
_LAST = "\U0010ffff"
_HOMES = ("working_memory", "archive", "episodic_memory")
_ANY = " UNION ALL ".join(
    f"SELECT 1 FROM (SELECT 1 FROM {home} WHERE id >= ?1 AND id < ?2 LIMIT 1)"
    for home in _HOMES
)


def id_range(prefix: str) -> tuple[str, str]:
    """Return the bounds of the ids that begin so: the first is included, the last is not."""
    return prefix, prefix + _LAST


def spellings(connection: sqlite3.Connection, prefix: str) -> list[str]:
    """Return the spellings of a prefix in upper and lower case with which an id begins.

    Letter by letter, and only those go on with which an id begins, so that the index is asked a few
    times for each letter.
    """
    known = [""]
    for letter in prefix:
        cases = {letter, letter.lower(), letter.upper()}
        longer = [spelling + case for spelling in known for case in sorted(cases)]
        if len(cases) > 1:
            longer = [spelling for spelling in longer if _exists(connection, spelling)]
        known = longer[:SPELLINGS_MAX]
    return [spelling for spelling in known if _exists(connection, spelling)]


def _exists(connection: sqlite3.Connection, spelling: str) -> bool:
    row = connection.execute(f"{_ANY} LIMIT 1", id_range(spelling)).fetchone()
    return row is not None
