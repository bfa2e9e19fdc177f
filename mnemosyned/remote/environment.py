"""The environment variables that lead clients to a daemon behind a URL."""

from __future__ import annotations

import os

from mnemosyned.socket_path import SOCKET_VARIABLE

URL_VARIABLE = "MNEMOSYNE_URL"
TOKEN_VARIABLE = "MNEMOSYNE_TOKEN"  # noqa: S105 a name
TOKEN_FILE_VARIABLE = "MNEMOSYNE_TOKEN_FILE"  # noqa: S105 a name
CA_VARIABLE = "MNEMOSYNE_CA"
CLIENT_VARIABLES = (URL_VARIABLE, TOKEN_VARIABLE, TOKEN_FILE_VARIABLE, CA_VARIABLE)
"""Not settings of the daemon: its clients read them."""


def url_from_environment() -> str | None:
    """The URL that the environment names; None where it names none.

    Raises `ValueError` where it names a socket as well: a wrong guess would send memories to another
    daemon.
    """
    url = os.environ.get(URL_VARIABLE)
    if url and os.environ.get(SOCKET_VARIABLE):
        raise ValueError(
            f"{URL_VARIABLE} and {SOCKET_VARIABLE} are both set: unset one of them"
        )
    return url or None
