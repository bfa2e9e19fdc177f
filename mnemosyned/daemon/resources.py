"""The one table of all that the daemon answers, by path."""

from __future__ import annotations

from http import HTTPStatus

from mnemosyned.assembly.build import OpenMemory
from mnemosyned.daemon.api.events import EVENTS_PATH, events_route
from mnemosyned.daemon.api.exchange import exchange_resources
from mnemosyned.daemon.api.hooks import hook_resources
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
        "/mcp": Resource(_mcp_route(memory), methods=("POST",)),
        **(hook_resources(memory.hooks) if memory.hooks else {}),
        "/openapi.json": Resource(_openapi),
        "/docs": Resource(_docs),
        "/metrics": Resource(metrics_route(collectors)),
    }


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


def _mcp_route(memory: OpenMemory) -> Route:
    """The route of the Model Context Protocol, loaded when the first agent comes."""
    routes: list[Route] = []

    def route(request: HttpRequest) -> Response:
        if not routes:
            # Loaded here: a start does not wait for it, and without agents nobody does.
            from mnemosyned.mcp.agent_sessions import AgentSessions  # noqa: PLC0415
            from mnemosyned.mcp.route import mcp_route  # noqa: PLC0415

            routes.append(mcp_route(memory.service, AgentSessions(memory.agents)))
        return routes[0](request)

    return route
