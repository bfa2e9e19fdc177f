"""Invariants of the file, whatever happened to the process, checked with SQLite alone."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path

from e2e.daemons import rows

BROKEN = {
    "episodes whose originals are not all in the archive": """
        SELECT e.id FROM episodic_memory AS e LEFT JOIN archive AS a ON a.episode_seq = e.seq
        WHERE e.level = 0 GROUP BY e.seq HAVING count(a.id) != e.item_count
    """,
    "days, weeks and months that do not count what is under them": """
        SELECT e.id FROM episodic_memory AS e
        LEFT JOIN episodic_memory AS c ON c.parent_id = e.id AND c.level = e.level - 1
        WHERE e.level > 0 AND NOT e.stale
        GROUP BY e.seq HAVING ifnull(sum(c.item_count), 0) != e.item_count
    """,
    "archived memories without an episode": """
        SELECT id FROM archive WHERE episode_seq NOT IN (SELECT seq FROM episodic_memory)
    """,
    "memories in both homes": """
        SELECT id FROM archive WHERE id IN (SELECT id FROM working_memory)
    """,
    "episodes without their row of the log": """
        SELECT e.id FROM episodic_memory AS e LEFT JOIN consolidation_log AS l
        ON l.episode_id = e.id AND l.items_consolidated = e.item_count AND l.status != 'failed'
        WHERE e.level = 0 GROUP BY e.seq HAVING count(l.id) != 1
    """,
    "rows of the log without their episode": """
        SELECT id FROM consolidation_log
        WHERE episode_id NOT IN (SELECT id FROM episodic_memory) OR status = 'failed'
    """,
    "totals that do not count": """
        SELECT tier FROM tier_totals AS t WHERE count != CASE tier
            WHEN 'working' THEN (SELECT count(*) FROM working_memory)
            WHEN 'episodic' THEN (SELECT count(*) FROM episodic_memory)
            ELSE (SELECT count(*) FROM archive) END
    """,
}
DANGLING = {
    "exact values of nothing": """
        SELECT memory_seq FROM detail WHERE memory_seq NOT IN (SELECT seq FROM archive)
    """,
    "states of nothing": """
        SELECT memory_seq FROM memory_state WHERE memory_seq NOT IN (
            SELECT seq FROM working_memory UNION ALL SELECT seq FROM archive)
    """,
    "memories superseded by nothing": """
        SELECT memory_seq FROM memory_state WHERE superseded_by NOT IN (
            SELECT seq FROM working_memory UNION ALL SELECT seq FROM archive)
    """,
    "learnings superseded by nothing": """
        SELECT id FROM learning WHERE superseded_by NOT IN (SELECT id FROM learning)
    """,
    "vectors of nothing": """
        SELECT memory_seq FROM embedding WHERE memory_seq NOT IN (
            SELECT seq FROM working_memory UNION ALL SELECT seq FROM archive)
    """,
    "indexed memories that do not exist": """
        SELECT id FROM memory_fts_docsize WHERE id NOT IN (
            SELECT seq FROM working_memory UNION ALL SELECT seq FROM archive)
    """,
    "indexed episodes that do not exist": """
        SELECT id FROM episode_fts_docsize WHERE id NOT IN (SELECT seq FROM episodic_memory)
    """,
    "memories without words that were not pruned": """
        SELECT seq FROM working_memory WHERE content = ''
        UNION ALL SELECT a.seq FROM archive AS a LEFT JOIN memory_state AS s ON s.memory_seq = a.seq
        WHERE a.content = '' AND s.pruned_at IS NULL
    """,
    "episodes under one of no higher level": """
        SELECT c.id FROM episodic_memory AS c JOIN episodic_memory AS p ON p.id = c.parent_id
        WHERE p.level <= c.level
    """,
    "episodes without words": """
        SELECT id FROM episodic_memory WHERE content = ''
    """,
}
"""Traces that only an interrupted request may leave, and that the next start repairs."""
LEVELS_MAX = 50
"""An index with more than 2,000 levels cannot be opened; only a purge lowers them."""
INDEXES = {
    "memory_fts": 1,
    "episode_fts": 1,
    "memory_gram_fts": 0,
    "episode_gram_fts": 0,
}
"""Each index, and whether it can be compared with the texts it stands for."""


def half_done(database: Path) -> dict[str, int]:
    """Everything that is not whole, counted; empty when all is well."""
    counted = {what: len(rows(database, sql)) for what, sql in BROKEN.items()}
    return {what: count for what, count in counted.items() if count}


def dangling(database: Path) -> dict[str, int]:
    """Everything that belongs to something that is not there, counted; empty when all is well."""
    counted = {what: len(rows(database, sql)) for what, sql in DANGLING.items()}
    return {what: count for what, count in counted.items() if count}


def depths(database: Path) -> dict[str, int]:
    """The levels of each full-text index, as its structure record counts them."""
    found = {}
    with closing(
        sqlite3.connect(f"{database.as_uri()}?mode=ro", uri=True)
    ) as connection:
        for index in INDEXES:
            (block,) = connection.execute(
                f"SELECT block FROM {index}_data WHERE id = 10"
            ).fetchone()
            place = 8 if block[4:8] == b"\xff\x00\x00\x01" else 4
            levels = 0
            while block[place] >= 0x80:
                levels = levels << 7 | block[place] & 0x7F
                place += 1
            found[index] = levels << 7 | block[place]
    return found


def damage(database: Path) -> list[str]:
    """Faults that SQLite finds in a file that no process has open; empty if there are none."""
    with closing(sqlite3.connect(database)) as connection:
        found = [
            text
            for (text,) in connection.execute("PRAGMA integrity_check")
            if text != "ok"
        ]
        for index, compared in INDEXES.items():
            check = f"INSERT INTO {index} ({index}, rank) VALUES ('integrity-check', ?)"
            try:
                connection.execute(check, (compared,))
            except sqlite3.DatabaseError as error:
                found.append(f"{index}: {error}")
        connection.rollback()
    return found
