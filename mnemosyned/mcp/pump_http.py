"""HTTP as `mnem mcp` needs it: one POST over a connection to the daemon, with little to load."""

from __future__ import annotations

import select
import socket
import time
from collections.abc import Callable, Iterator
from contextlib import suppress

from mnemosyned.socket_path import foreign_owner

UNAUTHORIZED = 401
IDLE_MAX = 2
"""Idle connections kept: each counts against the daemon's limit."""
ATTEMPTS = 4
"""Attempts to send a message that the daemon hung up on before it had read it."""
RESTART_S = 10.0
"""Time for a daemon that was there before to come back; after a wait in vain calls fail at once."""
RETRY_S = 0.05
HUNG_UP = (
    "the daemon hung up before it answered; look whether it was done, then try again"
)
HEAD_BYTES_MAX = 1 << 16
PIECE_BYTES = 1 << 16


class DaemonLost(Exception):
    """No daemon answers; the message says why."""


class _Unread(Exception):
    """The daemon hung up before it had read the message: it has done nothing of it."""


class Answer:
    """One answer, while its connection is read."""

    def __init__(self, connection: Connection, status: int) -> None:
        self._connection = connection
        self.status = status
        self.headers: dict[str, str] = {}

    @property
    def is_stream(self) -> bool:
        """Whether messages come one by one, as events."""
        return self.headers.get("content-type", "").startswith("text/event-stream")

    @property
    def is_last(self) -> bool:
        """Whether the daemon hangs up after this answer."""
        length = self.headers.get("content-length")
        framed = length is not None or self._is_chunked or self.status == 202
        return not framed or self.headers.get("connection", "").lower() == "close"

    @property
    def _is_chunked(self) -> bool:
        return self.headers.get("transfer-encoding", "").lower() == "chunked"

    def messages(self) -> Iterator[bytes]:
        """Yield each message as it comes. Raises `DaemonLost` if they break off."""
        if self.is_stream:
            yield from events(self._pieces())
            return
        body = b"".join(self._pieces())
        if body.startswith((b'{"jsonrpc"', b"[")):
            yield body
        elif self.status != 202 or body:
            raise DaemonLost(_reason(self.status, body))

    def _pieces(self) -> Iterator[bytes]:
        """Yield the body, as it comes."""
        if self._is_chunked:
            yield from self._chunks()
            return
        length = self.headers.get("content-length")
        if length is None and not self.is_last:
            return
        remaining = int(length) if length is not None else -1
        while remaining:  # ends with the body, or the connection
            piece = self._connection.read_some(
                PIECE_BYTES if remaining < 0 else min(remaining, PIECE_BYTES)
            )
            if not piece:
                if remaining > 0:
                    raise DaemonLost("the daemon hung up within its answer")
                return
            remaining -= len(piece) if remaining > 0 else 0
            yield piece

    def _chunks(self) -> Iterator[bytes]:
        while size := int(self._connection.line().partition(b";")[0] or b"x", 16):
            remaining = size
            while remaining:
                piece = self._connection.read_some(remaining)
                if not piece:
                    raise DaemonLost("the daemon hung up within its answer")
                remaining -= len(piece)
                yield piece
            self._connection.line()
        self._connection.line()


class Way:
    """The way to a daemon; `str` shows it to people."""

    reset_is_unread = False
    """Whether a reset proves that the daemon had not read the message."""
    fields = ""
    """The fields that a head needs there."""

    def open(self) -> socket.socket:
        """Return a new connection.

        Raises `OSError`, and `DaemonLost` where it helps nobody to wait.
        """
        raise NotImplementedError

    def lost(self, error: OSError) -> str:
        """Say that no daemon answers."""
        raise NotImplementedError

    def refused(self) -> str:
        """Say that the daemon does not take this caller."""
        return f"the daemon on {self} refuses this caller"


class SocketWay(Way):
    """The way to a daemon's Unix socket."""

    reset_is_unread = True  # the kernel does it then, and nobody else is on the way
    fields = "Host: localhost\r\n"

    def __init__(self, path: str) -> None:
        self._path = path

    def __str__(self) -> str:
        return self._path

    def open(self) -> socket.socket:
        connection = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        try:
            connection.connect(self._path)
            _check_owner(connection, self._path)
        except BaseException:
            connection.close()
            raise
        return connection

    def lost(self, error: OSError) -> str:
        return (
            f"no daemon answers on {self._path} ({error.strerror or error}). "
            "Start it with `mnem start`"
        )


class Connection:
    """A connection to the daemon."""

    def __init__(self, way: Way) -> None:
        self.socket = way.open()
        self._reset_is_unread = way.reset_is_unread
        self._input = self.socket.makefile("rb")

    @property
    def is_open(self) -> bool:
        """Whether the daemon has neither closed it nor sent unexpected bytes."""
        ready = select.poll()
        ready.register(self.socket, select.POLLIN)
        pending = getattr(self.socket, "pending", None)  # of TLS: what is read already
        return not ready.poll(0) and not (pending and pending())

    def post(self, head: bytes, body: bytes) -> Answer:
        """Send a message and read the head of its answer. Raises `_Unread` and `DaemonLost`."""
        sent = False
        # A daemon that refuses a large body says why before it hangs up.
        with suppress(BrokenPipeError, ConnectionResetError):
            self.socket.sendall(head + body)
            sent = True
        try:
            line = self.line()
        except ConnectionResetError as error:
            if sent and not self._reset_is_unread:
                raise DaemonLost(HUNG_UP) from error
            raise _Unread from error
        if not line:
            if not sent:
                raise _Unread
            raise DaemonLost(HUNG_UP)
        answer = Answer(self, int(line.split()[1]))
        while line := self.line():
            name, _, value = line.decode("latin-1").partition(":")
            answer.headers[name.strip().lower()] = value.strip()
        return answer

    def line(self) -> bytes:
        """The next line without its end."""
        return self._input.readline(HEAD_BYTES_MAX).rstrip(b"\r\n")

    def read_some(self, count: int) -> bytes:
        """Receive what has come, up to a number of bytes; none at the end."""
        return self._input.read1(count)

    def cut(self) -> None:
        """Wake whoever reads; the daemon sees that nobody waits any more."""
        with suppress(OSError):  # that of TLS takes apart what the reader reads with
            socket.socket.shutdown(self.socket, socket.SHUT_RDWR)

    def close(self) -> None:
        """Hang up."""
        self._input.close()
        self.socket.close()


class Daemon:
    """The daemon; safe to use from several threads."""

    def __init__(self, way: Way) -> None:
        self._way = way
        self._idle: list[Connection] = []
        self._was_met = False

    def post(
        self,
        headers: dict[str, str],
        body: bytes,
        *,
        began: Callable[[Connection], None],
    ) -> tuple[Connection, Answer]:
        """Post a message to `/mcp`; `began` is told by which connection. Raises `DaemonLost`."""
        fields = "".join(f"{name}: {value}\r\n" for name, value in headers.items())
        head = (
            f"POST /mcp HTTP/1.1\r\n{self._way.fields}Content-Type: application/json\r\n"
            "Accept: application/json, text/event-stream\r\n"
            f"{fields}Content-Length: {len(body)}\r\n\r\n"
        ).encode("latin-1")
        for _ in range(ATTEMPTS):
            connection = self._connection()
            began(connection)
            try:
                answer = connection.post(head, body)
            except _Unread:
                connection.close()
                continue
            except (DaemonLost, OSError, ValueError, IndexError) as error:
                connection.close()
                raise DaemonLost(str(error)) from error
            if answer.status == UNAUTHORIZED:
                connection.close()
                raise DaemonLost(self._way.refused())
            self._was_met = True
            return connection, answer
        raise DaemonLost(f"the daemon on {self._way} hangs up on every message")

    def give_back(self, connection: Connection) -> None:
        """Keep a connection for the next message, or close it."""
        if len(self._idle) < IDLE_MAX:
            self._idle.append(connection)
        else:
            connection.close()

    def _connection(self) -> Connection:
        while True:  # ends with the last idle one
            try:
                connection = self._idle.pop()
            except IndexError:
                return self._connected()
            if connection.is_open:
                return connection
            connection.close()

    def _connected(self) -> Connection:
        """A new connection; a daemon that was there before is given time to start again."""
        deadline = time.monotonic() + RESTART_S * self._was_met
        while True:  # ends at the deadline
            try:
                return Connection(self._way)
            except OSError as error:
                if time.monotonic() >= deadline:
                    self._was_met = False
                    raise DaemonLost(self._way.lost(error)) from error
            time.sleep(RETRY_S)


def _check_owner(connection: socket.socket, path: str) -> None:
    """Check that the daemon belongs to this user, or to root. Raises `DaemonLost`."""
    credentials = connection.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, 12)
    uid = foreign_owner(credentials, path)
    if uid is not None:
        raise DaemonLost(f"user {uid} listens on {path}, not you: nothing was sent")


def events(pieces: Iterator[bytes]) -> Iterator[bytes]:
    """Yield the data of server-sent events."""
    rest = b""
    data: list[bytes] = []
    for piece in pieces:
        *whole, rest = (rest + piece).split(b"\n")
        for line in whole:
            text = line.rstrip(b"\r")
            if text.startswith(b"data:"):
                data.append(text[5:].lstrip(b" "))
            elif not text and data:
                yield b"".join(data)
                data = []


def _reason(status: int, body: bytes) -> str:
    """The reason in an answer that is not the protocol's, such as that of an older daemon."""
    words = body[:500].decode("utf-8", "replace")
    if status == 404:
        return "the daemon that runs is older than this program; restart it"
    return f"the daemon answered {status}: {words}"
