"""TCP on this machine: the address, the token, and who may ask."""

from __future__ import annotations

import hmac
import os
import secrets
import socket
import stat
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from http import HTTPStatus
from pathlib import Path
from typing import TYPE_CHECKING

from mnemosyned.config.addresses import LOCALHOST, tcp_address
from mnemosyned.daemon.server.acceptor import Listener
from mnemosyned.daemon.server.access import check_origin
from mnemosyned.daemon.server.listener import BACKLOG
from mnemosyned.daemon.server.refusals import RequestRefused
from mnemosyned.domain.errors import (
    ConfigInvalid,
    ForeignOrigin,
    InvalidRequest,
    Unauthorized,
)
from mnemosyned.logs import logger

if TYPE_CHECKING:
    from mnemosyned.daemon.server.tls import Certificate

TOKEN_BYTES = 32
TOKEN_CHARS_MIN = 32
TOKEN_CHARS_MAX = 1_000

log = logger()


@contextmanager
def listening_tcp(
    setting: str, *, token_file: Path, certificate: Certificate | None = None
) -> Iterator[Listener]:
    """A listener on the address that `listen` names, for those who know the token.

    With a certificate its clients speak TLS, and any address may be named.

    Raises `ConfigInvalid` for a token that protects nothing, and `InvalidRequest` where the address
    is taken.
    """
    host, port = tcp_address(setting, tls=certificate is not None)
    access = TcpAccess(read_token(token_file), tls=certificate is not None)
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    with socket.socket(family, socket.SOCK_STREAM | socket.SOCK_CLOEXEC) as listener:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            listener.bind((host, port))
            listener.listen(BACKLOG)
        except OSError as error:
            raise InvalidRequest(
                f"listen: {setting} cannot be used: {error.strerror}; choose another port",
                field="listen",
            ) from error
        listener.settimeout(0)
        access.bound_to(host, listener.getsockname()[1])
        log.info("listening", address=access.address, token_file=str(token_file))
        yield Listener(listener, access, certificate)


class TcpAccess:
    """Access over TCP: any program of this machine can connect, and any page of a browser.

    The host is checked for pages whose own name was made to lead here, and the origin for all
    others; the token keeps other users out. With TLS, a browser lets no page use another's name, and
    the daemon has whatever name its certificate says.
    """

    local = False

    def __init__(self, token: str, *, tls: bool = False) -> None:
        self._token = token.encode()
        self._tls = tls
        self._hosts: frozenset[str] = frozenset()
        self.address = ""

    def bound_to(self, host: str, port: int) -> None:
        """Take requests to this address, by its number or as localhost."""
        number = f"[{host}]" if ":" in host else host
        self.address = f"{number}:{port}"
        names = (number, LOCALHOST, "127.0.0.1", "[::1]")
        self._hosts = frozenset(f"{name}:{port}" for name in names)

    def check(self, headers: Mapping[str, str], authority: str | None) -> None:
        """Check the host, the origin and the token. Raises `RequestRefused`."""
        host = headers.get("host", "").lower()
        target = host if authority is None else authority.lower()
        is_known = host in self._hosts and target in self._hosts
        if not (is_known or self._tls):
            raise RequestRefused(
                ForeignOrigin(f"ask for {self.address}; the request names another host")
            )
        if "origin" in headers:
            check_origin(headers["origin"])
        self._check_token(headers.get("authorization", ""))

    def _check_token(self, authorization: str) -> None:
        scheme, _, given = authorization.partition(" ")
        bearer = scheme.lower() == "bearer"
        if bearer and hmac.compare_digest(given.strip().encode(), self._token):
            return
        challenge = 'Bearer realm="mnemosyned"'
        if bearer:
            challenge += ', error="invalid_token"'
        raise RequestRefused(
            Unauthorized("send the daemon's token: Authorization: Bearer TOKEN"),
            HTTPStatus.UNAUTHORIZED,
            (("WWW-Authenticate", challenge),),
        )


def read_token(file: Path) -> str:
    """The token in the file, which is made where there is none.

    Raises `ConfigInvalid` for one that others may read, or that is too short.
    """
    try:
        file.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        _make_token(file)
        descriptor = os.open(file, os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW)
        with os.fdopen(descriptor, encoding="ascii") as opened:
            mode = os.fstat(descriptor)
            token = opened.read(TOKEN_CHARS_MAX).strip()
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigInvalid(
            f"the token in {file} cannot be read: {error}", field="listen"
        ) from error
    if mode.st_uid != os.geteuid() or mode.st_mode & (stat.S_IRWXG | stat.S_IRWXO):
        raise ConfigInvalid(
            f"others may read the token in {file}; delete the file, and a new one is made",
            field="listen",
        )
    if len(token) < TOKEN_CHARS_MIN:
        raise ConfigInvalid(
            f"the token in {file} has under {TOKEN_CHARS_MIN} characters; delete the file, "
            "and a new one is made",
            field="listen",
        )
    return token


def _make_token(file: Path) -> None:
    """Write a new token, whole at once; one that is there stays."""
    fresh = file.with_name(f"{file.name}.{os.getpid()}")
    if file.exists() or file.is_symlink():
        return
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC | os.O_NOFOLLOW
    fresh.unlink(missing_ok=True)
    with os.fdopen(os.open(fresh, flags, 0o600), "w", encoding="ascii") as opened:
        opened.write(secrets.token_urlsafe(TOKEN_BYTES) + "\n")
    try:
        os.link(fresh, file)
    except FileExistsError:  # another daemon was first
        pass
    finally:
        fresh.unlink()
