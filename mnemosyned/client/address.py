"""Where a daemon answers, and the connections to it that wait for the next call."""

from __future__ import annotations

import os
import select
import socket
import stat
import struct
from collections import deque
from pathlib import Path

from mnemosyned.domain.errors import ForeignDaemon
from mnemosyned.paths import SOCKET_VARIABLE, default_socket

IDLE_MAX = 4
"""Idle connections a client keeps: each counts against the daemon's limit."""


def socket_path(given: str | os.PathLike[str] | None) -> Path:
    """The socket given, the one that the environment names, or the usual one."""
    path = given or os.environ.get(SOCKET_VARIABLE)
    return Path(path) if path else default_socket()


def check_daemon(connection: socket.socket, path: Path) -> None:
    """Check that the daemon belongs to this user, or to root. Raises `ForeignDaemon`.

    Root may also ask the daemon of another user, if only that user can write to its directory.
    """
    credentials = connection.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, 12)
    _, uid, _ = struct.unpack("3i", credentials)
    if uid in (0, os.geteuid()):
        return
    folder = path.parent.stat()
    private = folder.st_uid == uid and not folder.st_mode & (
        stat.S_IWGRP | stat.S_IWOTH
    )
    if os.geteuid() != 0 or not private:
        raise ForeignDaemon(
            f"user {uid} listens on {path}, not you: nothing was sent; "
            "use a socket in a directory that only you can write to"
        )


class IdleConnections:
    """Connections without a call, the newest used first; safe to use from several threads."""

    def __init__(self) -> None:
        self._sockets: deque[socket.socket] = deque()

    def take(self) -> socket.socket | None:
        """A connection that the daemon has not closed since, or None."""
        while True:  # ends with the last idle one
            try:
                connection = self._sockets.pop()
            except IndexError:
                return None
            if _is_quiet(connection):
                return connection
            connection.close()

    def put(self, connection: socket.socket) -> None:
        """Keep a connection for the next call; close it where enough are kept."""
        if len(self._sockets) < IDLE_MAX:
            self._sockets.append(connection)
        else:
            connection.close()

    def close(self) -> None:
        """Close them all."""
        while self._sockets:
            self._sockets.pop().close()


def _is_quiet(connection: socket.socket) -> bool:
    """Tell whether the daemon has neither closed it nor sent unexpected bytes."""
    arrivals = select.poll()
    arrivals.register(connection, select.POLLIN)
    return not arrivals.poll(0)
