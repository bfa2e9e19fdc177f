"""How far an import has come, kept in a file, so that it goes on after it was interrupted."""

from __future__ import annotations

import hashlib
import os
import time
from pathlib import Path

import msgspec

from mnemosyned.importers.importer import START, Source
from mnemosyned.paths import state_dir

HEAD_HASHED_BYTES = 4_096
KEPT_S = 90 * 86_400
"""Age at which the journal of an import that was never finished is deleted."""


class Entry(msgspec.Struct, frozen=True):
    """How far one source was stored."""

    path: str
    file: str
    """Device, inode, and the hash of the file's beginning."""
    position: str
    bytes: int
    done: bool = False


class Journal:
    """The positions of one import; each is written once its batch was acknowledged.

    A position that was not written costs nothing but time: ids keep the records from being
    stored twice.
    """

    def __init__(self, path: Path | None) -> None:
        """Read the journal, if there is one; without a path nothing is kept."""
        self._path = path
        self._entries = _read(path) if path else {}
        self.found = bool(self._entries)

    @classmethod
    def of(cls, database: str, root: Path, format: str) -> Journal:
        """Return the journal of importing a path into a database."""
        folder = state_dir() / "imports"
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        _delete_old(folder)
        identity = "\0".join((database, str(root.absolute()), format))
        name = hashlib.sha256(identity.encode("utf-8", "replace")).hexdigest()[:32]
        return cls(folder / f"{name}.jsonl")

    def entry(self, source: Source) -> Entry | None:
        """Return how far a source was stored, unless it is another file now."""
        entry = self._entries.get(str(source.path))
        return entry if entry and entry.file == _identity(source) else None

    def write(
        self, source: Source, position: str, bytes: int, *, done: bool = False
    ) -> None:
        """Note that all up to a position is stored."""
        if self._path is None or (position == START and not done):
            return
        entry = Entry(str(source.path), _identity(source), position, bytes, done)
        descriptor = os.open(
            self._path, os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC, 0o600
        )
        with os.fdopen(descriptor, "ab") as file:
            file.write(msgspec.json.encode(entry) + b"\n")

    def delete(self) -> None:
        """Delete it, as the import is finished."""
        self._entries = {}
        if self._path:
            self._path.unlink(missing_ok=True)


_decode = msgspec.json.Decoder(Entry).decode


def _read(path: Path) -> dict[str, Entry]:
    entries: dict[str, Entry] = {}
    try:
        opened = path.open("rb")
    except FileNotFoundError:
        return entries
    with opened:
        for line in opened:
            try:
                entry = _decode(line)
            except msgspec.DecodeError:
                continue  # a line that was cut off
            entries[entry.path] = entry
    return entries


def _identity(source: Source) -> str:
    status = source.path.stat()
    head = hashlib.sha256(source.head[:HEAD_HASHED_BYTES]).hexdigest()[:16]
    return f"{status.st_dev}:{status.st_ino}:{head}"


def _delete_old(folder: Path) -> None:
    oldest = time.time() - KEPT_S
    for path in folder.glob("*.jsonl"):
        if path.stat().st_mtime < oldest:
            path.unlink(missing_ok=True)
