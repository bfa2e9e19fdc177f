"""The daemon's socket.

Where it is and whether to trust it, for programs that must start at once, and the environment
variables that lead clients to a daemon behind a URL.
"""

from __future__ import annotations

import os

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
    """Return a standard directory by environment variables, as systemd and XDG define them.

    It is the value of the variable named `systemd`, or else the folder `mnemosyned` in that of
    `xdg` or in `default`. Empty if neither is set and `default` is empty.
    """
    if given := os.environ.get(systemd):
        return given.split(":")[0]
    base = os.environ.get(xdg) or default
    return os.path.join(base, "mnemosyned") if base else ""  # noqa: PTH118


URL_VARIABLE = "MNEMOSYNE_URL"
TOKEN_VARIABLE = "MNEMOSYNE_TOKEN"  # noqa: S105 a name
TOKEN_FILE_VARIABLE = "MNEMOSYNE_TOKEN_FILE"  # noqa: S105 a name
CA_VARIABLE = "MNEMOSYNE_CA"
CLIENT_VARIABLES = (URL_VARIABLE, TOKEN_VARIABLE, TOKEN_FILE_VARIABLE, CA_VARIABLE)
"""Not settings of the daemon: its clients read them."""


def url_from_environment() -> str | None:
    """Return the daemon's URL in the variable `MNEMOSYNE_URL`, or None if it is not set.

    Raises `ValueError` if `MNEMOSYNE_SOCKET` is set as well, as either may be meant.
    """
    url = os.environ.get(URL_VARIABLE)
    if url and os.environ.get(SOCKET_VARIABLE):
        raise ValueError(
            f"{URL_VARIABLE} and {SOCKET_VARIABLE} are both set: unset one of them"
        )
    return url or None
