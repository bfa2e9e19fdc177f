"""Listening: on a Unix socket, claimed by one daemon at a time for its own user alone, and on TCP."""

from __future__ import annotations

import errno
import fcntl
import os
import resource
import socket
import stat
import struct
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from mnemosyned.daemon.http.protocol import SOCKET, Access
from mnemosyned.errors import DatabaseInUse, InvalidRequest
from mnemosyned.logs import logger
from mnemosyned.paths import SOCKET_PATH_BYTES_MAX, require_usable_path

if TYPE_CHECKING:
    from mnemosyned.daemon.http.tcp import Certificate


BACKLOG = 1024
DESCRIPTORS_RESERVED = 64
"""Descriptors for the database, its readers, helping processes and the log."""

log = logger()


def bind_tcp(
    host: str,
    port: int,
    *,
    named: str,
    field: str,
    advice: str = "choose another port",
    joins: bool = False,
) -> socket.socket:
    """Return a socket that listens on a TCP address; port 0 is a free one.

    With `joins`, another process of this user may listen there already: the kernel shares the
    connections among them. Raises `InvalidRequest` with the address, `named`, and `advice`.
    """
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    listener = socket.socket(family, socket.SOCK_STREAM)
    try:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, joins)
        listener.bind((host, port))
        # From here on others may join; before, the address had to be free.
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
        listener.listen(BACKLOG)
    except OSError as error:
        listener.close()
        raise InvalidRequest(
            f"{named} cannot be used: {error.strerror}; {advice}", field=field
        ) from error
    listener.settimeout(0)
    return listener


@contextmanager
def listen_on_socket(path: Path) -> Iterator[socket.socket]:
    """Listen on a Unix socket, for this user alone, in a block.

    A stale socket file is replaced; a lock file keeps other daemons away. Raises `DatabaseInUse` if
    another daemon has the path, and `InvalidRequest` for an unusable path.
    """
    require_usable_path(str(path), field="socket", bytes_max=SOCKET_PATH_BYTES_MAX)
    with _claim_path(path):
        _remove_stale_socket(path)
        with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as listener:
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
                try:  # unless another file is there now
                    if os.path.samestat(path.lstat(), bound):
                        path.unlink()
                except FileNotFoundError:
                    log.warning("socket_was_removed", socket=str(path))


def refused_user_id(connection: socket.socket) -> int | None:
    """Return a Unix client's user id if it is neither this user nor root, else None."""
    credentials = connection.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, 12)
    _, uid, _ = struct.unpack("3i", credentials)
    return None if uid in (0, os.geteuid()) else int(uid)


def count_allowed_connections(wanted: int) -> int:
    """Return how many connections the limit of open files, raised if need be, allows."""
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
    """Lock a socket's path in a block. Raises `DatabaseInUse` and `InvalidRequest`."""
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
    """Create and lock a file; return its descriptor. Raises `DatabaseInUse` for `path`."""
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
    """Delete a socket on which nobody listens. Raises `DatabaseInUse`, `InvalidRequest`."""
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


@dataclass(frozen=True, slots=True)
class Listener:
    """A listening socket and the rules of its clients."""

    sock: socket.socket
    access: Access = SOCKET
    certificate: Certificate | None = None
    """Of those whose clients speak TLS."""
    refused_user: Callable[[socket.socket], int | None] | None = None
    """Returns the user id of a client that is refused, or None; None where any user may connect."""
