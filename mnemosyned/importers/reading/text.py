"""Text of unknown encoding as UTF-8: streams, and lines of limited length with their place."""

from __future__ import annotations

import codecs
import io
from collections.abc import Iterator
from dataclasses import dataclass
from typing import BinaryIO, cast

LINE_BYTES_MAX = 16 << 20
"""A longer line is passed over, and said to be too long."""
CHUNK_BYTES = 1 << 18
BEGINNING_BYTES = 8_192
_WIDE = {
    codecs.BOM_UTF16_LE: "utf-16-le",
    codecs.BOM_UTF16_BE: "utf-16-be",
}
LENIENT = "mnemosyned-latin"
"""The error handler that reads bytes which are no UTF-8 as Latin-1."""


def _as_latin(error: UnicodeError) -> tuple[str, int]:
    if not isinstance(error, UnicodeDecodeError):
        raise error
    return error.object[error.start : error.end].decode("cp1252", "replace"), error.end


codecs.register_error(LENIENT, _as_latin)


@dataclass(frozen=True, slots=True)
class Line:
    """A line, with where it begins and where the next one does, in bytes of UTF-8."""

    number: int
    offset: int
    end: int
    data: bytes
    too_long: bool = False

    @property
    def text(self) -> str:
        """The line without its end."""
        return decoded(self.data).rstrip("\r\n")


class _Transcoded(io.RawIOBase):
    """UTF-16 read as UTF-8."""

    def __init__(self, source: BinaryIO, encoding: str) -> None:
        super().__init__()
        self._source = source
        self._decoder = codecs.getincrementaldecoder(encoding)("replace")
        self._waiting = b""

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: object) -> int:
        view = memoryview(cast("bytearray", buffer))
        while not self._waiting:
            data = self._source.read(CHUNK_BYTES)
            text = self._decoder.decode(data, final=not data)
            self._waiting = text.encode("utf-8", "replace")
            if not data and not self._waiting:
                return 0
        size = min(len(view), len(self._waiting))
        view[:size], self._waiting = self._waiting[:size], self._waiting[size:]
        return size

    def close(self) -> None:
        self._source.close()
        super().close()


def as_utf8(stream: BinaryIO) -> BinaryIO:
    """Return a stream's text as UTF-8 without a byte order mark."""
    source = io.BufferedReader(cast("io.RawIOBase", stream), CHUNK_BYTES)
    mark = source.peek(4)[:4]
    for signature, encoding in _WIDE.items():
        if mark.startswith(signature):
            source.read(len(signature))
            wide = _Transcoded(cast("BinaryIO", source), encoding)
            return cast("BinaryIO", io.BufferedReader(wide, CHUNK_BYTES))
    if mark.startswith(codecs.BOM_UTF8):
        source.read(len(codecs.BOM_UTF8))
    return cast("BinaryIO", source)


def is_binary(head: bytes) -> bool:
    """Whether the first bytes of a file are no text."""
    beginning = head[:BEGINNING_BYTES]
    return b"\0" in beginning and not beginning.startswith(tuple(_WIDE))


def decoded(data: bytes) -> str:
    """Return UTF-8 as text, and what is none as Latin-1."""
    return data.decode("utf-8", LENIENT)


def lines_of(stream: BinaryIO, *, offset: int = 0) -> Iterator[Line]:
    """Yield the lines from a byte on; numbers count from there."""
    skip(stream, offset)
    number = 0
    while data := stream.readline(LINE_BYTES_MAX):
        number += 1
        end = offset + len(data)
        too_long = len(data) >= LINE_BYTES_MAX and not data.endswith(b"\n")
        while too_long and (rest := stream.readline(CHUNK_BYTES)):
            end += len(rest)
            if rest.endswith(b"\n"):
                break
        yield Line(number, offset, end, b"" if too_long else data, too_long)
        offset = end


def skip(stream: BinaryIO, size: int) -> None:
    """Read past so many bytes."""
    while size > 0 and (data := stream.read(min(size, CHUNK_BYTES))):
        size -= len(data)
