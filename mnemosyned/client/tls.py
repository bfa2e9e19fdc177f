"""Connections to a daemon behind a URL: TCP, and TLS with the certificate and its name checked."""

from __future__ import annotations

import os
import socket
import ssl
import time

from mnemosyned.client.http import ClosedOnFailure
from mnemosyned.errors import RemoteFault

TYPE_CHECKING = False
"""Type checkers take it for true; `typing`, which has it too, takes 5 ms to load in a hook."""

if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any

    from mnemosyned.client.remote import RemoteDaemon

    Target = tuple[socket.AddressFamily, Any]

CONNECT_S = 10.0
"""Longest wait for a connection, over all addresses of a host."""
HANDSHAKE_S = 10.0
ADDRESSES_MAX = 8
_KEEPALIVE = (
    (socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1),
    (socket.IPPROTO_TCP, socket.TCP_KEEPIDLE, 60),
    (socket.IPPROTO_TCP, socket.TCP_KEEPINTVL, 15),
    (socket.IPPROTO_TCP, socket.TCP_KEEPCNT, 4),
    (socket.IPPROTO_TCP, socket.TCP_USER_TIMEOUT, 120_000),
    (socket.IPPROTO_TCP, socket.TCP_NODELAY, 1),
)
"""A machine that vanished is noticed within two minutes, whatever the call's limit."""
_UNKNOWN_AUTHORITY = frozenset({2, 18, 19, 20, 21})
_OWN_AUTHORITY, _MACHINES_AUTHORITY = -1, -2
_OTHER_NAME = ("is for a name other than {host}", "use a name that the certificate has")
_CERTIFICATE_FAULTS = {
    9: ("is not valid yet", "check this machine's clock"),
    10: ("has expired", "whoever runs the daemon renews it"),
    62: _OTHER_NAME,
    64: _OTHER_NAME,
    _OWN_AUTHORITY: (
        "is not signed by the authority in {ca}",
        "ask whoever runs the daemon for the file of its authority",
    ),
    _MACHINES_AUTHORITY: (
        "is signed by an authority that this machine does not know",
        "name the PEM file of that authority (ca, --ca or MNEMOSYNE_CA)",
    ),
}
"""Fault and advice by the code of OpenSSL's verification, or by ours for unknown authorities."""
_NO_TLS = frozenset(
    {"WRONG_VERSION_NUMBER", "UNKNOWN_PROTOCOL", "HTTP_REQUEST", "RECORD_LAYER_FAILURE"}
)
"""Reasons that OpenSSL gives where the bytes are no TLS at all."""


class TlsSocket(ssl.SSLSocket):
    """A TLS socket that raises `ConnectionError` where `ssl` raises `SSLError`."""

    def send(self, data: Any, flags: int = 0) -> int:  # noqa: ANN401 as its parent
        """Send bytes and return their number. Raises `ConnectionResetError` if it is closed."""
        try:
            return super().send(data, flags)
        except (ssl.SSLWantReadError, ssl.SSLWantWriteError):  # of a non-blocking one
            raise
        except ssl.SSLError as error:
            raise ConnectionResetError(str(error)) from error

    def recv(self, buflen: int = 1024, flags: int = 0) -> bytes:
        """Return up to `buflen` bytes. Raises `ConnectionAbortedError` for a broken record."""
        try:
            return super().recv(buflen, flags)
        except (ssl.SSLWantReadError, ssl.SSLWantWriteError):
            raise
        except ssl.SSLError as error:
            raise ConnectionAbortedError(str(error)) from error


def tls_context(ca: str | None) -> ssl.SSLContext:
    """Return a context that checks certificates and names, by the authority in the PEM file `ca`.

    None trusts the authorities known to this machine. Raises `ValueError` for an unusable file.
    """
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.verify_flags |= ssl.VERIFY_X509_TRUSTED_FIRST
    try:
        if ca is not None:
            context.load_verify_locations(cafile=ca)
        elif (
            (paths := ssl.get_default_verify_paths()).capath
            and paths.openssl_cafile_env not in os.environ
            and any(name.endswith(".0") for name in os.listdir(paths.capath))  # noqa: PTH208 no paths are made
        ):
            # Loading all authorities takes 30 ms; of those by hash OpenSSL reads the one it needs.
            context.load_verify_locations(capath=paths.capath)
        else:
            context.load_default_certs()
    except OSError as error:  # which a mistake in the file is, too
        is_garbled = isinstance(error, ssl.SSLError)
        reason = "it has no certificate in PEM" if is_garbled else error.strerror
        raise ValueError(f"ca: {ca} cannot be used: {reason}") from error
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    context.set_alpn_protocols(["http/1.1"])
    context.sslsocket_class = TlsSocket
    return context


def connect(
    remote: RemoteDaemon, context: ssl.SSLContext, timeout_s: float
) -> socket.socket:
    """Return a TLS connection; each step takes at most `timeout_s` seconds. Raises `RemoteFault`."""
    try:
        addresses = socket.getaddrinfo(
            remote.host, remote.port, type=socket.SOCK_STREAM
        )
    except (OSError, UnicodeError) as error:
        reason = getattr(error, "strerror", None) or str(error)
        raise RemoteFault(
            f"the host of {remote} is not known ({reason}); check its name, and this machine's network"
        ) from error
    tried = [(family, place) for family, *_, place in addresses][:ADDRESSES_MAX]
    plain = _connect_to_any(tried, min(timeout_s, CONNECT_S), remote)
    with ClosedOnFailure(plain):
        plain.settimeout(min(timeout_s, HANDSHAKE_S))
        sealed = context.wrap_socket(
            plain, server_hostname=remote.host, do_handshake_on_connect=False
        )
    try:
        with ClosedOnFailure(sealed):
            sealed.do_handshake()
    except OSError as error:
        raise _handshake_fault(remote, error) from error
    return sealed


def _connect_to_any(
    tried: Sequence[Target], limit_s: float, remote: RemoteDaemon
) -> socket.socket:
    """Return a connection to the first address that answers in its share of `limit_s`. Raises `RemoteFault`."""
    deadline = time.monotonic() + limit_s
    failure: OSError = OSError("the host has no address")
    for position, (family, place) in enumerate(tried):
        plain = socket.socket(family, socket.SOCK_STREAM)
        for level, option, value in _KEEPALIVE:
            plain.setsockopt(level, option, value)
        share = (deadline - time.monotonic()) / (len(tried) - position)
        try:
            with ClosedOnFailure(plain):
                plain.settimeout(max(share, 0.001))
                plain.connect(place)
                return plain
        except OSError as error:
            failure = error
    if isinstance(failure, TimeoutError):
        raise RemoteFault(
            f"{remote} does not answer; check the address, and the firewalls on the way"
        ) from failure
    raise RemoteFault(
        f"no daemon answers on {remote} ({failure.strerror or failure}); check the address, and "
        "that the daemon there has `listen` set and runs"
    ) from failure


def _handshake_fault(remote: RemoteDaemon, error: OSError) -> RemoteFault:
    """Return the fault to raise for `error`, a failed TLS handshake, with advice."""
    if isinstance(error, ssl.SSLCertVerificationError):
        code = error.verify_code
        if code in _UNKNOWN_AUTHORITY:
            code = _OWN_AUTHORITY if remote.ca else _MACHINES_AUTHORITY
        fault, remedy = _CERTIFICATE_FAULTS.get(
            code, ("is refused ({verify})", "whoever runs the daemon has to replace it")
        )
        words = f"the certificate of {{remote}} {fault}: nothing was sent; {remedy}"
        said = words.format(
            remote=remote, ca=remote.ca, host=remote.host, verify=error.verify_message
        )
        return RemoteFault(said, is_foreign=True)
    if isinstance(error, TimeoutError):
        return RemoteFault(
            f"{remote} took the connection, but began no TLS in time; check that this port is the "
            "daemon's, and that it has `tls.certificate` set"
        )
    reason = getattr(error, "reason", None)
    if reason in _NO_TLS:
        return RemoteFault(
            f"{remote} speaks no TLS; check the port, and that the daemon there has "
            "`tls.certificate` set"
        )
    words = str(reason or error.strerror or error).replace("_", " ").lower()
    return RemoteFault(
        f"{remote} ended the TLS handshake ({words}); check that this port is the daemon's, and "
        "its log"
    )
