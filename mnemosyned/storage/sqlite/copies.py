"""Copies of a database: written next to it, checked and flushed; and a copy restored in its place.

A restored copy waits next to the database under a name with the time until the files of the old one
are out of its way. A process that is killed in between leaves that name, and whoever locks the
database next goes on from there: see `finish_restore`. The old database is set aside, never deleted.
"""

from __future__ import annotations

import glob
import os
import re
import sqlite3
import threading
from collections.abc import Callable
from contextlib import closing
from datetime import UTC, datetime
from pathlib import Path

from mnemosyned.errors import InvalidRequest, StorageFailed
from mnemosyned.logs import logger
from mnemosyned.memory.ports import CopyReport
from mnemosyned.storage.common.forgetting import NAMING
from mnemosyned.storage.sqlite import fulltext, repair, schema
from mnemosyned.storage.sqlite.connections import BUSY_TIMEOUT_S

PRIVATE = 0o600
_backing_up = threading.Lock()
"""Lock of a backup, as two backups to the same file would use the same temporary name."""
PARTIAL = ".partial"
"""Suffix of a copy's name until the copy is complete."""
UNPURGED = "an index is damaged, and may still hold words of what was forgotten"


class CopyDamaged(Exception):
    """A copy lacks something that its source has."""


def copy_beside(source: sqlite3.Connection, target: Path) -> Path:
    """Copy all that a connection sees to a new file next to `target`; return the new file's path.

    The copy is one private file without a log, flushed to disk and purged of deleted text, unless
    damage prevents the purge. Raises sqlite3.Error and OSError; after an error there is no new file.
    """
    partial = target.with_name(target.name + PARTIAL)
    partial.unlink(missing_ok=True)
    os.close(
        os.open(partial, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, PRIVATE)
    )
    try:
        source.execute("VACUUM INTO ?", (str(partial),))
        _purge_copy(partial)
        flush(partial)
    except BaseException:
        for file in (partial, partial.with_name(f"{partial.name}-journal")):
            file.unlink(missing_ok=True)
        raise
    return partial


def _purge_copy(copy: Path) -> None:
    """Purge deleted text from a copy if the source waited for a purge and no index is damaged.

    `VACUUM INTO` copies the segments of full-text indexes with deleted terms in them.
    """
    with closing(sqlite3.connect(copy, isolation_level=None)) as connection:
        if not _is_purge_due(connection):
            return
        connection.execute("PRAGMA synchronous = OFF")  # it is flushed as a whole
        connection.execute("PRAGMA secure_delete = ON")
        if not fulltext.purge_indexes(connection):
            return
        for table in schema.table_names(connection).intersection(NAMING):
            for column, nameless in (("session_id", "''"), ("source", "NULL")):
                connection.execute(
                    f"UPDATE {table} SET {column} = {nameless} WHERE {column} != '' "
                    f"AND {column} NOT IN (SELECT ifnull({column}, '') FROM working_memory "
                    f"UNION SELECT ifnull({column}, '') FROM episodic_memory)"
                )
        connection.execute("DELETE FROM scrub_due")
        connection.execute("VACUUM")  # rows that moved left copies in free space


def _is_purge_due(connection: sqlite3.Connection) -> bool:
    """Return whether a database holds deleted words that wait for a purge."""
    return "scrub_due" in schema.table_names(connection) and bool(
        connection.execute("SELECT 1 FROM scrub_due LIMIT 1").fetchone()
    )


def back_up(database: Path, target: Path, *, check: Callable[[], object]) -> CopyReport:
    """Copy the database to `target` while others read and write; return a report on the copy.

    The copy is checked before it replaces an earlier `target`, which an error leaves as it was.
    `check` must raise an error if the path of the database leads to another file by now. Raises
    `CopyDamaged`, sqlite3.Error and OSError.
    """
    with _backing_up, closing(open_to_read(database)) as source:
        source.execute("SELECT 1 FROM sqlite_schema").fetchone()  # opens the log
        check()
        partial = copy_beside(source, target)
        try:
            report = verify_copy(partial, source=source)
            partial.replace(target)
        except BaseException:
            partial.unlink(missing_ok=True)
            raise
    flush(target.parent)
    return report


def verify_copy(copy: Path, *, source: sqlite3.Connection) -> CopyReport:
    """Check a copy; return its size, counts and faults. Raises `CopyDamaged` for a new fault.

    Faults that `source` has, too, and faults of full-text indexes and texts are only reported, as a
    database with a fault needs a backup most.
    """
    with closing(sqlite3.connect(copy, isolation_level=None)) as connection:
        faults_of_copy = [
            *repair.find_faults(connection),
            *repair.structure_faults(connection),
        ]
        memories, episodes = repair.count_contents(connection)
        unpurged = [UNPURGED] if _is_purge_due(connection) else []
    size = copy.stat().st_size
    inherited = (
        {(fault.kind, fault.subject) for fault in repair.find_faults(source)}
        if faults_of_copy
        else set()
    )
    new = [
        fault
        for fault in faults_of_copy
        # Indexes and texts are copied as they are.
        if fault.kind not in (repair.FaultKind.INDEX, repair.FaultKind.TEXT)
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
    """Return a read-only connection to a database.

    With `foreign`, SQLite uses no lock and creates no file next to a database without a log. This
    process must then have no other connection to it, whose locks would be lost.
    """
    log = database.with_name(database.name + "-wal")
    unchanging = "&immutable=1" if foreign and not log.exists() else ""
    uri = f"{database.absolute().as_uri()}?mode=ro{unchanging}"
    return sqlite3.connect(uri, uri=True, timeout=BUSY_TIMEOUT_S, isolation_level=None)


def place(copy: Path, target: Path) -> None:
    """Rename a copy to `target`, and flush the folder. Raises `FileExistsError` if `target` exists."""
    os.link(copy, target)
    copy.unlink()
    flush(target.parent)


def flush(path: Path) -> None:
    """Flush a file to disk, or the names in a folder."""
    descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


SQLITE = b"SQLite format 3\0"
FILES_OF_A_DATABASE = ("-wal", "-shm", "-journal", "")
"""Files in the order in which they are set aside; the database is last, as its name leads to the others."""
GRAVE = (repair.FaultKind.INTEGRITY, repair.FaultKind.FOREIGN_KEY)
"""Kinds of faults that cannot be repaired; the others concern indexes and counts."""
_STAMP = "%Y%m%dT%H%M%SZ"
_WAITING = re.compile(r"\.restore-(\d{8}T\d{6}Z)")

log = logger()


def check_backup(file: Path, migrations: Path) -> None:
    """Raise `InvalidRequest` if a file is no database of this program or beyond repair, or `SchemaTooNew`."""
    try:
        _check_header(file)
        with closing(open_to_read(file, foreign=True)) as connection:
            schema.refuse_foreign(connection, file)
            if schema.schema_version(connection) == 0:
                raise sqlite3.DatabaseError("there is no memory in it")
            schema.refuse_newer(connection, schema.latest_version(migrations))
            grave = [
                each for each in repair.find_faults(connection) if each.kind in GRAVE
            ]
    except (OSError, sqlite3.Error) as error:
        reason = getattr(error, "strerror", None) or str(error)
        raise _make_refusal(file, f"it cannot be read: {reason}") from error
    except StorageFailed as error:  # of another program
        raise _make_refusal(file, error.message) from error
    if grave:
        raise _make_refusal(file, grave[0].text)


def stage_copy(
    source: Path, database: Path, *, change: Callable[[Path], object] = lambda _: None
) -> CopyReport:
    """Put a checked copy of a backup next to the locked database; return a report on the copy.

    `change` may modify the copy before the check, and must flush its changes. The next process that
    locks the database finishes the restore. Raises `StorageFailed` and then leaves no copy.
    """
    try:
        with closing(open_to_read(source, foreign=True)) as connection:
            copy = copy_beside(connection, database)
            try:
                change(copy)
                report = verify_copy(copy, source=connection)
                copy.rename(
                    database.with_name(
                        f"{database.name}.restore-{datetime.now(UTC):{_STAMP}}"
                    )
                )
            except BaseException:
                copy.unlink(missing_ok=True)
                raise
        flush(database.parent)
    except (OSError, sqlite3.Error, CopyDamaged) as error:
        reason = getattr(error, "strerror", None) or str(error)
        raise StorageFailed(
            f"nothing was restored, and the database is as it was: {reason}",
            reason=reason,
        ) from error
    return report


def finish_restore(database: Path) -> Path | None:
    """Set the database aside, and rename a copy made by `stage_copy` to take its place.

    Return the old database's new path, or None if there was no copy or no old database. After a
    killed process, another call goes on where that process stopped.
    """
    aside = None
    # The copies that wait, with their stamps in the name, the oldest first.
    for waiting in sorted(
        database.parent.glob(f"{glob.escape(database.name)}.restore-*")
    ):
        match = _WAITING.fullmatch(waiting.name.removeprefix(database.name))
        if match is None:
            continue
        stamp = match[1]
        aside = database.with_name(f"{database.name}.before-restore-{stamp}")
        for suffix in FILES_OF_A_DATABASE:
            old = database.with_name(database.name + suffix)
            if old.exists():
                old.rename(aside.with_name(aside.name + suffix))
        flush(database.parent)
        waiting.rename(database)
        flush(database.parent)
        log.info("database_restored", database=str(database), set_aside=str(aside))
    return aside if aside and aside.exists() else None


def _check_header(file: Path) -> None:
    """Raise `InvalidRequest` if a file's header is not that of a whole SQLite database."""
    if not file.is_file():
        raise _make_refusal(file, "there is no such file")
    with file.open("rb") as opened:
        header = opened.read(100)
    if not header.startswith(SQLITE) or len(header) < 100:
        raise _make_refusal(file, "it is not an SQLite database")
    page_bytes = int.from_bytes(header[16:18], "big")
    page_bytes = 65_536 if page_bytes == 1 else page_bytes
    size = int.from_bytes(header[28:32], "big") * page_bytes
    # SQLite counts the pages there, unless an old version wrote to the file since.
    counted = header[24:28] == header[92:96]
    actual = file.stat().st_size
    if counted and actual < size:
        raise _make_refusal(
            file, f"it is cut off: {actual:,} of {size:,} bytes are there"
        )


def _make_refusal(file: Path, reason: str) -> InvalidRequest:
    """Return the error for a backup file that is not restored, with the reason in its message."""
    return InvalidRequest(f"{file} is not restored: {reason}", field="file")
