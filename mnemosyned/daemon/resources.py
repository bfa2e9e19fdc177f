"""The one table of all that the daemon answers, by path."""

from __future__ import annotations

from http import HTTPStatus

from mnemosyned.assembly.build import OpenMemory
from mnemosyned.daemon.api.events import EVENTS_PATH, events_route
from mnemosyned.daemon.api.exchange import exchange_resources
from mnemosyned.daemon.api.hooks import hook_resources
from mnemosyned.daemon.api.mcp import MCP_PATH, mcp_resource
from mnemosyned.daemon.api.metrics import (
    memory_collector,
    metrics_route,
    server_collector,
)
from mnemosyned.daemon.api.verbs import verb_resources
from mnemosyned.daemon.server.activity import ServerActivity
from mnemosyned.http_messages import HttpRequest, Resource, Response, Route

HTML = "text/html; charset=utf-8"
PAGE_HEADERS = (
    ("Content-Security-Policy", "default-src 'none'; style-src 'unsafe-inline'"),
    ("X-Content-Type-Options", "nosniff"),
)


def resources(memory: OpenMemory, activity: ServerActivity) -> dict[str, Resource]:
    """The resources of an open memory."""
    collectors = [server_collector(activity), memory_collector(memory)]
    return {
        **verb_resources(memory.service),
        **exchange_resources(memory.service),
        EVENTS_PATH: Resource(_events_route(memory)),
        MCP_PATH: mcp_resource(memory.service, memory.agents),
        **(hook_resources(memory.hooks) if memory.hooks else {}),
        **descriptions(),
        "/metrics": Resource(metrics_route(collectors)),
    }


def descriptions() -> dict[str, Resource]:
    """Resources that describe the API, the same for all who ask."""
    return {"/openapi.json": Resource(_openapi), "/docs": Resource(_docs)}


def _events_route(memory: OpenMemory) -> Route:
    cycle = memory.sleeper.cycle
    return events_route(memory.service.events, lambda: cycle.progress)


def _openapi(_: HttpRequest) -> Response:
    # Loaded here: a start need not wait for it.
    from mnemosyned.daemon.api.openapi import openapi_json  # noqa: PLC0415

    return Response(HTTPStatus.OK, openapi_json())


def _docs(_: HttpRequest) -> Response:
    # Loaded here: a start need not wait for it.
    from mnemosyned.daemon.api.page import docs_page  # noqa: PLC0415

    body = docs_page().encode()
    return Response(HTTPStatus.OK, body, content_type=HTML, headers=PAGE_HEADERS)
