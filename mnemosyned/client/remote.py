"""A daemon behind a URL: which URLs are taken, where its token comes from, and faults."""

from __future__ import annotations

import os
import re
import socket
import stat

from mnemosyned import socket_path
from mnemosyned.client.address import Address

TYPE_CHECKING = False
"""Type checkers take it for true; `typing`, which has it too, takes 5 ms to load in a hook."""

if TYPE_CHECKING:
    import ssl
    from typing import Self

    from mnemosyned.socket_path import SavedConnection

TOKEN_CHARS_MAX = 1_000
_LOOPBACK = r"localhost|127(?:\.\d{1,3}){3}|\[::1\]"
_HOST = r"[a-z0-9](?:[a-z0-9._-]{0,251}[a-z0-9])?|\[[0-9a-f:.]{2,45}\]"
_URL = rf"(?P<scheme>https?)://(?P<host>{_HOST})(?::(?P<port>\d{{1,5}}))?/?"
_FORMS = "https://HOST:PORT, or http://127.0.0.1:7464 for one on this machine"


class RemoteDaemon(Address):
    """The address of a daemon behind a URL, with its token and certificate authority.

    It is a TCP port of this machine, or on any machine one that proves itself by a certificate.
    """

    explanation = "see `mnem logs`, or write https:// if it has a certificate"

    def __init__(
        self,
        url: str,
        *,
        token: str,
        token_origin: str = "",
        ca: str | None = None,
        owner: str | None = None,
    ) -> None:
        """Take a URL, a token and its origin in words, and the PEM file of an authority.

        `owner` names whose memory it is. Raises `ValueError` for an invalid URL, http:// to another
        machine, `ca` with http://, and a name that no owner can have.
        """
        scheme, host, port = _parse_url(url)
        self.url = url.rstrip("/")
        self.tls = scheme == "https"
        if self.tls:
            self.remedy = "Check the address, and that the daemon runs there"
            self.explanation = "see the daemon's log there"
            self.reset_is_unread = False  # whoever is on the way may have reset it
        self.port = port or 443
        self.authority = f"{host}:{port}" if port else host
        """What `Host` says."""
        is_name = host == "localhost" and not self.tls
        self.host = "127.0.0.1" if is_name else host.strip("[]")
        """A name or a number, without brackets."""
        self.target: tuple[str, int] = (self.host, self.port)
        self.token = token
        self.token_origin = token_origin
        if ca and not self.tls:
            raise ValueError(f"ca is for https://; {url} has no certificate")
        self.ca = os.path.expanduser(ca) if ca else None  # noqa: PTH111 no such user: as it is
        self.token_file: str | None = None
        """The file that the user named for the token, if any."""
        self.saved: SavedConnection | None = None
        """The login whose daemon it is; None for any other."""
        self._token_time = 0
        self._context: ssl.SSLContext | None = None
        self.owner = owner or os.environ.get(socket_path.OWNER_VARIABLE) or None
        """The owner of the memory, such as a group; None for the token's own and recall of its groups."""
        if self.owner and not re.fullmatch(r"[!-~]+", self.owner):
            raise ValueError(f"{self.owner!r} is no name of an owner")
        self.memory_name = f"{self.owner or 'your own'}, at {self.url}"

    def __str__(self) -> str:
        return self.url

    @property
    def identity(self) -> str:
        """The daemon's URL with the owner's number, or else with the secret token."""
        memory = f"{self.url} {self.owner_number or self.token}"
        return f"{memory} {self.owner}" if self.owner else memory

    @property
    def owner_number(self) -> str:
        """The number of the owner that the token names; empty for a token without one."""
        form = re.match(r"mnt_(\d{1,12})_", self.token)
        return form[1] if form else ""

    def refusal_message(self, words: str) -> str:
        """Return the message for a refused token: its origin, `words`, advice; without a token only `words`."""
        if not self.token:  # of a login
            return words
        advice = f"; or log in again: mnem login {self.url}" if self.saved else ""
        return f"{self.url} refuses the token {self.token_origin}: {words}{advice}"

    @property
    def headers(self) -> bytes:
        """The headers of each request, with the token read again after its file was changed."""
        host = f"Host: {self.authority}\r\n"
        file = self.saved.token_file if self.saved else self.token_file
        if file and os.path.isfile(file):  # noqa: PTH113 a pipe is read once
            try:
                changed = os.stat(file).st_mtime_ns  # noqa: PTH116
            except OSError:
                changed = self._token_time
            if changed != self._token_time:
                self.token = read_token(file)
                self._token_time = changed
        token = f"Authorization: Bearer {self.token}\r\n" if self.token else ""
        owner = f"{socket_path.OWNER_HEADER}: {self.owner}\r\n" if self.owner else ""
        return (host + token + owner).encode()

    def load_authorities(self) -> Self:
        """Load the authorities' certificates for https://, and return the address. Raises `ValueError`."""
        if self.tls:
            # Loaded here: it takes 20 ms, which no call on this machine should pay.
            from mnemosyned.client.tls import tls_context  # noqa: PLC0415

            self._context = tls_context(self.ca)
        return self

    def connect(self, timeout_s: float) -> socket.socket:
        """Renew the token if due; return a new connection, with TLS for https://. Raises `OSError`."""
        self.renew_if_due()
        if not self.tls:
            return super().connect(timeout_s)
        from mnemosyned.client.tls import connect, tls_context  # noqa: PLC0415 as above

        self._context = self._context or tls_context(self.ca)
        return connect(self, self._context, timeout_s)

    def renew_if_due(self) -> None:
        """Renew a login's token when due, and save it; on an error keep the present token."""
        if self.saved is not None and self.saved.is_renewal_due:
            # Loaded here: it is time once in some weeks.
            from mnemosyned.client.login import renew_token  # noqa: PLC0415

            saved = renew_token()
            if saved is not None and saved.url == self.url:
                self.saved = saved

    def open(self) -> socket.socket:
        """Return a new TCP socket for IPv4 or IPv6, not connected yet."""
        family = socket.AF_INET6 if ":" in self.host else socket.AF_INET
        connection = socket.socket(family, socket.SOCK_STREAM)
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        return connection


def remote_daemon(
    url: str,
    *,
    token: str | None = None,
    token_file: str | None = None,
    ca: str | None = None,
    owner: str | None = None,
) -> RemoteDaemon:
    """Return the daemon behind a URL, with its token and certificate authority.

    The token is `token`, or in `token_file`, or in the environment's variable or file. `ca` is a PEM
    file of the authority, by default that of `CA_VARIABLE`, else this machine's authorities apply.
    Raises `ValueError` for an invalid URL, token, token file or owner, and for `ca` with http://.
    """
    _parse_url(url)  # its faults come before those of the token
    chosen, origin, file = _find_token(url, token, token_file)
    if not re.fullmatch(r"[!-~]+", chosen):
        raise ValueError(
            f"a token is printable ASCII without blanks, and that {origin} is not"
        )
    if not ca and url.lower().startswith("https://"):
        ca = os.environ.get(socket_path.CA_VARIABLE) or None
    remote = RemoteDaemon(url, token=chosen, token_origin=origin, ca=ca, owner=owner)
    remote.token_file = file and os.path.realpath(file)
    return remote


def remote_of(saved: SavedConnection, *, owner: str | None = None) -> RemoteDaemon:
    """Return the daemon of the login `saved`, for the memory of `owner`. Raises `ValueError`.

    Without `owner`, the memory is that of the owner in the environment, or else of `saved.group`.
    """
    file = saved.token_file
    remote = RemoteDaemon(
        saved.url,
        token=read_token(file),
        token_origin=f"in {file}",
        ca=saved.ca,
        owner=owner or os.environ.get(socket_path.OWNER_VARIABLE) or saved.group,
    )
    remote.saved = saved
    return remote


def _parse_url(url: str) -> tuple[str, str, int | None]:
    """Return scheme, host and port of a URL; the port of https may be None. Raises `ValueError`."""
    if "@" in url:  # not quoted: it may have a password
        raise ValueError(
            f"the URL of a daemon has no user in it: write {_FORMS}; the token goes by itself"
        )
    match = re.fullmatch(_URL, url, re.ASCII | re.IGNORECASE)
    port = int(match["port"]) if match and match["port"] else None
    if match is None or (port is not None and not 0 < port <= 65_535):
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


def _find_token(
    url: str, token: str | None, token_file: str | None
) -> tuple[str, str, str | None]:
    """Return a token, its origin in words, and its file if any. Raises `ValueError` without a token."""
    if token is not None:
        return token, "given by the program", None
    if not token_file and (token := os.environ.get(socket_path.TOKEN_VARIABLE)):
        return token, f"of {socket_path.TOKEN_VARIABLE}", None
    file = token_file or os.environ.get(socket_path.TOKEN_FILE_VARIABLE)
    if not file:
        raise ValueError(
            f"{url} asks for a token: set {socket_path.TOKEN_VARIABLE}, or name a file that only you can read "
            f"with --token-file or {socket_path.TOKEN_FILE_VARIABLE}"
        )
    file = os.path.expanduser(file)  # noqa: PTH111 no such user: as it is
    return read_token(file), f"in {file}", file


def read_token(file: str) -> str:
    """Return the token in a file, without the blanks around it.

    Raises `ValueError` if it cannot be read or is empty, or if others may read or change it. A group
    may read a file of root, as service managers hand secrets over like that.
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
