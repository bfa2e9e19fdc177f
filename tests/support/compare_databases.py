"""Two database files compared row by row, by SQLite alone."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager
from itertools import zip_longest
from pathlib import Path

OWN_OF_A_FILE = frozenset(
    {
        "_sqlite_migrations",  # what the program does by itself
        "agent_activity",  # what hooks did on this machine
        "clock_seen",
        "daily_figures",  # of this machine
        "detail",  # compared by the view detail_of, without the numbers of kinds
        "detail_kind",
        "edited_memory",  # which memories this file has to read again
        "embedding",
        "embedding_model",
        "ending_progress",  # how far this file was read
        "injected_line",  # what agents on this machine were told
        "injection",
        "learned",  # which memories of this file were learned from
        "forgotten",  # nothing reads it but what puts it back
        "reindexing",  # how far an upgrade is with the indexes of this file
        "scrub_due",
        "undo_action",  # what can be undone here
        "undo_step",
        "watched_file",  # paths of this machine
        "watched_folder",
    }
)
"""Tables that an export leaves out."""
NUMBERED = frozenset(
    {
        "_sqlite_migrations",
        "daily_figures",
        "detail",
        "detail_kind",
        "edited_memory",
        "ending_progress",
        "learned",
        "reindexing",
        "scrub_due",
        "undo_action",
        "undo_step",
    }
)
"""Those of them that a move leaves out too."""
EXPORTED = frozenset(
    {
        "agent_forgotten",
        "agent_session",
        "archive",
        "briefing_line",
        "ending",
        "compacted",
        "compaction",
        "consolidation_log",
        "emptied_episode",
        "episodic_memory",
        "learning",
        "memory_state",
        "revision",
        "tag",
        "tier_totals",
        "working_memory",
        "working_state",
    }
)
NUMBERS = frozenset({("emptied_episode", "mark"), ("revision", "seq")})
"""Columns that count how often something happened in a file."""
DIFFERENCES_MAX = 5
"""Rows of a table that are named."""
INDEXES = ("memory_fts", "episode_fts", "memory_gram_fts", "episode_gram_fts")


def differences(
    one: Path,
    other: Path,
    *,
    left_out: frozenset[str] = OWN_OF_A_FILE,
    numbers: frozenset[tuple[str, str]] = NUMBERS,
) -> list[str]:
    """Name the first rows of each table and index that only one of both files has."""
    found: list[str] = []
    with _opened(one) as left, _opened(other) as right:
        names = tables(left, left_out)
        assert names == tables(right, left_out)
        assert "working_memory" in names
        for table in (*names, "detail_of"):
            query = _rows_of(left, table, numbers)
            found += _differing(table, left, right, query)[:DIFFERENCES_MAX]
        for index in INDEXES:
            query = f"SELECT term, doc, col, offset FROM temp.{index}_terms ORDER BY 2, 3, 4, 1"
            for connection in (left, right):
                connection.execute(
                    f"CREATE VIRTUAL TABLE temp.{index}_terms "
                    f"USING fts5vocab (main, {index}, instance)"
                )
            found += _differing(index, left, right, query)[:DIFFERENCES_MAX]
    return found


def count_rows(file: Path) -> dict[str, int]:
    """Return how many rows each table has."""
    with _opened(file) as connection:
        return {
            table: connection.execute(f"SELECT count(*) FROM {table}").fetchone()[0]
            for table in tables(connection)
        }


@contextmanager
def _opened(file: Path) -> Iterator[sqlite3.Connection]:
    with closing(sqlite3.connect(f"{file.as_uri()}?mode=ro", uri=True)) as connection:
        yield connection


def tables(
    connection: sqlite3.Connection, left_out: frozenset[str] = OWN_OF_A_FILE
) -> list[str]:
    """Return the tables that are compared."""
    rows = connection.execute(
        "SELECT name FROM sqlite_master WHERE type = 'table' AND sql NOT LIKE '%VIRTUAL%' "
        "AND name NOT LIKE '%fts%' AND name NOT LIKE 'sqlite%' ORDER BY name"
    )
    return [name for (name,) in rows if name not in left_out]


def _rows_of(
    connection: sqlite3.Connection, table: str, numbers: frozenset[tuple[str, str]]
) -> str:
    info = connection.execute(f"PRAGMA table_info({table})")
    columns = [f'"{row[1]}"' for row in info if (table, row[1]) not in numbers]
    if table == "revision":
        # What an undo of the edit would put back is not exported, as in `undo_action`.
        columns = [
            "json_remove(fields, '$.derived')" if each == '"fields"' else each
            for each in columns
        ]
    names = ", ".join(columns)
    return f"SELECT {names} FROM {table} ORDER BY {names}"


def _differing(
    name: str, left: sqlite3.Connection, right: sqlite3.Connection, query: str
) -> list[str]:
    pairs = zip_longest(left.execute(query), right.execute(query))
    return [f"{name}: {a} is {b}" for a, b in pairs if a != b]
