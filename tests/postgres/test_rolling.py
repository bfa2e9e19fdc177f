"""Two daemons behind a balancer are replaced one by one, and their server is killed, under load.

CLIENTS=32 ROLLS=5 pytest -m postgres -s tests/postgres/test_rolling.py
"""

from __future__ import annotations

import os
import selectors
import socket
import threading
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from e2e.daemons import Daemon, eventually, running
from support.postgres import Server, open_owners, rows
from support.steady_clients import SteadyClient

from mnemosyned import Client
from mnemosyned.memory.engine_ports import OWN_SCOPES

pytestmark = pytest.mark.postgres

CLIENTS = int(os.environ.get("CLIENTS", "8"))
ROLLS = int(os.environ.get("ROLLS", "1"))
OWNERS = 4
WORKING_S = 0.5
"""How long the clients work undisturbed before and after each fault."""
HOSTS = ("127.0.0.2", "127.0.0.3")
"""Where the daemons listen, on the port of the balancer, so that they admit requests to it."""
DRAIN_S = 1.0
CHECK_S = 0.1
"""How often the balancer asks whether a daemon is ready."""
RETRIED = {
    *("shutting_down", "daemon_unreachable", "daemon_busy"),
    *("database_unreachable", "memory_busy"),
}
"""Errors after which a client sends the same once more."""


class Balancer:
    """Passes connections on to the daemons that say by `/readyz` that they are ready."""

    def __init__(self) -> None:
        self._ready: list[str] = []
        self._turn = 0
        self._closing = threading.Event()
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.port: int = self._listener.getsockname()[1]
        self._threads = [
            threading.Thread(target=work, daemon=True)
            for work in (self._check, self._accept)
        ]
        for thread in self._threads:
            thread.start()

    def close(self) -> None:
        self._closing.set()
        self._listener.close()

    def has_ready(self, count: int) -> bool:
        return len(self._ready) == count

    def _check(self) -> None:
        while not self._closing.wait(CHECK_S):
            self._ready = [host for host in HOSTS if is_ready(host, self.port)]

    def _accept(self) -> None:
        with suppress(OSError):
            while True:
                client, _ = self._listener.accept()
                threading.Thread(
                    target=self._serve, args=(client,), daemon=True
                ).start()

    def _serve(self, client: socket.socket) -> None:
        """Connect a client to the daemon whose turn it is, or hang up."""
        self._turn += 1
        ready = self._ready
        with client, suppress(OSError, ZeroDivisionError):
            place = (ready[self._turn % len(ready)], self.port)
            with socket.create_connection(place) as daemon:
                pump(client, daemon)


def pump(client: socket.socket, daemon: socket.socket) -> None:
    """Pass bytes on in both directions until one side ends."""
    with selectors.DefaultSelector() as selector:
        selector.register(client, selectors.EVENT_READ, daemon)
        selector.register(daemon, selectors.EVENT_READ, client)
        while True:
            for key, _ in selector.select():
                source = key.fileobj
                assert isinstance(source, socket.socket)
                if not (sent := source.recv(1 << 16)):
                    return
                key.data.sendall(sent)


def is_ready(host: str, port: int) -> bool:
    request = (
        f"GET /readyz HTTP/1.1\r\nHost: {host}:{port}\r\nConnection: close\r\n\r\n"
    )
    with suppress(OSError), socket.create_connection((host, port), 5) as probe:
        probe.sendall(request.encode())
        return b" 200 " in probe.recv(4096)[:20]
    return False


@contextmanager
def begun(home: Path, dsn: str, address: str) -> Iterator[Daemon]:
    settings: dict[str, Any] = {
        "MNEMOSYNE_LISTEN": address,
        "MNEMOSYNE_OWNERS_SERVE": "true",
        "MNEMOSYNE_SHUTDOWN_DRAIN_S": str(DRAIN_S),
    }
    with running(home, "--database", dsn, **settings) as daemon:
        yield daemon


def test_clients_lose_nothing_in_an_upgrade(server: Server, tmp_path: Path) -> None:
    dsn = server.new_database()
    names = [f"owner-{number}" for number in range(OWNERS)]
    with open_owners(dsn) as owners:
        for name in names:
            owners.add(name)
        tokens = [owners.issue(name, "test", OWN_SCOPES).secret for name in names]
    with ExitStack() as stack:
        balancer = Balancer()
        stack.callback(balancer.close)
        addresses = [f"{host}:{balancer.port}" for host in HOSTS]
        daemons = [
            stack.enter_context(begun(tmp_path / address, dsn, address))
            for address in addresses
        ]
        eventually(lambda: balancer.has_ready(2), "both daemons were ready")
        url = f"http://127.0.0.1:{balancer.port}"
        workers = [
            SteadyClient(
                number, partial(Client, url=url, token=tokens[number % OWNERS])
            )
            for number in range(CLIENTS)
        ]
        stops: list[int] = []
        try:
            for roll in range(ROLLS):
                for place, address in enumerate(addresses):
                    time.sleep(WORKING_S)
                    stops.append(daemons[place].stop())
                    home = tmp_path / f"{address}-{roll}"
                    daemons[place] = stack.enter_context(begun(home, dsn, address))
                    eventually(lambda: balancer.has_ready(2), "both were ready again")
            rolled = sum((worker.errors for worker in workers), Counter[str]())
            for _ in range(ROLLS):
                time.sleep(WORKING_S)
                server.kill()
                server.start()
            time.sleep(WORKING_S)
            eventually(lambda: balancer.has_ready(2), "both were ready after all")
        finally:
            for worker in workers:
                worker.stop()
        ended = [daemon.stop() for daemon in daemons]

    acknowledged = {word for worker in workers for word in worker.acknowledged}
    errors = sum((worker.errors for worker in workers), Counter[str]())
    print(
        f"{CLIENTS} clients, {len(acknowledged)} acknowledged; errors while daemons were "
        f"replaced {dict(rolled)}, and in all {dict(errors)}"
    )
    kept = Counter(id for (id,) in rows(dsn, "SELECT id FROM memory"))
    assert acknowledged - kept.keys() == set()
    assert set(kept.values()) == {1}
    assert [word for worker in workers for word in worker.missed] == []
    assert errors.keys() <= RETRIED
    assert {*stops, *ended} == {0}
    assert len(acknowledged) > CLIENTS
