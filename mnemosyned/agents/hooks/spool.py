"""Hook calls that wait for the daemon: one file each in a private directory, limited in number and size.

When the directory is full, the oldest calls stay: a loop that runs wild must not push out the
day's work.
"""

from __future__ import annotations

import errno
import os
import stat
import time

from mnemosyned.socket_path import directory

TYPE_CHECKING = False

if TYPE_CHECKING:
    from collections.abc import Callable


FILES_MAX = 2_000
BYTES_MAX = 32 << 20
HANDED_IN_MAX = 50
"""Calls handed in by one hook."""
KEPT_S = 30 * 86_400
"""Age from which a call that no daemon took is given up."""
UNFINISHED_S = 60
"""Age from which a file that was never finished is deleted."""
TEMPORARY = ".tmp-"
WARNED = ".warned"
SET_ASIDE = ".odd-"
"""Beginning of the new name of what is no call, or cannot be read; `mnem doctor` names it."""
_UNREADABLE = frozenset({errno.EACCES, errno.EPERM, errno.ELOOP, errno.ENXIO})
"""Errors of opening a file of another user, a link or a socket."""

_usual = os.path.join(os.path.expanduser("~"), ".local", "state")


def folder() -> str:
    """The directory of the spool, in the state directory."""
    return os.path.join(directory("STATE_DIRECTORY", "XDG_STATE_HOME", _usual), "spool")


def is_empty() -> bool:
    """Whether nothing waits."""
    try:
        return not _waiting(folder())
    except OSError:
        return True


def put(name: str, content: bytes) -> bool:
    """Keep a call, in place of one of the same name; False where there is no room.

    Raises `OSError`.
    """
    place = folder()
    os.makedirs(place, mode=0o700, exist_ok=True)
    sizes = {each: _size(place, each) for each in _waiting(place)}
    sizes.pop(name, None)
    if len(sizes) >= FILES_MAX or sum(sizes.values()) + len(content) > BYTES_MAX:
        return False
    temporary = os.path.join(place, f"{TEMPORARY}{os.getpid()}-{time.time_ns()}")
    flags = os.O_CREAT | os.O_EXCL | os.O_WRONLY | os.O_CLOEXEC
    descriptor = os.open(temporary, flags, 0o600)
    try:
        left = memoryview(content)
        while left:
            left = left[os.write(descriptor, left) :]
    finally:
        os.close(descriptor)
    path = os.path.join(place, name)
    if os.path.isdir(path):
        _set_aside(path)
    os.rename(temporary, path)
    return True


def hand_in(post: Callable[[bytes], int]) -> None:
    """Post what waits, the oldest first, and delete what the daemon took or will never take.

    Two hooks may post the same: the daemon stores nothing twice. Raises what `post` raises.
    What is no file, or cannot be read, is renamed and keeps nothing else from being handed in.
    """
    place = folder()
    handed_in = 0
    for name in _waiting(place):
        if handed_in == HANDED_IN_MAX:
            return
        path = os.path.join(place, name)
        try:
            # A FIFO is not waited for, and a link not followed.
            flags = os.O_RDONLY | os.O_NONBLOCK | os.O_NOFOLLOW | os.O_CLOEXEC
            descriptor = os.open(path, flags)
        except FileNotFoundError:  # another hook was faster
            continue
        except OSError as error:
            if error.errno not in _UNREADABLE:
                raise
            _set_aside(path)
            continue
        status = os.fstat(descriptor)
        if not stat.S_ISREG(status.st_mode):
            os.close(descriptor)
            _set_aside(path)
            continue
        with open(descriptor, "rb") as file:
            content = file.read(BYTES_MAX)
        before = status.st_mtime_ns
        handed_in += 1
        is_old = time.time_ns() - before > KEPT_S * 1_000_000_000
        answer = post(content)
        if answer == 200 or 400 <= answer < 500 or is_old:
            _delete(path, before)
        else:
            return


def _waiting(place: str) -> list[str]:
    """Return the names of waiting calls, the oldest first; delete what was never finished."""
    names = []
    for name in os.listdir(place):
        if name.startswith(TEMPORARY):
            _delete_unfinished(os.path.join(place, name))
        elif not name.startswith("."):
            names.append(name)
    return sorted(names)


def _set_aside(path: str) -> None:
    """Give an entry a name that is not looked at again; it stays where that is not allowed."""
    place, name = os.path.split(path)
    try:
        os.rename(
            path, os.path.join(place, f"{SET_ASIDE}{time.time_ns()}-{name[:100]}")
        )
    except OSError:
        return


def _delete(path: str, before: int) -> None:
    """Delete a file, unless it was replaced meanwhile."""
    try:
        if os.stat(path).st_mtime_ns == before:
            os.unlink(path)
    except FileNotFoundError:
        return


def _delete_unfinished(path: str) -> None:
    try:
        if time.time() - os.stat(path).st_mtime > UNFINISHED_S:
            os.unlink(path)
    except OSError:
        return


def _size(place: str, name: str) -> int:
    try:
        return os.lstat(os.path.join(place, name)).st_size
    except OSError:
        return 0
