"""The files below a followed folder that may have a format."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator
from dataclasses import dataclass

from mnemosyned.importers.formats.notes.notes import SUFFIXES as NOTES
from mnemosyned.importers.formats.personal.shell import NAMES as HISTORIES

SUFFIXES = (*NOTES, ".jsonl", ".json")
DEPTH_MAX = 64
SKIPPED = frozenset({"node_modules", "__pycache__"})


@dataclass(frozen=True, slots=True)
class FileState:
    """A regular file, as it is now."""

    path: str
    file: str
    """Device and inode."""
    size: int
    modified_ns: int


@dataclass(slots=True)
class Scan:
    """The outcome of looking through a folder, filled while it goes on."""

    folders: int = 0
    problem: str = ""


def state_of(path: str) -> FileState | None:
    """Return the state of a regular file of this user; None for anything else."""
    try:
        status = os.lstat(path)
    except (OSError, ValueError):
        return None
    is_own = status.st_uid in (os.geteuid(), os.getuid())
    if not (stat.S_ISREG(status.st_mode) and is_own):
        return None
    file = f"{status.st_dev}:{status.st_ino}"
    return FileState(path, file, status.st_size, status.st_mtime_ns)


def may_have_format(path: str) -> bool:
    """Whether a file's name is one of a format that is followed."""
    folder, _, name = path.rpartition("/")
    lower = name.lower()
    if lower.endswith(SUFFIXES):
        return not _is_hidden(folder)
    return "hist" in lower and HISTORIES.fullmatch(lower) is not None


def _is_hidden(folder: str) -> bool:
    """Whether it is a folder of a program's own files."""
    return "/.obsidian" in folder or "/.trash" in folder or "/.git/" in f"{folder}/"


def _is_passed_over(folder: str) -> bool:
    return folder.startswith(".") or folder in SKIPPED


def files_below(root: str, scan: Scan) -> Iterator[FileState]:
    """Yield the files that may have a format; links and hidden folders are passed over."""
    state = state_of(root)
    if state:
        yield state
        return
    waiting = [(root, 0)]
    while waiting:
        folder, depth = waiting.pop()
        try:
            with os.scandir(folder) as listed:
                entries = sorted(listed, key=lambda entry: entry.name)
        except OSError as error:
            if folder == root:
                scan.problem = f"it cannot be read: {error.strerror}"
            continue
        scan.folders += 1
        for entry in entries:
            if entry.is_dir(follow_symlinks=False):
                if depth < DEPTH_MAX and not _is_passed_over(entry.name):
                    waiting.append((entry.path, depth + 1))
            elif may_have_format(entry.path):
                found = state_of(entry.path)
                yield from [found] if found else []
