"""A daemon behind a URL.

Which URLs are taken, where its token comes from, and faults in words that say what to do.
"""

from __future__ import annotations

import os
import re
import stat
from typing import NamedTuple

from mnemosyned.socket_path import CA_VARIABLE, TOKEN_FILE_VARIABLE, TOKEN_VARIABLE

HTTPS_PORT = 443
PORT_MAX = 65_535
TOKEN_CHARS_MAX = 1_000
_LOOPBACK = r"localhost|127(?:\.\d{1,3}){3}|\[::1\]"
_HOST = r"[a-z0-9](?:[a-z0-9._-]{0,251}[a-z0-9])?|\[[0-9a-f:.]{2,45}\]"
_URL = rf"(?P<scheme>https?)://(?P<host>{_HOST})(?::(?P<port>\d{{1,5}}))?/?"
_FORMS = "https://HOST:PORT, or http://127.0.0.1:7464 for one on this machine"


class RemoteDaemon(NamedTuple):
    """The URL of a daemon with its parts, token and certificate authority."""

    url: str
    host: str
    """A name or a number, without brackets."""
    port: int
    authority: str
    """What `Host` says."""
    tls: bool
    token: str
    token_origin: str
    """Where the token is from, as messages name it."""
    ca: str | None
    """The PEM file of the authority that signed its certificate; None: those of this machine."""

    def __str__(self) -> str:
        return self.url

    @property
    def identity(self) -> str:
        """A secret text that names the daemon's memory: its URL and token."""
        return f"{self.url} {self.token}"

    def refusal_message(self, words: str) -> str:
        """Return the message for a refused token, with the token's origin.

        `words` are the daemon's own message.
        """
        return f"{self.url} refuses the token {self.token_origin}: {words}"

    @property
    def headers(self) -> bytes:
        """The HTTP headers of each request, `Host` and the token, each with its line break."""
        return (
            f"Host: {self.authority}\r\nAuthorization: Bearer {self.token}\r\n".encode()
        )


def remote_daemon(
    url: str,
    *,
    token: str | None = None,
    token_file: str | None = None,
    ca: str | None = None,
) -> RemoteDaemon:
    """Return the daemon behind a URL, with its token and certificate authority.

    The token is `token`, or in the file `token_file`, or in the environment: `TOKEN_VARIABLE`, or
    the file that `TOKEN_FILE_VARIABLE` names. `ca` is a PEM file of the authority, by default the
    file that `CA_VARIABLE` names, else the authorities of this machine count. Raises `ValueError`
    for an invalid URL, http:// to another machine, a token that is missing or not printable ASCII
    without blanks, a token file that cannot be read or that others may read or change, and `ca`
    with http://.
    """
    scheme, host, port = _parse_url(url)
    tls = scheme == "https"
    number = port or HTTPS_PORT
    authority = f"{host}:{number}" if port else host
    chosen, origin = _find_token(url, token, token_file)
    if not re.fullmatch(r"[!-~]+", chosen):
        raise ValueError(
            f"a token is printable ASCII without blanks, and that {origin} is not"
        )
    if ca and not tls:
        raise ValueError(f"ca is for https://; {url} has no certificate")
    ca_file = ca or os.environ.get(CA_VARIABLE)
    return RemoteDaemon(
        url=url.rstrip("/"),
        host="127.0.0.1" if host == "localhost" and not tls else host.strip("[]"),
        port=number,
        authority=authority,
        tls=tls,
        token=chosen,
        token_origin=origin,
        ca=os.path.expanduser(ca_file) if tls and ca_file else None,  # noqa: PTH111 no such user: as it is
    )


def _parse_url(url: str) -> tuple[str, str, int | None]:
    """Return scheme, host and port of a daemon's URL; the port is None if an https:// URL has none.

    Raises `ValueError` for an invalid URL, and for http:// to another machine.
    """
    if "@" in url:  # not quoted: it may have a password
        raise ValueError(
            f"the URL of a daemon has no user in it: write {_FORMS}; the token goes by itself"
        )
    match = re.fullmatch(_URL, url, re.ASCII | re.IGNORECASE)
    port = int(match["port"]) if match and match["port"] else None
    if match is None or (port is not None and not 0 < port <= PORT_MAX):
        raise ValueError(f"{url!r} is not the address of a daemon; write {_FORMS}")
    scheme, host = match["scheme"].lower(), match["host"].lower()
    if scheme == "http" and not re.fullmatch(_LOOPBACK, host):
        raise ValueError(
            f"over http:// the token would cross the network in the clear: write https://{host}, "
            "or forward the daemon's port with ssh and write http://127.0.0.1:7464"
        )
    if scheme == "http" and port is None:
        raise ValueError(f"{url!r} names no port; write {_FORMS}")
    return scheme, host, port


def _find_token(url: str, token: str | None, token_file: str | None) -> tuple[str, str]:
    """Return the token for a URL, and its origin in words for messages. Raises `ValueError`.

    The first that is given counts: `token`, `token_file`, the environment's token, the
    environment's token file. The URL is only for the message if there is none.
    """
    if token is not None:
        return token, "given by the program"
    if not token_file and (token := os.environ.get(TOKEN_VARIABLE)):
        return token, f"of {TOKEN_VARIABLE}"
    file = token_file or os.environ.get(TOKEN_FILE_VARIABLE)
    if not file:
        raise ValueError(
            f"{url} asks for a token: set {TOKEN_VARIABLE}, or name a file that only you can read "
            f"with --token-file or {TOKEN_FILE_VARIABLE}"
        )
    file = os.path.expanduser(file)  # noqa: PTH111 no such user: as it is
    return read_token(file), f"in {file}"


def read_token(file: str) -> str:
    """Return the token in a file, without the blanks around it.

    Raises `ValueError` if the file cannot be read or has no token, if it belongs to another user
    than this one or root, or if others may read or change it. A group may read a file of root, as
    service managers hand secrets over like that.
    """
    try:
        with open(file, encoding="ascii") as opened:  # noqa: PTH123 a descriptor's path, too
            mode = os.fstat(opened.fileno())
            text = opened.read(TOKEN_CHARS_MAX + 1)
    except (OSError, UnicodeDecodeError) as error:
        reason = getattr(error, "strerror", None) or "it is not ASCII"
        raise ValueError(f"the token file {file} cannot be read: {reason}") from error
    group = stat.S_IRWXG if mode.st_uid else stat.S_IWGRP
    if mode.st_uid not in (0, os.geteuid()) or mode.st_mode & (stat.S_IRWXO | group):
        raise ValueError(
            f"others may read or change the token file {file}: chmod 600 {file}"
        )
    if not text.strip() or len(text) > TOKEN_CHARS_MAX:
        raise ValueError(f"the token file {file} has no token in it")
    return text.strip()
