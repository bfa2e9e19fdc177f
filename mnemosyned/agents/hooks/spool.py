"""Hook calls that wait for a daemon: one file each in a private directory, limited in number and size.

Each daemon has a directory of its own, so that no call reaches another memory.

When the directory is full, the oldest calls stay: a loop that runs wild must not push out the
day's work.
"""

from __future__ import annotations

import errno
import os
import stat
import time

from mnemosyned.client.http import LIMITED
from mnemosyned.socket_path import make_private_folder, standard_directory

TYPE_CHECKING = False

if TYPE_CHECKING:
    from collections.abc import Callable


OK = 200
REFUSED = frozenset(range(400, 500)) - {408, LIMITED}
"""Statuses with which the daemon refuses a call for ever; not 408, a call that came too slowly."""
FILES_MAX = 2_000
BYTES_MAX = 32 << 20
HANDED_IN_MAX = 50
"""Calls handed in by one hook."""
KEPT_S = 30 * 86_400
"""Age from which a call that no daemon took is deleted."""
UNFINISHED_S = 60
"""Age from which an unfinished file is deleted."""
TEMPORARY = ".tmp-"
WARNED = ".warned"
"""Beginning of the names of files whose times are those of the last warnings, one file per cause."""
LOST = ".lost"
"""File whose size is the number of calls that were lost since the last warning."""
SET_ASIDE = ".odd-"
"""Prefix for entries that are no calls or cannot be read; `mnem doctor` reports them."""
_UNREADABLE = frozenset({errno.EACCES, errno.EPERM, errno.ELOOP, errno.ENXIO})
"""Errors of opening a file of another user, a link or a socket."""


def folder(daemon: str = "") -> str:
    """Return the path of the spool for a daemon, by default the one of this machine."""
    usual = os.path.join(os.path.expanduser("~"), ".local", "state")
    base = standard_directory("STATE_DIRECTORY", "XDG_STATE_HOME", usual)
    return os.path.join(base, f"spool@{daemon}" if daemon else "spool")


def folders() -> list[str]:
    """Return the paths of all spools: the local daemon's, even if missing, then each server's."""
    own = folder()
    base = os.path.dirname(own)
    try:
        names = sorted(os.listdir(base))
    except OSError:
        names = []
    return [own] + [
        os.path.join(base, name) for name in names if name.startswith("spool@")
    ]


def list_waiting(place: str) -> list[str]:
    """Return the sorted names of waiting calls, none if unreadable; delete abandoned temporary files."""
    try:
        return _clean_and_list(place)
    except OSError:
        return []


def age_s(place: str, mark: str) -> float:
    """Return the seconds since `touch` was called for the file `mark`; infinity if never."""
    try:
        return abs(time.time() - os.stat(os.path.join(place, mark)).st_mtime)
    except OSError:
        return float("inf")


def touch(place: str, mark: str) -> bool:
    """Create the empty file `mark` in a spool, or set its time to now; return True on success."""
    path = os.path.join(place, mark)
    try:
        make_private_folder(place)
        os.close(os.open(path, os.O_CREAT | os.O_WRONLY | os.O_CLOEXEC, 0o600))
        os.utime(path)
    except OSError:
        return False
    return True


def count_lost(place: str) -> None:
    """Count a lost call: extend a sparse file by one byte, for which even a full disk has room."""
    try:
        make_private_folder(place)
        flags = os.O_CREAT | os.O_WRONLY | os.O_CLOEXEC
        with open(os.open(os.path.join(place, LOST), flags, 0o600), "wb") as file:
            file.truncate(os.fstat(file.fileno()).st_size + 1)
    except OSError:
        return


def put(place: str, name: str, content: bytes) -> int:
    """Write a call to the file `name` in a spool; return the file's modification time in nanoseconds.

    Returns 0, writing nothing, if the spool is full. Raises `OSError`.
    """
    make_private_folder(place)
    sizes = dict.fromkeys(_clean_and_list(place), 0)
    sizes.pop(name, None)
    for each in sizes:
        try:
            sizes[each] = os.lstat(os.path.join(place, each)).st_size
        except OSError:  # another hook handed it in
            continue
    if len(sizes) >= FILES_MAX or sum(sizes.values()) + len(content) > BYTES_MAX:
        return 0
    temporary = os.path.join(place, f"{TEMPORARY}{os.getpid()}-{time.time_ns()}")
    flags = os.O_CREAT | os.O_EXCL | os.O_WRONLY | os.O_CLOEXEC
    with open(os.open(temporary, flags, 0o600), "wb") as file:
        file.write(content)
        file.flush()
        os.fsync(file.fileno())
        changed_ns = os.fstat(file.fileno()).st_mtime_ns
    path = os.path.join(place, name)
    if os.path.isdir(path):
        _set_aside(path)
    os.rename(temporary, path)
    return changed_ns


def hand_in(place: str, post: Callable[[bytes], int]) -> None:
    """Post calls that wait in a spool, in the order of their names, at most `HANDED_IN_MAX`.

    `post` returns the HTTP status of the answer; its errors are raised. A call that is stored, `REFUSED` or
    too old is deleted; any other status ends the loop. An unreadable entry is renamed, and the loop goes on.
    """
    handed_in = 0
    for name in list_waiting(place):
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
        if not (answer == OK or answer in REFUSED or is_old):
            return
        delete_unchanged(path, before)


def _clean_and_list(place: str) -> list[str]:
    """Return the sorted names of waiting calls; delete temporary files of hooks that were stopped."""
    names = []
    for name in os.listdir(place):
        if name.startswith(TEMPORARY):
            path = os.path.join(place, name)
            try:
                if time.time() - os.stat(path).st_mtime > UNFINISHED_S:
                    os.unlink(path)
            except OSError:
                continue
        elif not name.startswith("."):
            names.append(name)
    return sorted(names)


def _set_aside(path: str) -> None:
    """Rename an entry of the spool, if the file system allows, so that hooks ignore it."""
    place, name = os.path.split(path)
    try:
        os.rename(
            path, os.path.join(place, f"{SET_ASIDE}{time.time_ns()}-{name[:100]}")
        )
    except OSError:
        return


def delete_unchanged(path: str, before: int) -> None:
    """Delete a file unless it was changed: `before` is its modification time in nanoseconds."""
    try:
        if os.stat(path).st_mtime_ns == before:
            os.unlink(path)
    except FileNotFoundError:
        return
