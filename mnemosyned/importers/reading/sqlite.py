"""SQLite files of other programs, opened so that nothing in or next to them changes."""

from __future__ import annotations

import shutil
import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from urllib.parse import quote

from mnemosyned.importers.importer import Source

SIGNATURE = b"SQLite format 3\0"


@dataclass(frozen=True, slots=True, kw_only=True)
class SqliteLimits:
    """Limits of one reading, beyond which a broken or hostile file is given up."""

    value_bytes: int = 64 << 20
    steps: int = 2_000_000_000
    """Instructions of SQLite's machine."""
    steps_at_a_time: int = 10_000_000


LIMITS = SqliteLimits()


class SqliteRefused(Exception):
    """The file cannot be read as a database."""


@contextmanager
def reading(path: Path, limits: SqliteLimits = LIMITS) -> Iterator[sqlite3.Connection]:
    """Open a database read-only. Raises `SqliteRefused`, also for what is broken in it.

    A file without a write-ahead log is opened as one that never changes, which needs no lock and
    writes nothing next to it. With one, SQLite reads the log too, in a copy if no program has both open.
    """
    log, index = Path(f"{path}-wal"), Path(f"{path}-shm")
    has_log = log.exists() and log.stat().st_size > 0
    if has_log and not index.exists():
        with TemporaryDirectory(prefix="mnem-import-") as folder:
            copy = Path(folder, path.name)
            shutil.copyfile(path, copy)
            shutil.copyfile(log, f"{copy}-wal")
            with _opened(copy, "mode=rw", limits) as database:
                yield database
        return
    mode = "mode=ro" if has_log else "mode=ro&immutable=1"
    with _opened(path, mode, limits) as database:
        yield database


@contextmanager
def _opened(
    path: Path, mode: str, limits: SqliteLimits
) -> Iterator[sqlite3.Connection]:
    """Open a database. Raises `SqliteRefused`, also for what is broken in it."""
    steps = 0

    def count() -> bool:
        nonlocal steps
        steps += limits.steps_at_a_time
        return steps > limits.steps

    try:
        uri = f"file:{quote(str(path.absolute()))}?{mode}"
        with closing(sqlite3.connect(uri, uri=True, timeout=5.0)) as database:
            database.setlimit(sqlite3.SQLITE_LIMIT_LENGTH, limits.value_bytes)
            database.execute("PRAGMA query_only = ON")
            database.execute("PRAGMA trusted_schema = OFF")
            database.text_factory = _text
            database.set_progress_handler(count, limits.steps_at_a_time)
            yield database
    except (sqlite3.Error, UnicodeDecodeError) as error:  # names may be no text
        raise SqliteRefused(f"the database cannot be read: {error}") from error


def tables_of(source: Source) -> frozenset[str]:
    """Return the names of a database's tables; none for another file."""
    if source.stream or source.is_folder or not source.head.startswith(SIGNATURE):
        return frozenset()
    try:
        with reading(source.path) as database:
            rows = database.execute(
                "SELECT name FROM sqlite_master WHERE type = 'table' LIMIT 10000"
            )
            return frozenset(name for (name,) in rows)
    except SqliteRefused:
        return frozenset()


def columns_of(database: sqlite3.Connection, table: str) -> frozenset[str]:
    """Return the names of a table's columns."""
    rows = database.execute("SELECT name FROM pragma_table_info(?)", (table,))
    return frozenset(name for (name,) in rows)


def _text(data: bytes) -> str:
    return data.decode("utf-8", "replace")
