"""A real daemon that serves the owners of a database over TCP, and requests to it."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, closing, contextmanager
from dataclasses import dataclass
from http.client import HTTPConnection, HTTPResponse
from pathlib import Path
from typing import Any

from e2e.daemons import WAIT_S, Daemon, running

from mnemosyned import Client
from mnemosyned.memory.engine_ports import Scope
from mnemosyned.storage.postgres.owners import PostgresOwners


@dataclass(frozen=True, slots=True)
class Service:
    """A daemon, and who its owners are."""

    daemon: Daemon
    owners: PostgresOwners
    port: int

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    def token(self, owner: str, *scopes: Scope) -> str:
        """A token of an owner, who is added if there is none of that name."""
        if owner not in {each.name for each in self.owners.owners()}:
            self.owners.add(owner)
        return self.owners.issue(owner, "test", scopes or tuple(Scope)).secret

    def client(self, token: str, *, owner: str | None = None) -> Client:
        return Client(url=self.url, token=token, owner=owner)

    @contextmanager
    def request(
        self,
        path: str,
        token: str | None = None,
        fields: object = None,
        *,
        method: str = "POST",
        port: int = 0,
        headers: Mapping[str, str] | None = None,
    ) -> Iterator[HTTPResponse]:
        """An answer that the caller reads; of another port of the daemon if it is given."""
        named = {"Authorization": f"Bearer {token}"} if token else {}
        body = None if method == "GET" else json.dumps(fields or {})
        with closing(
            HTTPConnection("127.0.0.1", port or self.port, timeout=WAIT_S)
        ) as connection:
            connection.request(method, path, body, {**named, **(headers or {})})
            yield connection.getresponse()

    def ask(
        self,
        path: str,
        token: str | None = None,
        fields: object = None,
        **how: Any,  # noqa: ANN401 passed on to `request`
    ) -> tuple[int, dict[str, str], Any]:
        with self.request(path, token, fields, **how) as response:
            text = response.read()
            is_json = response.headers.get_content_type() == "application/json"
            answer = json.loads(text) if is_json else text.decode()
            return response.status, dict(response.headers), answer

    def status(self, path: str, token: str | None = None, **fields: object) -> int:
        return self.ask(path, token, fields)[0]


Serve = Callable[..., AbstractContextManager[Service]]
"""Starts a daemon; settings as MNEMOSYNE_… words."""


def port_of(daemon: Daemon, event: str = "listening") -> int:
    line, *_ = daemon.events(event)
    assert "token_file" not in line
    return int(line["address"].rpartition(":")[2])


@contextmanager
def serve_owners(
    home: Path,
    dsn: str,
    owners: PostgresOwners,
    **settings: Any,  # noqa: ANN401 passed on to `running`
) -> Iterator[Service]:
    usual = {
        "MNEMOSYNE_LISTEN": "127.0.0.1:0",
        "MNEMOSYNE_OWNERS_SERVE": "true",
        "MNEMOSYNE_SLEEP_ON_SHUTDOWN": "false",
    }
    with running(home, "--database", dsn, **{**usual, **settings}) as daemon:
        yield Service(daemon, owners, port_of(daemon))
