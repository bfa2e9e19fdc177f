"""The address of a daemon, by default its socket, and the idle connections to it."""

from __future__ import annotations

import contextlib
import os
import socket
import struct
import time
from collections import deque

from mnemosyned import socket_path
from mnemosyned.client.http import ClosedOnFailure, foreign_listener, is_quiet
from mnemosyned.errors import ForeignDaemon, InvalidRequest

LISTENER_S = 1.0
"""Time limit to ask who listens on a socket."""
IDLE_MAX = 4
"""Maximum idle connections that a client keeps: each counts toward the daemon's limit."""
IDLE_S = 60.0
"""Seconds for which an idle connection is kept, as the daemon may close it unnoticed in a sleep."""


class Address:
    """The address of a daemon; `str` shows it to people."""

    remedy = "Start it with `mnem start`"
    """What to do where nobody answers."""
    explanation = "see `mnem logs`"
    """Where to look why a daemon does not answer as it should."""
    reset_is_unread = True
    """True if a reset proves that the daemon had not read the whole request, as the kernel resets then."""
    file = ""
    """The path of its socket."""
    memory_name = ""
    """Name of the group whose memory it is, or `your own`, and its URL; empty for a socket."""
    target: str | tuple[str, int]
    """The argument of `connect`."""

    def connect(self, timeout_s: float) -> socket.socket:
        """Return a new connection to the daemon, waiting up to `timeout_s` seconds.

        Raises `OSError`, and `ForeignDaemon` if an untrusted user listens there.
        """
        connection = self.open()
        with ClosedOnFailure(connection):
            # With a full backlog the kernel waits, as long as a send may take, only where the
            # socket blocks; Python's timeout would have it fail at once.
            limit = struct.pack("ll", *divmod(int(timeout_s * 1_000_000), 1_000_000))
            connection.setsockopt(socket.SOL_SOCKET, socket.SO_SNDTIMEO, limit)
            connection.connect(self.target)
            unlimited = struct.pack("ll", 0, 0)
            connection.setsockopt(socket.SOL_SOCKET, socket.SO_SNDTIMEO, unlimited)
            self.check(connection)
        return connection

    @property
    def identity(self) -> str:
        """A text that tells daemons' memories apart, by URL and owner or token; empty for a socket."""
        return ""

    @property
    def headers(self) -> bytes:
        """The header lines to send with a request, as bytes with line breaks."""
        return b"Host: localhost\r\n"

    def open(self) -> socket.socket:
        """Return a new socket of the address's family, not connected yet."""
        raise NotImplementedError

    @property
    def listener(self) -> str:
        """The listening process in words, in parentheses; empty except for a Unix socket."""
        return ""

    def check(self, connection: socket.socket) -> None:
        """Raise `ForeignDaemon` if an untrusted user listens on a Unix socket; else do nothing."""

    def refusal_message(self, words: str) -> str:
        """Return the message for a refused token: here only `words`, the daemon's message."""
        return words


class SocketAddress(Address):
    """The address of a daemon's Unix socket."""

    def __init__(self, path: str) -> None:
        self.file = path
        self.target: str = path

    def __str__(self) -> str:
        return self.target

    @property
    def listener(self) -> str:
        """The process that listens on the socket, as " (process 7)"; empty if unknown."""
        with contextlib.suppress(OSError), self.open() as connection:
            connection.settimeout(LISTENER_S)
            connection.connect(self.target)
            option = socket.SO_PEERCRED
            (pid,) = struct.unpack(
                "i", connection.getsockopt(socket.SOL_SOCKET, option, 4)
            )
            return f" (process {pid})"
        return ""

    def open(self) -> socket.socket:
        """Return a new Unix socket, not connected yet."""
        return socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)

    def check(self, connection: socket.socket) -> None:
        """Raise `ForeignDaemon` unless this user or root listens on the socket."""
        uid = foreign_listener(connection, self.target)
        if uid is not None:
            raise ForeignDaemon(
                f"user {uid} listens on {self.file}, not you: nothing was sent; "
                "use a socket in a directory that only you can write to"
            )


def address_of(
    path: str | os.PathLike[str] | None,
    url: str | None = None,
    token: str | None = None,
    ca: str | os.PathLike[str] | None = None,
    owner: str | None = None,
    *,
    folder: str | None = None,
) -> Address:
    """Return the address of a daemon: its socket at `path`, or its URL.

    Without both, use the environment's address, else the login's for `folder` (by default the
    working directory), else the usual socket. `ca` is the PEM file of a certificate authority,
    `owner` names the memory on a server. Raises `ValueError` for arguments that do not belong
    together, and `InvalidRequest` for an unusable path.
    """
    if (path, url, token, ca) == (None,) * 4:
        url = socket_path.url_from_environment()
        if url is None and (saved := socket_path.connection_for(folder)):
            # Loaded here: most clients ask the socket.
            from mnemosyned.client.remote import remote_of  # noqa: PLC0415

            return remote_of(saved, owner=owner).load_authorities()
    if url is None:
        if (token, ca, owner) != (None,) * 3:
            raise ValueError(
                "token, ca and owner need a server: give its url, or log in with `mnem login`"
            )
        named = socket_path.socket_path(os.fspath(path) if path else None)
        if path or os.environ.get(socket_path.SOCKET_VARIABLE):
            # Loaded here: the usual path needs no check.
            from mnemosyned.paths import path_form_fault, shown_path  # noqa: PLC0415

            if fault := path_form_fault(named):
                raise InvalidRequest(
                    f"the socket {shown_path(named)} cannot be used: {fault}",
                    field="socket",
                )
        return SocketAddress(named)
    if path is not None:
        raise ValueError("give a socket, or a url and a token")
    # Loaded here: most clients ask the socket.
    from mnemosyned.client.remote import remote_daemon  # noqa: PLC0415

    authority = os.fspath(ca) if ca is not None else None
    remote = remote_daemon(url, token=token, ca=authority, owner=owner)
    return remote.load_authorities()


class IdleConnections:
    """A pool of open connections that no call uses; safe to use from several threads and forks."""

    def __init__(self) -> None:
        self._connections: deque[tuple[float, socket.socket]] = deque()
        """Each with the time since boot, sleep included, at which it became idle."""
        self._process = os.getpid()

    def take(self) -> socket.socket | None:
        """Remove and return the newest connection that is still open, or None; close dead and old ones."""
        self._close_inherited()
        while True:  # ends with the last idle one
            try:
                since, connection = self._connections.pop()
            except IndexError:
                return None
            idle_s = time.clock_gettime(time.CLOCK_BOOTTIME) - since
            if idle_s < IDLE_S and is_quiet(connection):
                return connection
            connection.close()  # the daemon closed it, or sent unexpected bytes

    def put(self, connection: socket.socket) -> None:
        """Add a connection to the pool, or close it if the pool is full."""
        self._close_inherited()
        if len(self._connections) < IDLE_MAX:
            now = time.clock_gettime(time.CLOCK_BOOTTIME)
            self._connections.append((now, connection))
        else:
            connection.close()

    def _close_inherited(self) -> None:
        """In a forked process, close inherited connections: the parent's answers would arrive there."""
        if self._process != os.getpid():
            self.close()
            self._process = os.getpid()

    def close(self) -> None:
        """Close all connections in the pool."""
        while self._connections:
            self._connections.pop()[1].close()
