"""Listeners.

The Unix socket, claimed by one daemon at a time and reached by its own user alone, and the
acceptance of new clients while there is room.
"""

from __future__ import annotations

import errno
import fcntl
import os
import resource
import select
import socket
import stat
import struct
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from mnemosyned.daemon.http.protocol import Access
from mnemosyned.errors import DatabaseInUse, InvalidRequest
from mnemosyned.logs import logger
from mnemosyned.paths import SOCKET_PATH_BYTES_MAX, require_usable_path

if TYPE_CHECKING:
    from mnemosyned.daemon.http.tcp import Certificate


BACKLOG = 1024
DESCRIPTORS_RESERVED = 64
"""Descriptors for the database, its readers, helping processes and the log."""

log = logger()


@contextmanager
def listen_on_socket(path: Path) -> Iterator[socket.socket]:
    """Listen on a Unix socket that only its owner may use, while the block runs.

    Replaces a stale socket. A lock on a file next to it makes the claim atomic: whoever holds the
    lock may remove, bind and unlink. Raises `DatabaseInUse` if another daemon has the path, and
    `InvalidRequest` for an unusable path.
    """
    require_usable_path(str(path), field="socket", bytes_max=SOCKET_PATH_BYTES_MAX)
    with _claim_path(path):
        _remove_stale_socket(path)
        with socket.socket(
            socket.AF_UNIX, socket.SOCK_STREAM | socket.SOCK_CLOEXEC
        ) as listener:
            umask = os.umask(0o177)
            try:
                listener.bind(str(path))
            finally:
                os.umask(umask)
            bound = path.lstat()
            try:
                listener.listen(BACKLOG)
                listener.settimeout(0)
                yield listener
            finally:
                _unlink_own_socket(path, bound)


def refused_user_id(connection: socket.socket) -> int | None:
    """Return the user id of a Unix socket's client, or None if the client is allowed.

    This user and root are allowed.
    """
    credentials = connection.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, 12)
    _, uid, _ = struct.unpack("3i", credentials)
    return None if uid in (0, os.geteuid()) else int(uid)


def count_allowed_connections(wanted: int) -> int:
    """Return how many connections the limit of open files allows, `wanted` at most.

    Raises the process's soft limit if needed.
    """
    needed = wanted + DESCRIPTORS_RESERVED
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    limit = needed if hard == resource.RLIM_INFINITY else min(needed, hard)
    if soft != resource.RLIM_INFINITY and soft < limit:
        resource.setrlimit(resource.RLIMIT_NOFILE, (limit, hard))
        soft = limit
    if soft == resource.RLIM_INFINITY or soft >= needed:
        return wanted
    allowed = max(1, soft - DESCRIPTORS_RESERVED, soft // 4)
    log.warning(
        "connections_limited",
        connections_max=wanted,
        allowed=allowed,
        descriptors=soft,
        advice="raise the limit of open files (LimitNOFILE, ulimit -Hn)",
    )
    return allowed


@contextmanager
def _claim_path(path: Path) -> Iterator[None]:
    """Hold the lock of a socket's path while the block runs.

    The kernel drops the lock with the process. Raises `DatabaseInUse` and `InvalidRequest`.
    """
    lock = path.with_name(path.name + ".lock")
    try:
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        descriptor = _lock_file(lock, path)
    except OSError as error:
        raise InvalidRequest(
            f"no socket can be made in {path.parent}: {error.strerror}; choose another place",
            field="socket",
        ) from error
    try:
        yield
    finally:
        lock.unlink(missing_ok=True)  # while it is held: a new file has a new lock
        os.close(descriptor)


def _lock_file(lock: Path, path: Path) -> int:
    """Lock the lock file of a socket's path; return its descriptor.

    Raises `DatabaseInUse` if another daemon holds the lock.
    """
    while True:  # ends: each turn means that a daemon has ended in between
        flags = os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW
        descriptor = os.open(lock, flags, 0o600)
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            if os.path.samestat(os.fstat(descriptor), lock.lstat()):
                return descriptor
        except BlockingIOError:
            os.close(descriptor)
            raise _socket_in_use_error(path) from None
        except FileNotFoundError:  # its owner unlinked it after it was opened here
            pass
        except BaseException:
            os.close(descriptor)
            raise
        os.close(descriptor)


def _socket_in_use_error(path: Path) -> DatabaseInUse:
    """Return the error for a socket that another daemon listens on."""
    return DatabaseInUse(
        f"another daemon listens on {path}; stop it or choose another socket"
    )


def _remove_stale_socket(path: Path) -> None:
    """Remove a socket file that nobody listens on. Raises `DatabaseInUse` and `InvalidRequest`."""
    try:
        mode = path.lstat().st_mode
    except FileNotFoundError:
        return
    if not stat.S_ISSOCK(mode):
        raise DatabaseInUse(
            f"{path} exists and is not a socket; choose another socket path"
        )
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as probe:
        probe.settimeout(0)
        try:
            probe.connect(str(path))
        except (ConnectionRefusedError, FileNotFoundError):
            path.unlink(missing_ok=True)
            log.info("stale_socket_replaced", socket=str(path))
            return
        except OSError as error:
            if error.errno != errno.EAGAIN:  # a full backlog: somebody listens
                raise InvalidRequest(
                    f"{path} cannot be used: {error.strerror}; choose another socket path",
                    field="socket",
                ) from error
    raise _socket_in_use_error(path)


def _unlink_own_socket(path: Path, bound: os.stat_result) -> None:
    """Remove the socket file unless it is another file than the `bound` one by now."""
    try:
        if os.path.samestat(path.lstat(), bound):
            path.unlink()
    except FileNotFoundError:
        log.warning("socket_was_removed", socket=str(path))


ACCEPTED_AT_ONCE = 64
PAUSE_S = 0.05
LOGGED_EVERY_S = 60.0


@dataclass(frozen=True, slots=True)
class Listener:
    """A listening socket and the rules of its clients."""

    sock: socket.socket
    access: Access
    certificate: Certificate | None = None
    """Of those whose clients speak TLS."""


class Acceptor:
    """Accepts clients for the event loop, and pauses while the loop has no room.

    `is_full` returns whether the connections are at their limit, `make_room` closes one if it can,
    and `admit` takes an accepted client.
    """

    def __init__(
        self,
        listeners: Sequence[Listener],
        *,
        epoll: select.epoll,
        is_full: Callable[[], bool],
        make_room: Callable[[], bool],
        admit: Callable[[socket.socket, Listener], None],
    ) -> None:
        self._listeners = {each.sock.fileno(): each for each in listeners}
        self._epoll = epoll
        self._is_full = is_full
        self._make_room = make_room
        self._admit = admit
        self._accept_at = 0.0
        self._logged = -LOGGED_EVERY_S
        self.accepting = True
        """Whether new clients are accepted; otherwise they wait in the kernel's backlog."""

    def start(self) -> None:
        """Begin to accept clients."""
        for fd in self._listeners:
            self._epoll.register(fd, select.EPOLLIN)

    def close(self) -> None:
        """Close the listeners: no more clients are accepted."""
        for fd, listener in self._listeners.items():
            self._epoll.unregister(fd)
            listener.sock.close()
        self._listeners.clear()

    def accept(self, fd: int) -> None:
        """Accept the clients that wait at a listener; ignore the descriptor of anything else."""
        listener = self._listeners.get(fd)
        if listener is None:
            return
        for accepted in range(ACCEPTED_AT_ONCE):
            if self._is_full():
                if accepted:  # whether one more waits is not known; epoll tells
                    return
                if not self._make_room():
                    self._pause_accepting(time.monotonic())
                    return
            try:
                sock, _ = listener.sock.accept()
            except BlockingIOError:
                return
            except ConnectionAbortedError:
                continue
            except OSError as error:
                self._handle_accept_error(error)
                return
            self._admit_client(sock, listener)

    def resume(self, now: float) -> None:
        """End a pause if it is over by `now` (monotonic) and there is room."""
        if self.accepting or not self._listeners or now < self._accept_at:
            return
        if not self._is_full() or self._make_room():
            self.accepting = True
            self._watch_listeners(select.EPOLLIN)

    def _admit_client(self, sock: socket.socket, listener: Listener) -> None:
        """Hand a client to the event loop, unless it is another user's on the Unix socket."""
        if listener.access.local:
            if (uid := refused_user_id(sock)) is not None:
                log.warning("peer_refused", uid=uid)
                sock.close()
                return
        else:
            sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        sock.settimeout(0)
        self._admit(sock, listener)

    def _handle_accept_error(self, error: OSError) -> None:
        """Make room and pause after a failed accept; log the error once a minute at most."""
        now = time.monotonic()
        if now - self._logged >= LOGGED_EVERY_S:
            self._logged = now
            reason = errno.errorcode.get(error.errno or 0, str(error.errno))
            log.error("accept_failed", reason=reason)
        self._make_room()
        self._pause_accepting(now + PAUSE_S)

    def _pause_accepting(self, until: float) -> None:
        """Leave new clients in the kernel's backlog until a monotonic time and until there is room.

        They wait in the backlog.
        """
        self._accept_at = until
        if self.accepting:
            self.accepting = False
            self._watch_listeners(0)

    def _watch_listeners(self, event: int) -> None:
        """Let epoll watch the listeners for `event`; 0 for none."""
        for fd in self._listeners:
            self._epoll.modify(fd, event)
