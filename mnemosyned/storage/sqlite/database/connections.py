"""Opening connections to the file, with the settings of a writer or of a reader."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

BUSY_TIMEOUT_S = 10.0
CHECKPOINT_PAGES = 4_000
"""Log pages, 16 MB, at which SQLite checkpoints; a larger log means fewer checkpoints in a sleep."""


def open_writer(
    path: Path, *, check: Callable[[sqlite3.Connection], object] = lambda _: None
) -> sqlite3.Connection:
    """The connection that writes: every commit is on disk when it returns.

    `check` may refuse the file, by what it raises, before anything of it is changed.
    """
    connection = sqlite3.connect(
        path, timeout=BUSY_TIMEOUT_S, isolation_level=None, check_same_thread=False
    )
    try:
        check(connection)
        _set_up(connection)
    except BaseException:
        connection.close()
        raise
    return connection


def _set_up(connection: sqlite3.Connection) -> None:
    connection.execute("PRAGMA journal_mode = WAL")
    connection.execute("PRAGMA synchronous = FULL")
    connection.execute("PRAGMA foreign_keys = ON")
    connection.execute("PRAGMA cache_size = -16000")
    connection.execute(f"PRAGMA wal_autocheckpoint = {CHECKPOINT_PAGES}")
    # What is deleted is overwritten: an evicted row must not outlive its memory in a free page.
    connection.execute("PRAGMA secure_delete = ON")
    connection.execute("PRAGMA temp_store = MEMORY")


def open_reader(path: Path) -> sqlite3.Connection:
    """A connection that cannot write and sees a snapshot for each transaction."""
    connection = sqlite3.connect(
        f"{path.absolute().as_uri()}?mode=ro",
        uri=True,
        timeout=BUSY_TIMEOUT_S,
        isolation_level=None,
        check_same_thread=False,
    )
    try:
        connection.execute("PRAGMA query_only = ON")
        connection.execute("PRAGMA cache_size = -8000")
        connection.execute("PRAGMA temp_store = MEMORY")
    except BaseException:
        connection.close()
        raise
    return connection


def bound_caches(limit_bytes: int) -> None:
    """Keep SQLite's caches in this process below so much in all; beyond it they recycle pages.

    Each connection has its own, and all of them hold what is asked for often.
    """
    with closing(sqlite3.connect(":memory:")) as connection:
        connection.execute(f"PRAGMA soft_heap_limit = {limit_bytes}")
