"""Mends what is safe to mend; the database is backed up before it is touched."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing
from datetime import UTC, datetime
from pathlib import Path

from mnemosyned.domain.errors import MnemosynedError
from mnemosyned.domain.keeping.backups import STAMP
from mnemosyned.maintenance.findings import Finding, Installation, Remedy
from mnemosyned.paths import shipped
from mnemosyned.storage.sqlite.database.copies import (
    copy_beside,
    flush,
    open_to_read,
)
from mnemosyned.storage.sqlite.database.ownership import locked
from mnemosyned.storage.sqlite.mending import extract_again, mend


def repair(findings: Sequence[Finding], installation: Installation) -> Iterator[str]:
    """Make every repair that the findings call for; yields what was done, or why not."""
    for finding in findings:
        mending = _OF_FILES.get(finding.remedy) if finding.remedy else None
        if mending and finding.path:
            try:
                yield mending(finding.path)
            except OSError as error:
                yield f"not done: {finding.path}: {error.strerror}"
    remedies = {finding.remedy for finding in findings}
    if remedies & {Remedy.RESTORE, Remedy.DATABASE, Remedy.VALUES}:
        yield from _repaired(installation.database, remedies)


def _repaired(database: Path, remedies: set[Remedy | None]) -> Iterator[str]:
    """Mend the database, which no daemon may have open."""
    try:
        if Remedy.RESTORE in remedies:
            with locked(database):  # which finishes it
                yield f"finished the restore of {database}"
        if remedies & {Remedy.DATABASE, Remedy.VALUES}:
            with locked(database):
                backup = back_up_for_repair(database)
                yield f"backed up the database to {backup}"
                if Remedy.DATABASE in remedies:
                    yield from mend(database, shipped("migrations"))
                if Remedy.VALUES in remedies:
                    yield from extract_again(database)
    except MnemosynedError as error:
        yield (
            f"not done: {error.message} Stop the daemon with mnem stop, then repair again"
        )
    except (OSError, sqlite3.Error) as error:
        yield f"not done: {error}"


def back_up_for_repair(database: Path) -> Path:
    """A copy of the database as it is, with its faults."""
    folder = database.with_name("backups")
    folder.mkdir(mode=0o700, exist_ok=True)
    # No dated backup: it has the faults that are about to be mended.
    target = folder / f"before-repair-{datetime.now(UTC):{STAMP}}.db"
    with closing(open_to_read(database)) as source:
        copy_beside(source, target).replace(target)
    flush(folder)
    return target


def _close_to_others(path: Path) -> str:
    mode = 0o700 if path.is_dir() else 0o600
    path.chmod(mode)
    return f"closed {path} to others (mode {mode:04o})"


def _remove_socket(path: Path) -> str:
    path.unlink(missing_ok=True)
    return f"removed the dead socket {path}"


def _remove_leftover(path: Path) -> str:
    path.unlink(missing_ok=True)
    return f"removed {path}"


_OF_FILES: dict[Remedy, Callable[[Path], str]] = {
    Remedy.PERMISSIONS: _close_to_others,
    Remedy.SOCKET: _remove_socket,
    Remedy.LEFTOVER: _remove_leftover,
}
