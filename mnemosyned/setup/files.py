"""Configuration files read, and replaced as a whole: never half, through links, with their mode."""

from __future__ import annotations

import os
import stat
import tempfile
from contextlib import suppress
from pathlib import Path

FILE_BYTES_MAX = 64 << 20


class FileRefused(Exception):
    """A file is left as it is; the message says why."""


def read(file: Path) -> bytes | None:
    """The content of a file; None if there is none. Raises `FileRefused`."""
    try:
        status = file.stat()
        if not stat.S_ISREG(status.st_mode):
            raise FileRefused("it is not a regular file")
        if status.st_size > FILE_BYTES_MAX:
            raise FileRefused(f"it exceeds {FILE_BYTES_MAX:,} bytes")
        return file.read_bytes()
    except FileNotFoundError:
        return None
    except OSError as error:
        raise FileRefused(f"it cannot be read: {error.strerror}") from error


def text_of(content: bytes | None) -> str | None:
    """The text of a file. Raises `FileRefused` if it is not UTF-8."""
    try:
        return None if content is None else content.decode()
    except UnicodeDecodeError as error:
        raise FileRefused(f"it is not UTF-8 at byte {error.start}") from error


def check_writable(file: Path) -> None:
    """Raise `FileRefused` unless the file may be replaced, or made."""
    target = file.resolve()
    if target.exists() and not (
        target.stat().st_mode & 0o222 and os.access(target, os.W_OK)
    ):
        raise FileRefused("it is read-only")
    parent = next(folder for folder in target.parents if folder.exists())
    if not parent.is_dir() or not os.access(parent, os.W_OK | os.X_OK):
        raise FileRefused(f"{parent} cannot be written")


def missing_folders(file: Path) -> list[Path]:
    """The directories that have to be made for a file, the outermost first."""
    folders = [folder for folder in file.resolve().parents if not folder.exists()]
    return folders[::-1]


def replace(file: Path, content: bytes) -> None:
    """Write a file, or what it links to, in one step; its mode and owner stay.

    Raises `FileRefused`.
    """
    target = file.resolve()
    temporary: str | None = None
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        descriptor, temporary = tempfile.mkstemp(
            dir=target.parent, prefix=f".{target.name}."
        )
        with os.fdopen(descriptor, "wb") as opened:
            opened.write(content)
            _take_over_mode(target, opened.fileno())
            opened.flush()
            os.fsync(opened.fileno())
        Path(temporary).replace(target)
    except OSError as error:
        if temporary:
            Path(temporary).unlink(missing_ok=True)
        raise FileRefused(f"it cannot be written: {error.strerror}") from error
    if target.read_bytes() != content:
        raise FileRefused("it was changed by another program while it was written")


def _take_over_mode(target: Path, descriptor: int) -> None:
    if not target.exists():
        umask = os.umask(0)
        os.umask(umask)
        os.fchmod(descriptor, 0o666 & ~umask)
        return
    status = target.stat()
    os.fchmod(descriptor, stat.S_IMODE(status.st_mode))
    with suppress(PermissionError):
        os.fchown(descriptor, status.st_uid, status.st_gid)


def delete(file: Path) -> None:
    """Delete a file we made. Raises `FileRefused`."""
    try:
        file.resolve().unlink(missing_ok=True)
    except OSError as error:
        raise FileRefused(f"it cannot be deleted: {error.strerror}") from error


def delete_empty(folders: list[Path]) -> None:
    """Delete those of our directories that are empty, the innermost first."""
    for folder in reversed(folders):
        with suppress(OSError):
            folder.rmdir()
