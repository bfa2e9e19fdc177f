"""Watched folders and files."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime

from mnemosyned.domain.ports.surroundings.watching import (
    FILES_MAX,
    FOLDERS_MAX,
    FolderTotals,
    WatchedFile,
    WatchStore,
)
from mnemosyned.domain.storing.rows import FILE_COLUMNS, file_from
from mnemosyned.storage.postgres.database.session import Session
from mnemosyned.storage.postgres.database.transactions import (
    Transactional,
    reads,
    writes,
    writes_lazily,
)
from mnemosyned.storage.postgres.tables.rows import utc
from mnemosyned.storage.postgres.tables.surroundings.watched import (
    KEEP_FILE,
    file_values,
)

MOVED_MAX = 10
"""Files of one device and inode that are read."""
_BELOW = (
    "owner = %(owner)s AND (path = %(path)s::text "
    "OR (path > %(path)s::text || '/' AND path < %(path)s::text || '0'))"
)
"""The path itself, and all that begins with it and a slash, which the digit follows."""


class PostgresWatches(Transactional, WatchStore):
    """A `WatchStore` of one owner in PostgreSQL.

    The state of files does not wait for the disk: what a failure of power takes back is read again.
    """

    @reads
    def folders(self, session: Session) -> list[str]:
        rows = session.execute(
            "SELECT path FROM watched_folder WHERE owner = %(owner)s "
            "ORDER BY path LIMIT %(most)s",
            most=FOLDERS_MAX,
        )
        return [path for (path,) in rows]

    @writes
    def add_folder(self, session: Session, path: str, added_at: datetime) -> None:
        session.execute(
            "INSERT INTO watched_folder (owner, path, added_at) "
            "VALUES (%(owner)s, %(path)s, %(added_at)s) ON CONFLICT DO NOTHING",
            path=path,
            added_at=utc(added_at),
        )

    @writes
    def remove_folder(self, session: Session, path: str) -> bool:
        removed = session.execute(
            "DELETE FROM watched_folder WHERE owner = %(owner)s AND path = %(path)s",
            path=path,
        )
        session.execute(f"DELETE FROM watched_file WHERE {_BELOW}", path=path)
        return removed.rowcount > 0

    @reads
    def file(self, session: Session, path: str) -> WatchedFile | None:
        row = session.execute(
            f"SELECT {FILE_COLUMNS} FROM watched_file WHERE owner = %(owner)s AND path = %(path)s",
            path=path,
        ).fetchone()
        return file_from(row) if row else None

    @reads
    def moved_from(self, session: Session, file: str) -> list[WatchedFile]:
        rows = session.execute(
            f"SELECT {FILE_COLUMNS} FROM watched_file "
            "WHERE owner = %(owner)s AND file = %(file)s LIMIT %(most)s",
            file=file,
            most=MOVED_MAX,
        )
        return list(map(file_from, rows))

    @writes_lazily
    def keep_file(self, session: Session, state: WatchedFile) -> None:
        session.execute(KEEP_FILE, **file_values(state))

    @writes_lazily
    def drop_files(self, session: Session, paths: Sequence[str]) -> None:
        session.execute(
            "DELETE FROM watched_file "
            "WHERE owner = %(owner)s AND path = ANY(%(paths)s::text[])",
            paths=list(paths),
        )

    @reads
    def states(self, session: Session, folder: str) -> dict[str, tuple[int, int]]:
        rows = session.execute(
            f"SELECT path, size, modified_ns FROM watched_file WHERE {_BELOW} "
            "LIMIT %(most)s",
            path=folder,
            most=FILES_MAX,
        )
        return {path: (size, modified) for path, size, modified in rows}

    @reads
    def totals(self, session: Session, folder: str) -> FolderTotals:
        row = session.execute(
            "SELECT count(*), coalesce(sum(stored), 0)::bigint, max(read_at) "
            f"FROM watched_file WHERE {_BELOW} AND format != ''",
            path=folder,
        ).fetchone()
        files, stored, read_at = row or (0, 0, None)
        return FolderTotals(files, stored, read_at)
