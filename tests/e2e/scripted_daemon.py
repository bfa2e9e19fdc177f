"""A server in the daemon's place that answers as a test says, connection by connection."""

from __future__ import annotations

import json
import socket
import struct
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from e2e.daemons import WAIT_S

Serve = Callable[[socket.socket], None]
"""What is done with one connection, which is closed afterward."""


def answer(body: object = None, *, status: int = 200) -> bytes:
    """An answer of the daemon; by default an empty log."""
    text = json.dumps({"rows": []} if body is None else body).encode()
    return b"HTTP/1.1 %d OK\r\nContent-Length: %d\r\n\r\n%s" % (status, len(text), text)


def read_request(connection: socket.socket) -> bytes:
    """One request: a head and a JSON object; nothing where the client hung up."""
    request = b""
    while not request.endswith(b"}"):
        data = connection.recv(65536)
        if not data:
            return b""
        request += data
    return request


def saying(*parts: bytes) -> Serve:
    """Read one request for each part, and answer it with that."""

    def serve(connection: socket.socket) -> None:
        for part in parts:
            read_request(connection)
            connection.sendall(part)

    return serve


def reset_unread(connection: socket.socket) -> None:
    """Hang up on a request without reading it."""
    connection.recv(1, socket.MSG_PEEK)
    linger = struct.pack("ii", 1, 0)
    connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, linger)


@contextmanager
def scripted(path: Path, *connections: Serve) -> Iterator[None]:
    """Serve these connections, one after the other."""
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(str(path))
        listener.listen()
        listener.settimeout(WAIT_S)

        def run() -> None:
            for serve in connections:
                connection, _ = listener.accept()
                with connection:
                    connection.settimeout(WAIT_S)
                    serve(connection)

        thread = threading.Thread(target=run)
        thread.start()
        yield
        thread.join(WAIT_S)
        assert not thread.is_alive(), "not every connection was made"
