"""HTTP/1.1 requests, read from bytes as they arrive."""

from __future__ import annotations

import re
from dataclasses import dataclass
from http import HTTPStatus
from typing import NoReturn
from urllib.parse import unquote

HEAD_BYTES_MAX = 256 * 1024
"""A question of 4,096 characters in a URL is 48 KB; a list of names is longer."""
CHUNK_LINE_MAX = 256

_REQUEST_LINE = re.compile(rb"([!#$%&'*+.^_`|~0-9A-Za-z-]+) ([^\x00-\x20\x7f]+) HTTP/1\.([01])")
_HEADER = re.compile(rb"([!#$%&'*+.^_`|~0-9A-Za-z-]+):[ \t]*([^\x00-\x08\x0a-\x1f\x7f]*)")
_CHUNK = re.compile(rb"([0-9A-Fa-f]{1,8})(?:[ \t]*;[^\r\n]*)?")
_LENGTH = re.compile(rb"[0-9]{1,18}")
_HOST = re.compile(r"https?://[^/?]*", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class HttpRequest:
    """A whole request."""

    method: str
    path: str
    query: str
    body: bytes | bytearray
    keep_alive: bool


class RequestRefused(Exception):
    """The bytes are no request that can be answered; the connection must be closed."""

    def __init__(self, status: HTTPStatus, message: str) -> None:
        super().__init__(message)
        self.status = status
        self.message = message


@dataclass(frozen=True, slots=True)
class _Head:
    method: str
    path: str
    query: str
    keep_alive: bool
    length: int | None
    """The bytes of the body; None where it comes in chunks."""
    expects: bool
    """Whether the client waits for `100 Continue` before it sends the body."""


class RequestParser:
    """One connection's requests, one after the other."""

    def __init__(self, *, body_bytes_max: int) -> None:
        self._most = body_bytes_max
        self._buffer = bytearray()
        self._scanned = 0
        self._head: _Head | None = None
        self._body = bytearray()
        self._chunk_left = 0
        self._after_chunk = False
        self._trailer = -1
        """Bytes of trailers so far; negative before the last chunk."""

    @property
    def started(self) -> bool:
        """Whether a part of a request has come."""
        return self._head is not None or bool(self._buffer)

    @property
    def in_body(self) -> bool:
        """Whether the head is whole and the body is not."""
        return self._head is not None

    @property
    def in_chunks(self) -> bool:
        """Whether the body comes in chunks, with no length said before."""
        return self._head is not None and self._head.length is None

    @property
    def body_bytes(self) -> int:
        """The bytes that the body will take; of one in chunks, those that have come."""
        if self._head is None:
            return 0
        return len(self._body) if self._head.length is None else self._head.length

    def take_expectation(self) -> bool:
        """Whether `100 Continue` is to be sent now; true once for each request."""
        if self._head is None or not self._head.expects or self._body or self._buffer:
            return False
        self._head = _Head(
            self._head.method,
            self._head.path,
            self._head.query,
            self._head.keep_alive,
            self._head.length,
            expects=False,
        )
        return True

    def feed(self, data: bytes) -> None:
        """Add what has come."""
        self._buffer += data

    def next(self) -> HttpRequest | None:
        """The next whole request; None until its last byte has come. Raises `RequestRefused`."""
        if self._head is None:
            self._head = self._read_head()
        if self._head is None or not self._read_body(self._head):
            return None
        head, self._head = self._head, None
        body, self._body = self._body, bytearray()
        self._chunk_left, self._after_chunk, self._trailer = 0, False, -1
        return HttpRequest(head.method, head.path, head.query, body, head.keep_alive)

    def _read_head(self) -> _Head | None:
        while self._buffer.startswith(b"\r\n"):  # a blank line before a request is allowed
            del self._buffer[:2]
            self._scanned = 0
        end = self._buffer.find(b"\r\n\r\n", max(0, self._scanned - 3))
        if end < 0:
            if len(self._buffer) > HEAD_BYTES_MAX:
                _refuse_head()
            bare = self._buffer.find(b"\n", self._scanned)
            if bare == 0 or (bare > 0 and self._buffer[bare - 1] != ord("\r")):
                _refuse("a line does not end in CR LF")
            self._scanned = len(self._buffer)
            return None
        if end > HEAD_BYTES_MAX:
            _refuse_head()
        head = bytes(self._buffer[:end])
        del self._buffer[: end + 4]
        self._scanned = 0
        return _parsed(head, self._most)

    def _read_body(self, head: _Head) -> bool:
        if head.length is None:
            return self._read_chunks()
        self._move(head.length - len(self._body))
        return len(self._body) == head.length

    def _move(self, count: int) -> int:
        """Take so many bytes into the body, if they are here; how many it took."""
        if count >= len(self._buffer) and not self._body:
            self._body, self._buffer = self._buffer, self._body
            return len(self._body)
        part = self._buffer[:count]
        self._body += part
        del self._buffer[:count]
        return len(part)

    def _read_chunks(self) -> bool:
        while True:  # each turn takes bytes, or returns
            if self._chunk_left:
                self._chunk_left -= self._move(self._chunk_left)
                if self._chunk_left:
                    return False
                self._after_chunk = True
            end = self._buffer.find(b"\r\n", 0, CHUNK_LINE_MAX)
            if end < 0:
                if len(self._buffer) > CHUNK_LINE_MAX:
                    _refuse("a chunk's size, or a trailer, is too long")
                return False
            line = bytes(self._buffer[:end])
            del self._buffer[: end + 2]
            if self._read_chunk_line(line):
                return True

    def _read_chunk_line(self, line: bytes) -> bool:
        """Take the line that ends a chunk, begins one, or is a trailer; True after the last."""
        if self._after_chunk:
            if line:
                _refuse("a chunk is longer than its size says")
            self._after_chunk = False
        elif self._trailer >= 0:
            self._trailer += len(line) + 2
            if self._trailer > HEAD_BYTES_MAX:
                _refuse_head()
            return not line
        elif not (size := _CHUNK.fullmatch(line)):
            _refuse("a chunk has no size")
        elif chunk := int(size[1], 16):
            if len(self._body) + chunk > self._most:
                _refuse_body(self._most)
            self._chunk_left = chunk
        else:
            self._trailer = 0
        return False


def _parsed(head: bytes, body_bytes_max: int) -> _Head:
    first, *lines = head.split(b"\r\n")
    line = _REQUEST_LINE.fullmatch(first)
    if not line:
        _refuse("its first line is not METHOD PATH HTTP/1.1")
    headers: dict[bytes, bytes] = {}
    for text in lines:
        header = _HEADER.fullmatch(text)
        if not header:
            _refuse("a header is not NAME: VALUE")
        name, value = header[1].lower(), header[2].rstrip(b" \t")
        if name in headers and name in (b"content-length", b"transfer-encoding"):
            _refuse(f"{name.decode()} is sent twice")
        headers[name] = value
    try:
        target = line[2].decode()
        path, _, query = _HOST.sub("", target, count=1).partition("?")
        path = unquote(path, errors="strict")
    except UnicodeDecodeError:
        _refuse("its path is not UTF-8")
    words = {word.strip().lower() for word in headers.get(b"connection", b"").split(b",")}
    return _Head(
        method=line[1].decode(),
        path=path or "/",
        query=query,
        keep_alive=b"close" not in words and (line[3] == b"1" or b"keep-alive" in words),
        length=_body_length(headers, body_bytes_max),
        expects=headers.get(b"expect", b"").lower() == b"100-continue",
    )


def _body_length(headers: dict[bytes, bytes], most: int) -> int | None:
    coding, length = headers.get(b"transfer-encoding"), headers.get(b"content-length")
    if coding is not None:
        if length is not None:
            _refuse("it has both a length and chunks")
        if coding.lower() != b"chunked":
            raise RequestRefused(
                HTTPStatus.NOT_IMPLEMENTED, "its transfer-encoding is not chunked; send it plain"
            )
        return None
    if length is None:
        return 0
    if not _LENGTH.fullmatch(length):
        _refuse("its content-length is no number")
    if int(length) > most:
        _refuse_body(most)
    return int(length)


def _refuse(message: str) -> NoReturn:
    raise RequestRefused(
        HTTPStatus.BAD_REQUEST, f"this is no HTTP request the daemon takes: {message}"
    )


def _refuse_head() -> NoReturn:
    raise RequestRefused(
        HTTPStatus.REQUEST_HEADER_FIELDS_TOO_LARGE,
        f"its headers exceed {HEAD_BYTES_MAX:,} bytes; send fewer, or send the request as a body",
    )


def _refuse_body(most: int) -> NoReturn:
    raise RequestRefused(
        HTTPStatus.REQUEST_ENTITY_TOO_LARGE,
        f"the body exceeds {most:,} bytes; part it, or raise limits.body_bytes_max",
    )
