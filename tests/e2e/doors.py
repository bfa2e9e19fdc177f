"""A daemon's TLS listener and the clients that remember over it, for several test modules."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import pytest
from e2e.authorities import Authority
from e2e.daemons import WAIT_S, Daemon, Json

from mnemosyned import AsyncClient, Client

NAMES = ("DNS:localhost", "IP:127.0.0.1")
TOKEN = "t" * 43

Remember = Callable[[str, str, Path | None, str], bool]
"""Remember a text at a URL with a token and an authority, and tell whether it was stored."""


def remember_blocking(url: str, token: str, ca: Path | None, text: str) -> bool:
    """As `Remember`, by `Client`."""
    with Client(url=url, token=token, ca=ca, timeout_s=WAIT_S) as client:
        stored = client.remember(text).stored
        return stored and bool(client.recall(text[:20]))


def remember_async(url: str, token: str, ca: Path | None, text: str) -> bool:
    """As `Remember`, by `AsyncClient`."""

    async def remember() -> bool:
        async with AsyncClient(url=url, token=token, ca=ca) as client:
            stored = (await client.remember(text)).stored
            return stored and bool(await client.recall(text[:20]))

    return asyncio.run(remember())


CLIENTS = pytest.mark.parametrize("remember", [remember_blocking, remember_async])


@dataclass(frozen=True, slots=True)
class Door:
    """A daemon's TLS listener, and what its clients need."""

    daemon: Daemon
    port: int
    token: str
    ca: Path

    @property
    def url(self) -> str:
        """Its URL by a name."""
        return f"https://localhost:{self.port}"

    @property
    def variables(self) -> dict[str, Json]:
        """The environment variables that lead to it."""
        return {
            "MNEMOSYNE_URL": self.url,
            "MNEMOSYNE_TOKEN": self.token,
            "MNEMOSYNE_CA": str(self.ca),
        }

    def client(self) -> Client:
        """A client; the caller closes it."""
        return Client(url=self.url, token=self.token, ca=self.ca, timeout_s=WAIT_S)

    def async_client(self) -> AsyncClient:
        """A client for asyncio; the caller closes it."""
        return AsyncClient(url=self.url, token=self.token, ca=self.ca)


def door_of(daemon: Daemon, authority: Authority) -> Door:
    """The TLS listener of a daemon on a port of its own."""
    (line,) = daemon.events("listening")
    port = int(line["address"].rpartition(":")[2])
    token = Path(line["token_file"]).read_text().strip()
    return Door(daemon, port, token, authority.file)
