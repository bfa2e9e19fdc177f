"""Memories as JSON lines: each an object with the fields of `remember`."""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import BinaryIO, cast

import msgspec

from mnemosyned.domain.errors import MnemosynedError
from mnemosyned.importers.importer import (
    HEAD_BYTES,
    Bad,
    Format,
    Item,
    Source,
    stable_id,
)
from mnemosyned.verbs.memories import Remember
from mnemosyned.verbs.request import parse

BYTE_ORDER_MARK = b"\xef\xbb\xbf"
LINE_BYTES_MAX = 8 << 20
"""A longer line is bad, and passed over in pieces of this size."""
REPEATED_MAX = 200_000
"""Different lines without id and time of which repetitions are counted."""


class _Identity(msgspec.Struct):
    """What tells a line from others with the same words."""

    content: object = None
    id: object = None
    created_at: object = None


_identity = msgspec.json.Decoder(_Identity)


@dataclass(slots=True)
class _Line:
    number: int
    data: bytes
    end: int
    """Where the next line begins."""
    size: int


@dataclass(slots=True)
class _Repetitions:
    """Ids of lines without their own: equal lines without a time are different memories."""

    _seen: Counter[bytes] = field(default_factory=Counter)

    def id_of(self, line: _Line, *, timed: bool) -> str:
        """Return the id of a line; the same for the same line in the same file."""
        text = line.data.strip()
        digest = hashlib.sha256(text).digest()
        if timed:
            return stable_id("jsonl", digest.hex())
        key = digest[:8]
        if key not in self._seen and len(self._seen) >= REPEATED_MAX:
            return stable_id("jsonl", digest.hex(), f"at {line.end}")
        self._seen[key] += 1
        return stable_id("jsonl", digest.hex(), str(self._seen[key]))


class JsonLines(Format):
    """A file with a JSON object a line."""

    name = "jsonl"

    def recognizes(self, source: Source) -> bool:
        lines = source.head.removeprefix(BYTE_ORDER_MARK).split(b"\n")
        return any(map(_is_memory, lines)) or _begins_memory(lines[0])

    def read(self, source: Source, position: str) -> Iterator[Item | Bad]:
        # Ids depend on the lines before: these are read again, without storing them.
        start = int(position or 0)
        repetitions = _Repetitions()
        with source.open() as opened:
            for line in _lines(opened):
                if line.end <= start:
                    _count(line, repetitions)
                elif line.data.strip():
                    yield _parsed(line, source, repetitions)


def _is_memory(line: bytes) -> bool:
    try:
        return isinstance(_identity.decode(line).content, str)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return False


def _begins_memory(line: bytes) -> bool:
    """Tell whether the beginning of a line that is longer than a head may be a memory."""
    is_cut = len(line) >= HEAD_BYTES - len(BYTE_ORDER_MARK)
    return is_cut and line.startswith(b"{") and b'"content"' in line


def _lines(file: BinaryIO) -> Iterator[_Line]:
    """Yield the lines; of one that is too long only the end is kept."""
    number = end = 0
    while data := file.readline(LINE_BYTES_MAX + 1):
        size = len(data)
        while not data.endswith(b"\n") and (rest := file.readline(LINE_BYTES_MAX)):
            size += len(rest)
            data = rest if rest.endswith(b"\n") else data
        number += 1
        end += size
        if number == 1:
            data = data.removeprefix(BYTE_ORDER_MARK)
        yield _Line(number, data, end, size)


def _count(line: _Line, repetitions: _Repetitions) -> None:
    """Count a line that was imported earlier."""
    try:
        identity = _identity.decode(line.data)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return
    if not identity.id:
        repetitions.id_of(line, timed=bool(identity.created_at))


def _parsed(line: _Line, source: Source, repetitions: _Repetitions) -> Item | Bad:
    place = f"{source.name}:{line.number}"
    position = str(line.end)
    if line.size > LINE_BYTES_MAX:
        reason = f"the line has {line.size:,} bytes, the limit is {LINE_BYTES_MAX:,}"
        return Bad(place, reason, position, line.size)
    try:
        memory = cast("Remember", parse(Remember, line.data))
    except MnemosynedError as error:
        reason = error.message.replace("the body", "the line")
        return Bad(place, f"{reason} ({error.code})", position, line.size)
    id = memory.id or repetitions.id_of(line, timed=memory.created_at is not None)
    identified = msgspec.structs.replace(memory, id=id)
    return Item(identified, place, position, line.size)
