"""TLS in front of other things: a relay to a daemon's socket, and servers that answer as a test says."""

from __future__ import annotations

import select
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
    port: int
    connections: list[socket.socket] = field(default_factory=list)
    """Those that were made, without TLS, in order."""

    @property
    def url(self) -> str:
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
        assert isinstance(sealed, ssl.SSLSocket)
        sealed.settimeout(LONG_S)
        with socket.socket(socket.AF_UNIX) as inside:
            inside.connect(str(path))
            # In one thread: two must not use one connection of TLS at once.
            target_of: dict[socket.socket, socket.socket]
            target_of = {sealed: inside, inside: sealed}
            while target_of:
                ready: list[socket.socket] = [sealed]
                if sealed not in target_of or not sealed.pending():
                    ready, _, _ = select.select([*target_of], [], [], LONG_S)
                if not ready:
                    return
                for source in ready:
                    if data := _received(source):
                        target_of[source].sendall(data)
                    else:
                        target = target_of.pop(source)
                        socket.socket.shutdown(target, socket.SHUT_WR)

    with serving(serve, certificate) as served:
        yield served


def _received(source: socket.socket) -> bytes:
    """Return the next bytes of a connection; none if it has ended, however it did."""
    with suppress(OSError):
        return source.recv(PIECE_BYTES)
    return b""


def reset(connection: socket.socket) -> None:
    """Have a connection end with a reset, whatever was read of it."""
    linger = struct.pack("ii", 1, 0)
    connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, linger)
    descriptor = connection.detach()  # TLS says no farewell
    socket.close(descriptor)
