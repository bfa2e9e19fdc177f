"""Puts a whole copy in the place of a database, which is set aside and never deleted.

The copy waits next to the database under a name with the time until the files of the old one are
out of its way. A process that is killed in between leaves that name, and whoever locks the database
next goes on from there: see `finish_restore`.
"""

from __future__ import annotations

import glob
import re
import sqlite3
from collections.abc import Callable, Iterator
from contextlib import closing
from datetime import UTC, datetime
from pathlib import Path

from mnemosyned.domain.errors import InvalidRequest, StorageFailed
from mnemosyned.domain.ports.maintenance import CopyReport
from mnemosyned.logs import logger
from mnemosyned.storage.sqlite.database.copies import (
    CopyDamaged,
    copy_beside,
    flush,
    open_to_read,
    verified,
)
from mnemosyned.storage.sqlite.database.schema import (
    latest_version,
    refuse_foreign,
    refuse_newer,
    schema_version,
)
from mnemosyned.storage.sqlite.database.verification import FaultKind, faults

SQLITE = b"SQLite format 3\0"
FILES_OF_A_DATABASE = ("-wal", "-shm", "-journal", "")
"""The order in which they are set aside: while the last is there, the others may be looked for."""
GRAVE = (FaultKind.INTEGRITY, FaultKind.FOREIGN_KEY)
"""Faults that no repair mends; the others are those of indexes and counts."""
_STAMP = "%Y%m%dT%H%M%SZ"
_WAITING = re.compile(r"\.restore-(\d{8}T\d{6}Z)")

log = logger()


def check_backup(file: Path, migrations: Path) -> None:
    """Raise `InvalidRequest` for a file that is not a whole memory, `SchemaTooNew` for a later one."""
    try:
        _check_header(file)
        with closing(open_to_read(file, foreign=True)) as connection:
            refuse_foreign(connection, file)
            _check_version(connection, migrations)
            grave = [each for each in faults(connection) if each.kind in GRAVE]
    except (OSError, sqlite3.Error) as error:
        reason = getattr(error, "strerror", None) or str(error)
        raise _refused(file, f"it cannot be read: {reason}") from error
    except StorageFailed as error:  # of another program
        raise _refused(file, error.message) from error
    if grave:
        raise _refused(file, grave[0].text)


def stage_copy(
    source: Path, database: Path, *, change: Callable[[Path], object] = lambda _: None
) -> CopyReport:
    """Have a checked copy of a backup wait next to the database, which must be locked.

    `change` is called with the copy before it is checked, and has what it changes on disk.
    From then on the restore is finished, if not here then by the next who locks the database.
    Raises `StorageFailed`, and leaves everything as it was.
    """
    try:
        with closing(open_to_read(source, foreign=True)) as connection:
            copy = copy_beside(connection, database)
            try:
                change(copy)
                report = verified(copy, source=connection)
                copy.rename(_waiting_name(database))
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
    """Give a waiting copy the database's name; returns where the old one is set aside.

    It can be called again after each of its steps.
    """
    aside = None
    for waiting, stamp in _waiting(database):
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


def _waiting(database: Path) -> Iterator[tuple[Path, str]]:
    """The copies that wait, with their stamps, the oldest first."""
    for file in sorted(database.parent.glob(f"{glob.escape(database.name)}.restore-*")):
        stamp = _WAITING.fullmatch(file.name.removeprefix(database.name))
        if stamp:
            yield file, stamp[1]


def _waiting_name(database: Path) -> Path:
    return database.with_name(f"{database.name}.restore-{datetime.now(UTC):{_STAMP}}")


def _check_header(file: Path) -> None:
    if not file.is_file():
        raise _refused(file, "there is no such file")
    with file.open("rb") as opened:
        header = opened.read(100)
    if not header.startswith(SQLITE) or len(header) < 100:
        raise _refused(file, "it is not an SQLite database")
    page_bytes = int.from_bytes(header[16:18], "big")
    page_bytes = 65_536 if page_bytes == 1 else page_bytes
    size = int.from_bytes(header[28:32], "big") * page_bytes
    # SQLite counts the pages there, unless an old version wrote to the file since.
    counted = header[24:28] == header[92:96]
    actual = file.stat().st_size
    if counted and actual < size:
        raise _refused(file, f"it is cut off: {actual:,} of {size:,} bytes are there")


def _check_version(connection: sqlite3.Connection, migrations: Path) -> None:
    if schema_version(connection) == 0:
        raise sqlite3.DatabaseError("there is no memory in it")
    refuse_newer(connection, latest_version(migrations))


def _refused(file: Path, reason: str) -> InvalidRequest:
    return InvalidRequest(f"{file} is not restored: {reason}", field="file")
