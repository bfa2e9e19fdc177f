"""Port of watched folders: which they are, and how far their files were read."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Protocol

FOLDERS_MAX = 1_000
FILES_MAX = 200_000
"""Files of a folder whose state is read; `watch.files_max` allows no more."""


@dataclass(frozen=True, slots=True, kw_only=True)
class WatchedFile:
    """A file as it was when it was last read."""

    path: str
    file: str
    """Device and inode."""
    size: int
    modified_ns: int
    read_at: datetime
    format: str = ""
    """Empty where it has none that is followed."""
    position: str = ""
    """Where the format goes on."""
    memories: Mapping[str, str] = field(default_factory=dict)
    """The parts of a note by the hash of their words, and the memory each was stored as."""
    stored: int = 0
    """Memories stored of it so far."""


@dataclass(frozen=True, slots=True)
class FolderTotals:
    """Counts of the files below a folder."""

    files: int
    stored: int
    read_at: datetime | None


class WatchStore(Protocol):
    """Keeps watched folders and files."""

    def folders(self) -> list[str]:
        """Return the folders that were added, by name."""
        ...

    def add_folder(self, path: str, added_at: datetime) -> None:
        """Add a folder; nothing changes if it is there."""
        ...

    def remove_folder(self, path: str) -> bool:
        """Remove a folder, and the state of its files; whether it was there."""
        ...

    def file(self, path: str) -> WatchedFile | None:
        """Return a file's state, if it was read."""
        ...

    def moved_from(self, file: str) -> Sequence[WatchedFile]:
        """Return the states of files with this device and inode."""
        ...

    def keep_file(self, state: WatchedFile) -> None:
        """Keep a file's state."""
        ...

    def drop_files(self, paths: Sequence[str]) -> None:
        """Drop the state of files."""
        ...

    def states(self, folder: str) -> dict[str, tuple[int, int]]:
        """Return size and time of change of the files below a folder, by path."""
        ...

    def totals(self, folder: str) -> FolderTotals:
        """Count the files below a folder that have a format."""
        ...
