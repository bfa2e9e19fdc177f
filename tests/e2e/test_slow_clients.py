"""Clients that are idle, slow or silent, each in a way of its own: none keeps others waiting."""

from __future__ import annotations

import signal
import time
from contextlib import suppress

import pytest
from e2e.conftest import Start
from e2e.daemons import Daemon, eventually
from e2e.wire import SOON_S, answer, answered_s, connected, many, post

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


def test_a_health_question_is_answered_though_all_threads_are_busy(
    daemon: Daemon,
) -> None:
    assert daemon.request("GET", "/health").status == 200


@pytest.mark.parametrize("count", [1_000])
def test_pipelined_requests_are_answered_in_order(daemon: Daemon, count: int) -> None:
    with connected(daemon.socket) as connection:
        connection.sendall(
            b"GET /health HTTP/1.1\r\nHost: x\r\n\r\n" * count
            + post("get", id="nobody")
        )
        received = b""
        while b"not_found" not in received:
            received += connection.recv(1 << 20)

    assert received.count(b"HTTP/1.1 200") == count
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
