"""The address of a daemon, and the idle connections to it."""

from __future__ import annotations

import os
import re
import select
import socket
from collections import deque
from pathlib import Path
from typing import Protocol

from mnemosyned.domain.errors import ForeignDaemon, InvalidRequest
from mnemosyned.paths import form_fault, shown_path
from mnemosyned.socket_path import foreign_owner, socket_path

IDLE_MAX = 4
"""Idle connections a client keeps: each counts against the daemon's limit."""
PORT_MAX = 65_535
_LOOPBACK = r"localhost|127(?:\.\d{1,3}){3}|\[::1\]"
_URL = rf"http://(?P<host>{_LOOPBACK}):(?P<port>\d{{1,5}})/?"


class Address(Protocol):
    """The address of a daemon; `str` shows it to people."""

    @property
    def headers(self) -> bytes:
        """The headers that requests need there."""
        ...

    @property
    def target(self) -> str | tuple[str, int]:
        """The argument of `connect`."""
        ...

    def open(self) -> socket.socket:
        """A socket that is not connected yet."""
        ...

    def check(self, connection: socket.socket) -> None:
        """Check who answers. Raises `ForeignDaemon`."""
        ...


class SocketAddress:
    """A daemon's Unix socket."""

    headers = b"Host: localhost\r\n"

    def __init__(self, path: Path) -> None:
        self.path = path
        self.target = str(path)

    def __str__(self) -> str:
        return self.target

    def open(self) -> socket.socket:
        return socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)

    def check(self, connection: socket.socket) -> None:
        """Check that the daemon belongs to this user, or to root. Raises `ForeignDaemon`."""
        credentials = connection.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, 12)
        uid = foreign_owner(credentials, self.target)
        if uid is not None:
            raise ForeignDaemon(
                f"user {uid} listens on {self.path}, not you: nothing was sent; "
                "use a socket in a directory that only you can write to"
            )


class TcpAddress:
    """A daemon's port on this machine, for those with its token."""

    def __init__(self, url: str, token: str) -> None:
        match = re.fullmatch(_URL, url, re.ASCII | re.IGNORECASE)
        if match is None or int(match["port"]) > PORT_MAX:
            raise ValueError(
                f"{url!r} is not an address of a daemon on this machine; "
                'write it as "http://127.0.0.1:7464"'
            )
        if not re.fullmatch(r"[!-~]+", token):
            raise ValueError("a token is printable ASCII without blanks")
        self._url = url.rstrip("/")
        host = match["host"].lower()
        number: str = "127.0.0.1" if host == "localhost" else host.strip("[]")
        self.target = (number, int(match["port"]))
        authority = f"{host}:{match['port']}"
        self.headers = (
            f"Host: {authority}\r\nAuthorization: Bearer {token}\r\n".encode()
        )

    def __str__(self) -> str:
        return self._url

    def open(self) -> socket.socket:
        family = socket.AF_INET6 if ":" in self.target[0] else socket.AF_INET
        connection = socket.socket(family, socket.SOCK_STREAM)
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        return connection

    def check(self, connection: socket.socket) -> None:
        """Check nothing: TCP does not tell who answers."""


def address_of(
    path: str | os.PathLike[str] | None, url: str | None, token: str | None
) -> Address:
    """The address given, the socket that the environment names, or the usual one.

    Raises `ValueError` for arguments that do not belong together, and `InvalidRequest` for a path
    that can be none.
    """
    if url is None and token is None:
        named = socket_path(os.fspath(path) if path else None)
        if fault := form_fault(named):
            raise InvalidRequest(
                f"the socket {shown_path(named)} cannot be used: {fault}",
                field="socket",
            )
        return SocketAddress(Path(named))
    if path is not None or url is None or token is None:
        raise ValueError("give a socket, or a url and a token")
    return TcpAddress(url, token)


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
