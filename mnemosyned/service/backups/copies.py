"""Copies of a database: which files beside it look like some, and where a new one may go."""

from __future__ import annotations

import os
from itertools import chain, islice
from pathlib import Path

from mnemosyned.domain.errors import InvalidRequest
from mnemosyned.domain.keeping.backups import DatedBackup, dated_backup
from mnemosyned.paths import (
    DATABASE_PATH_BYTES_MAX,
    fault_of,
    shown_path,
    usable_path,
)

FILES_MAX = 10_000
SQLITE = b"SQLite format 3\0"
OWN = ("", "-wal", "-shm", "-journal", ".lock")
SUFFIX = ".partial-journal"
"""The longest that is appended to the name of a backup while it is written."""


def backup_folder(database: Path, setting: Path | None) -> Path:
    """Return the folder of dated backups: the one of the settings, or one next to the database."""
    return setting or database.with_name("backups")


def known_backups(database: Path, folder: Path | None = None) -> list[str]:
    """Files in the database's folder, one below it, and in the backup folder.

    Any SQLite file counts, and any that is named as the database is. Only names and the first
    bytes are looked at; a copy kept elsewhere is not known.
    """
    own = _own_files(database)
    beside = database.parent
    files = chain(
        folder.glob("*") if folder else (), beside.glob("*"), beside.glob("*/*")
    )
    others = set(islice(files, FILES_MAX)) - own
    return sorted(str(file) for file in others if _is_copy(file, database))


def backup_target(name: str, database: Path) -> Path:
    """Return the path for a backup. Raises `InvalidRequest` where it would destroy another file."""
    given = named_target(name, suffix=SUFFIX)
    try:
        target = given.resolve()
        refused = _refusal(target, database)
    except OSError as error:  # changed since it was looked at
        refused = f"{shown_path(name)} cannot be used: {fault_of(error)}"
    if refused:
        raise InvalidRequest(f"{refused}; choose another name", field="file")
    return target


def named_target(name: str, *, suffix: str = "") -> Path:
    """Return the absolute path that a caller named for a backup. Raises `InvalidRequest`."""
    if not name.startswith("/"):
        raise InvalidRequest(
            f"{shown_path(name)} is not an absolute path; begin it with /", field="file"
        )
    return usable_path(
        name, field="file", suffix=suffix, bytes_max=DATABASE_PATH_BYTES_MAX
    )


def dated_backups(folder: Path) -> list[DatedBackup]:
    """The whole backups in a folder, by their names."""
    try:
        names = [file.name for file in islice(folder.iterdir(), FILES_MAX)]
    except OSError:  # there is none yet
        return []
    return [each for each in map(dated_backup, names) if each]


def holds_database(file: Path) -> bool:
    """Whether a file is empty, or an SQLite database."""
    return file.stat().st_size == 0 or _is_sqlite(file)


def file_bytes(path: Path) -> int:
    """The size of a file; 0 where it is gone."""
    try:
        return path.stat().st_size
    except FileNotFoundError:
        return 0


def _refusal(target: Path, database: Path) -> str:
    if target.is_dir():
        return f"{target} is a folder, not a backup"
    if refused := _refusal_of_folder(target.parent):
        return refused
    if target in _own_files(database):
        return f"{target} is a file of the memory itself"
    if _in_use(target):
        return f"{target} is a database that some program uses"
    if not _may_be_replaced(target):
        return f"{target} exists already and is not a backup"
    return ""


def _refusal_of_folder(folder: Path) -> str:
    if not folder.is_dir():
        return f"there is no folder {folder}"
    if not os.access(folder, os.W_OK | os.X_OK, effective_ids=True):
        return f"{folder} is closed to the process that makes backups"
    return ""


def _own_files(database: Path) -> set[Path]:
    """The database, with the files that SQLite and this daemon keep beside it."""
    return {database.with_name(database.name + suffix) for suffix in OWN}


def _may_be_replaced(file: Path) -> bool:
    """Whether there is no such file, or an empty one, or another database."""
    if not file.exists():
        return True
    if not file.is_file():
        return False
    return holds_database(file)


def _is_copy(file: Path, database: Path) -> bool:
    try:
        # Another name of the database itself is no copy.
        is_database = database.exists() and file.samefile(database)
        if is_database or not file.is_file():
            return False
    except OSError:  # in a folder that is closed to us: no copy that this daemon made
        return False
    return file.name.startswith(database.stem) or _in_use(file) or _is_sqlite(file)


def _in_use(file: Path) -> bool:
    """Whether a database has its log beside it.

    One that this process itself has open must not be opened to look: closing it again would drop
    the locks of SQLite, and another program could then delete the log.
    """
    return file.with_name(file.name + "-wal").exists()


def _is_sqlite(file: Path) -> bool:
    try:
        with file.open("rb") as opened:
            return opened.read(len(SQLITE)) == SQLITE
    except OSError:  # unreadable for us: no copy that this daemon made
        return False
