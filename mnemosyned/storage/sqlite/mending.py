"""Mends a database that no process has open: indexes, totals and rows that belong to nothing.

No memory is deleted by it. An original whose summary is gone goes back to working memory, from
which the next sleep takes it.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

from mnemosyned.storage.sqlite.database.verification import ORPHANS, Orphans, tables
from mnemosyned.storage.sqlite.fulltext.segments import rebuild_indexes

_LOST = (
    "SELECT seq FROM archive WHERE episode_seq NOT IN (SELECT seq FROM episodic_memory)"
)
_TOTALS = """
UPDATE tier_totals SET (count, characters) = (
    SELECT count(*), ifnull(sum(length(content)), 0) FROM {table}
) WHERE tier = '{tier}' AND count != (SELECT count(*) FROM {table})
"""
_TABLES = {
    "working": "working_memory",
    "episodic": "episodic_memory",
    "archive": "archive",
}


def mend(database: Path) -> Iterator[str]:
    """Mend what is wrong, each kind of fault in one transaction; yields what was done."""
    with closing(_opened(database)) as connection:
        present = tables(connection)
        yield from _returned(connection)
        yield from _unlinked(connection)
        for orphans in ORPHANS:
            if orphans.table in present:
                yield from _without(connection, orphans)
        yield from _counted_again(connection)
    for index in rebuild_indexes(database):
        yield f"rebuilt the full-text index {index} from the texts"


def _opened(database: Path) -> sqlite3.Connection:
    connection = sqlite3.connect(database, isolation_level=None)
    connection.execute("PRAGMA secure_delete = ON")
    connection.execute("PRAGMA synchronous = FULL")
    return connection


def _returned(connection: sqlite3.Connection) -> Iterator[str]:
    """Bring originals without a summary back to working memory."""
    columns = [
        name for _, name, *_ in connection.execute("PRAGMA table_info(working_memory)")
    ]
    names = ", ".join(columns)
    connection.execute("BEGIN IMMEDIATE")
    moved = connection.execute(
        f"INSERT INTO working_memory ({names}) SELECT {names} FROM archive "
        f"WHERE seq IN ({_LOST}) AND content != ''"
    ).rowcount
    connection.execute(
        f"DELETE FROM archive WHERE seq IN ({_LOST}) AND seq IN (SELECT seq FROM working_memory)"
    )
    connection.execute("COMMIT")
    if moved:
        yield f"brought {moved:,} originals without a summary back to working memory"


def _unlinked(connection: sqlite3.Connection) -> Iterator[str]:
    """Take summaries out from under one that does not exist; they are rolled up again."""
    changed = connection.execute(
        "UPDATE episodic_memory SET parent_id = NULL "
        "WHERE parent_id NOT IN (SELECT id FROM episodic_memory)"
    ).rowcount
    if changed:
        yield f"took {changed:,} summaries out from under one that does not exist"


def _without(connection: sqlite3.Connection, orphans: Orphans) -> Iterator[str]:
    statement = f"DELETE FROM {orphans.table}"
    if not orphans.deleted:
        statement = f"UPDATE {orphans.table} SET {orphans.column} = NULL"
    changed = connection.execute(f"{statement} WHERE {orphans.where}").rowcount
    if changed:
        action = "removed" if orphans.deleted else "mended"
        yield f"{action} {changed:,} {orphans.words}"


def _counted_again(connection: sqlite3.Connection) -> Iterator[str]:
    for tier, table in _TABLES.items():
        if connection.execute(_TOTALS.format(table=table, tier=tier)).rowcount:
            yield f"counted the {tier} tier again"
