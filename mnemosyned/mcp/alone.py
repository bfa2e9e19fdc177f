"""Answers of `mnem mcp` where no daemon answers: lists as ever, and for the rest what to do."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import TypeVar

from mnemosyned.domain.errors import DaemonUnreachable
from mnemosyned.http_messages import HttpRequest
from mnemosyned.mcp.identity import Identity
from mnemosyned.mcp.pump_http import events
from mnemosyned.mcp.route import PATH, mcp_route
from mnemosyned.verbs.request import Request

R = TypeVar("R")


class Unreachable:
    """A caller without a daemon."""

    def __init__(self, reason: str) -> None:
        self._reason = reason

    def call(self, _: Request[R], /) -> R:
        """Raise `DaemonUnreachable`."""
        raise DaemonUnreachable(self._reason)


class NoSessions:
    """Sessions without a store."""

    def project_of(self, _: str, override: str) -> str:
        return override

    def sessions_of(self, _: str, __: int) -> Sequence[str]:
        return ()

    def saw(self, _: Identity, __: datetime) -> None:
        return None


def answer_alone(
    line: bytes, headers: dict[str, str], reason: str
) -> tuple[bytes, dict[str, str]]:
    """Answer a message; return the answer, empty where none is due, and its headers."""
    route = mcp_route(Unreachable(reason), NoSessions())
    lowered = {name.lower(): value for name, value in headers.items()}
    response = route(HttpRequest("POST", PATH, "", line, lowered))
    body = response.body
    if response.stream is not None:
        *_, body = events(response.stream)
    return body, {name.lower(): value for name, value in response.headers}
