"""The database: its file, its pages, its indexes and what a crash left next to it."""

from __future__ import annotations

import glob
import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

from mnemosyned.assembly.stores import refuses_writes, server_exposures
from mnemosyned.config import is_server
from mnemosyned.domain.errors import MnemosynedError, SchemaTooNew
from mnemosyned.maintenance.findings import (
    Finding,
    Installation,
    Remedy,
    note,
    ok,
    problem,
    warning,
)
from mnemosyned.paths import shipped
from mnemosyned.service.backups.copies import dated_backups, file_bytes, holds_database
from mnemosyned.storage.sqlite.database.copies import PARTIAL, open_to_read
from mnemosyned.storage.sqlite.database.restoring import SQLITE
from mnemosyned.storage.sqlite.database.schema import (
    latest_version,
    refuse_foreign,
    refuse_newer,
    schema_version,
)
from mnemosyned.storage.sqlite.database.verification import (
    Fault,
    FaultKind,
    counts,
    faults,
    schema_faults,
    structure_faults,
)
from mnemosyned.storage.sqlite.database.wal import frames_left
from mnemosyned.storage.sqlite.mending import lacking_values
from mnemosyned.terminal import counted

CHECK = "database"
REPAIR = "mnem doctor --repair"
DEEP_BYTES = 200_000_000
"""Size up to which a copy in memory is made, to compare the index with the texts."""
VALUES_CHECKED = 500
"""Newest originals whose exact values are compared with their words, unless the check is deep."""
MENDABLE = {
    FaultKind.INDEX,
    FaultKind.ORPHAN,
    FaultKind.TOTALS,
    FaultKind.SCHEMA,
    FaultKind.FOREIGN_KEY,
}


def check_server(installation: Installation) -> Iterator[Finding]:
    """Whether the server answers, can hold every text and takes writes, and who may connect or read along."""
    if not is_server(installation.config.database):
        return
    try:
        if refuses_writes(installation.config.location):
            text = (
                "the server is a standby, or refuses all writes: nothing can be stored"
            )
            yield warning(CHECK, text, "connect to the primary, or promote this one")
        else:
            yield ok(CHECK, f"{installation.config.location} answers")
        for text in server_exposures(installation.config.location):
            yield warning("server", text)
    except MnemosynedError as error:
        yield problem(CHECK, error.message, "mnem config edit")


def check_database(installation: Installation) -> Iterator[Finding]:
    """The file, then what is in it."""
    path = installation.database
    refusals = [*_file_findings(path)]
    yield from refusals
    if refusals:
        return
    try:
        with closing(
            open_to_read(path, foreign=installation.process is None)
        ) as connection:
            yield from _version_findings(connection, path)
            present_faults = schema_faults(connection, shipped("migrations"))
            missing = {fault.subject for fault in present_faults}
            lost = [each for each in present_faults if each.kind not in MENDABLE]
            if lost:
                yield from (_finding(fault, installation) for fault in lost)
                return
            present_faults += [
                fault for fault in faults(connection) if fault.subject not in missing
            ]
            if not present_faults or installation.deep:
                present_faults += _compared(connection, path, deep=installation.deep)
            held = counts(connection)
            newest = held[0] if installation.deep else VALUES_CHECKED
            lacking = 0
            if not present_faults:
                lacking = lacking_values(connection, limit=newest)
    except SchemaTooNew as error:
        yield problem(CHECK, error.message, "install the version that wrote it")
    except MnemosynedError as error:
        yield problem(CHECK, error.message, "mnem config set database FILE")
    except sqlite3.Error as error:
        yield _damaged(f"{path} cannot be read: {error}", installation)
    else:
        yield from (_finding(fault, installation) for fault in present_faults)
        if lacking:
            text = (
                f"{lacking:,} of the newest originals lack exact values that their words hold; "
                "Python before 3.11.6 lost some"
            )
            yield warning(CHECK, text, REPAIR, Remedy.VALUES, path)
        if not present_faults:
            memories, episodes = held
            yield ok(
                CHECK,
                f"{path} is whole: {counted(memories, 'memory')}, "
                f"{counted(episodes, 'summary')}",
            )


def check_leftovers(installation: Installation) -> Iterator[Finding]:
    """Find what a crash or a restore left next to the database."""
    database = installation.database
    name = glob.escape(database.name)
    if installation.process is None:
        yield from _left_log(database)
        for waiting in sorted(database.parent.glob(f"{name}.restore-*Z")):
            text = f"a restore was interrupted: {waiting.name} waits to be the database"
            yield warning(CHECK, text, "mnem start", Remedy.RESTORE, waiting)
        for part in _parts(database.parent, installation.backup_folder):
            text = f"{part} is a part of a copy that was never finished"
            yield warning(CHECK, text, REPAIR, Remedy.LEFTOVER, part)
    asides = [
        *database.parent.glob(f"{name}.before-restore-*Z"),
        *database.parent.glob(f"{name}.replaced-*Z"),
    ]
    if asides:
        size = sum(map(file_bytes, asides)) / 1e6
        text = f"{counted(len(asides), 'former database')} set aside, {size:,.1f} MB"
        yield note(CHECK, text, f"ls -l {database}.*-*Z")


def _parts(*folders: Path) -> list[Path]:
    """Parts of copies; the unfinished download of another program is none."""
    files = {file for folder in folders for file in folder.glob(f"*{PARTIAL}")}
    return sorted(file for file in files if file.is_file() and holds_database(file))


def newest_backup(installation: Installation) -> Path | None:
    """The newest dated backup, which a damaged database can be restored from."""
    folder = installation.backup_folder
    newest = max(dated_backups(folder), default=None)
    return folder / newest.name if newest else None


def _file_findings(path: Path) -> Iterator[Finding]:
    """Findings that keep the file from being read at all."""
    if not path.exists():
        yield note(CHECK, f"there is no database yet: {path}", "mnem start")
        return
    if not path.is_file():
        yield problem(CHECK, f"{path} is no file", "mnem config set database FILE")
        return
    status = path.stat()
    if status.st_nlink > 1:
        yield problem(
            CHECK,
            f"{path} has {status.st_nlink} names (hard links); SQLite damages such a file",
            f"find {path.parent} -samefile {path}",
        )
    try:
        with path.open("rb") as file:
            header = file.read(len(SQLITE))
    except OSError as error:
        yield problem(
            CHECK, f"{path} cannot be read: {error.strerror}", f"ls -l {path}"
        )
        return
    if header and header != SQLITE:
        yield problem(
            CHECK, f"{path} is not an SQLite database", "mnem restore-db BACKUP"
        )


def _version_findings(connection: sqlite3.Connection, path: Path) -> Iterator[Finding]:
    refuse_foreign(connection, path)
    latest = latest_version(shipped("migrations"))
    refuse_newer(connection, latest)
    version = schema_version(connection)
    if version < latest:
        text = f"schema version {version}; the next start brings it to {latest}"
        yield note("schema", text, "mnem start")


def _compared(
    connection: sqlite3.Connection, path: Path, *, deep: bool
) -> Iterator[Fault]:
    """Faults of indexes that only comparing them with the texts shows."""
    if file_bytes(path) > DEEP_BYTES and not deep:
        return
    with closing(sqlite3.connect(":memory:", isolation_level=None)) as copy:
        connection.backup(copy)
        yield from structure_faults(copy)


def _finding(fault: Fault, installation: Installation) -> Finding:
    if fault.kind in MENDABLE:
        return problem(
            CHECK, fault.text, REPAIR, Remedy.DATABASE, installation.database
        )
    return _damaged(f"{installation.database} is damaged: {fault.text}", installation)


def _damaged(text: str, installation: Installation) -> Finding:
    backup = newest_backup(installation)
    words = f"mnem restore-db {backup}" if backup else "mnem restore-db BACKUP"
    return problem(CHECK, text, words)


def _left_log(database: Path) -> Iterator[Finding]:
    left = frames_left(database)
    if left is None:
        return
    frames = counted(len(left.commits), "transaction")
    text = f"a crash left a log with {frames}; the next start reads it"
    yield note(CHECK, text, "mnem start")
