"""Restores a backup as the database, which no daemon may have open meanwhile."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import closing
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path

from mnemosyned.assembly.build import open_memory
from mnemosyned.config import Config
from mnemosyned.config.sections import BackupConfig
from mnemosyned.domain.errors import InvalidRequest
from mnemosyned.domain.ports.maintenance import CopyReport
from mnemosyned.paths import shipped
from mnemosyned.service.backups.forgotten_list import (
    ForgottenSince,
    forgotten_since,
)
from mnemosyned.service.steps import chunks
from mnemosyned.storage.sqlite.database.copies import flush, open_to_read
from mnemosyned.storage.sqlite.database.ownership import locked
from mnemosyned.storage.sqlite.database.restoring import (
    check_backup,
    finish_restore,
    stage_copy,
)
from mnemosyned.verbs.request import NAMES_MAX
from mnemosyned.verbs.retention import Forget


@dataclass(frozen=True, slots=True, kw_only=True)
class RestoredDatabase:
    """A backup that is the database now."""

    backup: Path
    database: Path
    copy: CopyReport
    set_aside: Path | None
    """Where the former database is; None if there was none."""
    forgotten: int | None
    """Memories in the backup that were forgotten after it was made; None where no list tells."""
    forgotten_again: bool
    """Whether those were forgotten again; otherwise they are back."""
    list_begins: datetime | None
    """What was forgotten between the backup and this time may be back; None if nothing can be."""


def check_restorable(backup: Path, database: Path) -> None:
    """Raise where a file cannot become the database, before anything is stopped or moved."""
    if backup.exists() and database.exists() and backup.samefile(database):
        raise InvalidRequest(f"{backup} is the database itself", field="file")
    check_backup(backup, shipped("migrations"))


def restore_database(
    backup: Path,
    database: Path,
    *,
    folder: Path | None = None,
    forget_again: bool = False,
) -> RestoredDatabase:
    """Put a copy of a backup in the place of the database, and set that aside.

    What was forgotten after the backup was made is counted, by the list next to the backup or in
    the `folder` of backups; with `forget_again` it is forgotten in the copy too.
    Raises `InvalidRequest`, `SchemaTooNew`, `DatabaseInUse` and `StorageFailed`; the database is
    as it was then.
    """
    check_restorable(backup, database)
    folders = dict.fromkeys([backup.parent, folder or database.with_name("backups")])
    lists = list(filter(None, (forgotten_since(backup, each) for each in folders)))
    forgotten: list[str] = []

    def look_or_forget(copy: Path) -> None:
        forgotten.extend(_forgotten_in(copy, lists))
        if forgotten and forget_again:
            _forget(copy, forgotten)

    with locked(database):
        copy = stage_copy(backup, database, change=look_or_forget)
        aside = finish_restore(database)
    begins = [each.begins for each in lists if each.begins]
    return RestoredDatabase(
        backup=backup,
        database=database,
        copy=copy,
        set_aside=aside,
        forgotten=len(forgotten) if lists else None,
        forgotten_again=bool(forgotten) and forget_again,
        list_begins=min(begins) if begins and len(begins) == len(lists) else None,
    )


def _forgotten_in(copy: Path, lists: Sequence[ForgottenSince]) -> list[str]:
    with closing(open_to_read(copy)) as connection:
        rows = connection.execute(
            "SELECT id FROM working_memory UNION ALL SELECT id FROM archive"
        ).fetchall()
    ids = [id for (id,) in rows]
    return list(dict.fromkeys(id for each in lists for id in each.among(ids)))


def _forget(copy: Path, ids: Sequence[str]) -> None:
    """Forget memories in a database that nobody else opens, and leave no file next to it."""
    # The list of the backup folder has it already, from the time when it was forgotten.
    config = Config(
        database=str(copy),
        auto_sleep=False,
        backup=BackupConfig(dir=f"{copy}.backups"),
    )
    with open_memory(config) as memory:
        for chunk in chunks(ids, NAMES_MAX):
            memory.service.call(Forget(id=list(chunk), now=True))
    copy.with_name(f"{copy.name}.lock").unlink(missing_ok=True)
    flush(copy)
