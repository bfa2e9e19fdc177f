"""Checks a write-ahead log left by a crash for transactions that SQLite could not read.

SQLite reads a log up to the first frame whose checksum is wrong, and drops all behind it without a
word. That is right for a write that power cut short. Where whole transactions lie behind, the disk
has lost something that was acknowledged, and its owner should know.
"""

from __future__ import annotations

import os
import struct
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

HEADER = struct.Struct(">8I")
"""Magic, version, page size, number of the checkpoint, two salts, two checksums."""
FRAME = struct.Struct(">6I")
"""Page, pages of the database where it ends a transaction, two salts, two checksums."""
MAGIC = 0x377F0682
"""The last bit says in which order of bytes checksums are made."""
PAGE_SIZES = {512 << power for power in range(8)}
USUAL_PAGE_SIZE = 4_096
FRAMES_MAX = 1_000_000


@dataclass(frozen=True, slots=True)
class LeftLog:
    """The frames of a log that a process left behind."""

    path: Path
    commits: tuple[int, ...]
    """Which of its frames, counted from 1, end a transaction."""


def frames_left(database: Path) -> LeftLog | None:
    """The log beside a database that nobody has open; None where it is empty or not there."""
    path = database.with_name(database.name + "-wal")
    with _opened(path) as descriptor:
        if descriptor is None:
            return None
        header = os.pread(descriptor, HEADER.size, 0)
        size = os.fstat(descriptor).st_size
        if size < HEADER.size + FRAME.size:
            return None
        _, _, page_size, _, *salts, _, _ = HEADER.unpack(header)
        if page_size not in PAGE_SIZES:
            page_size = USUAL_PAGE_SIZE
        if not _sound(header):  # its frames tell which ones belong together
            salts = list(
                FRAME.unpack(os.pread(descriptor, FRAME.size, HEADER.size))[2:4]
            )
        step = FRAME.size + page_size
        count = min((size - HEADER.size) // step, FRAMES_MAX)
        commits = []
        for number in range(count):
            frame = FRAME.unpack(
                os.pread(descriptor, FRAME.size, HEADER.size + number * step)
            )
            if list(frame[2:4]) == salts and frame[1]:
                commits.append(number + 1)
    return LeftLog(path, tuple(commits))


def lost_transactions(left: LeftLog, *, frames_read: int) -> str:
    """Describe the transactions lost when SQLite read this many frames; empty if none."""
    lost = sum(frame > frames_read for frame in left.commits)
    if not lost:
        return ""
    return (
        f"{left.path} was damaged: {lost:,} of the {len(left.commits):,} transactions that the "
        "last process left in it cannot be read, and what they changed is lost (the last one may "
        "never have been acknowledged). Check the disk, and remember again what was remembered "
        "just before that process ended"
    )


def _sound(header: bytes) -> bool:
    """Whether the header has its own checksum."""
    order = ">" if HEADER.unpack(header)[0] & 1 else "<"
    words = struct.unpack(f"{order}6I", header[:24])
    first = second = 0
    for even, odd in zip(words[::2], words[1::2], strict=True):
        first = (first + even + second) & 0xFFFFFFFF
        second = (second + odd + first) & 0xFFFFFFFF
    magic, *_, third, fourth = HEADER.unpack(header)
    return magic & ~1 == MAGIC and (first, second) == (third, fourth)


@contextmanager
def _opened(path: Path) -> Iterator[int | None]:
    try:
        descriptor = os.open(
            path, os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK
        )
    except OSError:  # none, or none that SQLite would read: it says so itself
        yield None
        return
    try:
        yield descriptor
    finally:
        os.close(descriptor)
