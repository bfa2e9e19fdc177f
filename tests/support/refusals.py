"""Databases that refuse a row: what was begun with it is then taken back."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from typing import TYPE_CHECKING

from mnemosyned.storage.sqlite.store import SqliteStore

if TYPE_CHECKING:
    from mnemosyned.storage.postgres.store import PostgresStore


def refuse_rows(store: SqliteStore | PostgresStore, table: str, where: str) -> None:
    """Have the database refuse new rows of a table for which a condition on `new` holds."""
    if isinstance(store, SqliteStore):
        with closing(sqlite3.connect(store.database)) as connection, connection:
            connection.execute(
                f"CREATE TRIGGER refuses BEFORE INSERT ON {table} WHEN {where} "
                "BEGIN SELECT RAISE(ABORT, 'refused'); END"
            )
        return
    # Outside transactions it is who owns the tables, also where requests have another role.
    with store._pool.outside_transactions(store.owner) as session:  # noqa: SLF001
        session.execute(
            "CREATE FUNCTION refuse() RETURNS trigger LANGUAGE plpgsql AS "
            "$$ BEGIN RAISE 'refused'; END $$"
        )
        session.execute(
            f"CREATE TRIGGER refuses BEFORE INSERT ON {table} FOR EACH ROW WHEN ({where}) "
            "EXECUTE FUNCTION refuse()"
        )
