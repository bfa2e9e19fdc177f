"""JSON documents of any size, read value by value with flat memory."""

from __future__ import annotations

import codecs
import io
import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, BinaryIO

from mnemosyned.importers.reading.text import LENIENT, as_utf8

CHUNK_BYTES = 1 << 18
KEYS_MAX = 1_000
VALUE_CHARS_MAX = 64 << 20
"""The longest single value."""
_NEAR_END = 1_024
"""Where an error lies this close to the end of what was read, more text may mend it."""
_SPACE = re.compile(r"[ \t\r\n]*")
_scan = json.JSONDecoder().raw_decode


class JsonBroken(Exception):
    """The text stops being JSON; nothing after it can be read."""


@dataclass(frozen=True, slots=True)
class Element:
    """A member of the document: of its list, or of the list or object under a key."""

    key: str
    """The key at the top; empty where the document is a list."""
    index: int
    """The number of the element within its list, from 0."""
    value: Any


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
        """The keys at the top, as far as it was read."""
        self.bytes_read = 0

    def elements(self) -> Iterator[Element]:
        """Yield the elements of a list; of an object, its values, and the elements of its lists.

        Raises `JsonBroken`.
        """
        opening = self._next()
        if opening == "[":
            yield from self._list("")
        elif opening == "{":
            yield from self._object()
        else:
            raise self._broken("neither a list nor an object begins")
        if self._next():
            raise self._broken("more text follows the end of the document")

    def _object(self) -> Iterator[Element]:
        self._take()
        if self._next() == "}":
            self._take()
            return
        while True:
            key = self._value()
            if not isinstance(key, str) or self._next() != ":":
                raise self._broken("a key is expected")
            self._take()
            self.keys.append(key)
            if self._next() == "[":
                yield from self._list(key)
            else:
                yield Element(key, 0, self._value())
            if self._ends("}"):
                return

    def _list(self, key: str) -> Iterator[Element]:
        self._take()
        if self._next() == "]":
            self._take()
            return
        index = 0
        while True:
            yield Element(key, index, self._value())
            index += 1
            if self._ends("]"):
                return

    def _ends(self, closing: str) -> bool:
        """Whether the container ends here; else a comma leads to the next member."""
        mark = self._next()
        if mark not in (closing, ","):
            raise self._broken("the document is cut off" if not mark else "not JSON")
        self._take()
        return mark == closing

    def _next(self) -> str:
        """Return the next character that is no space; empty at the end."""
        while True:
            match = _SPACE.match(self._text, self._place)
            self._place = match.end() if match else self._place
            if self._place < len(self._text):
                return self._text[self._place]
            if self._ended:
                return ""
            self._read(CHUNK_BYTES)

    def _take(self) -> None:
        self._place += 1

    def _value(self) -> Any:  # noqa: ANN401 any JSON
        if not self._next():
            raise self._broken("the document is cut off")
        while True:
            waiting = len(self._text) - self._place
            if scanned := self._scanned():
                value, self._place = scanned
                return value
            if waiting > VALUE_CHARS_MAX:
                raise self._broken(f"a value exceeds {VALUE_CHARS_MAX:,} characters")
            self._read(max(CHUNK_BYTES, waiting))

    def _scanned(self) -> tuple[Any, int] | None:
        """The value that begins here and its end; None where more has to be read for it."""
        try:
            value, end = _scan(self._text, self._place)
        except json.JSONDecodeError as error:
            is_cut = error.msg.startswith("Unterminated string") or (
                error.pos >= len(self._text) - _NEAR_END
            )
            if is_cut and not self._ended:
                return None
            reason = "the document is cut off" if is_cut else f"not JSON: {error.msg}"
            raise self._broken(reason) from error
        except (RecursionError, ValueError) as error:
            raise self._broken(f"it cannot be read: {error}") from error
        # A number at the end of the text may go on.
        return (value, end) if end < len(self._text) or self._ended else None

    def _read(self, size: int) -> None:
        data = self._stream.read(size)
        self._ended = not data
        self.bytes_read += len(data)
        self._consumed += self._place
        text = self._decoder.decode(data, final=self._ended)
        self._text = self._text[self._place :] + text
        self._place = 0

    def _broken(self, reason: str) -> JsonBroken:
        place = self._consumed + self._place
        return JsonBroken(f"{reason}, at character {place + 1:,}")


@dataclass(frozen=True, slots=True)
class Outline:
    """The beginning of a document."""

    is_list: bool
    keys: frozenset[str]
    """The keys of the document, or of the first object in its list."""


@lru_cache(maxsize=4)
def outline_of(head: bytes) -> Outline | None:
    """Describe a document by its first bytes; None where it is no JSON list or object."""
    with as_utf8(io.BytesIO(head)) as stream:
        text = stream.read().lstrip()
    is_list = text.startswith(b"[")
    inner = text[1:].lstrip() if is_list else text
    if not inner.startswith(b"{"):
        return Outline(is_list, frozenset()) if is_list else None
    reader = JsonReader(io.BytesIO(inner))
    try:
        for _ in zip(reader.elements(), range(KEYS_MAX), strict=False):
            pass
    except JsonBroken:
        pass  # the head ends within it
    return Outline(is_list, frozenset(reader.keys)) if reader.keys else None
