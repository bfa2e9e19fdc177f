"""`mnem backup`, also outside the daemon's sandbox; files written whole or not at all."""

from __future__ import annotations

import fcntl
import os
import shutil
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from itertools import islice
from pathlib import Path
from typing import BinaryIO

import msgspec

from mnemosyned.cli.calls import run_with_bar
from mnemosyned.client.connection import Connection
from mnemosyned.errors import InvalidRequest, MnemosynedError, StorageFailed
from mnemosyned.paths import path_fault
from mnemosyned.verbs.retention import BackedUp, Backup
from mnemosyned.verbs.upkeep import Status

PARTIAL = ".partial"


def check_target(path: Path, *, force: bool) -> None:
    """Raise `InvalidRequest` if `path` exists, unless it is a regular file and `force` is given."""
    if not path.exists():
        return
    if not path.is_file():
        raise InvalidRequest(
            f"{path} is not a regular file; name another one, or redirect standard output",
            field="file",
        )
    if not force:
        raise InvalidRequest(f"{path} exists; --force replaces it", field="file")


@contextmanager
def open_whole_file(path: Path) -> Iterator[BinaryIO]:
    """Yield a new file that takes the name `path` after the block, or is deleted on failure."""
    target = path.resolve()
    partial = target.with_name(target.name + PARTIAL)
    flags = os.O_WRONLY | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW
    try:
        descriptor = os.open(partial, flags, 0o600)
    except OSError as error:
        raise InvalidRequest(
            f"{path} cannot be written: {error.strerror}", field="file"
        ) from error
    try:
        with os.fdopen(descriptor, "wb", 1 << 20) as file:
            try:
                fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
                is_ours = os.path.samestat(os.fstat(descriptor), partial.stat())
            except (BlockingIOError, FileNotFoundError):
                is_ours = False
            if not is_ours:
                raise InvalidRequest(
                    f"another process writes {path}; try again when it is done",
                    field="file",
                )
            try:
                file.truncate()
                yield file
                file.flush()
                os.fsync(descriptor)
                partial.replace(target)  # still locked: the next one opens a new file
            except BaseException:
                partial.unlink(missing_ok=True)
                raise
    except OSError as error:  # of a write, which names no file
        error.filename = error.filename or str(path)
        raise


SQLITE = b"SQLite format 3\0"
UNSEEN = "there is no folder"
CLOSED = "is closed to the process"
"""Parts of the daemon's errors on a folder that its sandbox hides, or closes for writing."""


def back_up(client: Connection, request: Backup) -> BackedUp:
    """Have the daemon make a backup; return the daemon's report.

    If the daemon, in the sandbox of its systemd unit, cannot write to the wanted folder, it makes
    the backup in its own folder, and this process moves the file.
    """
    try:
        made = _back_up_with_bar(client, request)
    except (StorageFailed, InvalidRequest) as refused:
        if not request.file or path_fault(request.file):
            raise
        named = Path(request.file)
        folder = named if named.is_dir() else named.parent
        is_closed = os.access(folder, os.W_OK)
        if isinstance(refused, InvalidRequest):
            words = refused.message
            is_closed = folder.is_dir() and (
                words.startswith(UNSEEN) or CLOSED in words
            )
        if not is_closed:  # to the daemon alone
            raise
        return _move_out_of_sandbox(client, named, refused)
    if request.file is not None and not Path(made.file).exists():
        # The daemon has a /tmp of its own.
        return _move_out_of_sandbox(client, Path(request.file), None)
    return made


def _back_up_with_bar(client: Connection, request: Backup) -> BackedUp:
    """Have the daemon make a backup, with progress shown at a terminal; return its report."""
    if not sys.stderr.isatty():
        return client.call(request)
    named, folder, total = request.file, "", 1
    with suppress(MnemosynedError):
        status = client.call(Status())
        total, folder = max(status.bytes_on_disk, 1), status.backup.folder

    def measure() -> tuple[int, int] | None:
        """Return the bytes copied so far and in all; None if the copy cannot be read."""
        with suppress(OSError):
            if named and not Path(named).is_dir():
                sizes = [Path(f"{named}.partial").stat().st_size]
            else:
                parts = Path(named or folder).glob("memory-*.db.partial")
                sizes = [part.stat().st_size for part in islice(parts, 1_000)]
            return min(max(sizes, default=0), total - 1), total  # checking comes last
        return None

    return run_with_bar(lambda: client.call(request), measure, label="backing up")


def _move_out_of_sandbox(
    client: Connection, file: Path, refused: MnemosynedError | None
) -> BackedUp:
    """Have a backup made in the daemon's own folder, and move it to `file`; return the report.

    Raises `refused`, the error of the first attempt, or `StorageFailed` if this fails too, and
    `InvalidRequest` if `file` is neither empty nor an SQLite database.
    """
    if file.exists() and not file.is_dir():
        check_target(file, force=True)
        with file.open("rb") as opened:
            if opened.read(len(SQLITE)) not in (SQLITE, b""):
                raise InvalidRequest(
                    f"{file} exists already and is not a backup", field="file"
                )
    try:
        made = client.call(Backup())
        source = Path(made.file)
        target = file / source.name if file.is_dir() else file
        with source.open("rb") as copy, open_whole_file(target) as moved:
            shutil.copyfileobj(copy, moved)
        descriptor = os.open(target.resolve().parent, os.O_RDONLY | os.O_CLOEXEC)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)
        source.unlink()
    except (MnemosynedError, OSError) as error:
        reason = getattr(error, "message", None) or str(error)
        raise refused or StorageFailed(f"no backup was made: {reason}") from error
    return msgspec.structs.replace(made, file=str(target))
