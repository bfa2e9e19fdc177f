"""The daemon's HTTP server around handlers of a test, and clients for it."""

from __future__ import annotations

import socket
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from http.client import HTTPResponse
from pathlib import Path

from e2e.daemons import UnixConnection

from mnemosyned.config.settings import LimitsConfig
from mnemosyned.daemon.http.listening import listen_on_socket
from mnemosyned.daemon.http.server import EventLoop, make_handler
from mnemosyned.daemon.http.workers import OwnerOf
from mnemosyned.daemon.metrics import HealthProbe, ServerActivity
from mnemosyned.http_messages import Resource

WAIT_S = 60.0


@dataclass(frozen=True, slots=True)
class Server:
    """A running server."""

    path: Path
    loop: EventLoop

    def raw(self, data: bytes) -> socket.socket:
        """A connection that has sent these bytes; the caller closes it."""
        connection = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        connection.settimeout(WAIT_S)
        connection.connect(str(self.path))
        connection.sendall(data)
        return connection

    @contextmanager
    def response(
        self, method: str, target: str, headers: Mapping[str, str] | None = None
    ) -> Iterator[HTTPResponse]:
        """The response to a request, not read yet."""
        connection = UnixConnection(self.path)
        try:
            connection.request(method, target, headers=dict(headers or {}))
            yield connection.getresponse()
        finally:
            connection.close()


@contextmanager
def server(
    resources: Mapping[str, Resource],
    *,
    threads: int = 4,
    owner_of: OwnerOf | None = None,
    probe: HealthProbe | None = None,
) -> Iterator[Server]:
    """A server of these resources on a Unix socket; `owner_of` and `probe` as in `EventLoop`."""
    activity = ServerActivity()
    with (
        tempfile.TemporaryDirectory(prefix="mn-") as folder,
        listen_on_socket(Path(folder) / "s") as listener,
        EventLoop(
            [listener],
            answer=make_handler(resources, activity),
            activity=activity,
            limits=LimitsConfig(
                threads=threads, body_bytes_max=1_000_000, connections_max=50
            ),
            owner_of=owner_of,
            probe=probe,
        ) as loop,
    ):
        yield Server(Path(folder) / "s", loop)
