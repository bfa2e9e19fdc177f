"""The interface of formats: a source to read, and the items that a format makes of it."""

from __future__ import annotations

import hashlib
import io
import os
from abc import ABC, abstractmethod
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cached_property
from itertools import islice
from pathlib import Path
from typing import BinaryIO

from mnemosyned.domain.ports.surroundings.agents import IMPORTED_PREFIX
from mnemosyned.paths import printable_path
from mnemosyned.verbs.memories import Remember

HEAD_BYTES = 64 * 1024
"""Bytes at the beginning of a file by which its format is recognized."""
FILES_MAX = 1_000_000
"""Files counted for the size of a folder."""
STANDARD_INPUT = Path("-")
START = ""
"""The position before the first item."""
ID_CHARS = 32


@dataclass(frozen=True, slots=True)
class Item:
    """A memory to store."""

    memory: Remember
    """With an id that is the same whenever this record is read again, as `stable_id` makes one."""
    place: str
    """Where it is, for error messages: `notes/a.md:12`, `export.zip/conversations.json, message 3`."""
    position: str = START
    """What `read` is given to go on after it; `START` where a format begins again."""
    size: int = 0
    """Bytes of the source read since the item before."""


@dataclass(frozen=True, slots=True)
class Bad:
    """A record that cannot be read."""

    place: str
    reason: str
    """What is wrong, as a clause: `the line is not JSON`."""
    position: str = START
    size: int = 0


@dataclass(frozen=True, slots=True)
class Group:
    """Lines of an export that are stored together."""

    data: bytes
    lines: int
    place: str
    position: str = START
    size: int = 0


Record = Item | Bad | Group
"""What reading a source yields; `Group` of our own exports alone."""


@dataclass(frozen=True)
class Source:
    """A file, a folder, or a stream: standard input or a pipe."""

    path: Path
    """As it was typed, or below a folder that was typed."""
    root: Path
    """The path that was typed: this one, or a folder above it."""
    stream: BinaryIO | None = field(default=None, compare=False)
    """What can be read once, from its beginning to its end."""

    @classmethod
    def named(cls, path: Path) -> Source:
        """Return the source that a path names."""
        return cls(path, path)

    @classmethod
    def of_stream(cls, stream: BinaryIO, path: Path = STANDARD_INPUT) -> Source:
        """Return the source that reads standard input, or a pipe at a path."""
        return cls(path, path, stream)

    @property
    def name(self) -> str:
        """Its name in error messages."""
        return "standard input" if self.path == STANDARD_INPUT else str(self.shown)

    @property
    def shown(self) -> Path:
        """Its path as text, which names no file where a name on it is not UTF-8."""
        return Path(printable_path(self.path))

    @property
    def is_folder(self) -> bool:
        """Whether it is a folder, or a link that was typed to one."""
        return self.stream is None and self.path.is_dir()

    @cached_property
    def head(self) -> bytes:
        """The first bytes; none of a folder. Raises `OSError`."""
        if self.stream:
            return _read_head(self.stream)
        if self.is_folder:
            return b""
        with self.path.open("rb") as opened:
            return opened.read(HEAD_BYTES)

    def open(self) -> BinaryIO:
        """Open the file, or the stream from its beginning. Raises `OSError`."""
        if self.stream:
            return io.BufferedReader(_Chained(self.head, self.stream))
        return self.path.open("rb")

    def size(self) -> int:
        """Return the bytes of the file or of the files in the folder; 0 where unknown."""
        if self.stream:
            return 0
        if not self.is_folder:
            return self.path.stat().st_size
        return sum(islice(_sizes(self.path), FILES_MAX))


class Format(ABC):
    """A format that can be imported."""

    name: str
    """What `--format` calls it."""
    needs_file: bool = False
    """Whether it cannot be read of a stream, as its path, time or middle is needed."""

    @abstractmethod
    def recognizes(self, source: Source) -> bool:
        """Tell by the content whether a source has this format; by its name only in addition.

        A format that reads a whole folder recognizes it. Of other folders each file is a source.
        """

    @abstractmethod
    def read(self, source: Source, position: str) -> Iterator[Record]:
        """Yield the records after a position, in the order of each conversation.

        Holds one record in memory at a time, or a bounded number. Raises `OSError` where the
        source cannot be read; whatever else is wrong in it is a `Bad`.
        """

    def size(self, source: Source) -> int:
        """Return how many bytes reading the source takes, to show progress; 0 where unknown."""
        return source.size()


def stable_id(*parts: str) -> str:
    """Make the id of a record from what identifies it: the format, its own id, or its words."""
    text = "\0".join(parts).encode("utf-8", "replace")
    return IMPORTED_PREFIX + hashlib.sha256(text).hexdigest()[:ID_CHARS]


class _Chained(io.RawIOBase):
    """Bytes that were read already, and the stream they came from."""

    def __init__(self, head: bytes, stream: BinaryIO) -> None:
        self._head = memoryview(head)
        self._stream = stream

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: bytearray | memoryview) -> int:  # type: ignore[override]
        room = memoryview(buffer)
        data: bytes | memoryview = self._head[: len(room)]
        self._head = self._head[len(data) :]
        if not data:
            data = _available(self._stream, len(room))
        room[: len(data)] = data
        return len(data)


def _read_head(stream: BinaryIO) -> bytes:
    """Read the beginning, however slowly it comes."""
    head = b""
    while len(head) < HEAD_BYTES:
        data = _available(stream, HEAD_BYTES - len(head))
        if not data:
            break
        head += data
    return head


def _available(stream: BinaryIO, count: int) -> bytes:
    """Read what has come, without waiting for more."""
    if isinstance(stream, io.BufferedReader):
        return stream.read1(count)
    return stream.read(count)


def _sizes(folder: Path) -> Iterator[int]:
    """Yield the sizes of the regular files in a folder; links are not followed."""
    for directory, _, names in os.walk(folder):
        for name in names:
            path = Path(directory, name)
            if not path.is_symlink() and path.is_file():
                yield path.stat().st_size
