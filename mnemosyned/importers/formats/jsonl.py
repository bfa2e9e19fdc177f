"""Memories as JSON lines: each an object with the fields of `remember`."""

from __future__ import annotations

import io
from collections.abc import Iterator
from typing import BinaryIO

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
from mnemosyned.importers.reading.occurrences import Occurrences
from mnemosyned.importers.reading.text import (
    LINE_BYTES_MAX,
    Line,
    as_utf8,
    decoded,
    lines_of,
)
from mnemosyned.verbs.memories import Remember
from mnemosyned.verbs.request import parse


class _Identity(msgspec.Struct):
    """The fields that tell a line from others with the same words."""

    content: object = None
    id: object = None
    created_at: object = None


_identity = msgspec.json.Decoder(_Identity)


class JsonLines(Format):
    """A file with a JSON object a line."""

    name = "jsonl"

    def recognizes(self, source: Source) -> bool:
        head = as_utf8(io.BytesIO(source.head)).read()
        lines = head.split(b"\n")
        return any(map(_is_memory, lines)) or _begins_memory(lines[0])

    def read(self, source: Source, position: str) -> Iterator[Item | Bad]:
        # Ids depend on the lines before: these are read again, without storing them.
        start = int(position or 0)
        occurrences = Occurrences()
        with source.open() as opened, as_utf8(opened) as text:
            for line in _filled_lines(text):
                identity = _identity_of(line)
                id = _id_of(line, identity, occurrences)
                if line.end > start:
                    yield _parsed(line, source, id)


def _filled_lines(text: BinaryIO) -> Iterator[Line]:
    return (line for line in lines_of(text) if line.data.strip() or line.too_long)


def _identity_of(line: Line) -> _Identity:
    try:
        return _identity.decode(line.data)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return _Identity()


def _is_memory(line: bytes) -> bool:
    try:
        return isinstance(_identity.decode(line).content, str)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return False


def _begins_memory(line: bytes) -> bool:
    """Tell whether the beginning of a line that is longer than a head may be a memory."""
    is_cut = len(line) >= HEAD_BYTES - 3
    return is_cut and line.startswith(b"{") and b'"content"' in line


def _id_of(line: Line, identity: _Identity, occurrences: Occurrences) -> str:
    """Return the id of a line without one; equal lines without a time are different memories."""
    if identity.id or identity.content is None:
        return ""
    text = decoded(line.data.strip())
    if identity.created_at:
        return stable_id("jsonl", text)
    return stable_id("jsonl", text, str(occurrences.next(text)))


def _parsed(line: Line, source: Source, id: str) -> Item | Bad:
    place, position = f"{source.name}:{line.number}", str(line.end)
    size = line.end - line.offset
    if line.too_long:
        reason = f"the line is longer than {LINE_BYTES_MAX:,} bytes"
        return Bad(place, reason, position, size)
    try:
        memory = parse(Remember, line.data)
    except MnemosynedError as error:
        reason = error.message.replace("the body", "the line")
        return Bad(place, f"{reason} ({error.code})", position, size)
    identified = msgspec.structs.replace(memory, id=memory.id or id)
    return Item(identified, place, position, size)
