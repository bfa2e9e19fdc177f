"""The journal of what setup wrote, kept in the state directory, for the undo."""

from __future__ import annotations

import fcntl
import hashlib
import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import msgspec

from mnemosyned.domain.errors import ConfigInvalid

ABSENT = "absent"
"""In the place of a digest: there was no file."""


class WrittenPart(msgspec.Struct, frozen=True):
    """A part that setup wrote; `kept` steps of its path were there before."""

    kind: str
    path: list[str]
    kept: int


class Edit(msgspec.Struct, frozen=True):
    """A file that setup changed for a tool: digests before and after, and what was written."""

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
    """The command of the tool's own program that takes the entry out."""


class _Content(msgspec.Struct):
    version: int = 1
    edits: list[Edit] = []


# Made with the module, as every decoder of a type of ours.
_CONTENTS = msgspec.json.Decoder(_Content)


class Journal:
    """The edits in force, and the content of each file before them."""

    def __init__(self, folder: Path) -> None:
        """Open the journal in a directory, which is made with the first edit."""
        self._folder = folder
        self.edits = self._read()

    @property
    def file(self) -> Path:
        return self._folder / "journal.json"

    def _read(self) -> list[Edit]:
        try:
            content = self.file.read_bytes()
        except FileNotFoundError:
            return []
        try:
            return _CONTENTS.decode(content).edits
        except msgspec.DecodeError as error:
            raise ConfigInvalid(f"{self.file} is damaged: {error}") from error

    @contextmanager
    def locked(self) -> Iterator[None]:
        """Keep other setups out, and read what they wrote."""
        self._folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        with (self._folder / "lock").open("w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            self.edits = self._read()
            yield
            if not self.edits:
                shutil.rmtree(self._folder, ignore_errors=True)

    def of(self, tool: str, file: Path) -> Edit | None:
        """The edit of a file for a tool."""
        return next((edit for edit in self.of_file(file) if edit.tool == tool), None)

    def of_file(self, file: Path) -> list[Edit]:
        """The edits of a file, for any tool."""
        return [edit for edit in self.edits if edit.file == str(file)]

    def add(self, edit: Edit, before: bytes | None) -> None:
        """Keep an edit in place of an older one, with the file's content before it."""
        if before is not None:
            self._keep(before)
        others = [
            other
            for other in self.edits
            if (other.tool, other.file) != (edit.tool, edit.file)
        ]
        self._write([*others, edit])

    def remove(self, edit: Edit) -> None:
        """Delete an edit that was undone."""
        self._write([other for other in self.edits if other != edit])

    def before(self, edit: Edit) -> bytes | None:
        """The content of a file before an edit; None if there was no file or it is lost."""
        try:
            return (self._folder / "before" / edit.before).read_bytes()
        except FileNotFoundError:
            return None

    def _keep(self, content: bytes) -> None:
        folder = self._folder / "before"
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        self._replace(folder / digest(content), content)

    def _write(self, edits: list[Edit]) -> None:
        self.edits = edits
        content = msgspec.json.encode(_Content(edits=edits))
        self._replace(self.file, msgspec.json.format(content, indent=2))
        used = {edit.before for edit in edits}
        for kept in (self._folder / "before").glob("*"):
            if kept.name not in used:
                kept.unlink()

    @staticmethod
    def _replace(file: Path, content: bytes) -> None:
        """Write a file of the journal in one step, readable for its owner alone."""
        temporary = file.with_name(f"{file.name}.new")
        descriptor = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
        with os.fdopen(descriptor, "wb") as opened:
            opened.write(content)
            opened.flush()
            os.fsync(opened.fileno())
        temporary.replace(file)


def digest(content: bytes | None) -> str:
    """The digest of a file's content."""
    return ABSENT if content is None else hashlib.sha256(content).hexdigest()
