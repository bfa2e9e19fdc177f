"""Files read a piece at a time: lines, JSON values, members of archives, rows of SQLite."""

from __future__ import annotations

import codecs
import errno
import hashlib
import io
import json
import lzma
import re
import shutil
import sqlite3
import zipfile
import zlib
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass
from functools import lru_cache, partial
from pathlib import Path
from tempfile import SpooledTemporaryFile, TemporaryDirectory
from typing import Any, BinaryIO, TypeVar, cast
from urllib.parse import quote

from mnemosyned.importers import importer
from mnemosyned.text.word_cache import clear_on_forget
from mnemosyned.verbs.memories import Remember

DIFFERENT_MAX = 200_000
"""Different records whose repetitions are counted; a repetition of later ones counts as the first."""


class OccurrenceCounter:
    """Counts equal texts, in bounded memory."""

    def __init__(self) -> None:
        self._seen: Counter[bytes] = Counter()

    def count(self, text: str) -> int:
        """Count a text; return how often it occurred so far, always 1 for new ones beyond `DIFFERENT_MAX`."""
        key = hashlib.sha256(text.encode("utf-8", "replace")).digest()[:8]
        if key not in self._seen and len(self._seen) >= DIFFERENT_MAX:
            return 1
        self._seen[key] += 1
        return self._seen[key]


ZIP_SIGNATURE = b"PK\x03\x04"
MEMBERS_MAX = 100_000
ARCHIVE_BYTES_MAX = 16 << 30
"""The largest member, unpacked."""
RATIO_MAX = 300
"""Maximum ratio of unpacked to packed bytes; conversations have 3 to 20, and a zip bomb has 1,000."""
RATIO_FROM_BYTES = 64 << 20
ARCHIVE_ERRORS = (
    zipfile.BadZipFile,
    zlib.error,
    lzma.LZMAError,
    EOFError,
    NotImplementedError,
    RuntimeError,
    ValueError,
    OSError,
)
"""Errors of broken, cut off and encrypted archives, at opening and while reading."""


@contextmanager
def _open_archive(path: Path) -> Iterator[zipfile.ZipFile]:
    """Open a ZIP archive in a block; errors of reading it become `SourceRefused`."""
    try:
        with zipfile.ZipFile(path) as archive:
            yield archive
    except ARCHIVE_ERRORS as error:
        reason = str(error) or type(error).__name__
        raise importer.SourceRefused(f"the archive cannot be read: {reason}") from error


def members_of(path: Path, names: re.Pattern[str]) -> list[zipfile.ZipInfo]:
    """Return the members whose file name matches, sorted by path. Raises `SourceRefused`."""
    with _open_archive(path) as archive:
        listed = archive.infolist()
    if len(listed) > MEMBERS_MAX:
        raise importer.SourceRefused(
            f"the archive has more than {MEMBERS_MAX:,} members"
        )
    matching = (
        each for each in listed if names.fullmatch(each.filename.rpartition("/")[2])
    )
    return sorted(matching, key=lambda member: member.filename)


@contextmanager
def open_documents(
    source: importer.ImportSource, names: Iterable[re.Pattern[str]]
) -> Iterator[Iterator[tuple[str, BinaryIO]]]:
    """Yield an iterator over names and UTF-8 streams of a source's documents, in a block.

    The documents of a ZIP archive are the members whose names match the patterns; another source is a single
    document without a name. Raises `OSError`, and `SourceRefused` for a bad archive.
    """
    if not source.head.startswith(ZIP_SIGNATURE):
        with open_text(source) as text:
            yield iter([("", text)])
        return
    members = [each for name in names for each in members_of(source.path, name)]
    with _open_archive(source.path) as archive:

        def open_each() -> Iterator[tuple[str, BinaryIO]]:
            for member in members:
                size, packed = member.file_size, member.compress_size
                largest = max(RATIO_FROM_BYTES, RATIO_MAX * max(packed, 1))
                if size > min(largest, ARCHIVE_BYTES_MAX):
                    raise importer.SourceRefused(
                        f"{member.filename} unpacks from {packed:,} to {size:,} bytes, "
                        "which no export does"
                    )
                with (
                    archive.open(member.filename) as opened,
                    as_utf8(cast("BinaryIO", opened)) as text,
                ):
                    yield member.filename.rpartition("/")[2], text

        yield open_each()


LINE_BYTES_MAX = 16 << 20
"""A longer line is skipped, and reported as too long."""
CHUNK_BYTES = 1 << 18
_WIDE = {
    codecs.BOM_UTF16_LE: "utf-16-le",
    codecs.BOM_UTF16_BE: "utf-16-be",
}
LENIENT = "mnemosyned-latin"
"""The error handler that decodes invalid UTF-8 as Latin-1."""


def _decode_as_latin(error: UnicodeError) -> tuple[str, int]:
    """Decode bytes at which UTF-8 failed as Windows-1252: an error handler of `decode`."""
    if not isinstance(error, UnicodeDecodeError):
        raise error
    return error.object[error.start : error.end].decode("cp1252", "replace"), error.end


codecs.register_error(LENIENT, _decode_as_latin)


@dataclass(frozen=True, slots=True)
class TextLine:
    """A line with its range in the file, in bytes of UTF-8."""

    number: int
    offset: int
    end: int
    data: bytes
    too_long: bool = False

    @property
    def text(self) -> str:
        """The line as text, without its line end."""
        return decode_text(self.data).rstrip("\r\n")


def as_utf8(stream: BinaryIO) -> BinaryIO:
    """Return a stream without a byte order mark; a stream in UTF-16 is copied to a new one in UTF-8."""
    mark = stream.read(3)
    for signature, encoding in _WIDE.items():
        if mark.startswith(signature):
            stream.seek(len(signature))
            copy = SpooledTemporaryFile(CHUNK_BYTES)  # noqa: SIM115 the caller closes it
            wide = io.TextIOWrapper(stream, encoding, "replace", newline="")
            while text := wide.read(CHUNK_BYTES):
                copy.write(text.encode("utf-8", "replace"))
            wide.detach()
            copy.seek(0)
            return cast("BinaryIO", copy)
    stream.seek(len(mark) if mark == codecs.BOM_UTF8 else 0)
    return stream


@contextmanager
def open_text(source: importer.ImportSource) -> Iterator[BinaryIO]:
    """Open a source as a stream of UTF-8 in a block. Raises `OSError`."""
    with source.path.open("rb", CHUNK_BYTES) as opened, as_utf8(opened) as text:
        yield text


def head_as_utf8(head: bytes) -> bytes:
    """Return a file's first bytes, converted to UTF-8, without a byte order mark."""
    with as_utf8(io.BytesIO(head)) as text:
        return text.read()


def is_binary(head: bytes) -> bool:
    """Return True if a file's first bytes contain a NUL and are not marked as UTF-16."""
    beginning = head[:8_192]
    return b"\0" in beginning and not beginning.startswith(tuple(_WIDE))


def decode_text(data: bytes) -> str:
    """Return UTF-8 bytes as text; bytes that are not UTF-8 are read as Windows-1252."""
    return data.decode("utf-8", LENIENT)


def lines_of(stream: BinaryIO, *, offset: int = 0) -> Iterator[TextLine]:
    """Yield the lines of a stream from byte `offset` on, numbered from 1.

    A line longer than `LINE_BYTES_MAX` has no data and is marked as too long.
    """
    if offset:
        stream.seek(offset, io.SEEK_CUR)
    number = 0
    while data := stream.readline(LINE_BYTES_MAX):
        number += 1
        end = offset + len(data)
        too_long = len(data) >= LINE_BYTES_MAX and not data.endswith(b"\n")
        while too_long and (rest := stream.readline(CHUNK_BYTES)):
            end += len(rest)
            if rest.endswith(b"\n"):
                break
        yield TextLine(number, offset, end, b"" if too_long else data, too_long)
        offset = end


JSON_CHUNK_BYTES = 1 << 18
VALUE_CHARS_MAX = 64 << 20
"""The longest single value."""
_NEAR_END = 1_024
"""An error this close to the end of the text read may be solved by more text."""
_SPACE = re.compile(r"[ \t\r\n]*")
_scan = json.JSONDecoder().raw_decode


@dataclass(frozen=True, slots=True)
class JsonElement:
    """An element of the document's list, or of a list or object under one of its keys."""

    key: str
    """The key at the top; empty if the document is a list."""
    index: int
    """The number of the element within its list, from 0."""
    value: Any
    size: int
    """Bytes of the document read since the element before."""


class JsonReader:
    """Reads one document once, from its beginning."""

    def __init__(self, stream: BinaryIO) -> None:
        self._stream = stream
        self._decoder = codecs.getincrementaldecoder("utf-8")(LENIENT)
        self._text = ""
        self._place = 0
        self._consumed = 0
        self._ended = False
        self.keys: list[str] = []
        """The keys at the top read so far."""
        self._uncounted = 0
        """Bytes read since the last element."""

    def elements(self) -> Iterator[JsonElement]:
        """Yield the elements of a list, or an object's values, with each list's elements in place of the list.

        Raises `SourceRefused` at the first text that is not JSON.
        """
        opening = self._peek_char()
        if opening == "[":
            yield from self._read_list("")
        elif opening == "{":
            yield from self._read_object()
        else:
            raise self._make_error_here("neither a list nor an object begins")
        if self._peek_char():
            raise self._make_error_here("more text follows the end of the document")

    def _read_object(self) -> Iterator[JsonElement]:
        """Yield the values of the JSON object at the present position; yield the elements of each list."""
        for _ in self._step_through("}"):
            key = self._read_value()
            if not isinstance(key, str) or self._peek_char() != ":":
                raise self._make_error_here("a key is expected")
            self._place += 1
            self.keys.append(key)
            if self._peek_char() == "[":
                yield from self._read_list(key)
            else:
                yield self._read_element(key, 0)

    def _read_list(self, key: str) -> Iterator[JsonElement]:
        """Yield the elements of the list at the present position, each with the key of the list."""
        for index, _ in enumerate(self._step_through("]")):
            yield self._read_element(key, index)

    def _read_element(self, key: str, index: int) -> JsonElement:
        """Read the next value as an element, whose size is the number of bytes read since the last element."""
        value = self._read_value()
        size, self._uncounted = self._uncounted, 0
        return JsonElement(key, index, value, size)

    def _step_through(self, closing: str) -> Iterator[None]:
        """Yield before each member of the present list or object, up to `closing`. Raises `SourceRefused`."""
        self._place += 1
        mark = closing if self._peek_char() == closing else ","
        while mark == ",":
            yield
            mark = self._peek_char()
            self._place += mark == ","
        if mark != closing:
            raise self._make_error_here(
                "not JSON" if mark else "the document is cut off"
            )
        self._place += 1

    def _peek_char(self) -> str:
        """Skip blanks and return the next character without consuming it; empty at the end."""
        while True:
            match = _SPACE.match(self._text, self._place)
            self._place = match.end() if match else self._place
            if self._place < len(self._text):
                return self._text[self._place]
            if self._ended:
                return ""
            self._read_more(JSON_CHUNK_BYTES)

    def _read_value(self) -> Any:  # noqa: ANN401 any JSON
        """Read and return the next JSON value, of any kind, as a whole. Raises `SourceRefused`."""
        if not self._peek_char():
            raise self._make_error_here("the document is cut off")
        while True:
            waiting = len(self._text) - self._place
            if scanned := self._scan_value():
                value, self._place = scanned
                return value
            if waiting > VALUE_CHARS_MAX:
                raise self._make_error_here(
                    f"a value exceeds {VALUE_CHARS_MAX:,} characters"
                )
            self._read_more(max(JSON_CHUNK_BYTES, waiting))

    def _scan_value(self) -> tuple[Any, int] | None:
        """Return the value that begins at the present place, and its end; None if more must be read first.

        Raises `SourceRefused`.
        """
        try:
            value, end = _scan(self._text, self._place)
        except json.JSONDecodeError as error:
            is_cut = error.msg.startswith("Unterminated string") or (
                error.pos >= len(self._text) - _NEAR_END
            )
            if is_cut and not self._ended:
                return None
            reason = "the document is cut off" if is_cut else f"not JSON: {error.msg}"
            raise self._make_error_here(reason) from error
        except (RecursionError, ValueError) as error:
            raise self._make_error_here(f"it cannot be read: {error}") from error
        # A number at the end of the text may go on.
        return (value, end) if end < len(self._text) or self._ended else None

    def _read_more(self, size: int) -> None:
        """Read up to `size` bytes from the stream, and drop the text already parsed."""
        data = self._stream.read(size)
        self._ended = not data
        self._uncounted += len(data)
        self._consumed += self._place
        text = self._decoder.decode(data, final=self._ended)
        self._text = self._text[self._place :] + text
        self._place = 0

    def _make_error_here(self, reason: str) -> importer.SourceRefused:
        """Return an error with a reason and the present position in the document."""
        place = self._consumed + self._place
        return importer.SourceRefused(f"{reason}, at character {place + 1:,}")


@dataclass(frozen=True, slots=True)
class JsonOutline:
    """Whether a document is a list, and its first keys."""

    is_list: bool
    keys: frozenset[str]
    """The keys of the document, or of the first object in its list."""


@clear_on_forget
@lru_cache(maxsize=4)
def outline_document(head: bytes) -> JsonOutline | None:
    """Return whether a JSON document is a list, and its first keys, by its first bytes; None for others."""
    text = head_as_utf8(head).lstrip()
    is_list = text.startswith(b"[")
    inner = text[1:].lstrip() if is_list else text
    if not inner.startswith(b"{"):
        return JsonOutline(is_list, frozenset()) if is_list else None
    reader = JsonReader(io.BytesIO(inner))
    with suppress(importer.SourceRefused):  # the head ends within it
        for _ in zip(reader.elements(), range(1_000), strict=False):
            pass
    return JsonOutline(is_list, frozenset(reader.keys)) if reader.keys else None


def outline_source(
    source: importer.ImportSource, member: re.Pattern[str] | None
) -> JsonOutline | None:
    """Return the outline of a JSON source, or of a ZIP archive's first member with a matching name, or None."""
    if not source.head.startswith(ZIP_SIGNATURE):
        return outline_document(source.head)
    with (
        suppress(importer.SourceRefused),  # reported when it is read
        open_documents(source, [member] if member else []) as documents,
    ):
        for _, text in documents:
            return outline_document(text.read(importer.HEAD_BYTES))
    return None


@dataclass(frozen=True, slots=True)
class RecordPosition:
    """The byte to go on from, and the number of records before it."""

    offset: int = 0
    number: int = 0

    @classmethod
    def parse(cls, position: str) -> RecordPosition:
        """Parse a position from its text "offset/number"; an empty text is the beginning."""
        return cls(*map(int, position.split("/"))) if position else cls()

    def __str__(self) -> str:
        return f"{self.offset}/{self.number}"


@dataclass(slots=True)
class FileRecord:
    """A record of one or more lines of a file; each format adds its own fields."""

    number: int = 0
    """The number among the file's records, from 1."""
    end: int = 0
    """The byte after the record."""
    label: str = ""
    """The record's name in error messages, in place of its number."""
    problem: str = ""
    """Reason why the record cannot be read."""


Record = TypeVar("Record", bound=FileRecord)


def group_lines(
    lines: Iterable[TextLine],
    take_line: Callable[[TextLine, Record | None], Record | None],
    number: int = 0,
) -> Iterator[Record]:
    """Group lines into records and yield each record, numbered from `number` + 1.

    `take_line` gets each line and the record before it, or None, and returns a new record or None.
    """
    last: Record | None = None
    for line in lines:
        begun = take_line(line, last)
        if begun is not None:
            if last:
                yield last
            number += 1
            begun.number = number
            last = begun
        if last:
            last.end = line.end
    if last:
        yield last


def convert_records(
    source: importer.ImportSource,
    records: Iterable[Record],
    convert: Callable[[Record], Remember | None],
    *,
    noun: str,
    start: RecordPosition,
) -> importer.Records:
    """Yield the memory of each record as an item, or as a bad record if it cannot be read.

    `convert` makes the memory, or returns None for a record without one; it raises `RecordRefused`
    or `PARSE_ERRORS`. `start` is the position before the first record.
    """
    end = start.offset
    for record in records:
        size, end = max(0, record.end - end), max(end, record.end)
        place = f"{source.name}, {noun} {record.label or record.number}"
        position = str(RecordPosition(record.end, record.number))
        if record.problem:
            yield importer.BadRecord(place, record.problem, position, size)
        else:
            yield from importer.parse_record(
                partial(convert, record), place, position, size
            )


def read_grouped_lines(
    source: importer.ImportSource,
    position: str,
    take_line: Callable[[TextLine, Record | None], Record | None],
    convert: Callable[[Record], Remember | None],
    *,
    noun: str,
) -> importer.Records:
    """Yield the memories of a file whose records have one or more lines, after the position of a record.

    `take_line` is as for `group_lines`, `convert` and `noun` as for `convert_records`.
    """
    start = RecordPosition.parse(position)
    with open_text(source) as text:
        lines = lines_of(text, offset=start.offset)
        records = group_lines(lines, take_line, start.number)
        yield from convert_records(source, records, convert, noun=noun, start=start)


SQLITE_SIGNATURE = b"SQLite format 3\0"
WAL_VERSION_AT = 18
"""The byte of a SQLite file that is 2 if the database has a write-ahead log."""


LOCK_WAIT_S = 5.0
"""Longest wait for another program that writes to the database."""
SQLITE_VALUE_BYTES_MAX = 64 << 20
SQLITE_STEPS_MAX = 2_000_000_000
"""Maximum instructions of SQLite's machine in one reading; a file that needs more is broken or hostile."""
SQLITE_STEPS_AT_A_TIME = 10_000_000
_IS_JSON_UNSAFE = """
SELECT 1 FROM pragma_function_list WHERE name = 'json_extract' AND NOT flags & 0x200000"""
"""Finds a row in SQLite 3.40, which refuses generated columns with JSON unless their schema is trusted.

It refuses functions with effects elsewhere, such as `load_extension`, in a trusted schema, too.
"""


@contextmanager
def open_database(path: Path) -> Iterator[sqlite3.Connection]:
    """Open an SQLite database for reading in a block.

    The file and its folder are not written to: after an interrupted write a copy is read. Raises
    `SourceRefused`, also within the block, and `OSError` while another program has locked it.
    """
    log, index = Path(f"{path}-wal"), Path(f"{path}-shm")
    has_log = log.exists() and log.stat().st_size > 0
    journal = Path(f"{path}-journal")
    is_torn = _needs_rollback(path, journal)
    if is_torn or (has_log and not index.exists()):
        further = journal if is_torn else log
        with TemporaryDirectory(prefix="mnem-import-") as folder:
            copy = Path(folder, path.name)
            shutil.copyfile(path, copy)
            shutil.copyfile(further, Path(folder, further.name))
            with _open_read_only(copy, "mode=rw") as database:
                yield database
        return
    with path.open("rb") as opened:
        makes_log = opened.read(WAL_VERSION_AT + 1)[WAL_VERSION_AT:] == b"\x02"
    if not makes_log or has_log:
        with _open_read_only(path, "mode=ro") as database:
            yield database
        return
    # Opened in another way, it would be given a log. Its program is not known to run.
    before = path.stat()
    with _open_read_only(path, "mode=ro&immutable=1") as database:
        yield database
    after = path.stat()
    if (before.st_size, before.st_mtime_ns) != (after.st_size, after.st_mtime_ns):
        raise importer.SourceRefused("it changed while it was read; repeat the import")


def _needs_rollback(path: Path, journal: Path) -> bool:
    """Return True if an interrupted write left a journal behind; False for a write that still runs."""
    if not journal.exists():
        return False
    try:
        with _open_read_only(path, "mode=ro") as database:
            database.execute("PRAGMA schema_version")
    except importer.SourceRefused as error:
        # Not every build of the module names the code of this error.
        return "readonly database" in str(error.__cause__)
    return False


@contextmanager
def _open_read_only(path: Path, mode: str) -> Iterator[sqlite3.Connection]:
    """Connect to an SQLite file in a block, with limits; errors become `SourceRefused`."""
    steps = 0

    def count() -> bool:
        """Count the steps that SQLite has run; return True, to interrupt it, beyond the limit."""
        nonlocal steps
        steps += SQLITE_STEPS_AT_A_TIME
        return steps > SQLITE_STEPS_MAX

    try:
        uri = f"file:{quote(str(path.absolute()))}?{mode}"
        with closing(sqlite3.connect(uri, uri=True, timeout=LOCK_WAIT_S)) as database:
            database.setlimit(sqlite3.SQLITE_LIMIT_LENGTH, SQLITE_VALUE_BYTES_MAX)
            database.execute("PRAGMA query_only = ON")
            trust = "ON" if database.execute(_IS_JSON_UNSAFE).fetchone() else "OFF"
            database.execute(f"PRAGMA trusted_schema = {trust}")
            database.text_factory = lambda data: data.decode("utf-8", "replace")
            database.set_progress_handler(count, SQLITE_STEPS_AT_A_TIME)
            yield database
    except (sqlite3.Error, UnicodeDecodeError) as error:  # names may be no text
        if getattr(error, "sqlite_errorcode", 0) & 0xFF == sqlite3.SQLITE_BUSY:
            reason = "another program has locked it; close that program and repeat"
            raise OSError(errno.EBUSY, reason) from error
        raise importer.SourceRefused(f"the database cannot be read: {error}") from error


def tables_of(source: importer.ImportSource) -> frozenset[str]:
    """Return the names of a SQLite database's tables; empty for any other or broken source."""
    if not source.head.startswith(SQLITE_SIGNATURE):
        return frozenset()
    try:
        with open_database(source.path) as database:
            rows = database.execute(
                "SELECT name FROM sqlite_master WHERE type = 'table' LIMIT 10000"
            )
            return frozenset(name for (name,) in rows)
    except importer.SourceRefused:
        return frozenset()


def columns_of(database: sqlite3.Connection, table: str) -> frozenset[str]:
    """Return the names of a table's columns; empty if there is no such table."""
    rows = database.execute("SELECT name FROM pragma_table_info(?)", (table,))
    return frozenset(name for (name,) in rows)
