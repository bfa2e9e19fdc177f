"""Copies of a database that are whole: written beside their place, flushed, then named."""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

from mnemosyned.storage.sqlite.database.file import PRIVATE

PARTIAL = ".partial"
"""The end of a copy's name until it is whole."""
BUSY_TIMEOUT_S = 10.0


def copy_beside(source: sqlite3.Connection, target: Path) -> Path:
    """Write all that a connection sees to a new file next to `target`, which is left alone.

    The copy is one file without a log, private, and on disk when this returns. Nothing that was
    deleted is in it. Raises sqlite3.Error and OSError, and leaves nothing then.
    """
    partial = target.with_name(target.name + PARTIAL)
    partial.unlink(missing_ok=True)
    os.close(
        os.open(partial, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, PRIVATE)
    )
    try:
        source.execute("VACUUM INTO ?", (str(partial),))
        flush(partial)
    except BaseException:
        partial.unlink(missing_ok=True)
        raise
    return partial


def back_up(database: Path, target: Path, *, check: Callable[[], object]) -> int:
    """Write the database as it is now to `target`, in one step for whoever reads it; its bytes.

    Writers go on meanwhile. `check` raises where the path leads to another file by now. Raises
    sqlite3.Error and OSError too; what was at `target` stays then.
    """
    uri = f"{database.absolute().as_uri()}?mode=ro"
    connecting = sqlite3.connect(
        uri, uri=True, timeout=BUSY_TIMEOUT_S, isolation_level=None
    )
    with closing(connecting) as source:
        source.execute("SELECT 1 FROM sqlite_schema").fetchone()  # opens the log
        check()
        partial = copy_beside(source, target)
    try:
        size = partial.stat().st_size
        partial.replace(target)
    except BaseException:
        partial.unlink(missing_ok=True)
        raise
    flush(target.parent)
    return size


def place(copy: Path, target: Path) -> None:
    """Give a copy its name, unless something has it. Raises `FileExistsError`."""
    os.link(copy, target)
    copy.unlink()
    flush(target.parent)


def flush(path: Path) -> None:
    """Have a file, or the names in a folder, on disk."""
    descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
