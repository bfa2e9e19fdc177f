"""Directories and files on this machine, and checks of paths that users name."""

from __future__ import annotations

import errno
import os
import time
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import BinaryIO

from mnemosyned.errors import InvalidRequest
from mnemosyned.socket_path import config_path, standard_directory, usual_socket_path

NAME_BYTES_MAX = 255
"""Bytes of one name in a path, on nearly all file systems."""
PATH_BYTES_MAX = 4_095
"""Bytes of a path that the system takes."""
DATABASE_PATH_BYTES_MAX = 512
"""Bytes of a path that SQLite takes, with the suffix of its journal."""
DATABASE_SUFFIX = ".before-restore-20260101T000000Z-journal"
"""The longest suffix of a file next to a database: of a database that a restore set aside."""
SOCKET_PATH_BYTES_MAX = 107
"""Bytes of a path that the system takes for a Unix socket."""
DEPTH_MAX = 256
"""Maximum folders within each other, as Python's own functions for paths call themselves for each."""
SHOWN_CHARS_MAX = 120
_FAULTS = {
    errno.ELOOP: "its symbolic links lead in a circle; name the file itself",
    errno.ENOTDIR: "a file is where it needs a folder; choose another",
    errno.EACCES: "a folder above it is closed to this user; open that, or choose another",
    errno.ENAMETOOLONG: "it is too long for this file system; choose a shorter one",
}


def state_dir() -> Path:
    """Return the default directory for the daemon's data, such as the database."""
    usual = str(Path.home() / ".local" / "state")
    return Path(standard_directory("STATE_DIRECTORY", "XDG_STATE_HOME", usual))


def cache_dir() -> Path:
    """Return the directory for files that the program can create again."""
    usual = str(Path.home() / ".cache")
    return Path(standard_directory("CACHE_DIRECTORY", "XDG_CACHE_HOME", usual))


def models_dir() -> Path:
    """Return the directory in which downloaded language models are kept."""
    return state_dir() / "models"


def token_path() -> Path:
    """Return the path of the file with the daemon's token for requests over TCP."""
    return state_dir() / "token"


def default_config_file() -> Path:
    """Return the path of the configuration file where none is named; it may not exist."""
    return Path(config_path("mnemosyned.yaml"))


def default_socket() -> Path:
    """Return the path of the daemon's Unix socket if the settings name none."""
    return Path(usual_socket_path())


def shipped(folder: str) -> Path:
    """Return the directory of files that come with the program: `migrations`, `config`, `systemd`.

    Raises `FileNotFoundError` if the installation is damaged.
    """
    package = Path(__file__).parent
    for candidate in (package / "_data" / folder, package.parent / folder):
        if candidate.is_dir():
            return candidate
    raise FileNotFoundError(
        f"{folder} is missing next to {package}; install mnemosyned again"
    )


@contextmanager
def replacing_file(path: Path, *, mode: int = 0o600) -> Iterator[BinaryIO]:
    """Yield a new file that atomically replaces `path` after the block. Raises `OSError`."""
    new = path.with_name(f".{path.name}.{os.getpid()}-{time.time_ns()}")
    try:
        with open(new, "xb", opener=partial(os.open, mode=0o600)) as file:
            os.fchmod(file.fileno(), mode)
            yield file
            file.flush()
            os.fsync(file.fileno())
        new.replace(path)
    finally:
        new.unlink(missing_ok=True)


# ---------------------------------------------------------------- named paths


def require_usable_path(
    name: str,
    *,
    field: str | None = None,
    suffix: str = "",
    bytes_max: int = PATH_BYTES_MAX,
) -> Path:
    """Return the path that a user named, with `~` expanded; the file need not exist.

    `suffix` is the longest suffix of files made next to the path, `bytes_max` the limit of both
    together. Raises `InvalidRequest` about `field` for a path that cannot be used.
    """
    if fault := path_fault(name, suffix=suffix, bytes_max=bytes_max):
        raise InvalidRequest(f"{shown_path(name)} cannot be used: {fault}", field=field)
    return Path(name).expanduser()


def path_fault(name: str, *, suffix: str = "", bytes_max: int = PATH_BYTES_MAX) -> str:
    """Return why a path cannot be used on this machine, with advice; empty if it can be used.

    The file need not exist, and nothing is changed. `suffix` is the longest suffix of files made
    next to the path, `bytes_max` the limit of both together.
    """
    if fault := path_form_fault(name, suffix=suffix, bytes_max=bytes_max):
        return fault
    try:
        Path(name).expanduser().stat()
    except FileNotFoundError:
        return ""
    except OSError as error:
        return describe_path_error(error)
    return ""


def path_form_fault(
    name: str, *, suffix: str = "", bytes_max: int = PATH_BYTES_MAX
) -> str:
    """Return why a text cannot be a path on any machine, with advice; empty if it can be one.

    `suffix` is the longest suffix of files made next to the path, `bytes_max` the limit of both
    together. Files are not looked at, only the user named by a `~`.
    """
    if not name:
        return "it is empty; name a file or a folder"
    if "\0" in name:
        return "it contains a NUL character; remove it"
    try:
        path = os.fsencode(Path(name).expanduser())
    except UnicodeEncodeError as error:
        return f"it is not valid Unicode at character {error.start}; choose another"
    except RuntimeError:  # of `expanduser`
        return "its ~ names no known user; write the path in full"
    *folders, last = map(len, path.split(b"/"))
    longest = max([*folders, last + len(suffix)])
    for count, limit, what in (
        (longest, NAME_BYTES_MAX, "a name of {:,} bytes, and {:,} fit"),
        (len(path) + len(suffix), bytes_max, "{:,} bytes, and {:,} fit"),
        (len(folders), DEPTH_MAX, "{:,} folders, and {:,} fit"),
    ):
        if count > limit:
            counted = what.format(count, limit)
            beside = f" with {suffix}, for files beside it" if suffix else ""
            is_socket = bytes_max == SOCKET_PATH_BYTES_MAX
            setting = " with MNEMOSYNE_SOCKET or `mnem config set socket PATH`"
            return (
                f"it has {counted}{beside}; choose a shorter one{setting * is_socket}"
            )
    return ""


def describe_path_error(error: OSError) -> str:
    """Return the reason in a system error about a path, with advice for common ones."""
    return _FAULTS.get(error.errno or 0) or error.strerror or str(error)


def printable_path(path: str | os.PathLike[str]) -> str:
    r"""Return a path as valid Unicode, with bytes that are not UTF-8 as escapes such as `\xff`."""
    encoded = os.fspath(path).encode("utf-8", "surrogateescape")
    return encoded.decode("utf-8", "backslashreplace")


def shown_path(name: str) -> str:
    """Return a path for messages: cut in the middle if long, with unprintable characters escaped."""
    if len(name) > SHOWN_CHARS_MAX:
        half = SHOWN_CHARS_MAX // 2
        name = f"{name[:half]}…{name[-half:]}"
    return "".join(
        char if char.isprintable() else char.encode("unicode_escape").decode()
        for char in name or '""'
    )
