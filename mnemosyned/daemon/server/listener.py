"""The Unix socket: claimed by one daemon at a time, and reached by its own user alone."""

from __future__ import annotations

import errno
import fcntl
import os
import resource
import socket
import stat
import struct
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from mnemosyned.domain.errors import DatabaseInUse, InvalidRequest
from mnemosyned.logs import logger
from mnemosyned.paths import SOCKET_PATH_BYTES_MAX, usable_path

BACKLOG = 1024
DESCRIPTORS_RESERVED = 64
"""Descriptors for the database, its readers, helping processes and the log."""

log = logger()


@contextmanager
def listening(path: Path) -> Iterator[socket.socket]:
    """A listening socket that only its owner can reach; one left by a crash is replaced.

    A lock on a file next to it makes the claim atomic: whoever holds the lock may remove, bind and
    unlink. Raises `DatabaseInUse` where another daemon has the path, and `InvalidRequest`.
    """
    usable_path(str(path), field="socket", bytes_max=SOCKET_PATH_BYTES_MAX)
    with _claimed(path):
        _remove_stale(path)
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
                _unlink_own(path, bound)


def refused_peer(connection: socket.socket) -> int | None:
    """The user of a client that is neither of this user nor root; None for one that may come in."""
    credentials = connection.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, 12)
    _, uid, _ = struct.unpack("3i", credentials)
    return None if uid in (0, os.geteuid()) else int(uid)


def connections_allowed(wanted: int) -> int:
    """Number of clients there are descriptors for; raises the soft limit if that helps."""
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
def _claimed(path: Path) -> Iterator[None]:
    """Hold the lock of a socket's path; the kernel drops it with the process."""
    lock = path.with_name(path.name + ".lock")
    try:
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        descriptor = _lock(lock, path)
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


def _lock(lock: Path, path: Path) -> int:
    while True:  # ends: each turn means that a daemon has ended in between
        flags = os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW
        descriptor = os.open(lock, flags, 0o600)
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            if os.path.samestat(os.fstat(descriptor), lock.lstat()):
                return descriptor
        except BlockingIOError:
            os.close(descriptor)
            raise _taken(path) from None
        except FileNotFoundError:  # its owner unlinked it after it was opened here
            pass
        except BaseException:
            os.close(descriptor)
            raise
        os.close(descriptor)


def _taken(path: Path) -> DatabaseInUse:
    return DatabaseInUse(
        f"another daemon listens on {path}; stop it or choose another socket"
    )


def _remove_stale(path: Path) -> None:
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
    raise _taken(path)


def _unlink_own(path: Path, bound: os.stat_result) -> None:
    """Remove the socket, unless another has taken its place since."""
    try:
        if os.path.samestat(path.lstat(), bound):
            path.unlink()
    except FileNotFoundError:
        log.warning("socket_was_removed", socket=str(path))
