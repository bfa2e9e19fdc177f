"""The verbs over HTTP on a private Unix socket: POST /v1/VERB with a JSON object."""

from __future__ import annotations

import socket
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http import HTTPStatus
from typing import Any
from urllib.parse import parse_qs

import msgspec

from mnemosyned.daemon.connection import Response
from mnemosyned.daemon.listener import connections_allowed
from mnemosyned.daemon.loop import EventLoop
from mnemosyned.daemon.protocol import HttpRequest
from mnemosyned.domain.errors import (
    InvalidRequest,
    Kind,
    MnemosynedError,
    StorageFailed,
    UnknownVerb,
)
from mnemosyned.logs import logger
from mnemosyned.service.service import MemoryService
from mnemosyned.verbs.facade import ALIASES, VERBS
from mnemosyned.verbs.request import Request, parse, parse_text

PREFIX = "/v1/"

STATUS_OF_KIND = {
    Kind.INVALID: HTTPStatus.BAD_REQUEST,
    Kind.NOT_FOUND: HTTPStatus.NOT_FOUND,
    Kind.CONFLICT: HTTPStatus.CONFLICT,
    Kind.UNAVAILABLE: HTTPStatus.SERVICE_UNAVAILABLE,
    Kind.INTERNAL: HTTPStatus.INTERNAL_SERVER_ERROR,
}

log = logger()


@contextmanager
def serving(
    service: MemoryService,
    listener: socket.socket,
    *,
    threads: int,
    body_bytes_max: int,
    connections_max: int,
) -> Iterator[EventLoop]:
    """Answer requests in the background while the block runs; let running ones finish."""
    loop = EventLoop(
        listener,
        answer=answering(service),
        refuse=refusal,
        threads=threads,
        body_bytes_max=body_bytes_max,
        connections_max=connections_allowed(connections_max),
    )
    loop.start()
    try:
        yield loop
    finally:
        loop.stop()


def answering(service: MemoryService) -> Callable[[HttpRequest], Response]:
    """The function that answers a request, whatever becomes of it."""

    def answer(request: HttpRequest) -> Response:
        started = time.monotonic()
        try:
            body = msgspec.json.encode(service.call(_request(request)))
            response = Response(HTTPStatus.OK, body)
        except MnemosynedError as error:
            response = refusal(error, STATUS_OF_KIND[error.kind])
            if error.kind is Kind.INTERNAL or isinstance(error, StorageFailed):
                log.exception("request_failed", path=request.path, code=error.code)
        except Exception:
            log.exception("request_failed", path=request.path)
            unexpected = MnemosynedError(
                "unexpected; the daemon's log has the traceback"
            )
            response = refusal(unexpected, HTTPStatus.INTERNAL_SERVER_ERROR)
        log.debug(
            "request",
            path=request.path,
            status=response.status.value,
            duration_ms=round((time.monotonic() - started) * 1000, 2),
        )
        return response

    return answer


def refusal(error: MnemosynedError, status: HTTPStatus) -> Response:
    """Every failure as it looks on the wire."""
    body = {"code": error.code, "message": error.message, "field": error.field}
    return Response(status, msgspec.json.encode({"error": body}))


def _request(request: HttpRequest) -> Request[Any]:
    path = request.path
    name = path.removeprefix(PREFIX)
    verb = VERBS.get(ALIASES.get(name, name)) if path.startswith(PREFIX) else None
    if verb is None:
        routes = ", ".join(PREFIX + verb for verb in VERBS)
        raise UnknownVerb(f"there is no {path}; the verbs are {routes}")
    if request.method == "POST":
        return parse(verb, request.body or b"{}")
    if request.method == "GET" and not verb.writes:
        query = parse_qs(request.query, keep_blank_values=True)
        return parse_text(
            verb, {k: v[0] if len(v) == 1 else v for k, v in query.items()}
        )
    raise InvalidRequest(f"{path} takes POST with a JSON object, not {request.method}")
