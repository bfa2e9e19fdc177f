"""Input and output of importers: sources, items, formats, and memories made from records."""

from __future__ import annotations

import hashlib
import os
import re
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, date, datetime, time, tzinfo
from functools import cached_property
from itertools import islice
from pathlib import Path

import msgspec

from mnemosyned import errors, paths
from mnemosyned.instants import in_zone
from mnemosyned.memory.capture import IMPORTED_PREFIX
from mnemosyned.memory.values import DEFAULT_SESSION, tag_name
from mnemosyned.verbs import memories, request

HEAD_BYTES = 64 * 1024
"""Bytes at the beginning of a file by which its format is recognized."""
FILES_MAX = 1_000_000
"""Files counted for the size of a folder."""
STANDARD_INPUT = Path("-")
START = ""
"""The position before the first item."""


@dataclass(frozen=True, slots=True)
class ImportItem:
    """A memory to store."""

    memory: memories.Remember
    """The memory with an id from `stable_id`: the same whenever this record is read again."""
    place: str
    """Place for error messages: `notes/a.md:12`, `export.zip/conversations.json, message 3`."""
    position: str = START
    """The position for `read` to go on after it; `START` if the format begins again."""
    size: int = 0
    """Bytes of the source read since the item before."""


@dataclass(frozen=True, slots=True)
class BadRecord:
    """A record that cannot be read."""

    place: str
    reason: str
    """The fault as a clause: `the line is not JSON`."""
    position: str = START
    size: int = 0


@dataclass(frozen=True, slots=True)
class ExportGroup:
    """Lines of an export to be stored together."""

    data: bytes
    lines: int
    place: str
    position: str = START
    size: int = 0


ImportRecord = ImportItem | BadRecord | ExportGroup
"""A result of reading a source; `ExportGroup` only for our own exports."""
Records = Iterator[ImportRecord]


class SourceRefused(Exception):
    """A source that cannot be read, or not to its end; the text is the reason."""


@dataclass(frozen=True)
class ImportSource:
    """A file or a folder to import, or a copy of what came through standard input or a pipe."""

    path: Path
    """Path as typed, or below a typed folder, or of the copy."""
    root: Path
    """The typed path: `path`, or a folder above it."""
    pipe: Path | None = None
    """The typed path of a pipe, or `-` for standard input, of which `path` is a copy."""

    @classmethod
    def of_path(cls, path: Path) -> ImportSource:
        """Return the source for a file or folder that the user named by its path."""
        return cls(path, path)

    @property
    def name(self) -> str:
        """The source's name in error messages: its path, or "standard input"."""
        return "standard input" if self.pipe == STANDARD_INPUT else str(self.text_path)

    @property
    def text_path(self) -> Path:
        """The path as valid Unicode, for people: bytes that are not UTF-8 are escaped."""
        return Path(paths.printable_path(self.pipe or self.path))

    @property
    def is_folder(self) -> bool:
        """Whether the path is a folder or a link to one."""
        return self.path.is_dir()

    @cached_property
    def head(self) -> bytes:
        """The first `HEAD_BYTES` bytes; empty for a folder. Raises `OSError`."""
        if self.is_folder:
            return b""
        with self.path.open("rb") as opened:
            return opened.read(HEAD_BYTES)

    def size(self) -> int:
        """Return the size in bytes of the file, or of all files in the folder."""
        if not self.is_folder:
            return self.path.stat().st_size
        files = (
            Path(directory, name)
            for directory, _, names in os.walk(self.path)
            for name in names
        )
        regular = (file for file in files if not file.is_symlink() and file.is_file())
        return sum(file.stat().st_size for file in islice(regular, FILES_MAX))


class ImportFormat(ABC):
    """A format that can be imported."""

    name: str
    """Name for `--format`."""
    needs_file: bool = False
    """Whether a pipe cannot be read, because path or time of a file is needed."""
    edits_changed: bool = False
    """Whether a record that changed since it was imported is an edit of its memory."""

    @abstractmethod
    def recognizes(self, source: ImportSource) -> bool:
        """Return True if this format can read a source, or a folder as a whole, by its content."""

    def read(self, source: ImportSource, position: str) -> Records:
        """Yield a source's records after a position, and a bad record for any fault. Raises `OSError`."""
        try:
            yield from self.read_records(source, position)
        except SourceRefused as refused:
            yield BadRecord(source.name, str(refused))

    @abstractmethod
    def read_records(self, source: ImportSource, position: str) -> Records:
        """Yield the source's records after `position`, the last record's position or "" for all.

        Raises `OSError`, and `SourceRefused` if the rest of the source cannot be read.
        """

    def size(self, source: ImportSource) -> int:
        """Return how many bytes of a source will be read, for showing progress; 0 if unknown."""
        return source.size()


def stable_id(*parts: str, prefix: str = IMPORTED_PREFIX) -> str:
    """Return `prefix` and a hash of the parts: a format's name, and a record's id or words."""
    text = "\0".join(parts).encode("utf-8", "replace")
    return prefix + hashlib.sha256(text).hexdigest()[:32]


def file_identity(status: os.stat_result) -> str:
    """Return a file's "device:inode" from its status; a renamed or linked file keeps the text."""
    return f"{status.st_dev}:{status.st_ino}"


class RecordRefused(Exception):
    """A record from which no memory can be made; the text is the reason."""


PARSE_ERRORS = (
    ArithmeticError,
    AssertionError,
    AttributeError,
    LookupError,
    OSError,
    RuntimeError,
    StopIteration,
    TypeError,
    ValueError,
)
"""Errors that the parsers raise for damaged mails, calendars and vCards. `OSError` is one, as a time zone may
have the name of a folder, and `StopIteration`, as a list may be empty."""


def parse_record(
    parse: Callable[[], memories.Remember | None],
    place: str,
    position: str,
    size: int | None = None,
    *,
    exact: bool = False,
) -> Iterator[ImportItem | BadRecord]:
    """Yield the memory that `parse` returns, if any, or its error as a `BadRecord`.

    An import resumes at `position` after this record; `size` is the number of bytes read, None for the length
    of the text. Unless `exact`, the fields are made acceptable to the daemon.
    """
    try:
        memory = parse()
        if memory and not exact:
            memory = sanitize(memory)
    except RecordRefused as refused:
        yield BadRecord(place, str(refused), position, size or 0)
    except PARSE_ERRORS as error:
        is_told = isinstance(error, OSError | ValueError) and str(error)
        reason = str(error) if is_told else repr(error)
        yield BadRecord(place, f"it cannot be read: {reason}", position, size or 0)
    else:
        if memory:
            size = len(memory.content) if size is None else size
            yield ImportItem(memory, place, position, size)


def first_past(values: Iterable[object]) -> datetime | None:
    """Return the first time among the values, read by `moment_from`, that is not in the future, or None."""
    now = datetime.now(UTC)
    moments = filter(None, map(moment_from, values))
    # Databases without another word for an unknown time write the year 1.
    return next((each for each in moments if each.year > 1 and each <= now), None)


TAGS_MAX = 50
"""Tags taken from one record."""


def sanitize(memory: memories.Remember) -> memories.Remember:
    """Return a copy of a memory with fields cleaned or shortened, so that the daemon accepts the memory."""
    metadata = {key: value for key, value in memory.metadata.items() if value}
    try:
        msgspec.json.encode(metadata)
    except (TypeError, ValueError, OverflowError, RecursionError):
        metadata = {
            clean_name(str(key)): clean_name(repr(value))
            for key, value in metadata.items()
        }
    return msgspec.structs.replace(
        memory,
        content=clean_text(memory.content),
        session=clean_name(memory.session) or DEFAULT_SESSION,
        source=clean_name(memory.source or "") or None,
        role=clean_name(memory.role),
        metadata=metadata,
        tags=tags_in(memory.tags),
    )


def clean_text(text: str) -> str:
    """Return the text without NUL characters and outer blanks, lone surrogates replaced by "?"."""
    return text.replace("\0", "").encode("utf-8", "replace").decode().strip()


def clean_name(name: str) -> str:
    """Return a name on one line, with single spaces, cut at `TEXT_MAX` characters."""
    return " ".join(clean_text(name).split())[: request.TEXT_MAX].strip()


def text_in(value: object) -> str:
    """Return the value if it is text, else an empty text."""
    return value if isinstance(value, str) else ""


def tags_in(value: object) -> list[str]:
    """Return the valid tags, at most `TAGS_MAX`, of a list or a text with commas or spaces."""
    if isinstance(value, str):
        value = value.split(",") if "," in value else value.split()
    if not isinstance(value, list):
        return []
    tags: dict[str, None] = {}
    for text in map(str, filter(None, value)):
        with suppress(errors.InvalidRequest):
            tags[tag_name(clean_name(text).lstrip("#"))] = None
    return list(tags)[:TAGS_MAX]


_MILLISECONDS_FROM = 100_000_000_000
"""A larger number counts milliseconds; in seconds it would be the year 5138."""
_MICROSECONDS_FROM = 100_000_000_000_000
_NUMBER = re.compile(r"-?\d{1,20}(?:\.\d+)?")


def moment_from(value: object, *, zone: tzinfo | None = None) -> datetime | None:
    """Return the time in a value of another program, with its zone; None if there is none.

    Takes ISO texts, dates, and positive numbers of seconds, milliseconds or microseconds since 1970.
    A time without a zone is in `zone`, or local.
    """
    try:
        if isinstance(value, str):
            text = value.strip()
            is_number = _NUMBER.fullmatch(text) and len(text) > 8
            value = float(text) if is_number else datetime.fromisoformat(text)
        if isinstance(value, date):
            day = datetime.combine(value, time())
            moment = value if isinstance(value, datetime) else day
            if moment.tzinfo:
                return moment
            return moment.replace(tzinfo=zone) if zone else in_zone(moment, None)
        if not isinstance(value, int | float) or isinstance(value, bool) or value <= 0:
            return None
        if value >= _MICROSECONDS_FROM:
            value /= 1_000_000
        elif value >= _MILLISECONDS_FROM:
            value /= 1_000
        return datetime.fromtimestamp(value, tz=UTC)
    except (ValueError, OverflowError, OSError):
        return None
