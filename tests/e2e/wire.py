"""Raw connections to a daemon, for clients that send or read as no proper client does."""

from __future__ import annotations

import json
import re
import socket
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import Any

from e2e.daemons import WAIT_S

SOON_S = 0.1
"""Within this a new client is answered, whatever the others do."""


def connected(address: Path, timeout_s: float = WAIT_S) -> socket.socket:
    connection = socket.socket(socket.AF_UNIX)
    connection.connect(str(address))
    connection.settimeout(timeout_s)
    return connection


@contextmanager
def many(
    address: Path, count: int, *, send: bytes = b""
) -> Iterator[list[socket.socket]]:
    """Connections that have each sent this, as far as the daemon took it."""
    with ExitStack() as stack:
        connections = []
        for _ in range(count):
            connection = stack.enter_context(connected(address))
            connection.settimeout(0.5)
            with suppress(OSError):  # it may have been closed for a newer one
                connection.sendall(send)
            connections.append(connection)
        yield connections


def post(verb: str, **fields: object) -> bytes:
    body = json.dumps(fields).encode()
    return b"POST /v1/%s HTTP/1.1\r\nHost: x\r\nContent-Length: %d\r\n\r\n%s" % (
        verb.encode(),
        len(body),
        body,
    )


def answer(connection: socket.socket) -> tuple[int, Any]:
    """The status and body of the next answer; 0 where the daemon hung up."""
    received = b""
    with suppress(ConnectionResetError):
        while part := connection.recv(1 << 20):
            received += part
            head, _, body = received.partition(b"\r\n\r\n")
            length = re.search(rb"(?i)content-length: (\d+)", head)
            if length and len(body) >= int(length[1]):
                return int(head.split()[1]), json.loads(body)
    return 0, None


def answered_s(address: Path) -> float:
    """How long a new client waits for an answer; the quickest of five, for a busy machine."""
    return min(_answered_s(address) for _ in range(5))


def _answered_s(address: Path) -> float:
    begun = time.monotonic()
    with connected(address) as connection:
        connection.sendall(post("log", limit=1))
        status, _ = answer(connection)
    assert status == 200
    return time.monotonic() - begun
