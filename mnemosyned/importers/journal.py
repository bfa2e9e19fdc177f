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
    size: int = 0
    """Bytes of the file at that time."""


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
        """Return the journal of importing a path into a database.

        Where the state directory cannot be written, nothing is kept.
        """
        folder = state_dir() / "imports"
        try:
            folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            _delete_old(folder)
        except OSError:
            return cls(None)
        parts = (database, _file_number(database), str(root.absolute()), format)
        identity = "\0".join(parts)
        name = hashlib.sha256(identity.encode("utf-8", "replace")).hexdigest()[:32]
        return cls(folder / f"{name}.jsonl")

    def entry(self, source: Source) -> Entry | None:
        """Return how far a source was stored, unless it is another file now, or was cut.

        A file that grew since it was done is read on; of a folder nothing tells.
        """
        entry = self._entries.get(str(source.shown.absolute()))
        if entry is None:
            return None
        try:
            file, size = _identity(source)
        except OSError:
            return None  # reported when it is read
        if file != entry.file or size < entry.size:
            return None
        is_unchanged = size == entry.size and not source.is_folder
        return msgspec.structs.replace(entry, done=entry.done and is_unchanged)

    def write(
        self, source: Source, position: str, bytes: int, *, done: bool = False
    ) -> None:
        """Note that all up to a position is stored; a full disk stops the notes, no more."""
        if self._path is None or (position == START and not done):
            return
        try:
            file, size = _identity(source)
            path = str(source.shown.absolute())
            _append(self._path, Entry(path, file, position, bytes, done, size))
        except OSError:
            self._path = None

    def delete(self) -> None:
        """Delete it, as the import is finished."""
        self._entries = {}
        if self._path:
            self._path.unlink(missing_ok=True)


_decode = msgspec.json.Decoder(Entry).decode


def _append(path: Path, entry: Entry) -> None:
    flags = os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC
    with os.fdopen(os.open(path, flags, 0o600), "ab") as file:
        file.write(msgspec.json.encode(entry) + b"\n")


def _file_number(path: str) -> str:
    """Return what tells a file from another one at the same path, if it can be seen."""
    try:
        status = os.stat(path)  # noqa: PTH116
    except OSError:
        return ""
    return f"{status.st_dev}:{status.st_ino}"


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


def _identity(source: Source) -> tuple[str, int]:
    """Return what tells a file from others at its path, and its size. Raises `OSError`."""
    status = source.path.stat()
    head = hashlib.sha256(source.head[:HEAD_HASHED_BYTES]).hexdigest()[:16]
    size = 0 if source.is_folder else status.st_size
    return f"{status.st_dev}:{status.st_ino}:{head}", size


def _delete_old(folder: Path) -> None:
    oldest = time.time() - KEPT_S
    for path in folder.glob("*.jsonl"):
        if path.stat().st_mtime < oldest:
            path.unlink(missing_ok=True)
