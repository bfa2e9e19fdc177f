"""A daemon's TLS listener and the clients that remember over it, for several test modules."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self

import pytest
from e2e.authorities import Authority
from e2e.daemons import WAIT_S, Daemon, Json

from mnemosyned import AsyncClient, Client

NAMES = ("DNS:localhost", "IP:127.0.0.1")
TOKEN = "t" * 43


class LoopedClient:
    """An `AsyncClient` that is called as a `Client`: each call runs to its end in one event loop."""

    def __init__(self, *place: Path, **options: Any) -> None:  # noqa: ANN401
        self._client = AsyncClient(*place, **options)
        self._loop = asyncio.Runner()

    def __getattr__(self, verb: str) -> Callable[..., Any]:
        async def call(*fields: object, **named: object) -> object:
            method = getattr(self._client, verb)
            return await asyncio.wait_for(method(*fields, **named), WAIT_S)

        return lambda *fields, **named: self._loop.run(call(*fields, **named))

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        with self._loop:
            self._loop.run(self._client.close())


CLIENTS = pytest.mark.parametrize(
    "connect",
    [Client, pytest.param(LoopedClient, marks=pytest.mark.thorough)],
    ids=["Client", "AsyncClient"],
)
Connect = Callable[..., Client]


def remember(
    connect: Connect,
    url: str,
    token: str,
    ca: Path | None,
    text: str = "the bike is blue",
) -> bool:
    """Remember a text at a URL, and tell whether it was stored and is found."""
    with connect(url=url, token=token, ca=ca, timeout_s=WAIT_S) as client:
        return client.remember(text).stored and bool(client.recall(text[:20]))


@dataclass(frozen=True, slots=True)
class Door:
    """A daemon's TCP listener, and what its clients need."""

    daemon: Daemon
    port: int
    token: str
    ca: Path | None

    @property
    def url(self) -> str:
        return f"https://localhost:{self.port}"

    @property
    def variables(self) -> dict[str, Json]:
        return {
            "MNEMOSYNE_URL": self.url,
            "MNEMOSYNE_TOKEN": self.token,
            "MNEMOSYNE_CA": str(self.ca),
        }

    def client(self) -> Client:
        return Client(url=self.url, token=self.token, ca=self.ca, timeout_s=WAIT_S)

    def async_client(self) -> AsyncClient:
        return AsyncClient(url=self.url, token=self.token, ca=self.ca)


def door_of(daemon: Daemon, authority: Authority | None = None) -> Door:
    """The listener of a daemon on a port of its own, behind TLS where it has an authority."""
    (line,) = daemon.events("listening")
    port = int(line["address"].rpartition(":")[2])
    token = Path(line["token_file"]).read_text().strip()
    return Door(daemon, port, token, authority.file if authority else None)
