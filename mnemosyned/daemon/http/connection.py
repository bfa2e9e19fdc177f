"""One client's connection: bytes, responses, deadlines, and memory for request bodies."""

from __future__ import annotations

import select
import socket
from collections import deque
from enum import Enum, auto
from typing import TYPE_CHECKING

from mnemosyned.daemon.http.protocol import HttpProtocol
from mnemosyned.http_messages import Response

if TYPE_CHECKING:
    from mnemosyned.daemon.http.tcp import ServerTlsChannel


RECEIVE_BYTES = 64 * 1024
"""Read at a time, so that a fast sender does not keep others waiting."""


class ConnectionState(Enum):
    """State of a connection, named for the event it waits for."""

    IDLE = auto()  # a request
    HEAD = auto()  # the rest of a request's head
    BODY = auto()  # the rest of its body
    QUEUED = auto()  # memory for its body
    WORKING = auto()  # a thread that answers it
    WRITING = auto()  # its client to read the answer
    CLOSED = auto()


class ClientConnection:
    """A client's connection, owned by the event loop, and while WORKING by a worker thread."""

    def __init__(
        self,
        sock: socket.socket,
        protocol: HttpProtocol,
        *,
        now: float,
        tls: ServerTlsChannel | None = None,
    ) -> None:
        """Take a socket accepted at the monotonic time `now`; `tls` encrypts its bytes."""
        self.sock = sock
        self.fd = sock.fileno()
        self.protocol = protocol
        self.local = protocol.local
        """Whether its client came over the Unix socket."""
        self.state = ConnectionState.IDLE
        self.since = now
        """Start of the state."""
        self.progress = now
        """Time of the last bytes."""
        self.grace_s = 0.05
        """Time it may stay in its state while others wait for a connection."""
        self.reserved = 0
        """Bytes it has reserved of the budget for bodies."""
        self.broken = False
        """Whether its client has hung up."""
        self._output: deque[memoryview] = deque()
        self._tls = tls

    @property
    def output_bytes(self) -> int:
        """Number of response bytes that the client has not taken yet."""
        return sum(len(part) for part in self._output)

    def receive(self) -> bytes | None:
        """Return received bytes, decrypted; b"" after a hang-up, None if nothing whole came."""
        try:
            data = self.sock.recv(RECEIVE_BYTES)
        except BlockingIOError:
            return None
        except OSError:
            return b""
        if self._tls is None or not data:
            return data
        said = self._tls.open(data)
        if answer := self._tls.unsent():
            self._output.append(memoryview(answer))
            self.send()
        return said

    def has_input(self) -> bool:
        """Return True if bytes of the client wait to be received, or if it has hung up."""
        try:
            self.sock.recv(1, socket.MSG_PEEK)
        except BlockingIOError:
            return False
        except OSError:
            return True
        return True

    def respond(self, response: Response, *, last: bool = False) -> None:
        """Queue a response and send what is possible; `last` announces the connection's end."""
        head, body = self.protocol.encode_response(response, last=last)
        if len(body) <= RECEIVE_BYTES:
            self._send_parts(head + body)
        else:
            self._send_parts(head, body)

    def begin_stream(self, response: Response) -> bool:
        """Send the head of a streamed response; return False if it may have no body (HEAD)."""
        self._send_parts(self.protocol.encode_head(response, []))
        return not self.protocol.bodiless

    def send_chunk(self, data: bytes) -> None:
        """Queue a chunk of a streamed response, and send what the socket takes without waiting."""
        self._send_parts(self.protocol.encode_chunk(data))

    def end_stream(self) -> None:
        """Send the bytes that mark the end of a streamed response."""
        if end := self.protocol.encode_chunk(None):
            self._send_parts(end)

    def has_hung_up(self) -> bool:
        """Return whether the client has closed its side of the connection."""
        poll = select.poll()
        poll.register(self.fd, select.POLLRDHUP)
        return bool(poll.poll(0))

    def invite_body(self) -> None:
        """Send `100 Continue` if the client waits for it before it sends the request's body."""
        if interim := self.protocol.continue_response():
            self._send_parts(interim)

    def _send_parts(self, *parts: bytes) -> None:
        """Queue bytes for the client, encrypted if it speaks TLS, and send what is possible."""
        try:
            for data in parts:
                sealed = self._tls.seal(data) if self._tls else data
                self._output.append(memoryview(sealed))
        except OSError:
            self.broken = True
        self.send()

    def send(self) -> bool:
        """Send queued bytes without waiting; return True if any went, drop them on an error."""
        moved = False
        while self._output:
            try:
                count = self.sock.send(self._output[0], socket.MSG_NOSIGNAL)
            except BlockingIOError:
                return moved
            except OSError:
                self.broken = True
                self._output.clear()
                return moved
            moved = True
            if count == len(self._output[0]):
                self._output.popleft()
            else:
                self._output[0] = self._output[0][count:]
        return moved

    def close(self) -> None:
        """Close the socket and drop unsent bytes."""
        self.state = ConnectionState.CLOSED
        self._output.clear()
        self.sock.close()


SMALL_BYTES = 64 * 1024
"""A body up to this size needs no budget."""
LARGEST = 4
"""Number of bodies of the largest size that fit."""


class BodyBudget:
    """Memory budget for large request bodies: reserved before reading, released once answered."""

    def __init__(self, *, body_bytes_max: int) -> None:
        self._body_bytes_max = body_bytes_max
        self._free = LARGEST * body_bytes_max
        self.freed = False
        """Whether room was given back since the last call."""

    def missing_bytes(self, connection: ClientConnection) -> int:
        """Return the bytes to reserve for a request's body, the most for one in chunks."""
        size = connection.protocol.body_bytes
        if connection.reserved or size <= SMALL_BYTES:
            return 0
        # Of a body in chunks nobody knows how much is to come.
        return self._body_bytes_max if connection.protocol.in_chunks else size

    def reserve(self, connection: ClientConnection) -> bool:
        """Reserve memory for a request's body; return False if too little is free."""
        missing = self.missing_bytes(connection)
        if missing > self._free:
            return False
        self._free -= missing
        connection.reserved += missing
        return True

    def release(self, connection: ClientConnection) -> None:
        """Return a connection's reserved bytes to the budget."""
        self._free += connection.reserved
        self.freed = self.freed or connection.reserved > 0
        connection.reserved = 0
