"""Watched folders and files."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Sequence
from datetime import datetime

from mnemosyned.domain.ports.surroundings.watching import (
    FILES_MAX,
    FOLDERS_MAX,
    FolderTotals,
    WatchedFile,
    WatchStore,
)
from mnemosyned.domain.storing.rows import FILE_COLUMNS
from mnemosyned.storage.sqlite.database.transactions import (
    Transactional,
    reads,
    writes,
    writes_lazily,
)
from mnemosyned.storage.sqlite.tables.rows import instant_text, optional_instant
from mnemosyned.storage.sqlite.tables.surroundings.watched import file_from, file_row

_BELOW = "(path = ? OR (path > ? || '/' AND path < ? || '0'))"
"""The path itself, and all that begins with it and a slash, which the digit follows."""


class SqliteWatches(Transactional, WatchStore):
    """A `WatchStore` on one SQLite file.

    The state of files does not wait for the disk: what a failure of power takes back is read again.
    """

    @reads
    def folders(self, connection: sqlite3.Connection) -> list[str]:
        rows = connection.execute(
            "SELECT path FROM watched_folder ORDER BY path LIMIT ?", (FOLDERS_MAX,)
        )
        return [path for (path,) in rows]

    @writes
    def add_folder(
        self, connection: sqlite3.Connection, path: str, added_at: datetime
    ) -> None:
        connection.execute(
            "INSERT OR IGNORE INTO watched_folder VALUES (?, ?)",
            (path, instant_text(added_at)),
        )

    @writes
    def remove_folder(self, connection: sqlite3.Connection, path: str) -> bool:
        removed = connection.execute(
            "DELETE FROM watched_folder WHERE path = ?", (path,)
        )
        connection.execute(f"DELETE FROM watched_file WHERE {_BELOW}", (path,) * 3)
        return removed.rowcount > 0

    @reads
    def file(self, connection: sqlite3.Connection, path: str) -> WatchedFile | None:
        row = connection.execute(
            f"SELECT {FILE_COLUMNS} FROM watched_file WHERE path = ?", (path,)
        ).fetchone()
        return file_from(row) if row else None

    @reads
    def moved_from(
        self, connection: sqlite3.Connection, file: str
    ) -> list[WatchedFile]:
        rows = connection.execute(
            f"SELECT {FILE_COLUMNS} FROM watched_file WHERE file = ? LIMIT 10", (file,)
        )
        return list(map(file_from, rows))

    @writes_lazily
    def keep_file(self, connection: sqlite3.Connection, state: WatchedFile) -> None:
        connection.execute(
            f"INSERT OR REPLACE INTO watched_file ({FILE_COLUMNS}) "
            "VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)",
            file_row(state),
        )

    @writes_lazily
    def drop_files(self, connection: sqlite3.Connection, paths: Sequence[str]) -> None:
        connection.execute(
            "DELETE FROM watched_file WHERE path IN (SELECT value FROM json_each(?))",
            (json.dumps(list(paths)),),
        )

    @reads
    def states(
        self, connection: sqlite3.Connection, folder: str
    ) -> dict[str, tuple[int, int]]:
        rows = connection.execute(
            f"SELECT path, size, modified_ns FROM watched_file WHERE {_BELOW} LIMIT ?",
            (folder, folder, folder, FILES_MAX),
        )
        return {path: (size, modified) for path, size, modified in rows}

    @reads
    def totals(self, connection: sqlite3.Connection, folder: str) -> FolderTotals:
        files, stored, read_at = connection.execute(
            "SELECT count(*), ifnull(sum(stored), 0), max(read_at) FROM watched_file "
            f"WHERE {_BELOW} AND format != ''",
            (folder,) * 3,
        ).fetchone()
        return FolderTotals(files, stored, optional_instant(read_at))
