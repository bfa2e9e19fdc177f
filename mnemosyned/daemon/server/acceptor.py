"""The door: new clients are accepted from every listener while there is room for them."""

from __future__ import annotations

import errno
import select
import socket
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from mnemosyned.daemon.server.access import Access
from mnemosyned.daemon.server.listener import refused_peer
from mnemosyned.logs import logger

if TYPE_CHECKING:
    from mnemosyned.daemon.server.tls import Certificate

ACCEPTED_AT_ONCE = 64
PAUSE_S = 0.05
LOGGED_EVERY_S = 60.0

log = logger()


@dataclass(frozen=True, slots=True)
class Listener:
    """A listening socket and the rules of its clients."""

    sock: socket.socket
    access: Access
    certificate: Certificate | None = None
    """Of those whose clients speak TLS."""


class Acceptor:
    """Accepts clients for the event loop, and pauses where it is full.

    `full` says whether there is no room, `make_room` makes some if it can, and `admit` takes a
    client.
    """

    def __init__(
        self,
        listeners: Sequence[Listener],
        *,
        epoll: select.epoll,
        full: Callable[[], bool],
        make_room: Callable[[], bool],
        admit: Callable[[socket.socket, Listener], None],
    ) -> None:
        self._listeners = {each.sock.fileno(): each for each in listeners}
        self._epoll = epoll
        self._full = full
        self._make_room = make_room
        self._admit = admit
        self._accept_at = 0.0
        self._logged = -LOGGED_EVERY_S
        self.accepting = True
        """Whether new clients are accepted; otherwise they wait in the kernel's backlog."""

    def start(self) -> None:
        """Begin to accept."""
        for fd in self._listeners:
            self._epoll.register(fd, select.EPOLLIN)

    def close(self) -> None:
        """Accept no more."""
        for fd, listener in self._listeners.items():
            self._epoll.unregister(fd)
            listener.sock.close()
        self._listeners.clear()

    def accept(self, fd: int) -> None:
        """Accept the clients that wait at a listener, if the descriptor is one's."""
        listener = self._listeners.get(fd)
        if listener is None:
            return
        for accepted in range(ACCEPTED_AT_ONCE):
            if self._full():
                if accepted:  # whether one more waits is not known; epoll tells
                    return
                if not self._make_room():
                    self._pause(time.monotonic())
                    return
            try:
                sock, _ = listener.sock.accept()
            except BlockingIOError:
                return
            except ConnectionAbortedError:
                continue
            except OSError as error:
                self._cannot_accept(error)
                return
            self._let_in(sock, listener)

    def resume(self, now: float) -> None:
        """Accept again, if there is room."""
        if self.accepting or not self._listeners or now < self._accept_at:
            return
        if not self._full() or self._make_room():
            self.accepting = True
            self._listen(select.EPOLLIN)

    def _let_in(self, sock: socket.socket, listener: Listener) -> None:
        if listener.access.local:
            if (uid := refused_peer(sock)) is not None:
                log.warning("peer_refused", uid=uid)
                sock.close()
                return
        else:
            sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        sock.settimeout(0)
        self._admit(sock, listener)

    def _cannot_accept(self, error: OSError) -> None:
        """Make room, wait a little, and log at most once a minute that no descriptor is left."""
        now = time.monotonic()
        if now - self._logged >= LOGGED_EVERY_S:
            self._logged = now
            reason = errno.errorcode.get(error.errno or 0, str(error.errno))
            log.error("accept_failed", reason=reason)
        self._make_room()
        self._pause(now + PAUSE_S)

    def _pause(self, until: float) -> None:
        """Let new clients wait in the kernel's backlog."""
        self._accept_at = until
        if self.accepting:
            self.accepting = False
            self._listen(0)

    def _listen(self, event: int) -> None:
        for fd in self._listeners:
            self._epoll.modify(fd, event)
