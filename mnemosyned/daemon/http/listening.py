"""Listening: on a Unix socket, claimed by one daemon at a time for its own user alone, and on TCP with TLS."""

from __future__ import annotations

import errno
import fcntl
import hmac
import os
import resource
import secrets
import socket
import ssl
import stat
import struct
from base64 import b64decode
from collections.abc import Callable, Iterator, Mapping
from contextlib import closing, contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import NoReturn

from mnemosyned.config.settings import LOCALHOST, is_loopback, tcp_address
from mnemosyned.daemon.http.protocol import OWNER_ADVICE, SOCKET, Access
from mnemosyned.daemon.metrics import PROBE_PATHS
from mnemosyned.errors import ConfigInvalid, DatabaseInUse, InvalidRequest
from mnemosyned.logs import logger
from mnemosyned.memory.engine_ports import owner_of
from mnemosyned.paths import SOCKET_PATH_BYTES_MAX, require_usable_path

BACKLOG = 1024
DESCRIPTORS_RESERVED = 64
"""Descriptors for the database, its readers, helping processes and the log."""

DER_VERSION, DER_SHORT_TIME = 0xA0, 0x17
"""Tags of a certificate's version, and of a time whose year has two digits."""

log = logger()


def bind_tcp(
    host: str,
    port: int,
    *,
    named: str,
    field: str,
    advice: str = "choose another port",
    joins: bool = False,
) -> socket.socket:
    """Return a socket that listens on a TCP address; port 0 is a free one.

    With `joins`, another process of this user may listen there already: the kernel shares the
    connections among them. Raises `InvalidRequest`, which calls the address `named`, and has `advice`.
    """
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    listener = socket.socket(family, socket.SOCK_STREAM)
    try:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, joins)
        listener.bind((host, port))
        # From here on others may join; before, the address had to be free.
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
        listener.listen(BACKLOG)
    except OSError as error:
        listener.close()
        raise InvalidRequest(
            f"{named} cannot be used: {error.strerror}; {advice}", field=field
        ) from error
    listener.settimeout(0)
    return listener


class SocketFile:
    """A Unix socket that one daemon at a time listens on, for its own user alone."""

    def __init__(self, path: Path) -> None:
        """Listen on the socket `path`, replacing a stale file; a lock file keeps other daemons away.

        Raises `DatabaseInUse` if another daemon has the path, and `InvalidRequest` for an unusable path.
        """
        require_usable_path(str(path), field="socket", bytes_max=SOCKET_PATH_BYTES_MAX)
        self._path = path
        self._lock_path = path.with_name(path.name + ".lock")
        self._lock = -1
        self._refused = ""
        self.sock = self._bind()

    def renew(self) -> socket.socket | None:
        """Return a new socket that listens at the path if its file was deleted, else None; log a failure."""
        if os.path.lexists(self._path):
            return None
        refused = ""
        try:
            self.sock = self._bind()
        except (InvalidRequest, DatabaseInUse) as error:
            refused = error.message
        if refused != self._refused or not refused:
            log.warning("socket_was_removed", socket=str(self._path), reason=refused)
        self._refused = refused
        return None if refused else self.sock

    def close(self) -> None:
        """Stop listening; delete the file and its lock, unless another daemon's are there now."""
        self.sock.close()
        if _has_file(self._path, self._bound):
            self._path.unlink()
        self._unlock()

    def _bind(self) -> socket.socket:
        """Lock the path; return a new socket that listens there. Raises `DatabaseInUse`, `InvalidRequest`."""
        path = self._path
        try:
            path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            if self._lock < 0 or not _has_file(self._lock_path, os.fstat(self._lock)):
                lock = _lock_file(self._lock_path, path)
                self._unlock()
                self._lock = lock
            _remove_stale_socket(path)
            sock = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
            os.fchmod(sock.fileno(), 0o600)  # for the file that `bind` makes
            sock.bind(str(path))
            sock.listen(BACKLOG)
            self._bound = path.lstat()
        except BaseException as error:
            self._unlock()
            if not isinstance(error, OSError):
                raise
            raise InvalidRequest(
                f"no socket can be made in {path.parent}: {error.strerror}; choose another place",
                field="socket",
            ) from error
        sock.settimeout(0)
        return sock

    def _unlock(self) -> None:
        """Delete the lock file, if it is this daemon's, and give up the lock."""
        if self._lock >= 0:
            if _has_file(self._lock_path, os.fstat(self._lock)):
                self._lock_path.unlink()  # while it is held: a new file has a new lock
            os.close(self._lock)
            self._lock = -1


def _has_file(path: Path, file: os.stat_result) -> bool:
    """Return True if the path still leads to this `file`."""
    try:
        return os.path.samestat(path.lstat(), file)
    except OSError:
        return False


@contextmanager
def listen_on_socket(path: Path) -> Iterator[Listener]:
    """Listen on a Unix socket in a block, and yield the listener. Raises as `SocketFile` does."""
    with closing(SocketFile(path)) as file:
        yield Listener(file.sock, renew=file.renew)


def refused_user_id(connection: socket.socket) -> int | None:
    """Return the user id of a Unix client that is another user, not root; None for an allowed client."""
    credentials = connection.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, 12)
    _, uid, _ = struct.unpack("3i", credentials)
    return None if uid in (0, os.geteuid()) else int(uid)


def allow_connections(wanted: int) -> int:
    """Raise the limit of open files for the `wanted` connections if needed; return how many are possible."""
    needed = wanted + DESCRIPTORS_RESERVED
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    limit = needed if hard == resource.RLIM_INFINITY else min(needed, hard)
    if soft != resource.RLIM_INFINITY and soft < limit:
        resource.setrlimit(resource.RLIMIT_NOFILE, (limit, hard))
        soft = limit
    if soft == resource.RLIM_INFINITY or soft >= needed:
        return wanted
    allowed = max(1, soft - DESCRIPTORS_RESERVED, soft // 4)
    log.warning(
        "connections_limited",
        connections_max=wanted,
        allowed=allowed,
        descriptors=soft,
        advice="raise the limit of open files (LimitNOFILE, ulimit -Hn)",
    )
    return allowed


def _lock_file(lock: Path, path: Path) -> int:
    """Create and lock a file; return its descriptor. Raises `DatabaseInUse` for `path`."""
    while True:  # ends: each turn means that a daemon has ended in between
        flags = os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW
        descriptor = os.open(lock, flags, 0o600)
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            os.close(descriptor)
            if isinstance(error, BlockingIOError):
                raise _socket_in_use_error(path) from None
            raise
        # Its owner may have unlinked it after it was opened here.
        if _has_file(lock, os.fstat(descriptor)):
            return descriptor
        os.close(descriptor)


def _socket_in_use_error(path: Path) -> DatabaseInUse:
    """Return the error for a socket that another daemon listens on."""
    return DatabaseInUse(
        f"another daemon listens on {path}; stop it or choose another socket"
    )


def _remove_stale_socket(path: Path) -> None:
    """Delete a socket on which nobody listens. Raises `DatabaseInUse`, `InvalidRequest`."""
    try:
        mode = path.lstat().st_mode
    except FileNotFoundError:
        return
    if not stat.S_ISSOCK(mode):
        raise DatabaseInUse(
            f"{path} exists and is not a socket; choose another socket path"
        )
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as probe:
        probe.settimeout(0)
        try:
            probe.connect(str(path))
        except (ConnectionRefusedError, FileNotFoundError):
            path.unlink(missing_ok=True)
            log.info("stale_socket_replaced", socket=str(path))
            return
        except OSError as error:
            if error.errno != errno.EAGAIN:  # a full backlog: somebody listens
                raise InvalidRequest(
                    f"{path} cannot be used: {error.strerror}; choose another socket path",
                    field="socket",
                ) from error
    raise _socket_in_use_error(path)


@dataclass(frozen=True, slots=True)
class Listener:
    """A listening socket and the rules of its clients."""

    sock: socket.socket
    access: Access = SOCKET
    certificate: Certificate | None = None
    """Of those whose clients speak TLS."""
    refused_user: Callable[[socket.socket], int | None] | None = None
    """Returns the user id of a client that is refused, or None; None where any user may connect."""
    renew: Callable[[], socket.socket | None] | None = None
    """Returns the socket to listen on from now on, None for the present one."""


LOGIN_PATH = "/v1/login"
"""Where the code of an invitation is exchanged for a token."""
TOKEN_CHARS_MIN = 32


@contextmanager
def listen_on_tcp(
    setting: str,
    *,
    token_file: Path | None,
    certificate: Certificate | None = None,
    joins: bool = False,
    admits: Callable[[Mapping[str, str]], bool] | None = None,
) -> Iterator[Listener]:
    """Listen on a TCP address, "host:port", in a block, and yield the listener.

    Clients send the token in `token_file`, which is created if missing. Without a file, they send an
    owner's token, or headers that `admits` accepts. With `joins`, another process listens there already. Raises
    `InvalidRequest` for an address in use, and `ConfigInvalid` for the token's file.
    """
    token, advice = b"", OWNER_ADVICE
    if token_file:
        advice = "send the daemon's token: Authorization: Bearer TOKEN"
        token = read_token(token_file).encode()

    def is_token(text: str) -> bool:
        """Return True for the daemon's token, or for a text in the form of an owner's token, checked later."""
        if token:
            return hmac.compare_digest(text.encode(), token)  # in constant time
        return owner_of(text) is not None

    host, port = tcp_address(setting, tls=certificate is not None)
    with bind_tcp(
        host, port, named=f"listen: {setting}", field="listen", joins=joins
    ) as listener:
        address, hosts = _read_address(listener)
        access = Access(
            local=False,
            address=address,
            hosts=None if certificate else hosts,
            is_token=is_token,
            admits=admits,
            open_paths=frozenset(
                PROBE_PATHS if token_file else (*PROBE_PATHS, LOGIN_PATH)
            ),
            advice=advice,
        )
        noted = {"token_file": str(token_file)} if token_file else {}
        log.info("listening", address=access.address, **noted)
        yield Listener(listener, access, certificate)


@contextmanager
def listen_for_metrics(setting: str) -> Iterator[Listener]:
    """Listen on "host:port" for plain HTTP without a token, in a block; yield the listener.

    On a loopback address, a request's `Host` header must name this machine. Raises `InvalidRequest`.
    """
    host, port = tcp_address(setting, tls=True)
    named = f"metrics_listen: {setting}"
    with bind_tcp(host, port, named=named, field="metrics_listen") as listener:
        address, hosts = _read_address(listener)
        is_private = is_loopback(setting)
        log.info("metrics_listening", address=address, loopback=is_private)
        access = Access(
            local=False, address=address, hosts=hosts if is_private else None
        )
        yield Listener(listener, access)


def _read_address(listener: socket.socket) -> tuple[str, frozenset[str]]:
    """Return a listening socket's address, and the values of the `Host` header that requests may have."""
    host, port = listener.getsockname()[:2]
    number = f"[{host}]" if ":" in host else host
    names = (number, LOCALHOST, "127.0.0.1", "[::1]")
    return f"{number}:{port}", frozenset(f"{name}:{port}" for name in names)


def read_token(file: Path) -> str:
    """Return the token in a file, created if missing. Raises `ConfigInvalid` for an unsafe one."""
    try:
        file.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        _make_token(file)
        descriptor = os.open(file, os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW)
        with os.fdopen(descriptor, encoding="ascii") as opened:
            mode = os.fstat(descriptor)
            token = opened.read(1_000).strip()
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
    """Create the file atomically with a random token, unless it exists."""
    fresh = file.with_name(f"{file.name}.{os.getpid()}")
    if file.exists() or file.is_symlink():
        return
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC | os.O_NOFOLLOW
    fresh.unlink(missing_ok=True)
    with os.fdopen(os.open(fresh, flags, 0o600), "w", encoding="ascii") as opened:
        opened.write(secrets.token_urlsafe(32) + "\n")
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
        """Load certificate and key from their files, for new connections. Raises `ConfigInvalid`."""

        def refuse_password() -> str:  # nobody is there to type it
            raise OSError("the key is encrypted; decrypt it, and protect the file")

        certificate, key = self._files
        try:
            if key.stat().st_mode & stat.S_IRWXO:
                _refuse_setting(
                    f"others may read {key}; take that right from them", "tls.key"
                )
            self._context.load_cert_chain(certificate, key, password=refuse_password)
            self.ends = _read_end(certificate.read_text("ascii", "replace"))
            """When the certificate expires, in seconds since 1970."""
        except OSError as error:  # which a mistake in a file is, too
            reason = error.strerror or str(error)
            _refuse_setting(
                f"{certificate} with {key} cannot be used: {reason}", "tls.certificate"
            )

    def channel(self) -> ServerTlsChannel:
        """Return a TLS channel for the connection of one new client."""
        return ServerTlsChannel(self._context)


def _read_end(text: str) -> float:
    """Return when the first certificate of a PEM file expires, in seconds since 1970."""
    # OpenSSL has loaded it; a trusted one is followed by more data.
    _, _, rest = text.partition("CERTIFICATE-----")
    (_, certificate), *_ = _read_der(b64decode(rest.partition("-----END")[0]))
    (_, content), *_ = _read_der(certificate)
    # Serial number, algorithm, issuer and validity, after a version that may be left out.
    fields = [value for tag, value in _read_der(content) if tag != DER_VERSION]
    _, (tag, ends) = _read_der(fields[3])
    form = "%y%m%d%H%M%SZ" if tag == DER_SHORT_TIME else "%Y%m%d%H%M%SZ"
    return datetime.strptime(ends.decode(), form).replace(tzinfo=UTC).timestamp()


def _read_der(data: bytes) -> Iterator[tuple[int, bytes]]:
    """Yield tag and value of each element in a value in DER, the encoding of certificates."""
    while data:
        tag, length, begin = data[0], data[1], 2
        if length & 0x80:
            begin += length & 0x7F
            length = int.from_bytes(data[2:begin], "big")
        yield tag, data[begin : begin + length]
        data = data[begin + length :]


class ServerTlsChannel:
    """TLS of one client: decrypts and encrypts bytes, without sending or receiving any."""

    def __init__(self, context: ssl.SSLContext) -> None:
        self._incoming, self._outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
        self._tls = context.wrap_bio(self._incoming, self._outgoing, server_side=True)

    def open(self, data: bytes) -> bytes | None:
        """Return the decrypted bytes; None if more must come first, b"" at the end of TLS or after a fault.

        After a fault, `take_unsent` may return an alert for the client.
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
        """Return bytes for the client, encrypted. Raises `OSError` if TLS has ended."""
        self._tls.write(data)
        return self.take_unsent()

    def take_unsent(self) -> bytes:
        """Take and return the encrypted bytes to send to the client, such as a handshake."""
        return self._outgoing.read()


def _refuse_setting(reason: str, field: str) -> NoReturn:
    """Raise `ConfigInvalid` for the setting `field`, with a reason."""
    raise ConfigInvalid(f"{field}: {reason}", field=field)
