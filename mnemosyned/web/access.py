"""Access to the pages: one-time keys, sessions, origins, form tokens, and users of this machine."""

from __future__ import annotations

import hmac
import secrets
import socket
import sys
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from os import geteuid
from pathlib import Path

from mnemosyned import errors, http_messages

LOOPBACK = "127.0.0.1"
KEY_S = 60.0
"""How long a one-time key can be used."""
SESSIONS_MAX = 8
"""Maximum browsers with a session at the same time; a new one replaces the oldest."""
SECRET_BYTES = 32
SAME_ORIGIN = frozenset({"same-origin", "none"})
"""Values of `Sec-Fetch-Site` for requests that a page of ours sent, or a person typed."""
AGAIN = "run `mnem web` again, or press Enter where it runs, and open the new address"


@dataclass(frozen=True, slots=True)
class WebSession:
    """A browser that was let in."""

    cookie: str
    form_token: str
    """Sent with each change, so that no other page can make one."""


class WebAccess:
    """The key and the sessions of the pages on one port; safe from any thread."""

    def __init__(self, port: int, *, now: Callable[[], float] = time.monotonic) -> None:
        """Begin without a key and sessions; `now` is a monotonic clock in seconds."""
        # Browsers leave out the port where it is that of HTTP.
        endings = ["", ":80"] if port == 80 else [f":{port}"]
        hosts = [f"{name}{end}" for end in endings for name in (LOOPBACK, "localhost")]
        self.port = port
        self.hosts = frozenset(hosts)
        self.address = f"http://{hosts[0]}"
        self.cookie_name = f"mnemosyned-{port}"
        """Browsers keep the cookies of all ports of a host together."""
        self._origins = frozenset(f"http://{host}" for host in hosts)
        self._now = now
        self._used_at = now()
        """When the last request of a person ended, by the monotonic clock."""
        self._running = 0
        """Requests of a person that run."""
        self.is_served: Callable[[], bool] = lambda: True
        """Returns whether the server of the pages runs."""
        self._lock = threading.Lock()
        self._key, self._key_until = "", 0.0
        self.sessions: list[WebSession] = []
        """Browsers that are let in, the newest last."""

    def new_address(self) -> str:
        """Return an address with a new key, valid once within `KEY_S` seconds; older keys become invalid."""
        with self._lock:
            self._key = secrets.token_urlsafe(SECRET_BYTES)
            self._key_until = self._now() + KEY_S
            return f"{self.address}/enter?key={self._key}"

    @property
    def unused_s(self) -> float:
        """Seconds since the last request of a person; 0 while one runs."""
        return 0.0 if self._running else self._now() - self._used_at

    @contextmanager
    def note_use(self) -> Iterator[None]:
        """Count the block as a running request of a person, for `unused_s`."""
        with self._lock:
            self._running += 1
        try:
            yield
        finally:
            with self._lock:
                self._running -= 1
                self._used_at = self._now()

    def redeem_key(self, given: str) -> WebSession:
        """Use up the key; return a new session, which replaces the oldest of many. Raises `Unauthorized`."""
        with self._lock:
            is_right = bool(self._key) and _are_equal(self._key, given)
            if not is_right or self._now() > self._key_until:
                raise errors.Unauthorized(
                    f"this address was used, or is older than a minute: {AGAIN}"
                )
            self._key = ""
            self._used_at = self._now()
            session = WebSession(
                secrets.token_urlsafe(SECRET_BYTES), secrets.token_urlsafe(SECRET_BYTES)
            )
            self.sessions = [*self.sessions[1 - SESSIONS_MAX :], session]
            return session

    def find_session(self, headers: Mapping[str, str]) -> WebSession | None:
        """Return the session whose cookie a request's headers contain, or None."""
        for cookie in headers.get("cookie", "").split(";"):
            given = cookie.strip().removeprefix(f"{self.cookie_name}=")
            for session in self.sessions:
                if _are_equal(session.cookie, given):
                    return session
        return None

    def check_origin(self, request: http_messages.HttpRequest) -> None:
        """Raise `ForeignOrigin` for a request from another page, or for a POST without proof of its origin.

        A page on another port of this machine is another page, although a browser sends it the same cookie.
        """
        site = request.headers.get("sec-fetch-site")
        origin = request.headers.get("origin")
        is_own = site in {None, *SAME_ORIGIN} and origin in {None, *self._origins}
        if request.method == "POST":
            is_own = is_own and (origin is not None or site == "same-origin")
        if not is_own:
            raise errors.ForeignOrigin(
                "another page led here; paste the address that `mnem web` printed yourself"
            )

    def check_form(self, session: WebSession, given: str) -> None:
        """Raise `ForeignOrigin` unless a form's token is that of the session."""
        if not _are_equal(session.form_token, given):
            raise errors.ForeignOrigin(
                "this form is of another session; open the page again, and repeat"
            )


def _are_equal(secret: str, given: str) -> bool:
    """Return whether a text equals a secret, in constant time."""
    return hmac.compare_digest(secret.encode(), given.encode("utf-8", "replace"))


ESTABLISHED = "01"
UNKNOWN_USER = -1
_TABLES = (Path("/proc/net/tcp"), Path("/proc/net/tcp6"))


def refused_tcp_user(connection: socket.socket) -> int | None:
    """Return the user id of a local TCP client that is another user, not root; None for an allowed client.

    Other users could see the one-time address in the browser's arguments, and use it first. A client missing
    from the kernel's table is refused as `UNKNOWN_USER`. If the table cannot be read, all are allowed.
    """
    try:
        client, own = connection.getpeername(), connection.getsockname()
    except OSError:  # it reset the connection
        return UNKNOWN_USER
    wanted = (_table_address(*client), _table_address(*own))
    is_readable = False
    for table in _TABLES:
        try:
            lines = table.read_text(encoding="ascii").splitlines()[1:]
        except OSError:
            continue
        is_readable = True
        for line in lines:
            _, local, remote, state, _, _, _, uid, *_ = line.split()
            # In the table for IPv6, the addresses of IPv4 come after a prefix.
            if (local[-13:], remote[-13:], state) == (*wanted, ESTABLISHED):
                return None if int(uid) in (0, geteuid()) else int(uid)
    return UNKNOWN_USER if is_readable else None


def _table_address(host: str, port: int) -> str:
    """Return an IPv4 address and port as the kernel's table of connections writes them."""
    number = int.from_bytes(socket.inet_aton(host), sys.byteorder)
    return f"{number:08X}:{port:04X}"
