"""A daemon of several processes behind one address: requests, events, figures, and their ends."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from contextlib import closing, contextmanager, suppress
from http.client import HTTPResponse
from pathlib import Path

import pytest
from e2e.daemons import UnixConnection, eventually
from postgres.daemons import Serve, Service
from support.processes import child_pids

pytestmark = pytest.mark.postgres
STREAMS = 6
"""By chance all are of one process in one run of 32; nothing fails then."""


@pytest.fixture
def service(serve: Serve) -> Iterator[Service]:
    with serve(MNEMOSYNE_OWNERS_PROCESSES="2") as service:
        yield service


def further(service: Service) -> int:
    (pid,) = [
        pid
        for pid in child_pids(service.daemon.process.pid)
        if b"--process" in Path(f"/proc/{pid}/cmdline").read_bytes()
    ]
    return pid


def listening(pid: int, port: int) -> bool:
    sockets = set()
    for descriptor in Path(f"/proc/{pid}/fd").iterdir():
        with suppress(OSError):
            sockets.add(str(descriptor.readlink()))
    lines = Path("/proc/net/tcp").read_text(encoding="ascii").splitlines()[1:]
    inodes = [
        each.split()[9]
        for each in lines
        if each.split()[1].endswith(f":{port:04X}") and each.split()[3] == "0A"
    ]
    return any(f"socket:[{inode}]" in sockets for inode in inodes)


@contextmanager
def events(service: Service, token: str, after: str = "") -> Iterator[HTTPResponse]:
    """A stream of events, once it has promised to miss nothing."""
    path = f"/v1/events?after={after}" if after else "/v1/events"
    with service.request(path, token, method="GET") as response:
        assert response.readline() == b": \n"
        yield response


def next_ids(response: HTTPResponse, count: int) -> list[int]:
    found: list[int] = []
    while len(found) < count:
        line = response.readline()
        if line.startswith(b"id: "):
            found.append(int(line[4:]))
    return found


def remember(service: Service, token: str, count: int) -> None:
    """Memories, each by a connection of its own: some come to each process."""
    for number in range(count):
        content = f"Plum number {number}."
        assert service.status("/v1/remember", token, content=content) == 200


def figures(service: Service) -> list[str]:
    with closing(UnixConnection(service.daemon.socket)) as connection:
        connection.request("GET", "/metrics")
        return connection.getresponse().read().decode().splitlines()


def test_all_processes_send_all_events_in_one_order(service: Service) -> None:
    anna, bert = service.token("anna"), service.token("bert")
    assert listening(further(service), service.port)
    with events(service, anna) as first, events(service, bert) as other:
        remember(service, anna, STREAMS)
        remember(service, bert, 1)
        assert next_ids(first, STREAMS) == list(range(1, STREAMS + 1))
        assert next_ids(other, 1) == [1]

        for _ in range(STREAMS):
            with events(service, anna, after="2") as later:
                assert next_ids(later, STREAMS - 2) == list(range(3, STREAMS + 1))
        remember(service, anna, 1)
        assert next_ids(first, 1) == [STREAMS + 1]


def test_a_dead_process_is_replaced_and_figures_add_up(service: Service) -> None:
    anna, killed = service.token("anna"), further(service)
    remember(service, anna, 12)
    line = 'mnemosyned_requests_total{verb="remember",status="200"} 12'
    eventually(lambda: line in figures(service), "both are counted")
    os.kill(killed, signal.SIGSTOP)
    assert line in figures(service)  # a counter does not fall because a process is late

    os.kill(killed, signal.SIGKILL)

    eventually(lambda: service.daemon.events("process_ended"), "its end is noticed")
    eventually(
        lambda: (
            child_pids(service.daemon.process.pid)
            and listening(further(service), service.port)
        ),
        "another one listens",
    )

    assert further(service) != killed
    remember(service, anna, 12)
    with service.client(anna) as client:
        assert client.recall("plum", limit=50).hits


def test_signals_reach_all_processes_and_none_outlives_the_first(serve: Serve) -> None:
    with serve(MNEMOSYNE_OWNERS_PROCESSES="2") as service:
        pid = further(service)
        service.daemon.process.send_signal(signal.SIGHUP)
        eventually(
            lambda: len(service.daemon.events("config_reloaded")) == 2, "both read"
        )
        assert service.daemon.stop() == 0
        assert not Path(f"/proc/{pid}").exists()

    with serve(MNEMOSYNE_OWNERS_PROCESSES="2") as service:
        pid = further(service)
        service.daemon.kill()
        eventually(lambda: not Path(f"/proc/{pid}").exists(), "it ends with the first")
