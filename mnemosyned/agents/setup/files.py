"""Files that a setup reads and replaces, and the journal of its edits with the earlier contents."""

from __future__ import annotations

import fcntl
import hashlib
import os
import shutil
import stat
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import msgspec

from mnemosyned import errors, socket_path
from mnemosyned.paths import replacing_file

FILE_BYTES_MAX = 64 << 20


class FileRefused(Exception):
    """A file that cannot be read or changed, and is left as it is; the message says why."""


def read_file(file: Path) -> bytes | None:
    """Return the content of a file, None without one. Raises `FileRefused`."""
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


def decode_text(content: bytes | None) -> str | None:
    """Return a file's content decoded as UTF-8; None for None. Raises `FileRefused`."""
    try:
        return None if content is None else content.decode()
    except UnicodeDecodeError as error:
        raise FileRefused(f"it is not UTF-8 at byte {error.start}") from error


def check_writable(file: Path) -> None:
    """Raise `FileRefused` if this process lacks the permission to replace or create the file."""
    target = file.resolve()
    if target.exists() and not (
        target.stat().st_mode & 0o222 and os.access(target, os.W_OK)
    ):
        raise FileRefused("it is read-only")
    parent = next(folder for folder in target.parents if folder.exists())
    if not parent.is_dir() or not os.access(parent, os.W_OK | os.X_OK):
        raise FileRefused(f"{parent} cannot be written")


def replace_file(file: Path, content: bytes) -> None:
    """Replace a file, or a link's target, atomically, keeping mode and owner. Raises `FileRefused`."""
    target = file.resolve()
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        with replacing_file(target) as opened:
            opened.write(content)
            if target.exists():
                status = target.stat()
                os.fchmod(opened.fileno(), stat.S_IMODE(status.st_mode))
                with suppress(PermissionError):
                    os.fchown(opened.fileno(), status.st_uid, status.st_gid)
            else:
                umask = os.umask(0)
                os.umask(umask)
                os.fchmod(opened.fileno(), 0o666 & ~umask)
    except OSError as error:
        raise FileRefused(f"it cannot be written: {error.strerror}") from error
    if target.read_bytes() != content:
        raise FileRefused("it was changed by another program while it was written")


def delete_file(file: Path) -> None:
    """Delete a file, or the target of a link; a missing file is no error. Raises `FileRefused`."""
    try:
        file.resolve().unlink(missing_ok=True)
    except OSError as error:
        raise FileRefused(f"it cannot be deleted: {error.strerror}") from error


# --------------------------------------------------------------------- journal

ABSENT = "absent"
"""Value in place of a digest if there was no file."""


class WrittenPart(msgspec.Struct, frozen=True):
    """A part that setup wrote; `kept` is how many steps of its path existed before."""

    kind: str
    path: list[str]
    kept: int


class FileEdit(msgspec.Struct, frozen=True):
    """A file that setup changed for a tool: digests before and after, and the written parts."""

    tool: str
    scope: str
    file: str
    before: str
    after: str
    parts: list[WrittenPart]
    folders: list[str]
    made: bool
    """Whether setup made the file."""
    take_out: list[str] = []
    """The command of the tool's own program that removes the entry."""


class _JournalFile(msgspec.Struct):
    version: int = 1
    edits: list[FileEdit] = []


# Made with the module, as every decoder of a type of ours.
_JOURNAL_DECODER = msgspec.json.Decoder(_JournalFile)


class SetupJournal:
    """The edits in force, and the content of each file before its edit."""

    def __init__(self, folder: Path) -> None:
        """Open the journal in a directory, which is created with the first edit."""
        self._folder = folder
        self.edits = self._read_edits()

    @property
    def file(self) -> Path:
        """The path of the journal's file in its directory."""
        return self._folder / "journal.json"

    def _read_edits(self) -> list[FileEdit]:
        """Return the edits in the journal's file; empty without a file. Raises `ConfigInvalid`."""
        try:
            content = self.file.read_bytes()
        except FileNotFoundError:
            return []
        try:
            return _JOURNAL_DECODER.decode(content).edits
        except msgspec.DecodeError as error:
            raise errors.ConfigInvalid(f"{self.file} is damaged: {error}") from error

    @contextmanager
    def lock(self) -> Iterator[None]:
        """Lock the journal during the block, and reload its edits; delete the journal afterwards if empty."""
        socket_path.make_private_folder(str(self._folder))
        with (self._folder / "lock").open("w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            self.edits = self._read_edits()
            yield
            if not self.edits:
                shutil.rmtree(self._folder, ignore_errors=True)

    def edit_of(self, tool: str, file: Path) -> FileEdit | None:
        """Return the edit of a file that setup made for a tool; None if there is none."""
        edits = self.edits_of_file(file)
        return next((edit for edit in edits if edit.tool == tool), None)

    def edits_of_file(self, file: Path) -> list[FileEdit]:
        """Return the edits of a file in the journal, made for any tool."""
        return [edit for edit in self.edits if edit.file == str(file)]

    def add(self, edit: FileEdit, before: bytes | None) -> None:
        """Save an edit and the content `before`, and drop an earlier edit of the same tool and file."""
        if before is not None:
            folder = self._folder / "before"
            folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            with replacing_file(folder / digest(before)) as file:
                file.write(before)
        key = (edit.tool, edit.file)
        others = [other for other in self.edits if (other.tool, other.file) != key]
        self._write_edits([*others, edit])

    def remove(self, edit: FileEdit) -> None:
        """Remove an edit from the journal, and its saved content unless another edit refers to that."""
        self._write_edits([other for other in self.edits if other != edit])

    def content_before(self, edit: FileEdit) -> bytes | None:
        """Return the saved content of a file before an edit; None if there was no file or its copy is lost."""
        try:
            return (self._folder / "before" / edit.before).read_bytes()
        except FileNotFoundError:
            return None

    def _write_edits(self, edits: list[FileEdit]) -> None:
        """Save `edits` as the journal's, and delete saved contents that no edit refers to."""
        self.edits = edits
        content = msgspec.json.encode(_JournalFile(edits=edits))
        with replacing_file(self.file) as file:
            file.write(msgspec.json.format(content, indent=2))
        used = {edit.before for edit in edits}
        for copy in (self._folder / "before").glob("*"):
            if copy.name not in used:
                copy.unlink()


def digest(content: bytes | None) -> str:
    """Return the SHA-256 of a file's content in hexadecimal, or `ABSENT` for a missing file (None)."""
    return ABSENT if content is None else hashlib.sha256(content).hexdigest()
