"""The resources of owners: each request over TCP is about the memory of its token's owner."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Protocol
from weakref import WeakKeyDictionary

from mnemosyned.daemon.api.events import EVENTS_PATH, events_route
from mnemosyned.daemon.api.exchange import exchange_resources
from mnemosyned.daemon.api.mcp import MCP_PATH, mcp_resource
from mnemosyned.daemon.api.scopes import ScopedCaller, require_scope
from mnemosyned.daemon.api.verbs import verb_resources
from mnemosyned.daemon.server.access import bearer_token
from mnemosyned.daemon.server.refusals import token_refused
from mnemosyned.daemon.server.tokens import OwnerTokens, TokenCache
from mnemosyned.domain.ports.servers.owners import Scope, TokenHolder
from mnemosyned.domain.ports.surroundings.agents import AgentStore
from mnemosyned.http_messages import HttpRequest, Resource, Response, Route
from mnemosyned.service.service import MemoryService
from mnemosyned.sleep.sleeper import Sleeper

Table = Mapping[str, Resource]


class ServedMemory(Protocol):
    """A memory, as it is served."""

    @property
    def service(self) -> MemoryService:
        """The verbs."""
        ...

    @property
    def sleeper(self) -> Sleeper:
        """The runner of its cycles."""
        ...

    @property
    def agents(self) -> AgentStore:
        """The sessions of its agents."""
        ...


class OwnerResources:
    """Finds whose a request is, and the resources that its token allows. Safe from any thread."""

    def __init__(
        self,
        *,
        tokens: TokenCache,
        memory_of: Callable[[int], ServedMemory],
        common: Table,
    ) -> None:
        """`common` is what describes the daemon, the same for all."""
        self._tokens = tokens
        self._memory_of = memory_of
        self._common = common
        self._tables: WeakKeyDictionary[ServedMemory, dict[frozenset[Scope], Table]] = (
            WeakKeyDictionary()
        )

    def __call__(self, request: HttpRequest) -> Table:
        """Return the resources of a request, by path. Raises `RequestRefused`."""
        holder = self._holder(request)
        memory = self._memory_of(holder.owner)
        tables = self._tables.setdefault(memory, {})
        table = tables.get(holder.scopes)
        if table is None:
            table = tables[holder.scopes] = {
                **self._common,
                **owner_resources(memory, holder.scopes),
            }
        return table

    def _holder(self, request: HttpRequest) -> TokenHolder:
        given = bearer_token(request.headers)
        holder = self._tokens.holder(given) if given else None
        if holder is None:
            raise token_refused(
                "this token is none, has expired or was revoked; ask who runs the server for another"
                if given
                else OwnerTokens.advice,
                given=bool(given),
            )
        return holder


def owner_resources(
    memory: ServedMemory, scopes: frozenset[Scope]
) -> dict[str, Resource]:
    """The resources of one memory, as far as scopes allow."""
    caller = ScopedCaller(memory.service, scopes)
    progress = memory.sleeper.cycle
    events = events_route(memory.service.events, lambda: progress.progress)
    return {
        **verb_resources(caller),
        **exchange_resources(memory.service, scopes=scopes),
        EVENTS_PATH: Resource(_readable(events, scopes)),
        MCP_PATH: mcp_resource(caller, memory.agents, scopes=scopes),
    }


def _readable(route: Route, scopes: frozenset[Scope]) -> Route:
    def answer(request: HttpRequest) -> Response:
        require_scope(Scope.READ, scopes, "reading events")
        return route(request)

    return answer
