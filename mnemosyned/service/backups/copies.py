"""Copies of a database: which files beside it look like some, and where a new one may go."""

from __future__ import annotations

from itertools import chain, islice
from pathlib import Path

from mnemosyned.domain.errors import InvalidRequest
from mnemosyned.domain.keeping.backups import DatedBackup, dated_backup

FILES_MAX = 10_000
SQLITE = b"SQLite format 3\0"
OWN = ("", "-wal", "-shm", "-journal", ".lock")


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
    given = Path(name)
    if not given.is_absolute():
        raise InvalidRequest(
            f"{name} is not an absolute path; begin it with /", field="file"
        )
    try:
        target = given.resolve()
        refused = _refusal(target, database)
    except (
        OSError,
        RuntimeError,
    ) as error:  # before Python 3.13 a loop of links is the latter
        refused = f"{name} cannot be used: {error}"
    if refused:
        raise InvalidRequest(f"{refused}; choose another name", field="file")
    return target


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
    if not target.parent.is_dir():
        return f"there is no folder {target.parent}"
    if target in _own_files(database):
        return f"{target} is a file of the memory itself"
    if _in_use(target):
        return f"{target} is a database that some program uses"
    if not _may_be_replaced(target):
        return f"{target} exists already and is not a backup"
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
