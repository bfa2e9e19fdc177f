"""What a daemon for many owners answers over TCP, in the process of a test."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Generator, Iterator
from contextlib import ExitStack, closing, contextmanager
from dataclasses import dataclass, replace
from http import HTTPStatus
from itertools import islice
from typing import Any, cast

from fuzz.requests import Sent, by_post
from support.fakes import FakeClock
from support.settings import settings_in_force

from mnemosyned.assembly.build import SharedParts, make_shared_vectors
from mnemosyned.assembly.owners import OwnerMemories
from mnemosyned.assembly.stores import open_owned_stores
from mnemosyned.config.settings import DatabaseLocation
from mnemosyned.daemon.http.server import make_handler
from mnemosyned.daemon.metrics import ServerActivity
from mnemosyned.daemon.owners import OwnerResources, TokenCache
from mnemosyned.fairness import ForegroundGate
from mnemosyned.http_messages import HttpRequest, Response
from mnemosyned.memory.engine_ports import Embedder, Owner, Scope
from mnemosyned.service.audit import REQUESTER, Requester
from mnemosyned.service.intake import MEMBER
from mnemosyned.storage.postgres.owners import PostgresOwners
from mnemosyned.storage.postgres.store import OwnedStores

CHUNKS_READ = 50
"""Of an export that is all there is; a stream of events is left early."""


@dataclass(frozen=True, slots=True)
class Memory:
    """An owner's verbs, as a daemon for many answers them over TCP but for the connection."""

    answer: Callable[[HttpRequest], Response]
    owner: Owner
    token: str
    group: str | None = None
    """The group whose memory is asked where a call names none."""

    def _send(self, sent: Sent, token: str, owner: str | None) -> Response:
        path, _, query = sent.path.partition("?")
        headers = {"authorization": f"Bearer {token or self.token}"}
        owner = self.group if owner is None else owner
        if owner is not None:
            headers["mnemosyne-owner"] = owner
        return self.answer(
            HttpRequest(
                sent.method, path, query, sent.body or b"", headers, local=False
            )
        )

    def open(self, sent: Sent, *, owner: str | None = None) -> Iterator[bytes]:
        stream = self._send(sent, "", owner).stream
        assert stream
        return stream

    def ask(self, sent: Sent, *, token: str = "", owner: str | None = None) -> Response:
        response = self._send(sent, token, owner)
        if response.stream is None:
            return response
        with closing(cast("Generator[bytes]", response.stream)) as stream:
            parts = islice(stream, CHUNKS_READ)
            return replace(response, body=b"".join(parts), stream=None)

    def call(self, verb: str, /, owner: str | None = None, **fields: object) -> Any:  # noqa: ANN401 of any verb
        response = self.ask(by_post(verb, dict(fields)), owner=owner)
        assert response.status == HTTPStatus.OK, response.body
        return json.loads(response.body)

    def tool(self, name: str, owner: str | None = None, **arguments: object) -> Any:  # noqa: ANN401 of any tool
        params = {"name": name, "arguments": arguments}
        message = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params}
        response = self.ask(by_post("mcp", message, path="/mcp"), owner=owner)
        result = json.loads(response.body)["result"]
        assert not result["isError"], result
        return result["structuredContent"]


@dataclass(frozen=True, slots=True)
class Service:
    """What a daemon for many owners has, without rounds in the background."""

    owners: PostgresOwners
    answer: Callable[[HttpRequest], Response]

    def memory(self, name: str) -> Memory:
        self.owners.add(name)
        return self.token_of(name)

    def token_of(self, name: str, *scopes: Scope) -> Memory:
        (owner,) = (each for each in self.owners.owners() if each.name == name)
        secret = self.owners.issue(name, "test", scopes or tuple(Scope)).secret
        return Memory(self.answer, owner, secret)


@contextmanager
def open_memories(
    dsn: str,
    clock: FakeClock,
    settings: dict[str, Any],
    *,
    embedder: Embedder | None = None,
    embeds: bool = False,
) -> Iterator[tuple[OwnedStores, OwnerMemories]]:
    """The memories of a database's owners as one daemon has them open, without a round of its own."""
    shared = SharedParts(
        settings=settings_in_force(settings),
        gate=ForegroundGate(),
        clock=clock,
        age_clock=clock,
    )
    with ExitStack() as stack:
        location = DatabaseLocation(url=dsn)
        stores = stack.enter_context(open_owned_stores(location, embeds=embeds))
        vectors = make_shared_vectors(stores, embedder, shared.gate)
        if vectors:
            stack.enter_context(vectors)
        memories = OwnerMemories(stores, shared, vectors=vectors)
        memories.rounds.start()
        stack.callback(memories.rounds.stop)
        yield stores, memories


@contextmanager
def serve_in_process(
    dsn: str, *, now: Callable[[], float] = time.monotonic, groups_max: int = 8
) -> Iterator[Service]:
    """Serve the owners of a database without rounds in the background; `now` ages known tokens."""
    settings = {"limits.content_bytes_max": 10_000, "sleep.tick_s": 3_600}
    with open_memories(dsn, FakeClock(), settings) as (stores, memories):
        remote = OwnerResources(
            tokens=TokenCache(stores.owners, now=now),
            memory_of=memories.get,
            limits=memories.limits,
            common={},
            groups_max=groups_max,
        )
        handler = make_handler({}, ServerActivity(), tcp_resources=remote)
        try:
            yield Service(stores.owners, handler)
        finally:  # the sender of the last request: the next test is in the same thread
            REQUESTER.set(Requester())
            MEMBER.set((0, ""))
