"""Clients over TCP: the address, the token, and TLS."""

from __future__ import annotations

import hmac
import os
import secrets
import socket
import ssl
import stat
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import NoReturn, Protocol

from mnemosyned.config.settings import LOCALHOST, tcp_address
from mnemosyned.daemon.http.listening import BACKLOG, Listener
from mnemosyned.daemon.http.protocol import (
    RequestRefused,
    bearer_token,
    check_origin,
    token_refusal,
)
from mnemosyned.errors import ConfigInvalid, ForeignOrigin, InvalidRequest
from mnemosyned.logs import logger

TOKEN_BYTES = 32
TOKEN_CHARS_MIN = 32
TOKEN_CHARS_MAX = 1_000

log = logger()


@contextmanager
def listen_on_tcp(
    setting: str, *, tokens: TokenCheck, certificate: Certificate | None = None
) -> Iterator[Listener]:
    """Listen on the address of the setting `listen` while the block runs, for clients with a token.

    With a certificate its clients speak TLS, and any address may be named.

    Raises `InvalidRequest` where the address is taken.
    """
    host, port = tcp_address(setting, tls=certificate is not None)
    access = TcpAccess(tokens, tls=certificate is not None)
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
        access.allow_address(host, listener.getsockname()[1])
        noted = {"token_file": str(tokens.file)} if tokens.file else {}
        log.info("listening", address=access.address, **noted)
        yield Listener(listener, access, certificate)


class TcpAccess:
    """Access over TCP: any program of this machine can connect, and any page of a browser.

    The host is checked for pages whose own name was made to lead here, and the origin for all
    others; the token keeps other users out. With TLS, a browser lets no page use another's name, and
    the daemon has whatever name its certificate says.
    """

    local = False

    def __init__(self, tokens: TokenCheck, *, tls: bool = False) -> None:
        self._tokens = tokens
        self._tls = tls
        self._hosts: frozenset[str] = frozenset()
        self.address = ""

    def allow_address(self, host: str, port: int) -> None:
        """Allow requests to the address that was bound, by its number or as localhost."""
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
        given = bearer_token(headers)
        if given is None or not self._tokens.may_be_valid(given):
            raise token_refusal(self._tokens.advice, given=given is not None)


class TokenCheck(Protocol):
    """A check of tokens that looks nothing up, so that the event loop need not wait."""

    advice: str
    """What to do for those who are refused."""

    file: Path | None
    """Where the token is, if there is one for all."""

    def may_be_valid(self, token: str) -> bool:
        """Return False if a text cannot be a valid token."""
        ...


class DaemonToken:
    """The single token of a daemon without owners, kept in a file."""

    advice = "send the daemon's token: Authorization: Bearer TOKEN"

    def __init__(self, file: Path) -> None:
        """Read the token from the file; create the file if there is none.

        Raises `ConfigInvalid`.
        """
        self.file: Path | None = file
        self._token = read_token(file).encode()

    def may_be_valid(self, token: str) -> bool:
        """Return whether a text is the daemon's token."""
        return hmac.compare_digest(token.encode(), self._token)


def read_token(file: Path) -> str:
    """Return the token in the file; create a file with a new token if there is none.

    Raises `ConfigInvalid` for a token that others may read, or that is too short.
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
    """Write a new token to the file in one step, unless the file exists."""
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


PART_BYTES = 64 * 1024


class Certificate:
    """The daemon's TLS certificate, which can be read again after a renewal."""

    def __init__(self, certificate: Path, key: Path) -> None:
        """Read the PEM files of certificate and key. Raises `ConfigInvalid`."""
        self._files = (certificate, key)
        self._context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        self._context.minimum_version = ssl.TLSVersion.TLSv1_2
        self._context.set_alpn_protocols(["http/1.1"])
        self.read()

    def read(self) -> None:
        """Read the files again, for new clients. Raises `ConfigInvalid`."""

        def refuse_password() -> str:  # nobody is there to type it
            raise OSError("the key is encrypted; decrypt it, and protect the file")

        certificate, key = self._files
        try:
            if key.stat().st_mode & stat.S_IRWXO:
                _refuse_setting(
                    f"others may read {key}; take that right from them", "tls.key"
                )
            self._context.load_cert_chain(certificate, key, password=refuse_password)
        except OSError as error:  # which a mistake in a file is, too
            reason = error.strerror or str(error)
            _refuse_setting(
                f"{certificate} with {key} cannot be used: {reason}", "tls.certificate"
            )

    def channel(self) -> ServerTlsChannel:
        """Return a TLS channel for a new client."""
        return ServerTlsChannel(self._context)


class ServerTlsChannel:
    """TLS of one client: decrypts and encrypts bytes, without sending or receiving any."""

    def __init__(self, context: ssl.SSLContext) -> None:
        self._incoming, self._outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
        self._tls = context.wrap_bio(self._incoming, self._outgoing, server_side=True)

    def open(self, data: bytes) -> bytes | None:
        """Decrypt received bytes; return None until a whole TLS record has come.

        Returns b"" if the client closed TLS or broke its rules; `unsent` may have an alert then.
        """
        self._incoming.write(data)
        parts: list[bytes] = []
        try:
            while part := self._tls.read(PART_BYTES):
                parts.append(part)
        except ssl.SSLWantReadError:
            return b"".join(parts) or None
        except ssl.SSLError:
            pass
        return b"".join(parts)

    def seal(self, data: bytes) -> bytes:
        """Encrypt bytes for the client. Raises `OSError` if TLS has ended."""
        self._tls.write(data)
        return self.unsent()

    def unsent(self) -> bytes:
        """Return bytes of the TLS protocol that are to be sent to the client."""
        return self._outgoing.read()


def _refuse_setting(reason: str, field: str) -> NoReturn:
    """Raise `ConfigInvalid` for a setting."""
    raise ConfigInvalid(f"{field}: {reason}", field=field)
