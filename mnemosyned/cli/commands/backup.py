"""`mnem backup`, also outside the daemon's sandbox; files written whole or not at all."""

from __future__ import annotations

import os
import shutil
import sys
from collections.abc import Callable, Iterator
from concurrent.futures import Future, wait
from contextlib import contextmanager, suppress
from itertools import islice
from pathlib import Path
from typing import BinaryIO

import click
import msgspec

from mnemosyned.client.connection import Connection
from mnemosyned.errors import InvalidRequest, MnemosynedError, StorageFailed
from mnemosyned.paths import path_fault
from mnemosyned.verbs.retention import BackedUp, Backup
from mnemosyned.verbs.upkeep import Status

PRIVATE = 0o600
PARTIAL = ".partial"


def check_target(path: Path, *, force: bool) -> None:
    """Refuse to replace what is no file, and a file unless forced. Raises `InvalidRequest`."""
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
def whole_file(path: Path) -> Iterator[BinaryIO]:
    """Give a file next to the path, which takes its name once the block is done."""
    target = path.resolve()
    partial = target.with_name(target.name + PARTIAL)
    flags = os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC | os.O_NOFOLLOW
    try:
        descriptor = os.open(partial, flags, PRIVATE)
    except OSError as error:
        raise InvalidRequest(
            f"{path} cannot be written: {error.strerror}", field="file"
        ) from error
    try:
        with os.fdopen(descriptor, "wb", 1 << 20) as file:
            yield file
            file.flush()
            os.fsync(file.fileno())
        partial.replace(target)
    finally:
        partial.unlink(missing_ok=True)


BAR_EVERY_S = 0.2
PARTS_MAX = 1_000
SQLITE = b"SQLite format 3\0"
UNSEEN = "there is no folder"
CLOSED = "is closed to the process"
"""What the daemon says of a folder that its sandbox hides, or closes for writing."""

InBackground = Callable[[Callable[[], BackedUp]], Future[BackedUp]]


def back_up(
    client: Connection, request: Backup, in_background: InBackground
) -> BackedUp:
    """Make a backup, also where the daemon itself may not write.

    A unit's sandbox closes most folders to the daemon. It then makes the backup in its own, and
    this process moves it to where it was wanted.
    """
    try:
        made = _made(client, request, in_background)
    except (StorageFailed, InvalidRequest) as refused:
        named = request.file
        if not named or path_fault(named) or not _is_closed_to_daemon(refused, named):
            raise
        return _moved_out(client, Path(named), refused)
    if request.file is not None and not Path(made.file).exists():
        # The daemon has a /tmp of its own.
        return _moved_out(client, Path(request.file), None)
    return made


def _made(client: Connection, request: Backup, in_background: InBackground) -> BackedUp:
    if not sys.stderr.isatty():
        return client.call(request)
    return _watched(client, request.file, in_background(lambda: client.call(request)))


def _watched(
    client: Connection, named: str | None, copying: Future[BackedUp]
) -> BackedUp:
    """Show the size of the unfinished copy until the backup is done."""
    total, folder = 1, ""
    with suppress(MnemosynedError):  # a busy daemon is asked no second time
        status = client.call(Status())
        total, folder = max(status.bytes_on_disk, 1), status.backup.folder
    with click.progressbar(length=total, label="backing up", file=sys.stderr) as bar:
        while not wait([copying], timeout=BAR_EVERY_S).done:
            written = min(_written(named, folder), total - 1)  # checking comes last
            bar.update(max(written - bar.pos, 0))
        report = copying.result()
        bar.update(total - bar.pos)
    return report


def _written(named: str | None, folder: str) -> int:
    """The bytes of the copy so far; 0 where it cannot be seen."""
    with suppress(OSError):
        if named and not Path(named).is_dir():
            return Path(f"{named}.partial").stat().st_size
        parts = islice(Path(named or folder).glob("memory-*.db.partial"), PARTS_MAX)
        return max((part.stat().st_size for part in parts), default=0)
    return 0


def _is_closed_to_daemon(refused: MnemosynedError, file: str) -> bool:
    """Whether this process may write where the daemon may not."""
    folder = Path(file) if Path(file).is_dir() else Path(file).parent
    if isinstance(refused, InvalidRequest) and folder.is_dir():
        return refused.message.startswith(UNSEEN) or CLOSED in refused.message
    return os.access(folder, os.W_OK) and isinstance(refused, StorageFailed)


def _moved_out(
    client: Connection, file: Path, refused: MnemosynedError | None
) -> BackedUp:
    """Have a backup made in the daemon's folder and move it; else raise what was refused."""
    _check_replaceable(file)
    try:
        made = client.call(Backup())
        source = Path(made.file)
        target = file / source.name if file.is_dir() else file
        _move(source, target)
    except (MnemosynedError, OSError) as error:
        reason = getattr(error, "message", None) or str(error)
        raise refused or StorageFailed(f"no backup was made: {reason}") from error
    return msgspec.structs.replace(made, file=str(target))


def _check_replaceable(file: Path) -> None:
    """Refuse to replace what is no database. Raises `InvalidRequest`."""
    if file.is_dir() or not file.exists():
        return
    check_target(file, force=True)
    with file.open("rb") as opened:
        if opened.read(len(SQLITE)) not in (SQLITE, b""):
            raise InvalidRequest(
                f"{file} exists already and is not a backup", field="file"
            )


def _move(source: Path, target: Path) -> None:
    """Move a file, whole or not at all."""
    with source.open("rb") as copy, whole_file(target) as moved:
        shutil.copyfileobj(copy, moved)
    _flush(target.resolve().parent)
    source.unlink()


def _flush(path: Path) -> None:
    descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
