"""HTTP/1.1 for all clients of a daemon: one response, put together from received bytes.

`mnem-hook` and `mnem mcp` start often, so this module loads next to nothing: `http.client` takes
30 ms, `typing` 10.
"""

from __future__ import annotations

import os
import select
import socket
import stat
import struct

TYPE_CHECKING = False
"""Type checkers take it for true; `typing`, which has it too, takes 10 ms to load."""

if TYPE_CHECKING:
    from collections.abc import Iterator


HEAD_BYTES_MAX = 64 * 1024
CHUNK_LINE_BYTES_MAX = 1024
RECEIVED_BYTES = 64 * 1024
"""Bytes asked of a socket at a time."""
TLS_ALERT = b"\x15\x03"
LIMITED = 429
"""The status of a request that did nothing, as its owner has used up a limit for now."""


class Unread(ConnectionError):
    """The daemon closed the connection before it had read the whole request: nothing was done."""


class NoAnswer(ConnectionError):
    """The daemon closed the connection within its answer, or sent an invalid one."""


class SpeaksTls(NoAnswer):
    """A TLS alert came in answer to plain HTTP."""


class HttpResponse:
    """An HTTP response, assembled from the bytes that the caller receives."""

    def __init__(self) -> None:
        self.status = 0
        """0 until the head has come."""
        self.headers: dict[str, str] = {}
        """Values by lower-case name."""
        self.is_complete = False
        self._head = bytearray()
        self._body = bytearray()
        self._remaining = 0
        """Missing bytes of a body with a Content-Length."""
        self._chunks: bytearray | None = None
        """Received bytes of a body in chunks that are no whole chunk yet."""

    @property
    def stays_open(self) -> bool:
        """Whether the server keeps the connection open for another request."""
        return self.headers.get("connection", "").lower() != "close"

    @property
    def limited_s(self) -> int | None:
        """Seconds after which a request with the status `LIMITED` may be sent again; else None."""
        if self.status != LIMITED:
            return None
        wait = self.headers.get("retry-after", "")
        return max(1, int(wait[:9])) if wait.isascii() and wait.isdigit() else 1

    @property
    def body(self) -> bytes:
        """The received part of the body, without the bytes already returned by `take_body`."""
        return bytes(self._body)

    def take_body(self) -> bytes:
        """Return the received bytes of the body that no earlier call has returned."""
        body, self._body = self._body, bytearray()
        return bytes(body)

    def feed(self, data: bytes, *, sent: bool = True) -> None:
        """Add received bytes; empty `data` means that the connection ended.

        Raises `Unread` if it ended before anything was received and the request was not `sent` whole,
        and else `NoAnswer` for an end or an invalid answer.
        """
        if not data:
            raise self.connection_error(sent=sent)
        if not self.status:
            self._head += data
            if self._head.startswith(TLS_ALERT):
                raise SpeaksTls("the answer is an alert of TLS")
            end = self._head.find(b"\r\n\r\n", 0, HEAD_BYTES_MAX)
            if end < 0:
                if len(self._head) >= HEAD_BYTES_MAX:
                    raise NoAnswer("the head of the answer does not end")
                return
            self._read_head(self._head[:end].decode("latin-1"))
            data = bytes(self._head[end + 4 :])
        if self._chunks is None:
            self._body += data
            self._remaining -= len(data)
            self.is_complete = self._remaining <= 0
        else:
            self._chunks += data
            self._read_chunks(self._chunks)

    def connection_error(self, *, sent: bool) -> ConnectionError:
        """Return the error for an early end: `NoAnswer` if bytes came or all was `sent`, else `Unread`."""
        if self._head or sent:
            return NoAnswer("the connection ended before the answer did")
        return Unread("the connection ended before the request was read")

    def _read_head(self, head: str) -> None:
        """Set status, headers and body length from the head of the response. Raises `NoAnswer`."""
        first, *lines = head.split("\r\n")
        for line in lines:
            name, _, value = line.partition(":")
            self.headers[name.lower()] = value.strip()
        try:
            version, status, *_ = first.split(" ")
            self.status = int(status)
            if self.headers.get("transfer-encoding", "").lower() == "chunked":
                self._chunks = bytearray()
            else:
                self._remaining = int(self.headers["content-length"])
        except (ValueError, KeyError):
            version = ""
        if version != "HTTP/1.1" or self._remaining < 0:
            raise NoAnswer(f"this is not an answer of a daemon: {first[:100]!r}")

    def _read_chunks(self, data: bytearray) -> None:
        """Move each whole chunk from the buffer `data` to the body. Raises `NoAnswer`."""
        while (end := data.find(b"\r\n", 0, CHUNK_LINE_BYTES_MAX)) >= 0:
            try:
                size = int(data[:end].partition(b";")[0], 16)
            except ValueError as error:
                raise NoAnswer("the chunks of the answer are garbled") from error
            stop = end + 2 + size
            if len(data) < stop + 2:
                return
            self._body += data[end + 2 : stop]
            del data[: stop + 2]
            if not size:
                self.is_complete = True
                return
        if len(data) >= CHUNK_LINE_BYTES_MAX:
            raise NoAnswer("the chunks of the answer are garbled")


class EventBlocks:
    """The data of server-sent events, assembled from parts of a body."""

    def __init__(self, *, bytes_max: int | None = None) -> None:
        """Set the most bytes that an event may have before its end arrives; None for no limit."""
        self._text = bytearray()
        """The beginning of an event that has not ended."""
        self._bytes_max = bytes_max

    def feed(self, part: bytes) -> Iterator[bytes]:
        """Add a part of a body, and yield the joined data of each event that is complete.

        Raises `NoAnswer` if more than `bytes_max` bytes wait for the end of an event.
        """
        self._text += part.replace(b"\r", b"")
        *blocks, rest = bytes(self._text).split(b"\n\n")
        self._text = bytearray(rest)
        if self._bytes_max is not None and len(rest) > self._bytes_max:
            raise NoAnswer("an event of the stream does not end")
        for block in blocks:
            lines = [each for each in block.split(b"\n") if each.startswith(b"data:")]
            if lines:
                yield b"".join(line[5:].lstrip(b" ") for line in lines)


def send_request(
    connection: socket.socket, request: bytes, *, reset_is_unread: bool = True
) -> HttpResponse:
    """Send a request and return its response as soon as the headers have arrived.

    Raises `Unread` if the request can be sent again, and `NoAnswer`. `reset_is_unread` says that a
    reset connection proves an unread request, as it does on this machine.
    """
    sent = False
    try:
        connection.sendall(request)
        sent = True
    except (BrokenPipeError, ConnectionResetError):
        pass
    response = HttpResponse()
    try:
        while not response.status:
            response.feed(connection.recv(RECEIVED_BYTES), sent=sent)
    except ConnectionResetError as error:
        raise response.connection_error(sent=sent and not reset_is_unread) from error
    return response


def exchange(
    connection: socket.socket,
    request: bytes,
    *,
    reset_is_unread: bool = True,
    bytes_max: int | None = None,
) -> HttpResponse:
    """Send a request and return the whole response. Raises `Unread`, and `NoAnswer` also beyond `bytes_max`."""
    response = send_request(connection, request, reset_is_unread=reset_is_unread)
    received = len(response.body)
    try:
        while not response.is_complete:
            data = connection.recv(RECEIVED_BYTES)
            received += len(data)
            if bytes_max is not None and received > bytes_max:
                raise NoAnswer("the answer is too long")
            response.feed(data)
    except ConnectionResetError as error:
        raise response.connection_error(sent=True) from error
    return response


def receive_parts(connection: socket.socket, response: HttpResponse) -> Iterator[bytes]:
    """Yield the parts of the response's body as they arrive. Raises `NoAnswer`."""
    while True:  # ends with the response
        if part := response.take_body():
            yield part
        if response.is_complete:
            return
        response.feed(connection.recv(RECEIVED_BYTES))


class ClosedOnFailure:
    """A block that closes a connection if it raises anything; `contextlib` takes long to load."""

    def __init__(self, connection: socket.socket) -> None:
        self._connection = connection

    def __enter__(self) -> None:
        pass

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        if kind is not None:
            self._connection.close()


def is_quiet(connection: socket.socket) -> bool:
    """Return True if an idle connection is still open, and the daemon has sent no unexpected bytes."""
    arrivals = select.poll()
    arrivals.register(connection.fileno(), select.POLLIN)
    pending = getattr(connection, "pending", None)  # of TLS: what is read already
    return not arrivals.poll(0) and not (pending and pending())


def foreign_listener(connection: socket.socket, path: str) -> int | None:
    """Return the id of the user who listens on a Unix socket, or None for a trusted user.

    Root and this user are trusted. Root may also ask the daemon of a user who alone can write to the
    directory of the socket.
    """
    credentials = connection.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, 12)
    _, uid, _ = struct.unpack("3i", credentials)
    user = os.geteuid()
    if uid in (0, user):
        return None
    folder = os.stat(os.path.dirname(path))  # noqa: PTH116, PTH120
    others_write = folder.st_mode & (stat.S_IWGRP | stat.S_IWOTH)
    private = folder.st_uid == uid and not others_write
    return None if user == 0 and private else int(uid)
