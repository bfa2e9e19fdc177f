"""The one table of all that the daemon answers, by path."""

from __future__ import annotations

from mnemosyned.assembly.build import OpenMemory
from mnemosyned.daemon.api.hooks import hook_resources
from mnemosyned.daemon.api.verbs import verb_resources
from mnemosyned.http_messages import HttpRequest, Resource, Response, Route


def resources(memory: OpenMemory) -> dict[str, Resource]:
    """The resources of an open memory."""
    return {
        **verb_resources(memory.service),
        "/mcp": Resource(_mcp_route(memory), methods=("POST",)),
        **(hook_resources(memory.hooks) if memory.hooks else {}),
    }


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
