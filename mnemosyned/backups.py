"""Which files beside a database look like copies of it, so that forgetting can name them."""

from __future__ import annotations

from itertools import islice
from pathlib import Path

FILES_MAX = 10_000
SQLITE = b"SQLite format 3\0"
OWN = ("", "-wal", "-shm", "-journal", ".lock")


def backups_beside(database: Path) -> list[str]:
    """Files in the database's folder and one below it: any SQLite file, and any so named.

    Only names and the first bytes are looked at; a copy kept elsewhere is not known.
    """
    own = {database.with_name(database.name + suffix) for suffix in OWN}
    folder = database.parent
    files = islice((*folder.glob("*"), *folder.glob("*/*")), FILES_MAX)
    return sorted(
        str(file)
        for file in files
        if file not in own
        and file.is_file()
        and (file.name.startswith(database.stem) or _is_sqlite(file))
    )


def _is_sqlite(file: Path) -> bool:
    try:
        with file.open("rb") as opened:
            return opened.read(len(SQLITE)) == SQLITE
    except OSError:  # unreadable for us: no copy that this daemon made
        return False
