"""HTTP requests and responses, as the handlers of a path see them."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from http import HTTPStatus

JSON = "application/json"


@dataclass(frozen=True, slots=True)
class HttpRequest:
    """A whole request."""

    method: str
    path: str
    query: str
    body: bytes | bytearray
    headers: Mapping[str, str] = field(default_factory=dict)
    """By lower-case name; the values of a repeated header are joined by commas."""
    local: bool = True
    """Whether it came over the Unix socket, and not over TCP."""
    address: str = ""
    """The number of the client's machine, such as `192.0.2.7`; empty over the Unix socket."""
    received_at: float = field(default_factory=time.monotonic, compare=False)
    """The monotonic time at which it was whole: it may then wait for a thread."""


@dataclass(frozen=True, slots=True)
class Response:
    """A status with a body, or with a stream that is sent while it is being made."""

    status: HTTPStatus
    body: bytes = b""
    content_type: str = JSON
    """Empty where there is no content."""
    headers: tuple[tuple[str, str], ...] = ()
    """Further headers."""
    stream: Iterator[bytes] | None = None
    """The body in chunks, instead of `body`. The thread of the request asks for the next chunk once
    the client has taken the one before, and closes the iterator when the client leaves. An empty
    chunk sends nothing: whoever waits for long yields one now and then, so that this is noticed."""

    def close(self) -> None:
        """Close the stream, if there is one that can be closed."""
        if close := getattr(self.stream, "close", None):
            close()


Route = Callable[[HttpRequest], Response]
"""Answers the requests of a path; a `MnemosynedError` becomes its status and JSON."""


@dataclass(frozen=True, slots=True)
class Resource:
    """A path's handler and the methods that it allows; HEAD is allowed with GET."""

    route: Route
    methods: tuple[str, ...] = ("GET",)
    local_only: bool = False
    """Whether it is out of reach over TCP."""
