"""Mends a database that no process has open: missing tables, indexes, counts and orphaned rows.

No memory is deleted by it. An original whose summary is gone goes back to working memory, from
which the next sleep takes it.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

from mnemosyned.storage.sqlite.database.schema import blank_database, missing_parts
from mnemosyned.storage.sqlite.database.verification import (
    MISCOUNTED,
    ORIGINALS,
    ORPHANS,
    Orphans,
    tables,
)
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


def mend(database: Path, migrations: Path) -> Iterator[str]:
    """Mend what is wrong, each kind of fault in one transaction; yields what was done."""
    with closing(_opened(database)) as connection:
        yield from _made_again(connection, migrations)
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


def _made_again(connection: sqlite3.Connection, migrations: Path) -> Iterator[str]:
    """Make what the schema has and the file lacks: a table with the rows of a new database."""
    with closing(blank_database(migrations)) as blank:
        connection.execute("BEGIN IMMEDIATE")
        missing = missing_parts(connection, blank)
        for kind, name, sql in missing:
            connection.execute(sql)
            rows = []
            if kind == "table" and not sql.startswith("CREATE VIRTUAL"):
                rows = blank.execute(f'SELECT * FROM "{name}"').fetchall()
            for row in rows:
                marks = ", ".join("?" * len(row))
                connection.execute(f'INSERT INTO "{name}" VALUES ({marks})', row)
        connection.execute("COMMIT")
    for kind, name, _ in missing:
        yield f"made the {kind} {name} again"


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
    miscounted = sum(
        connection.execute(
            f"UPDATE episodic_memory AS e SET item_count = {ORIGINALS} "
            f"WHERE level = ? AND {MISCOUNTED}",
            (level,),
        ).rowcount
        for level in range(4)  # upward, as each level counts the one below
    )
    if miscounted:
        yield f"counted the originals of {miscounted:,} summaries again"
    for tier, table in _TABLES.items():
        if connection.execute(_TOTALS.format(table=table, tier=tier)).rowcount:
            yield f"counted the {tier} tier again"
