"""Clients by the hundred, idle, slow or silent: none keeps others waiting."""

from __future__ import annotations

import os
import resource
import signal
import threading
import time
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path

import pytest
from e2e.conftest import Start
from e2e.daemons import (
    WAIT_S,
    Daemon,
    eventually,
    is_ready,
    kept,
    running,
    short_room,
    spawned,
)
from e2e.programs import BIN
from e2e.wire import SOON_S, answer, answered_s, connected, many, post
from soak.sampler import sample

from mnemosyned import Client

pytestmark = [pytest.mark.e2e, pytest.mark.fault, pytest.mark.alone]


LIMIT = 20
HALF_HEAD = b"POST /v1/remember HTTP/1.1\r\nHost: x\r\nContent-Le"
HALF_BODY = (
    b'POST /v1/remember HTTP/1.1\r\nHost: x\r\nContent-Length: 900\r\n\r\n{"content": '
)
CHUNKS = (
    b"POST /v1/remember HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n10\r\n"
)
LARGE_BYTES = 2_000_000
UPLOADS = int(os.environ.get("UPLOADS", "40"))
UPLOAD_BYTES = 30_000_000
LARGE_HEAD = (
    f"POST /v1/remember HTTP/1.1\r\nHost: x\r\nContent-Length: {UPLOAD_BYTES + 1}\r\n\r\n"
).encode()
Uploads = tuple[Daemon, float, list[Future[None]]]


@pytest.fixture(scope="module")
def uploads(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Uploads]:
    """A daemon, its memory before, and uploads that it ends after a minute: other tests run meanwhile."""
    part = b"x" * 1_000_000

    def upload(_: int) -> None:
        with connected(daemon.socket) as connection, suppress(OSError):
            connection.sendall(LARGE_HEAD)
            for _ in range(UPLOAD_BYTES // len(part)):
                connection.sendall(part)
            answer(connection)

    with (
        running(tmp_path_factory.mktemp("uploads")) as daemon,
        ThreadPoolExecutor(UPLOADS) as pool,
    ):
        before_mb = sample(daemon.process.pid, 0).resident_mb
        yield daemon, before_mb, [pool.submit(upload, n) for n in range(UPLOADS)]


def test_unfinished_uploads_hold_little_memory(uploads: Uploads) -> None:
    daemon, before_mb, _ = uploads
    most_mb = 0.0

    end = time.monotonic() + 3
    while time.monotonic() < end:
        most_mb = max(most_mb, sample(daemon.process.pid, 0).resident_mb)
        assert answered_s(daemon.socket) < 5 * SOON_S

    assert most_mb - before_mb < 250


@pytest.fixture
def small(start: Start) -> Daemon:
    """A daemon that few may be connected to."""
    return start(MNEMOSYNE_LIMITS_CONNECTIONS_MAX=str(LIMIT))


@pytest.mark.parametrize("sent", [b"", HALF_HEAD, HALF_BODY, CHUNKS, post("status")])
def test_who_is_connected_keeps_nobody_out(small: Daemon, sent: bytes) -> None:
    with many(small.socket, 3 * LIMIT, send=sent):
        assert answered_s(small.socket) < 10 * SOON_S


def test_the_longest_idle_is_closed_first(small: Daemon) -> None:
    with many(small.socket, LIMIT) as idle:
        idle[0].sendall(post("status"))
        assert answer(idle[0])[0] == 200

        with connected(small.socket) as newer:
            newer.sendall(post("status"))
            assert answer(newer)[0] == 200

        assert idle[1].recv(1) == b""
        for kept in (idle[0], *idle[2:]):
            kept.sendall(post("status"))
            assert answer(kept)[0] == 200


def test_a_request_on_its_way_is_not_idle(small: Daemon) -> None:
    with many(small.socket, LIMIT) as waiting:
        small.process.send_signal(
            signal.SIGSTOP
        )  # all that follows is there when it goes on
        for connection in waiting:
            connection.sendall(post("status"))
        with connected(small.socket) as newer:
            newer.sendall(post("status"))
            small.process.send_signal(signal.SIGCONT)
            statuses = [answer(connection)[0] for connection in (*waiting, newer)]

    assert statuses == [200] * (LIMIT + 1)


def test_clients_that_do_not_read_hold_no_thread(start: Start) -> None:
    daemon = start(MNEMOSYNE_LIMITS_THREADS="2")
    daemon.post("remember", id="large", content="x" * 1_000_000)
    question = post("get", id="large")

    with many(daemon.socket, 6, send=question * 4):
        eventually(lambda: answered_s(daemon.socket) < 10 * SOON_S, "an answer")

        assert daemon.post("status").status == 200


def test_a_client_that_reads_late_gets_all_its_answers(daemon: Daemon) -> None:
    daemon.post("remember", id="large", content="x" * 900_000)

    with connected(daemon.socket) as late:
        late.sendall(post("get", id="large") * 5)
        time.sleep(0.2)
        received = b""
        while received.count(b"HTTP/1.1 200") < 5 or not received.endswith(b"}"):
            part = late.recv(1 << 20)
            assert part
            received += part

    assert received.count(b"x" * 900_000) == 5


def test_more_large_bodies_than_there_is_memory_for_are_all_taken(start: Start) -> None:
    daemon = start(
        MNEMOSYNE_LIMITS_BODY_BYTES_MAX=str(LARGE_BYTES),
        MNEMOSYNE_LIMITS_CONTENT_BYTES_MAX=str(LARGE_BYTES),
    )
    request = post("remember", content="x" * 1_500_000, dedupe=True)
    halves = request[:900_000], request[900_000:]

    with many(daemon.socket, 12) as clients:
        for client in clients:
            client.settimeout(0)
            with suppress(
                BlockingIOError
            ):  # there is room for five: the others must wait
                client.send(halves[0])
        assert answered_s(daemon.socket) < 10 * SOON_S


def test_pipelined_requests_are_answered_in_order(daemon: Daemon) -> None:
    health = b"GET /health HTTP/1.1\r\nHost: x\r\n\r\n"
    with connected(daemon.socket) as connection:
        connection.sendall(health * 1_000 + post("get", id="nobody"))
        received = b""
        while b"not_found" not in received:
            received += connection.recv(1 << 20)

    assert received.count(b"HTTP/1.1 200") == 1_000
    assert received.count(b"HTTP/1.1 404") == 1


def test_a_client_that_asks_before_it_sends_is_told_to_go_on(daemon: Daemon) -> None:
    body = b'{"content": "asked first"}'
    head = (
        b"POST /v1/remember HTTP/1.1\r\nHost: x\r\n"
        b"Expect: 100-continue\r\nContent-Length: %d\r\n\r\n"
    )

    with connected(daemon.socket) as connection:
        connection.sendall(head % len(body))
        interim = connection.recv(100)
        connection.sendall(body)
        status, _ = answer(connection)

    assert interim == b"HTTP/1.1 100 Continue\r\n\r\n"
    assert status == 200


# Clients by the hundred, unfinished uploads, no descriptors: the daemon answers, and recovers.


IDLE = int(os.environ.get("IDLE_CLIENTS", "1000"))
BUSY = int(os.environ.get("BUSY_CLIENTS", "300"))
DRIP_S = 0.05


def test_a_thousand_idle_connections_keep_nobody_waiting(daemon: Daemon) -> None:
    with many(daemon.socket, IDLE):
        assert answered_s(daemon.socket) < SOON_S


def test_three_hundred_clients_in_one_program_are_all_served(daemon: Daemon) -> None:
    together = threading.Barrier(BUSY)

    def work(number: int) -> None:
        with Client(daemon.socket) as client:
            together.wait(WAIT_S)
            for turn in range(3):
                assert client.remember("busy", id=f"{number:03}-{turn}").stored

    with ThreadPoolExecutor(BUSY) as pool:
        list(pool.map(work, range(BUSY)))

    assert kept(daemon.database) == [
        f"{n:03}-{turn}" for n in range(BUSY) for turn in range(3)
    ]


@pytest.mark.parametrize("part", ["head", "body", "answer"])
def test_dripping_clients_keep_nobody_waiting(start: Start, part: str) -> None:
    daemon = start(MNEMOSYNE_LIMITS_CONNECTIONS_MAX="20")
    daemon.post("remember", id="large", content="x" * 1_000_000)
    request = {
        "head": b"POST /v1/status HTTP/1.1\r\nHost: x\r\n",
        "body": b"POST /v1/status HTTP/1.1\r\nHost: x\r\nContent-Length: 9999\r\n\r\n",
        "answer": post("get", id="large"),
    }[part]
    over = threading.Event()

    with many(daemon.socket, 20, send=request) as connections:

        def drip() -> None:
            while not over.wait(DRIP_S):
                for connection in connections:
                    with suppress(OSError):
                        _ = (
                            connection.recv(1)
                            if part == "answer"
                            else connection.send(b"x")
                        )

        dripping = threading.Thread(target=drip)
        dripping.start()
        time.sleep(1.0)
        waited_s = answered_s(daemon.socket)
        over.set()
        dripping.join()

    assert waited_s < 5 * SOON_S


def test_a_large_batch_is_taken_while_others_wait(daemon: Daemon) -> None:
    memories = [{"content": f"{number} {'y' * 900_000}"} for number in range(20)]

    with (
        many(daemon.socket, 6, send=LARGE_HEAD + b"x" * 100_000),
        connected(daemon.socket) as proper,
    ):
        proper.sendall(post("remember_many", memories=memories))
        status, _ = answer(proper)

    assert status == 200


def test_without_descriptors_it_waits_says_so_once_and_recovers(daemon: Daemon) -> None:
    pid = daemon.process.pid
    usual = resource.prlimit(pid, resource.RLIMIT_NOFILE)
    used = len(list(Path(f"/proc/{pid}/fd").iterdir()))

    resource.prlimit(pid, resource.RLIMIT_NOFILE, (used + 2, usual[1]))
    busy_s = cpu_s(pid)
    with many(daemon.socket, 50):
        time.sleep(2)
        busy_s = cpu_s(pid) - busy_s
        said = daemon.events("accept_failed")
        waited_s = answered_s(daemon.socket)
    resource.prlimit(pid, resource.RLIMIT_NOFILE, usual)

    assert len(said) == 1
    assert busy_s < 0.5
    assert waited_s < 10 * SOON_S
    assert daemon.log.stat().st_size < 5_000
    eventually(lambda: daemon.post("status").status == 200, "it recovers")


def test_the_limit_of_descriptors_is_raised(start: Start) -> None:
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (200, hard))
    try:
        raised = start(MNEMOSYNE_LIMITS_CONNECTIONS_MAX="500")
        limits = resource.prlimit(raised.process.pid, resource.RLIMIT_NOFILE)
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))

    assert limits[0] >= 500
    assert not raised.events("connections_limited")


def test_more_connections_than_descriptors_is_said_at_the_start(tmp_path: Path) -> None:
    with short_room() as room:
        program, log = room / "mnemosyned", room / "log"
        program.write_text(f'#!/bin/sh\nulimit -n 100\nexec {BIN}/mnemosyned "$@"\n')
        program.chmod(0o700)
        with spawned(
            f"--socket={room / 's'}",
            home=tmp_path,
            log=log,
            programs=room,
            anew=True,
            MNEMOSYNE_LIMITS_CONNECTIONS_MAX="10000",
        ):
            eventually(lambda: is_ready(log), "ready")
            with many(room / "s", 150):
                assert answered_s(room / "s") < 10 * SOON_S
            said = log.read_text()

    assert "connections_limited" in said
    assert "accept_failed" not in said


def test_unfinished_uploads_are_ended(uploads: Uploads) -> None:
    daemon, _, sent = uploads
    for upload in sent:
        upload.result(2 * WAIT_S + 40)

    assert daemon.post("status").status == 200


def cpu_s(pid: int) -> float:
    """CPU time of a process so far (proc(5), fields 14 and 15)."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")
