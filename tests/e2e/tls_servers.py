"""TLS in front of other things: a relay to a daemon's socket, and servers that answer as a test says."""

from __future__ import annotations

import socket
import ssl
import struct
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path

from e2e.authorities import Certificate
from e2e.daemons import WAIT_S

PIECE_BYTES = 1 << 16
Serve = Callable[[socket.socket], None]
"""What is done with one connection, which is closed afterward."""


@dataclass(slots=True)
class Served:
    """A server on a port of its own."""

    port: int
    connections: list[socket.socket] = field(default_factory=list)
    """Those that were made, without TLS, in order."""

    @property
    def url(self) -> str:
        """Its URL by a name."""
        return f"https://localhost:{self.port}"


@contextmanager
def serving(serve: Serve, certificate: Certificate | None = None) -> Iterator[Served]:
    """Serve each connection in a thread, over TLS if there is a certificate."""
    context = None
    if certificate:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(certificate.certificate, certificate.key)

    def run(plain: socket.socket) -> None:
        with suppress(OSError), plain:
            plain.settimeout(WAIT_S)
            if context is None:
                serve(plain)
                return
            with context.wrap_socket(plain, server_side=True) as sealed:
                serve(sealed)

    with socket.create_server(("127.0.0.1", 0)) as listener:
        served = Served(listener.getsockname()[1])

        def accept() -> None:
            while True:  # until the listener is shut down
                try:
                    plain, _ = listener.accept()
                except OSError:
                    return
                served.connections.append(plain)
                threading.Thread(target=run, args=(plain,), daemon=True).start()

        thread = threading.Thread(target=accept)
        thread.start()
        try:
            yield served
        finally:
            listener.shutdown(socket.SHUT_RDWR)
            thread.join(WAIT_S)


LONG_S = 6 * WAIT_S


@contextmanager
def relaying(path: Path, certificate: Certificate) -> Iterator[Served]:
    """TLS in front of a daemon's Unix socket, as a reverse proxy has it."""

    def serve(sealed: socket.socket) -> None:
        with socket.socket(socket.AF_UNIX) as inside:
            inside.connect(str(path))
            sealed.settimeout(LONG_S)  # a client says nothing while a long answer comes
            answers = threading.Thread(target=_copy, args=(inside, sealed))
            answers.start()
            _copy(sealed, inside)
            answers.join(WAIT_S)

    with serving(serve, certificate) as served:
        yield served


def _copy(source: socket.socket, target: socket.socket) -> None:
    """Hand bytes on until one side ends."""
    with suppress(OSError):
        while data := source.recv(PIECE_BYTES):
            target.sendall(data)
    with suppress(OSError):
        socket.socket.shutdown(target, socket.SHUT_WR)


def reset(connection: socket.socket) -> None:
    """Have a connection end with a reset, whatever was read of it."""
    linger = struct.pack("ii", 1, 0)
    connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, linger)
    descriptor = connection.detach()  # TLS says no farewell
    socket.close(descriptor)
