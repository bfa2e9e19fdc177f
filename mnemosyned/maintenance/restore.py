"""Restores a backup as the database, which no daemon may have open meanwhile."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from mnemosyned.domain.errors import InvalidRequest
from mnemosyned.domain.ports.maintenance import CopyReport
from mnemosyned.paths import shipped
from mnemosyned.storage.sqlite.database.ownership import locked
from mnemosyned.storage.sqlite.database.restoring import (
    check_backup,
    finish_restore,
    stage_copy,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class RestoredDatabase:
    """A backup that is the database now."""

    database: Path
    copy: CopyReport
    set_aside: Path | None
    """Where the former database is; None if there was none."""


def check_restorable(backup: Path, database: Path) -> None:
    """Raise where a file cannot become the database, before anything is stopped or moved."""
    if backup.exists() and database.exists() and backup.samefile(database):
        raise InvalidRequest(f"{backup} is the database itself", field="file")
    check_backup(backup, shipped("migrations"))


def restore_database(backup: Path, database: Path) -> RestoredDatabase:
    """Put a copy of a backup in the place of the database, and set that aside.

    Raises `InvalidRequest`, `SchemaTooNew`, `DatabaseInUse` and `StorageFailed`; the database is
    as it was then.
    """
    check_restorable(backup, database)
    with locked(database):
        copy = stage_copy(backup, database)
        aside = finish_restore(database)
    return RestoredDatabase(database=database, copy=copy, set_aside=aside)
