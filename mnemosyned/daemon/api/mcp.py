"""`/mcp`: the Model Context Protocol, loaded when the first agent comes."""

from __future__ import annotations

from collections.abc import Collection

from mnemosyned.domain.ports.servers.owners import Scope
from mnemosyned.domain.ports.surroundings.agents import AgentStore
from mnemosyned.http_messages import HttpRequest, Resource, Response, Route
from mnemosyned.verbs.facade import Caller

MCP_PATH = "/mcp"


def mcp_resource(
    caller: Caller, agents: AgentStore, *, scopes: Collection[Scope] | None = None
) -> Resource:
    """The resource of the protocol; `scopes` are those of a token, if there are any."""
    routes: list[Route] = []

    def route(request: HttpRequest) -> Response:
        if not routes:
            routes.append(_route(caller, agents, scopes))
        return routes[0](request)

    return Resource(route, methods=("POST",))


def _route(
    caller: Caller, agents: AgentStore, scopes: Collection[Scope] | None
) -> Route:
    # Loaded here: a start does not wait for it, and without agents nobody does.
    from mnemosyned.mcp.agent_sessions import (  # noqa: PLC0415
        AgentSessions,
        UnnotedSessions,
    )
    from mnemosyned.mcp.route import mcp_route  # noqa: PLC0415 the same

    is_reader = scopes is not None and Scope.WRITE not in scopes
    sessions = UnnotedSessions if is_reader else AgentSessions
    return mcp_route(caller, sessions(agents))
