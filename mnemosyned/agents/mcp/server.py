"""The protocol's methods with resources and prompts, and the HTTP route on which the daemon answers them."""

from __future__ import annotations

import base64
import binascii
import secrets
import threading
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from datetime import date, datetime, timedelta
from http import HTTPStatus
from typing import Any, TypeVar
from urllib.parse import unquote

import msgspec

from mnemosyned.agents.mcp import forms, identity, protocol, tools
from mnemosyned.client.http import EventBlocks
from mnemosyned.errors import DaemonUnreachable, Kind, MnemosynedError
from mnemosyned.http_messages import HttpRequest, Response, Route
from mnemosyned.logs import logger
from mnemosyned.text.frames import neutralize_line
from mnemosyned.verbs import conversation, facade
from mnemosyned.verbs.request import Request
from mnemosyned.verbs.times import local_now
from mnemosyned.version import __version__

SCHEME = "mnemosyne://"
JSON_TYPE = "application/json"
RESOURCE_BYTES_MAX = 60_000
"""Maximum bytes of a resource, which may be longer than a tool's result as a person requests it."""
DAYS_LISTED = 7


def list_resources(context: tools.ToolContext) -> list[protocol.Json]:
    """Return the entries of the resource list: status, injections, and the last `DAYS_LISTED` days."""
    today = context.now.date()
    days = [today - timedelta(back) for back in range(DAYS_LISTED)]
    return [
        tools.TEXTS["resources"]["status"],
        tools.TEXTS["resources"]["injections"],
        *(
            {
                "uri": f"{SCHEME}day/{day}",
                "name": f"day-{day.isoformat()}",
                "title": f"What happened on {day:%A}, {day.isoformat()}",
                "mimeType": JSON_TYPE,
            }
            for day in days
        ),
    ]


def read_resource(context: tools.ToolContext, uri: object) -> protocol.Json:
    """Return the resource at a URI as JSON in the protocol's form. Raises `ProtocolError`."""
    if not isinstance(uri, str) or len(uri) > 500:
        raise protocol.ProtocolError(
            protocol.INVALID_PARAMS, "uri must be an address from the list"
        )
    kind, _, name = uri.removeprefix(SCHEME).partition("/")
    reader = _READERS.get(kind) if uri.startswith(SCHEME) else None
    if reader is None or (kind not in {"status", "injections"} and not name):
        raise protocol.ProtocolError(
            protocol.INVALID_PARAMS, "Resource not found", {"uri": uri}
        )
    wide = replace(context, bytes_max=RESOURCE_BYTES_MAX)
    try:
        result = reader(wide, unquote(name))
    except MnemosynedError as error:
        unknown = error.kind in {Kind.NOT_FOUND, Kind.INVALID}
        code = protocol.INVALID_PARAMS if unknown else protocol.INTERNAL_ERROR
        raise protocol.ProtocolError(code, error.message, {"uri": uri}) from error
    content = {"uri": uri, "mimeType": JSON_TYPE, "text": tools.result_as_text(result)}
    return {"contents": [content]}


def _recall_day(context: tools.ToolContext, name: str) -> protocol.Json:
    """Return up to 25 memories of a day, as the `recall` tool does. Raises `ProtocolError`."""
    try:
        day = date.fromisoformat(name)
    except ValueError as error:
        raise protocol.ProtocolError(
            protocol.INVALID_PARAMS,
            "a day is written as 2026-03-09",
            {"uri": f"{SCHEME}day/{name}"},
        ) from error
    question = f"{day:%B} {day.day}, {day.year}"
    return tools.recall(
        context,
        forms.RecallTool(
            question,
            limit=25,
            since=day.isoformat(),
            until=day.isoformat(),
        ),
    )


_READERS: dict[str, Callable[[tools.ToolContext, str], protocol.Json]] = {
    "memory": lambda context, name: tools.get(context, forms.PartOfText(name)),
    "episode": lambda context, name: tools.expand(context, forms.PartOfText(name)),
    "day": _recall_day,
    "status": lambda context, _: tools.status(context, forms.StatusTool()),
    "injections": lambda context, _: msgspec.to_builtins(
        context.caller.call(conversation.Injections(limit=20))
    ),
}

# -------------------------------------------------------------------- prompts


PROMPTS: protocol.Json = tools.TEXTS["prompts"]["by_name"]
"""Prompts with one argument, the subject `about`; the task is the model's."""


def list_prompts() -> list[protocol.Json]:
    """Return the entries of the prompt list, each with name, title, description and the argument `about`."""
    return [
        {
            "name": name,
            "title": prompt["title"],
            "description": prompt["description"],
            "arguments": [
                {
                    "name": "about",
                    "title": "About",
                    "description": prompt["about"],
                    "required": prompt["is_required"],
                }
            ],
        }
        for name, prompt in PROMPTS.items()
    ]


def fill_prompt(
    context: tools.ToolContext, name: object, arguments: object
) -> protocol.Json:
    """Return the prompt `name` as a user message, with its task and memories found for `arguments`.

    Raises `ProtocolError` for an unknown prompt, a wrong argument or a failed search.
    """
    prompt = PROMPTS.get(name) if isinstance(name, str) else None
    if prompt is None:
        names = ", ".join(PROMPTS)
        raise protocol.ProtocolError(
            protocol.INVALID_PARAMS, f"Unknown prompt; the prompts are {names}"
        )
    given = arguments.get("about", "") if isinstance(arguments, dict) else None
    if not isinstance(given, str):
        raise protocol.ProtocolError(
            protocol.INVALID_PARAMS, "arguments must be an object whose values are text"
        )
    about = neutralize_line(given)[:1_000]
    if prompt["is_required"] and not about:
        raise protocol.ProtocolError(
            protocol.INVALID_PARAMS, f"about is missing: {prompt['about']}"
        )
    question = prompt["question"].format(about=about).strip()
    try:
        found = tools.result_as_text(tools.recall(context, forms.RecallTool(question)))
    except MnemosynedError as error:
        raise protocol.ProtocolError(protocol.INTERNAL_ERROR, error.message) from error
    task = prompt["task"].format(about=about or "everything")
    text = f"{task}\n\n{tools.TEXTS['prompts']['rules']}\n\n```json\n{found}\n```"
    message = {"role": "user", "content": {"type": "text", "text": text}}
    return {"description": prompt["description"], "messages": [message]}


SERVER = {"name": "mnemosyne", "title": "Mnemosyne memory", "version": __version__}
CAPABILITIES: protocol.Json = {"tools": {}, "resources": {}, "prompts": {}}
INSTRUCTIONS: str = tools.TEXTS["instructions"]
BATCH_MAX = 50
HOUR_MS = 3_600_000


@dataclass(frozen=True, slots=True, kw_only=True)
class ProtocolMethod:
    """A method of the protocol."""

    run: Callable[[tools.ToolContext, protocol.McpRequest], protocol.Json]
    eras: frozenset[protocol.Era] = frozenset(protocol.Era)
    ttl_ms: int | None = None
    """Time for which a client may keep the result; None if not at all."""
    scope: str = "public"


def answer_message(
    message: object, context_of: Callable[[protocol.McpRequest], tools.ToolContext]
) -> Any:  # noqa: ANN401
    """Return the JSON-RPC response to a decoded message, or a list of responses to a batch.

    Returns None for notifications and responses. An unexpected error is logged.
    """
    if isinstance(message, list):
        return _handle_batch(message, context_of)
    try:
        request = protocol.McpRequest.of(message)
        if request is None or request.id is None:
            return None
        protocol.check_version(request)
        method = METHODS.get(request.method)
        if method is None or request.era not in method.eras:
            name = request.method[: protocol.METHOD_CHARS_SHOWN]
            raise protocol.ProtocolError(  # noqa: TRY301 it is answered below
                protocol.METHOD_NOT_FOUND, f"Method not found: {name}"
            )
        result = method.run(context_of(request), request)
        if request.era is protocol.Era.MODERN:
            meta = {protocol.SERVER_KEY: SERVER}
            result = {"resultType": "complete", **result, "_meta": meta}
            if method.ttl_ms is not None:
                result |= {"ttlMs": method.ttl_ms, "cacheScope": method.scope}
        return protocol.result_message(request, result)
    except protocol.ProtocolError as error:
        fault = error
    except Exception:
        log.exception("mcp_failed")
        fault = protocol.ProtocolError(
            protocol.INTERNAL_ERROR, "unexpected; the daemon's log has the traceback"
        )
    return protocol.error_message(fault, protocol.readable_id(message))


def _handle_batch(
    messages: list[Any], context_of: Callable[[protocol.McpRequest], tools.ToolContext]
) -> protocol.Json | list[protocol.Json] | None:
    """Return the responses to a batch, None without any; a single error if the size is not allowed.

    Protocol versions until 2025-03-26 have batches.
    """
    if not 0 < len(messages) <= BATCH_MAX:
        error = protocol.ProtocolError(
            protocol.INVALID_REQUEST, f"a batch has between 1 and {BATCH_MAX} messages"
        )
        return protocol.error_message(error, None)
    nested = protocol.ProtocolError(protocol.INVALID_REQUEST, "a batch holds no batch")
    answers = [
        protocol.error_message(nested, None)
        if isinstance(message, list)
        else answer_message(message, context_of)
        for message in messages
    ]
    return [answer for answer in answers if answer is not None] or None


# ------------------------------------------------------------------- methods


def _initialize(_: tools.ToolContext, request: protocol.McpRequest) -> protocol.Json:
    """Return the result of the handshake, with the version asked for or the newest."""
    asked = request.params.get("protocolVersion")
    return {
        "protocolVersion": asked
        if asked in protocol.LEGACY_VERSIONS
        else protocol.LEGACY_VERSIONS[0],
        "capabilities": CAPABILITIES,
        "serverInfo": SERVER,
        "instructions": INSTRUCTIONS,
    }


def _make_list_method(
    name: str,
    list_entries: Callable[[tools.ToolContext], list[protocol.Json]],
    *,
    ttl_ms: int = HOUR_MS,
    scope: str = "public",
) -> ProtocolMethod:
    """Return a protocol method whose result has all entries of `list_entries` under the key `name`.

    Clients may cache the result for `ttl_ms`, for all users if `scope` is "public".
    """

    def run(context: tools.ToolContext, request: protocol.McpRequest) -> protocol.Json:
        """Return {`name`: all entries}. Raises `ProtocolError` for a request with a cursor."""
        if request.params.get("cursor") is not None:
            words = "unknown cursor: the list has a single page"
            raise protocol.ProtocolError(protocol.INVALID_PARAMS, words)
        return {name: list_entries(context)}

    return ProtocolMethod(run=run, ttl_ms=ttl_ms, scope=scope)


_LEGACY = frozenset({protocol.Era.LEGACY})

METHODS: Mapping[str, ProtocolMethod] = {
    "initialize": ProtocolMethod(run=_initialize, eras=_LEGACY),
    "ping": ProtocolMethod(run=lambda _, __: {}, eras=_LEGACY),
    "server/discover": ProtocolMethod(
        run=lambda _, __: {
            "supportedVersions": list(protocol.SUPPORTED_VERSIONS),
            "capabilities": CAPABILITIES,
            "instructions": INSTRUCTIONS,
        },
        eras=frozenset({protocol.Era.MODERN}),
        ttl_ms=HOUR_MS,
    ),
    "tools/list": _make_list_method("tools", lambda _: tools.LISTED),
    "tools/call": ProtocolMethod(
        run=lambda context, request: tools.call_tool(
            context,
            request.params.get("name"),
            request.params.get("arguments") or {},
        )
    ),
    "resources/list": _make_list_method(
        "resources", list_resources, ttl_ms=HOUR_MS // 60, scope="private"
    ),
    "resources/templates/list": _make_list_method(
        "resourceTemplates", lambda _: tools.TEXTS["resources"]["templates"]
    ),
    "resources/read": ProtocolMethod(
        run=lambda context, request: read_resource(context, request.params.get("uri")),
        ttl_ms=0,
        scope="private",
    ),
    "prompts/list": _make_list_method("prompts", lambda _: list_prompts()),
    "prompts/get": ProtocolMethod(
        run=lambda context, request: fill_prompt(
            context,
            request.params.get("name"),
            request.params.get("arguments") or {},
        )
    ),
}

# ----------------------------------------------------------------- over HTTP

VERSION_HEADER = "mcp-protocol-version"
NAMED_BY = {"tools/call": "name", "prompts/get": "name", "resources/read": "uri"}
"""The field that the header with a name repeats."""
WANTS_HEADER = "mnemosyne-wants"
"""Header by which the daemon asks `mnem mcp` for the client's roots if nothing else names the project."""
PROGRESS_S = 1.0
"""Seconds between notifications of progress."""

_STATUS_OF_FAULT = {
    protocol.PARSE_ERROR: HTTPStatus.BAD_REQUEST,
    protocol.INVALID_REQUEST: HTTPStatus.BAD_REQUEST,
}
_STATUS_OF_MODERN_FAULT = {
    **_STATUS_OF_FAULT,
    protocol.INVALID_PARAMS: HTTPStatus.BAD_REQUEST,
    protocol.HEADER_MISMATCH: HTTPStatus.BAD_REQUEST,
    protocol.UNSUPPORTED_VERSION: HTTPStatus.BAD_REQUEST,
    protocol.METHOD_NOT_FOUND: HTTPStatus.NOT_FOUND,
}

log = logger()


def mcp_route(
    caller: facade.Caller,
    sessions: identity.AgentSessions,
    *,
    now: Callable[[], datetime] = local_now,
) -> Route:
    """Return the function that answers HTTP requests posted to `/mcp` by calling verbs."""

    def answer(http: HttpRequest) -> Response:
        """Return the HTTP response to a message or batch, or a stream with progress."""
        origin = identity.origin_of(http.headers, local=http.local)

        def context_of(request: protocol.McpRequest) -> tools.ToolContext:
            """Return the context of a request: its client's identity, the caller and the time."""
            moment = now()
            client = identity.identify(
                origin,
                client_name=request.client_name,
                sessions=sessions,
                now=moment,
            )
            return tools.ToolContext(
                caller=caller, identity=client, sessions=sessions, now=moment
            )

        message: object = None
        try:
            message = protocol.decode_message(http.body)
            request = (
                protocol.McpRequest.of(message) if isinstance(message, dict) else None
            )
            if request is not None:
                _check_headers(request, http.headers)
        except protocol.ProtocolError as error:
            failure = protocol.error_message(error, protocol.readable_id(message))
            return _make_http_response(failure, is_modern=True)
        if request is not None and _wants_progress(request):
            events = _stream_with_progress(
                request, lambda: answer_message(message, context_of)
            )
            return Response(
                HTTPStatus.OK,
                content_type="text/event-stream",
                headers=(("Cache-Control", "no-cache"), ("X-Accel-Buffering", "no")),
                stream=events,
            )
        is_modern = request is not None and request.era is protocol.Era.MODERN
        further = (
            _make_handshake_headers(request, origin, context_of) if request else ()
        )
        return _make_http_response(
            answer_message(message, context_of), is_modern=is_modern, headers=further
        )

    return answer


def _make_http_response(
    answer: Any,  # noqa: ANN401
    *,
    is_modern: bool,
    headers: tuple[tuple[str, str], ...] = (),
) -> Response:
    """Return the HTTP response with a JSON-RPC answer: 202 for None, or the status for its error code."""
    if answer is None:
        return Response(HTTPStatus.ACCEPTED, content_type="", headers=headers)
    error = answer.get("error") if isinstance(answer, dict) else None
    status = HTTPStatus.OK
    if error:
        faults = _STATUS_OF_MODERN_FAULT if is_modern else _STATUS_OF_FAULT
        status = faults.get(error["code"], HTTPStatus.OK)
    return Response(status, msgspec.json.encode(answer), headers=headers)


# ------------------------------------------------------------------- headers


def _check_headers(request: protocol.McpRequest, headers: Mapping[str, str]) -> None:
    """Raise `ProtocolError` if the MCP headers of a request contradict its body, or name no known version.

    A modern request must have all of them, unless it comes through `mnem mcp`, which sends none.
    """
    if request.era is protocol.Era.LEGACY:
        version = headers.get(VERSION_HEADER)
        if version is not None and version not in protocol.SUPPORTED_VERSIONS:
            versions = ", ".join(protocol.SUPPORTED_VERSIONS)
            raise protocol.ProtocolError(
                protocol.INVALID_REQUEST,
                f"MCP-Protocol-Version is unknown; supported are {versions}",
            )
        return
    required = identity.ORIGIN_HEADER not in headers
    name_field = NAMED_BY.get(request.method)
    expected: dict[str, object] = {
        VERSION_HEADER: request.version,
        "mcp-method": request.method,
    }
    if name_field:
        expected["mcp-name"] = request.params.get(name_field)
    for header, value in expected.items():
        given = _decode_header(headers.get(header))
        if given is None and not required:
            continue
        if given != value:
            raise protocol.ProtocolError(
                protocol.HEADER_MISMATCH,
                f"Header mismatch: {header} is missing, or not what the body says",
            )


def _decode_header(value: str | None) -> str | None:
    """Return a header's value, decoded if it has the form `=?base64?…?=`; empty if that is invalid."""
    beginning, end = ("=?base64?", "?=")
    if not value or not (value.startswith(beginning) and value.endswith(end)):
        return value
    try:
        encoded = value[len(beginning) : -len(end)]
        return base64.b64decode(encoded, validate=True).decode()
    except (binascii.Error, ValueError):
        return ""


def _make_handshake_headers(
    request: protocol.McpRequest,
    origin: Mapping[str, str],
    context_of: Callable[[protocol.McpRequest], tools.ToolContext],
) -> tuple[tuple[str, str], ...]:
    """Return the response headers for `initialize`; none for other methods.

    `mnem mcp` gets the client's name, and a request for roots if the project is unknown; a client over
    HTTP gets a session id.
    """
    if request.method != "initialize":
        return ()
    client = identity.client_of(request.client_name)
    if not origin.get("life"):
        session = origin["session"] or f"{client}.{secrets.token_hex(8)}"
        return ((identity.SESSION_HEADER, session),)
    headers = [(identity.CLIENT_HEADER, client)]
    capabilities = request.params.get("capabilities")
    has_roots = isinstance(capabilities, dict) and "roots" in capabilities
    if has_roots and not context_of(request).identity.project:
        headers.append((WANTS_HEADER, "roots"))
    return tuple(headers)


# ------------------------------------------------------------------ progress


def _wants_progress(request: protocol.McpRequest) -> bool:
    """Return True if a request calls a slow tool, and its client wants progress notifications."""
    about = tools.TEXTS["tools"].get(str(request.params.get("name")), {})
    return (
        request.method == "tools/call"
        and request.id is not None
        and request.progress_token is not None
        and about.get("is_long", False)
    )


def _stream_with_progress(
    request: protocol.McpRequest, work: Callable[[], protocol.Json]
) -> Iterator[bytes]:
    """Run `work` in a thread; yield progress, then the answer, as server-sent events."""
    answers: list[protocol.Json] = []
    thread = threading.Thread(
        target=lambda: answers.append(work()), name="mcp-call", daemon=True
    )
    thread.start()
    seconds = 0
    while not answers:  # ends with the call, which has its own limits
        params = {
            "progressToken": request.progress_token,
            "progress": seconds,
            "message": f"{request.params.get('name')}: {seconds} s",
        }
        notice = {"method": "notifications/progress", "params": params}
        yield _encode_server_sent_event({"jsonrpc": "2.0", **notice})
        thread.join(PROGRESS_S)
        seconds += 1
    yield _encode_server_sent_event(answers[0])


def _encode_server_sent_event(message: protocol.Json) -> bytes:
    """Return a message as the bytes of one server-sent event."""
    return b"event: message\ndata: " + msgspec.json.encode(message) + b"\n\n"


R = TypeVar("R")


class UnreachableDaemon:
    """A caller that has no daemon."""

    def __init__(self, reason: str) -> None:
        self._reason = reason

    def call(self, _: Request[R], /) -> R:
        """Raise `DaemonUnreachable` with the reason given to the constructor."""
        raise DaemonUnreachable(self._reason)


def answer_alone(
    line: bytes, headers: dict[str, str], reason: str
) -> tuple[bytes, dict[str, str]]:
    """Return the answer to a message when no daemon can be reached, and the answer's headers.

    Tools, prompts and resources are listed as usual; a call fails with the `reason`. Header names are
    in lower case.
    """
    route = mcp_route(UnreachableDaemon(reason), identity.AgentSessions(None))
    lowered = {name.lower(): value for name, value in headers.items()}
    response = route(HttpRequest("POST", "/mcp", "", line, lowered))
    body = response.body
    if response.stream is not None:
        *_, body = EventBlocks().feed(b"".join(response.stream))
    return body, {name.lower(): value for name, value in response.headers}
