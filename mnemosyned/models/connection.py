"""Connection to an endpoint: the addresses it may reach, and aborting it from another thread."""

from __future__ import annotations

import socket
import ssl
import threading
from contextlib import suppress
from functools import cached_property
from http.client import HTTPConnection
from ipaddress import ip_address
from typing import Any
from urllib.parse import SplitResult, urlsplit

from mnemosyned.domain.errors import ConfigInvalid, ModelUnavailable


class Address:
    """Address of an endpoint. Raises `ConfigInvalid` for one that is malformed or not allowed."""

    def __init__(self, endpoint: str, *, local_only: bool) -> None:
        parts, port = _parsed(endpoint)
        self.host = parts.hostname or ""
        self.tls = parts.scheme == "https"
        self.port = port or (443 if self.tls else 80)
        self.path = parts.path.rstrip("/")
        self._local_only = local_only
        if local_only:
            try:
                self.resolve()
            except OSError:
                raise ConfigInvalid(
                    f"llm.endpoint: the host {self.host} is not known, so it cannot be this "
                    "machine; correct it, or set llm.local_only to false",
                    field="llm.endpoint",
                ) from None
            except ModelUnavailable as error:
                raise ConfigInvalid(
                    f"llm.endpoint: {error.message}", field="llm.endpoint"
                ) from None

    def resolve(self) -> list[tuple[socket.AddressFamily, Any]]:
        """Return every address of the host, all of them on this machine where that is required.

        Raises `OSError`, and `ModelUnavailable` for a host that is elsewhere.
        """
        try:
            infos = socket.getaddrinfo(self.host, self.port, type=socket.SOCK_STREAM)
        except UnicodeError:  # a label that no name can have
            raise OSError("name not known") from None
        addresses: list[tuple[socket.AddressFamily, Any]] = [
            (family, address) for family, _, _, _, address in infos
        ]
        local = all(_is_loopback(str(host)) for _, (host, *_) in addresses)
        if self._local_only and not local:
            raise ModelUnavailable(
                f"the host {self.host} is not this machine; set llm.local_only to false if "
                "memories may be sent there"
            )
        return addresses

    def refuses(self, error: Exception) -> bool:
        """Whether the certificate was rejected, which no retry mends."""
        return isinstance(error, ssl.SSLCertVerificationError)

    @cached_property
    def trust(self) -> ssl.SSLContext:
        """TLS context with the machine's certificates and checked host names."""
        return ssl.create_default_context()


class EndpointConnection:
    """One connection at a time; `abort` ends it, and any later one, from another thread."""

    def __init__(self, address: Address) -> None:
        self._address = address
        self._lock = threading.Lock()
        self._socket: socket.socket | None = None
        self._aborted = False

    def open(self, timeout_s: float) -> HTTPConnection:
        """Connect to the first address that answers. Raises `OSError`, `ModelUnavailable`."""
        refused: OSError | None = None
        for family, place in self._address.resolve():
            plain = self._hold(socket.socket(family, socket.SOCK_STREAM))
            plain.settimeout(timeout_s)
            try:
                plain.connect(place)
            except OSError as error:
                refused = error
                self.close()
                continue
            return self._speaking(plain)
        raise refused or OSError("the host has no address")

    def set_timeout(self, seconds: float) -> None:
        """Limit the time until the next bytes arrive."""
        if self._socket:
            self._socket.settimeout(seconds)

    def close(self) -> None:
        """Close the present connection."""
        with self._lock:
            held, self._socket = self._socket, None
        if held:
            held.close()

    def abort(self) -> None:
        """Wake the thread that reads or connects; no connection can be opened any more."""
        with self._lock:
            self._aborted = True
            if self._socket:
                # Not the TLS socket's own, which first takes apart what the reader reads with.
                with suppress(OSError):
                    socket.socket.shutdown(self._socket, socket.SHUT_RDWR)

    def _speaking(self, plain: socket.socket) -> HTTPConnection:
        address = self._address
        spoken = plain
        if address.tls:
            spoken = self._hold(
                address.trust.wrap_socket(
                    plain, server_hostname=address.host, do_handshake_on_connect=False
                )
            )
            assert isinstance(spoken, ssl.SSLSocket)  # noqa: S101 for the type checker
            spoken.do_handshake()
        connection = HTTPConnection(address.host, address.port)
        connection.sock = spoken
        connection.auto_open = 0
        return connection

    def _hold(self, held: socket.socket) -> socket.socket:
        with self._lock:
            self._socket = held
            if self._aborted:
                raise ConnectionAbortedError
        return held


def _parsed(endpoint: str) -> tuple[SplitResult, int | None]:
    try:
        parts = urlsplit(endpoint)
        port = parts.port
    except ValueError:
        raise _malformed("is not an address") from None
    if parts.scheme not in ("http", "https") or not parts.hostname:
        raise _malformed("is not an http:// or https:// address")
    if parts.username is not None or parts.password is not None:
        raise _malformed("holds a name or key; put the key in llm.api_key_file")
    printable = endpoint.isascii() and endpoint.isprintable()
    if parts.query or parts.fragment or not printable:
        raise _malformed("has more in it than an address; leave it out")
    return parts, port


def _malformed(problem: str) -> ConfigInvalid:
    # The address is not quoted: a key may be in it.
    return ConfigInvalid(
        f"llm.endpoint {problem}; write it like http://127.0.0.1:8080/v1",
        field="llm.endpoint",
    )


def _is_loopback(address: str) -> bool:
    ip = ip_address(address.partition("%")[0])
    mapped = getattr(ip, "ipv4_mapped", None)
    return bool((mapped or ip).is_loopback)
