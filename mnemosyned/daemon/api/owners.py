"""The resources of owners: each request over TCP is about the memory of its token's owner."""

from __future__ import annotations

import dataclasses
import time
from collections.abc import Callable, Iterator, Mapping
from typing import Protocol
from weakref import WeakKeyDictionary

import msgspec

from mnemosyned.daemon.api.events import EVENTS_PATH, POLL_S, events_route, written
from mnemosyned.daemon.api.exchange import exchange_resources
from mnemosyned.daemon.api.mcp import MCP_PATH, mcp_resource
from mnemosyned.daemon.api.scopes import ScopedCaller, require_scope
from mnemosyned.daemon.api.verbs import verb_resources
from mnemosyned.daemon.server.access import bearer_token
from mnemosyned.daemon.server.refusals import RequestRefused, token_refused
from mnemosyned.daemon.server.tokens import OwnerTokens, TokenCache
from mnemosyned.domain.errors import (
    MnemosynedError,
    ScopeMissing,
    StorageFailed,
    Unauthorized,
)
from mnemosyned.domain.ports.servers.owners import Scope, TokenHolder
from mnemosyned.domain.ports.surroundings.agents import AgentStore
from mnemosyned.http_messages import HttpRequest, Resource, Response, Route
from mnemosyned.service.service import MemoryService
from mnemosyned.sleep.sleeper import Sleeper
from mnemosyned.verbs.streams.events import EventKind
from mnemosyned.verbs.streams.exchange import EXPORT_PATH, CutOff

Table = Mapping[str, Resource]
REFUSED = "this token is none, has expired or was revoked; ask who runs the server for another"


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
                **self._resources(memory, holder.scopes),
            }
        return table

    def _holder(self, request: HttpRequest) -> TokenHolder:
        given = bearer_token(request.headers)
        holder = self._tokens.holder(given) if given else None
        if holder is None:
            raise token_refused(
                REFUSED if given else OwnerTokens.advice, given=bool(given)
            )
        return holder

    def _resources(
        self, memory: ServedMemory, scopes: frozenset[Scope]
    ) -> dict[str, Resource]:
        """Return the resources of one memory, as far as scopes allow."""
        caller, bus = ScopedCaller(memory.service, scopes), memory.service.events
        progress = memory.sleeper.cycle
        exchange = exchange_resources(memory.service, scopes=scopes)

        def last_event(error: MnemosynedError) -> bytes:
            return written(
                bus.event(EventKind.DROPPED, code=error.code, message=error.message)
            )

        def last_line(error: MnemosynedError) -> bytes:
            return msgspec.json.encode(CutOff(reason=error.message)) + b"\n"

        return {
            **verb_resources(caller),
            **exchange,
            EXPORT_PATH: self._reading(
                exchange[EXPORT_PATH].route, "export", last_line
            ),
            EVENTS_PATH: self._reading(
                events_route(bus, lambda: progress.progress),
                "reading events",
                last_event,
            ),
            MCP_PATH: mcp_resource(caller, memory.agents, scopes=scopes),
        }

    def _reading(
        self, route: Route, what: str, last: Callable[[MnemosynedError], bytes]
    ) -> Resource:
        """Return a stream as a resource, which ends with `last` when its token may not read any more."""

        def check(request: HttpRequest) -> None:
            require_scope(Scope.READ, self._holder(request).scopes, what)

        def answer(request: HttpRequest) -> Response:
            check(request)
            response = route(request)
            if response.stream is None:
                return response
            stream = _CheckedStream(response.stream, lambda: check(request), last)
            return dataclasses.replace(response, stream=stream)

        return Resource(answer)


class _CheckedStream:
    """A stream that looks before each chunk whether its reader may still read."""

    def __init__(
        self,
        stream: Iterator[bytes],
        check: Callable[[], None],
        last: Callable[[MnemosynedError], bytes],
    ) -> None:
        self._stream = stream
        self._check = check
        self._last = last
        self._waiting = b""
        """The chunk that could not be checked, as the database was not there."""
        self._is_over = False

    def __iter__(self) -> Iterator[bytes]:
        return self

    def __next__(self) -> bytes:
        if self._is_over:
            raise StopIteration
        chunk, self._waiting = self._waiting or next(self._stream), b""
        try:
            self._check()
        except StorageFailed:
            if chunk:
                self._waiting = chunk
                time.sleep(POLL_S)
            return b""
        except (RequestRefused, ScopeMissing) as refused:
            self._is_over = True
            return self._last(
                refused if isinstance(refused, ScopeMissing) else Unauthorized(REFUSED)
            )
        return chunk

    def close(self) -> None:
        """Close the stream."""
        if close := getattr(self._stream, "close", None):
            close()
