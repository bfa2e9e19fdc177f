"""What must hold in the file whatever happened to the process, asked of SQLite itself."""

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
INDEXES = {"memory_fts": 1, "episode_fts": 1, "memory_gram_fts": 0, "episode_gram_fts": 0}
"""Each index, and whether it can be compared with the texts it stands for."""


def half_done(database: Path) -> dict[str, int]:
    """Everything that is not whole, counted; empty when all is well."""
    counted = {what: len(rows(database, sql)) for what, sql in BROKEN.items()}
    return {what: count for what, count in counted.items() if count}


def depths(database: Path) -> dict[str, int]:
    """The levels of each full-text index, as its structure record counts them."""
    found = {}
    with closing(sqlite3.connect(f"{database.as_uri()}?mode=ro", uri=True)) as connection:
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
    """What SQLite finds wrong with a file that nobody has open; empty when all is well."""
    with closing(sqlite3.connect(database)) as connection:
        found = [text for (text,) in connection.execute("PRAGMA integrity_check") if text != "ok"]
        for index, compared in INDEXES.items():
            check = f"INSERT INTO {index} ({index}, rank) VALUES ('integrity-check', ?)"
            try:
                connection.execute(check, (compared,))
            except sqlite3.DatabaseError as error:
                found.append(f"{index}: {error}")
        connection.rollback()
    return found
