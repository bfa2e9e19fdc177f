"""A health check over the daemon's own socket, for the watchdog."""

from __future__ import annotations

import socket
from pathlib import Path

from mnemosyned.daemon.server.loop import HEALTH_PATHS

TIMEOUT_S = 5.0
QUESTION = f"GET {HEALTH_PATHS[0]} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n".encode()


def answers(path: Path) -> bool:
    """Ask over the socket; the event loop answers without a thread of the pool."""
    with socket.socket(
        socket.AF_UNIX, socket.SOCK_STREAM | socket.SOCK_CLOEXEC
    ) as probe:
        probe.settimeout(TIMEOUT_S)
        try:
            probe.connect(str(path))
            probe.sendall(QUESTION)
            return probe.recv(64).startswith(b"HTTP/1.1 200 ")
        except OSError:
            return False
