"""Copies of a database that are whole: written next to their place, checked, flushed, named."""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

from mnemosyned.domain.ports.maintenance import CopyReport
from mnemosyned.storage.sqlite.database.file import PRIVATE
from mnemosyned.storage.sqlite.database.verification import (
    FaultKind,
    counts,
    faults,
    structure_faults,
    tables,
)
from mnemosyned.storage.sqlite.fulltext.segments import purge_indexes

PARTIAL = ".partial"
"""The end of a copy's name until it is whole."""
BUSY_TIMEOUT_S = 10.0
NAMING = ("consolidation_log", "compaction")
"""The tables that name sessions and sources, and outlive the memories of these."""
UNPURGED = "an index is damaged, and may still hold words of what was forgotten"


class CopyDamaged(Exception):
    """A copy lacks something that its source has."""


def copy_beside(source: sqlite3.Connection, target: Path) -> Path:
    """Write all that a connection sees to a new file next to `target`, which is left alone.

    The copy is one file without a log, private, and on disk when this returns. Nothing that was
    deleted is in it, even while the source still waits for its purge; where damage prevents that,
    the copy has the purge due. Raises sqlite3.Error and OSError, and leaves nothing then.
    """
    partial = target.with_name(target.name + PARTIAL)
    partial.unlink(missing_ok=True)
    os.close(
        os.open(partial, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, PRIVATE)
    )
    try:
        source.execute("VACUUM INTO ?", (str(partial),))
        _purge(partial)
        flush(partial)
    except BaseException:
        partial.unlink(missing_ok=True)
        raise
    return partial


def _purge(copy: Path) -> None:
    """Purge a copy if its source was waiting for a purge: `VACUUM INTO` copies index segments."""
    with closing(sqlite3.connect(copy, isolation_level=None)) as connection:
        if not _purge_due(connection):
            return
        connection.execute("PRAGMA synchronous = OFF")  # it is flushed as a whole
        connection.execute("PRAGMA secure_delete = ON")
        if not purge_indexes(connection):
            return
        for table in tables(connection).intersection(NAMING):
            for column, nameless in (("session_id", "''"), ("source", "NULL")):
                connection.execute(
                    f"UPDATE {table} SET {column} = {nameless} WHERE {column} != '' "
                    f"AND {column} NOT IN (SELECT ifnull({column}, '') FROM working_memory "
                    f"UNION SELECT ifnull({column}, '') FROM episodic_memory)"
                )
        connection.execute("DELETE FROM scrub_due")
        connection.execute("VACUUM")  # rows that moved left copies in free space


def _purge_due(connection: sqlite3.Connection) -> bool:
    return "scrub_due" in tables(connection) and bool(
        connection.execute("SELECT 1 FROM scrub_due LIMIT 1").fetchone()
    )


def back_up(database: Path, target: Path, *, check: Callable[[], object]) -> CopyReport:
    """Write the database as it is now to `target`, in one step for whoever reads it.

    Writers go on meanwhile. The copy is read through before it gets its name. `check` raises where
    the path leads to another file by now. Raises `CopyDamaged`, sqlite3.Error and OSError too;
    what was at `target` stays then.
    """
    with closing(open_to_read(database)) as source:
        source.execute("SELECT 1 FROM sqlite_schema").fetchone()  # opens the log
        check()
        partial = copy_beside(source, target)
        try:
            report = verified(partial, source=source)
            partial.replace(target)
        except BaseException:
            partial.unlink(missing_ok=True)
            raise
    flush(target.parent)
    return report


def verified(copy: Path, *, source: sqlite3.Connection) -> CopyReport:
    """Read all of a copy, and return what it holds. Raises `CopyDamaged`.

    Faults that the source has too do not damage the copy: a database with a fault needs a backup
    more than any other. They are reported.
    """
    with closing(sqlite3.connect(copy, isolation_level=None)) as connection:
        faults_of_copy = [*faults(connection), *structure_faults(connection)]
        memories, episodes = counts(connection)
        unpurged = [UNPURGED] if _purge_due(connection) else []
    size = copy.stat().st_size
    inherited = (
        {(fault.kind, fault.subject) for fault in faults(source)}
        if faults_of_copy
        else set()
    )
    new = [
        fault
        for fault in faults_of_copy
        # An index is copied as it is, and can be made again from the texts.
        if fault.kind is not FaultKind.INDEX
        and (fault.kind, fault.subject) not in inherited
    ]
    if new:
        raise CopyDamaged(f"the copy is not whole: {new[0].text}")
    return CopyReport(
        bytes=size,
        memories=memories,
        episodes=episodes,
        problems=(*unpurged, *(fault.text for fault in faults_of_copy)),
    )


def open_to_read(database: Path, *, foreign: bool = False) -> sqlite3.Connection:
    """A connection that reads a database and changes nothing in it.

    With `foreign` nothing next to it changes either: a file without a log is then read as one that
    nobody writes. This process must not have that file open otherwise, or SQLite's locks go.
    """
    log = database.with_name(database.name + "-wal")
    unchanging = "&immutable=1" if foreign and not log.exists() else ""
    uri = f"{database.absolute().as_uri()}?mode=ro{unchanging}"
    return sqlite3.connect(uri, uri=True, timeout=BUSY_TIMEOUT_S, isolation_level=None)


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
