"""Access: which requests may be answered, by their headers, before their bodies are read."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Protocol

from mnemosyned.daemon.server.refusals import RequestRefused
from mnemosyned.domain.errors import ForeignOrigin

_LOOPBACK_ORIGIN = re.compile(
    r"https?://(localhost|127(\.\d{1,3}){3}|\[::1\])(:\d{1,5})?", re.ASCII
)


class Access(Protocol):
    """The rules of one listener."""

    @property
    def local(self) -> bool:
        """Whether its clients come over the Unix socket."""
        ...

    def check(self, headers: Mapping[str, str], authority: str | None) -> None:
        """Check a request by its headers, and the host of its target if that names one.

        Raises `RequestRefused`.
        """
        ...


class SocketAccess:
    """Access over the Unix socket, which the kernel opens to its owner alone.

    Clients write any `Host` there. An `Origin` is sent by browsers, which reach a socket through a
    relay alone.
    """

    local = True

    def check(self, headers: Mapping[str, str], authority: str | None) -> None:  # noqa: ARG002
        """Refuse a page of another machine."""
        if "origin" in headers:
            check_origin(headers["origin"])


def bearer_token(headers: Mapping[str, str]) -> str | None:
    """The token that a request brings; None without one."""
    scheme, _, given = headers.get("authorization", "").partition(" ")
    return given.strip() if scheme.lower() == "bearer" else None


def check_origin(origin: str) -> None:
    """Refuse an origin that is not on this machine. Raises `RequestRefused`."""
    if not _LOOPBACK_ORIGIN.fullmatch(origin):
        raise RequestRefused(
            ForeignOrigin(
                "requests from web pages of other machines are refused; leave out the Origin header"
            )
        )
