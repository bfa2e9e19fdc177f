"""The daemon of a client: on the local socket, or behind a URL from the environment or a login.

It is for programs that must start at once, so it loads next to nothing.
"""

from __future__ import annotations

import os
import stat
import time

TYPE_CHECKING = False

if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

SOCKET_VARIABLE = "MNEMOSYNE_SOCKET"
SOCKET_NAME = "mnemosyned.sock"


def socket_path(chosen: str | None = None) -> str:
    """Return the path of the daemon's socket: `chosen`, `MNEMOSYNE_SOCKET` or the default."""
    return chosen or os.environ.get(SOCKET_VARIABLE) or usual_socket_path()


def usual_socket_path() -> str:
    """Return the default path of the daemon's Unix socket."""
    runtime = standard_directory("RUNTIME_DIRECTORY", "XDG_RUNTIME_DIR", "")
    usual = os.path.join(os.path.expanduser("~"), ".local", "state")  # noqa: PTH111, PTH118
    folder = runtime or standard_directory("STATE_DIRECTORY", "XDG_STATE_HOME", usual)
    return os.path.join(folder, SOCKET_NAME)  # noqa: PTH118


def standard_directory(systemd: str, xdg: str, default: str) -> str:
    """Return our directory by the variable `systemd` or `xdg`, or else in `default`; empty without any."""
    if given := os.environ.get(systemd):
        return given.split(":")[0]
    base = os.environ.get(xdg, "")
    if not os.path.isabs(base):  # noqa: PTH117
        base = default  # XDG has it ignored: with `~/.config`, each folder would have a memory
    return os.path.join(base, "mnemosyned") if base else ""  # noqa: PTH118


def make_private_folder(path: str) -> None:
    """Create a folder, and its parent, if missing, with access for this user alone. Raises `OSError`."""
    path = os.path.abspath(path)  # noqa: PTH100 a relative one may have no folder above
    for folder in (os.path.dirname(path), path):  # noqa: PTH120 a mode is that of one folder
        os.makedirs(folder, mode=0o700, exist_ok=True)  # noqa: PTH103


URL_VARIABLE = "MNEMOSYNE_URL"
TOKEN_VARIABLE = "MNEMOSYNE_TOKEN"  # noqa: S105 a name
TOKEN_FILE_VARIABLE = "MNEMOSYNE_TOKEN_FILE"  # noqa: S105 a name
CA_VARIABLE = "MNEMOSYNE_CA"
OWNER_VARIABLE = "MNEMOSYNE_OWNER"
OWNER_HEADER = "Mnemosyne-Owner"
"""The header that names whose memory a request is about."""
CLIENT_VARIABLES = (
    URL_VARIABLE,
    TOKEN_VARIABLE,
    TOKEN_FILE_VARIABLE,
    CA_VARIABLE,
    OWNER_VARIABLE,
)
"""Not settings of the daemon: its clients read them."""


def url_from_environment() -> str | None:
    """Return the URL in `MNEMOSYNE_URL`, or None. Raises `ValueError` if `MNEMOSYNE_SOCKET` is set, too."""
    url = os.environ.get(URL_VARIABLE)
    if url and os.environ.get(SOCKET_VARIABLE):
        raise ValueError(
            f"{URL_VARIABLE} and {SOCKET_VARIABLE} are both set: unset one of them"
        )
    return url or None


# ---------------------------------------------------------------- a login on a server

SERVER, LOCAL = "server", "local"
"""The memories that a folder may use, besides that of a group: one's own there, and the one here."""
OWN_MEMORY = "your own, on this machine"
EVERYWHERE = "/"


class SavedConnection:
    """A daemon on a server, saved by `mnem login`, with the choice of memory for each folder."""

    def __init__(self, fields: Mapping[str, Any]) -> None:
        """Take the fields of the file. Raises `KeyError` if one is missing."""
        self.url: str = fields["url"]
        self.token_file: str = fields["token_file"]
        self.ca: str | None = fields.get("ca")
        self.owner: str = fields.get("owner") or ""
        """The owner's name; empty if the server did not say it."""
        self.renew_at: float | None = fields.get("renew_at")
        """When the token is to be renewed, in seconds since 1970; None for never."""
        self.folders: dict[str, str] = fields["folders"]
        """The memory by folder: `SERVER`, `LOCAL` or a group; the nearest folder above counts."""
        self.group: str | None = None
        """The group whose memory the directory of `enter` uses."""

    @property
    def is_renewal_due(self) -> bool:
        """Whether the time to renew the token has come."""
        return self.renew_at is not None and time.time() >= self.renew_at

    def enter(self, directory: str) -> str:
        """Return the memory that a directory uses, `SERVER`, `LOCAL` or a group's name; set `group` by it."""
        path = self._find_choice(os.path.realpath(directory or EVERYWHERE))
        memory = self.folders.get(path, LOCAL)
        self.group = None if memory in (SERVER, LOCAL) else memory
        return memory

    def _find_choice(self, path: str, *, is_main: bool = False) -> str:
        """Return the nearest folder with a choice of memory. A Git worktree has that of its main folder."""
        while path not in self.folders and path != EVERYWHERE:
            main = "" if is_main else main_worktree(path)
            if main and (found := self._find_choice(main, is_main=True)) != EVERYWHERE:
                return found
            path = os.path.dirname(path)  # noqa: PTH120
        return path

    def describe(self, memory: str) -> str:
        """Return the words that say who owns a memory, and at which address it is."""
        if memory == LOCAL:
            return OWN_MEMORY
        owner = "your own" if memory == SERVER else f"that of {memory}"
        return f"{owner}, at {self.url}"


def main_worktree(path: str) -> str:
    """Return the main folder of the Git repository that has a worktree at `path`; empty if none has."""
    link = os.path.join(path, ".git")  # noqa: PTH118
    git = os.path.join(path, read_text(link).removeprefix("gitdir: "))  # noqa: PTH118
    back = os.path.join(git, read_text(os.path.join(git, "gitdir")))  # noqa: PTH118
    main, is_linked, _ = os.path.realpath(git).rpartition("/.git/worktrees/")
    return main if is_linked and os.path.realpath(back) == link else ""


FILE_BYTES_MAX = 256 * 1024
"""Bytes read of a repository's files; a configuration has some hundred."""


def read_text(path: str) -> str:
    """Return the first `FILE_BYTES_MAX` bytes of a regular file as stripped text; empty if unreadable."""
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    except (OSError, ValueError):
        return ""
    try:
        if not stat.S_ISREG(os.fstat(descriptor).st_mode):
            return ""
        return os.read(descriptor, FILE_BYTES_MAX).decode("utf-8", "replace").strip()
    except OSError:
        return ""
    finally:
        os.close(descriptor)


CONFIG_VARIABLE = "MNEMOSYNE_CONFIG"
"""The variable that names the file of settings."""


def config_path(name: str) -> str:
    """Return the usual path of a configuration file, such as `mnemosyned.yaml`."""
    usual = os.path.join(os.path.expanduser("~"), ".config")  # noqa: PTH111, PTH118
    folder = standard_directory("CONFIGURATION_DIRECTORY", "XDG_CONFIG_HOME", usual)
    return os.path.join(folder, name)  # noqa: PTH118


def connection_path() -> str:
    """Return the path of the file in which `mnem login` saves the connection."""
    return config_path("connection.json")


def saved_connection() -> SavedConnection | None:
    """Return the connection saved by `mnem login`; None without one. Raises `ValueError` if unreadable."""
    file = connection_path()
    try:
        with open(file, "rb") as opened:  # noqa: PTH123
            content = opened.read()
    except (FileNotFoundError, NotADirectoryError):
        return None
    except OSError as error:
        raise ValueError(f"{file} cannot be read: {error.strerror}") from error
    # Loaded here: most people have no login.
    import json  # noqa: PLC0415

    try:
        return SavedConnection(json.loads(content))
    except (ValueError, KeyError, TypeError) as error:
        raise ValueError(f"{file} is damaged; run `mnem login URL` again") from error


def working_directory() -> str:
    """Return the working directory; empty if it was deleted."""
    try:
        return os.getcwd()  # noqa: PTH109 `pathlib` takes 10 ms to load
    except OSError:
        return ""


def connection_for(directory: str | None = None) -> SavedConnection | None:
    """Return the connection saved by `mnem login` if a directory's memory is on its server.

    The default is the working directory. Return None, too, if the environment names a URL or a
    socket, which take precedence. Raises `ValueError`.
    """
    if os.environ.get(URL_VARIABLE) or os.environ.get(SOCKET_VARIABLE):
        return None
    saved = saved_connection()
    if saved is None:
        return None
    if directory is None:
        directory = working_directory() or EVERYWHERE
    return None if saved.enter(directory) == LOCAL else saved
