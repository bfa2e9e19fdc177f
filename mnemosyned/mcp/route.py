"""The protocol over HTTP: POST /mcp, answered with JSON, or with a stream where progress is due."""

from __future__ import annotations

import base64
import binascii
import secrets
import threading
from collections.abc import Callable, Iterator, Mapping
from datetime import datetime
from http import HTTPStatus
from typing import Any

import msgspec

from mnemosyned.http_messages import HttpRequest, Response, Route
from mnemosyned.logs import logger
from mnemosyned.mcp.calls import Exchange
from mnemosyned.mcp.identity import (
    CLIENT_HEADER,
    ORIGIN_HEADER,
    SESSION_HEADER,
    Origin,
    ProjectSessions,
    client_of,
    identify,
    origin_of,
)
from mnemosyned.mcp.protocol import (
    HEADER_MISMATCH,
    INTERNAL_ERROR,
    INVALID_PARAMS,
    INVALID_REQUEST,
    METHOD_NOT_FOUND,
    PARSE_ERROR,
    SUPPORTED_VERSIONS,
    UNSUPPORTED_VERSION,
    Era,
    Json,
    ProtocolError,
    Request,
    decode,
    error_message,
    readable_id,
)
from mnemosyned.mcp.server import handle
from mnemosyned.mcp.tools import BY_NAME
from mnemosyned.verbs.facade import Caller
from mnemosyned.verbs.times import local_now

PATH = "/mcp"
EVENT_STREAM = "text/event-stream"
VERSION_HEADER = "mcp-protocol-version"
METHOD_HEADER = "mcp-method"
NAME_HEADER = "mcp-name"
NAMED_BY = {"tools/call": "name", "prompts/get": "name", "resources/read": "uri"}
"""The field that the header with a name repeats."""
WANTS_HEADER = "mnemosyne-wants"
"""Asks `mnem mcp` for the client's roots, where nothing else names the project."""
PROGRESS_S = 1.0
"""Seconds between notifications of progress."""

_ENCODED = ("=?base64?", "?=")
_STATUS_OF_FAULT = {
    PARSE_ERROR: HTTPStatus.BAD_REQUEST,
    INVALID_REQUEST: HTTPStatus.BAD_REQUEST,
}
_STATUS_OF_MODERN_FAULT = {
    **_STATUS_OF_FAULT,
    INVALID_PARAMS: HTTPStatus.BAD_REQUEST,
    HEADER_MISMATCH: HTTPStatus.BAD_REQUEST,
    UNSUPPORTED_VERSION: HTTPStatus.BAD_REQUEST,
    METHOD_NOT_FOUND: HTTPStatus.NOT_FOUND,
}

log = logger()


def mcp_route(
    caller: Caller,
    sessions: ProjectSessions,
    *,
    now: Callable[[], datetime] = local_now,
) -> Route:
    """The function that answers a message posted to `/mcp`."""

    def answer(http: HttpRequest) -> Response:
        origin = origin_of(http.headers, local=http.local)

        def exchange(request: Request) -> Exchange:
            moment = now()
            identity = identify(
                origin,
                client_name=request.client_name,
                sessions=sessions,
                now=moment,
            )
            return Exchange(
                caller=caller, identity=identity, sessions=sessions, now=moment
            )

        message: object = None
        try:
            message = decode(http.body)
            request = Request.of(message) if isinstance(message, dict) else None
            if request is not None:
                _check_headers(request, http.headers)
        except ProtocolError as error:
            failure = error_message(error, readable_id(message))
            return _response(failure, is_modern=True)
        if request is not None and _is_long(request):
            events = _with_progress(request, lambda: handle_safely(message, exchange))
            return Response(
                HTTPStatus.OK,
                content_type=EVENT_STREAM,
                headers=(("Cache-Control", "no-cache"), ("X-Accel-Buffering", "no")),
                stream=events,
            )
        is_modern = request is not None and request.era is Era.MODERN
        further = _further_headers(request, origin, exchange) if request else ()
        return _response(
            handle_safely(message, exchange), is_modern=is_modern, headers=further
        )

    return answer


def handle_safely(message: object, exchange: Callable[[Request], Exchange]) -> Any:  # noqa: ANN401
    """Answer a message, whatever becomes of it: a client waits for its answer."""
    try:
        return handle(message, exchange)
    except Exception:
        log.exception("mcp_failed")
        error = ProtocolError(
            INTERNAL_ERROR, "unexpected; the daemon's log has the traceback"
        )
        return error_message(error, readable_id(message))


def _response(
    answer: Any,  # noqa: ANN401
    *,
    is_modern: bool,
    headers: tuple[tuple[str, str], ...] = (),
) -> Response:
    if answer is None:
        return Response(HTTPStatus.ACCEPTED, content_type="", headers=headers)
    error = answer.get("error") if isinstance(answer, dict) else None
    status = HTTPStatus.OK
    if error:
        faults = _STATUS_OF_MODERN_FAULT if is_modern else _STATUS_OF_FAULT
        status = faults.get(error["code"], HTTPStatus.OK)
    return Response(status, msgspec.json.encode(answer), headers=headers)


# ------------------------------------------------------------------- headers


def _check_headers(request: Request, headers: Mapping[str, str]) -> None:
    """Check that the headers say what the message says. Raises `ProtocolError`.

    A modern request over HTTP must have them; `mnem mcp` carries a client's lines, which have none.
    """
    if request.era is Era.LEGACY:
        version = headers.get(VERSION_HEADER)
        if version is not None and version not in SUPPORTED_VERSIONS:
            versions = ", ".join(SUPPORTED_VERSIONS)
            raise ProtocolError(
                INVALID_REQUEST,
                f"MCP-Protocol-Version is unknown; supported are {versions}",
            )
        return
    required = ORIGIN_HEADER not in headers
    name_field = NAMED_BY.get(request.method)
    expected: dict[str, object] = {
        VERSION_HEADER: request.version,
        METHOD_HEADER: request.method,
    }
    if name_field:
        expected[NAME_HEADER] = request.params.get(name_field)
    for header, value in expected.items():
        given = _decoded(headers.get(header))
        if given is None and not required:
            continue
        if given != value:
            raise ProtocolError(
                HEADER_MISMATCH,
                f"Header mismatch: {header} is missing, or not what the body says",
            )


def _decoded(value: str | None) -> str | None:
    """The value of a header that may be in Base64."""
    beginning, end = _ENCODED
    if not value or not (value.startswith(beginning) and value.endswith(end)):
        return value
    try:
        encoded = value[len(beginning) : -len(end)]
        return base64.b64decode(encoded, validate=True).decode()
    except (binascii.Error, ValueError):
        return ""


def _further_headers(
    request: Request, origin: Origin, exchange: Callable[[Request], Exchange]
) -> tuple[tuple[str, str], ...]:
    """Return what later messages need of the handshake: client, session, wish for roots."""
    if request.method != "initialize":
        return ()
    client = client_of(request.client_name)
    if not origin.life:
        session = origin.session or f"{client}.{secrets.token_hex(8)}"
        return ((SESSION_HEADER, session),)
    headers = [(CLIENT_HEADER, client)]
    capabilities = request.params.get("capabilities")
    has_roots = isinstance(capabilities, dict) and "roots" in capabilities
    if has_roots and not exchange(request).identity.project:
        headers.append((WANTS_HEADER, "roots"))
    return tuple(headers)


# ------------------------------------------------------------------ progress


def _is_long(request: Request) -> bool:
    """Whether the client wants progress of a call that may take long."""
    entry = BY_NAME.get(str(request.params.get("name")))
    return (
        request.method == "tools/call"
        and request.id is not None
        and request.progress_token is not None
        and entry is not None
        and entry.is_long
    )


def _with_progress(
    request: Request,
    work: Callable[[], Json],
    *,
    interval_s: float = PROGRESS_S,
) -> Iterator[bytes]:
    """Yield a notification at once and each second, and at last the answer, as events."""
    answers: list[Json] = []
    thread = threading.Thread(
        target=lambda: answers.append(work()), name="mcp-call", daemon=True
    )
    thread.start()
    seconds = 0
    while not answers:  # ends with the call, which has its own limits
        yield _event(_progress(request, seconds))
        thread.join(interval_s)
        seconds += 1
    yield _event(answers[0])


def _progress(request: Request, seconds: int) -> Json:
    name = request.params.get("name")
    params = {
        "progressToken": request.progress_token,
        "progress": seconds,
        "message": f"{name}: {seconds} s",
    }
    return {"jsonrpc": "2.0", "method": "notifications/progress", "params": params}


def _event(message: Json) -> bytes:
    return b"event: message\ndata: " + msgspec.json.encode(message) + b"\n\n"
