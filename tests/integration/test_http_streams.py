"""Streams: sent while they are made, at the client's speed, and ended when it leaves."""

from __future__ import annotations

import select
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from http import HTTPStatus

import pytest
from support.http_server import WAIT_S, Server, server

from mnemosyned.daemon.http import workers
from mnemosyned.http_messages import HttpRequest, Resource, Response

EVENTS = "text/event-stream"
GET = b"GET /events HTTP/1.1\r\nHost: x\r\n\r\n"


class Source:
    """Chunks on demand; keeps how many were asked for, and whether it was closed."""

    def __init__(self, chunks: Callable[[], Iterator[bytes]]) -> None:
        """One stream at a time."""
        self.given = 0
        self.closed = threading.Event()
        self._chunks = chunks

    def __call__(self, _: HttpRequest) -> Response:
        self._stream = self._chunks()
        return Response(HTTPStatus.OK, content_type=EVENTS, stream=self)

    def __iter__(self) -> Iterator[bytes]:
        return self

    def __next__(self) -> bytes:
        chunk = next(self._stream)
        self.given += 1
        return chunk

    def close(self) -> None:
        self.closed.set()


def ticking() -> Iterator[bytes]:
    """Nothing, again and again, as one does who waits."""
    while True:
        time.sleep(0.01)
        yield b""


def flood() -> Iterator[bytes]:
    while True:
        yield b"x" * 100_000


def failing() -> Iterator[bytes]:
    yield b"first"
    raise ValueError("no second")


def plain(_: HttpRequest) -> Response:
    return Response(HTTPStatus.OK, b"{}")


def serve(source: Source, *, threads: int = 4) -> Iterator[Server]:
    resources = {
        "/events": Resource(source),
        "/plain": Resource(plain),
    }
    with server(resources, threads=threads) as running:
        yield running


@pytest.fixture
def stepped() -> tuple[Source, threading.Semaphore]:
    """A source of three chunks, each after a step that the test allows."""
    step = threading.Semaphore(0)

    def chunks() -> Iterator[bytes]:
        for number in range(3):
            assert step.acquire(timeout=WAIT_S)
            yield b"data: %d\n\n" % number

    return Source(chunks), step


def test_each_chunk_arrives_before_the_next_is_made(
    stepped: tuple[Source, threading.Semaphore],
) -> None:
    source, step = stepped
    for running in serve(source):
        with running.response("GET", "/events") as got:
            assert got.headers["Content-Type"] == EVENTS
            assert got.headers["Transfer-Encoding"] == "chunked"
            for number in range(3):
                step.release()
                assert got.read(9) == b"data: %d\n\n" % number
            assert got.read() == b""

    assert source.closed.is_set()


def test_the_connection_serves_on_after_a_stream() -> None:
    for running in serve(Source(lambda: iter([b"a", b"", b"b"]))):
        with running.raw(GET + b"GET /plain HTTP/1.1\r\nHost: x\r\n\r\n") as client:
            received = b""
            while not received.endswith(b"{}"):
                part = client.recv(10_000)
                assert part
                received += part

        assert b"\r\n\r\n1\r\na\r\n1\r\nb\r\n0\r\n\r\nHTTP/1.1 200 " in received


def test_head_starts_no_stream() -> None:
    source = Source(flood)
    for running in serve(source):
        with running.response("HEAD", "/events") as got:
            assert (got.status, got.read()) == (200, b"")

    assert source.given == 0


def test_a_client_of_http_1_0_reads_to_the_end() -> None:
    for running in serve(Source(lambda: iter([b"a", b"b"]))):
        with running.raw(b"GET /events HTTP/1.0\r\n\r\n") as client:
            received = b""
            while part := client.recv(10_000):
                received += part

        assert received.endswith(b"\r\n\r\nab")


@pytest.mark.parametrize("chunks", [ticking, flood])
def test_a_stream_ends_when_its_client_leaves(
    chunks: Callable[[], Iterator[bytes]],
) -> None:
    source = Source(chunks)
    for running in serve(source):
        with running.raw(GET) as client:
            assert client.recv(15) == b"HTTP/1.1 200 OK"

        assert source.closed.wait(WAIT_S)


def test_a_client_that_does_not_read_is_sent_no_more(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(workers, "STREAM_STALL_S", 0.5)
    source = Source(flood)
    for running in serve(source):
        with running.raw(GET):
            assert source.closed.wait(WAIT_S)

    assert source.given < 20


def test_a_stream_past_its_deadline_is_cut_without_its_end(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(workers, "STREAM_S", 0.2)
    for running in serve(Source(ticking)):
        with running.raw(GET) as client:
            received = b""
            while part := client.recv(10_000):
                received += part

        assert received.startswith(b"HTTP/1.1 200 ")
        assert not received.endswith(b"0\r\n\r\n")


def test_a_stream_that_fails_is_cut_without_its_end() -> None:
    source = Source(failing)
    for running in serve(source):
        with running.raw(GET) as client:
            received = b""
            while part := client.recv(10_000):
                received += part

        assert received.endswith(b"5\r\nfirst\r\n")


def test_streams_leave_threads_for_others() -> None:
    def each(_: HttpRequest) -> Response:
        return Response(HTTPStatus.OK, stream=ticking())

    resources = {"/events": Resource(each), "/plain": Resource(plain)}
    with server(resources, threads=4) as running, ExitStack() as stack:
        for _ in range(2):
            client = stack.enter_context(running.raw(GET))
            assert client.recv(15) == b"HTTP/1.1 200 OK"
        with running.response("GET", "/events") as refused:
            assert (refused.status, b"daemon_busy" in refused.read()) == (503, True)
        with running.response("GET", "/plain") as got:
            assert got.status == 200


def owner_of(request: HttpRequest) -> int:
    return int(request.headers["x-owner"])


def get(path: str, owner: int) -> bytes:
    return f"GET /{path} HTTP/1.1\r\nHost: x\r\nX-Owner: {owner}\r\n\r\n".encode()


def endless(_: HttpRequest) -> Response:
    return Response(HTTPStatus.OK, stream=ticking())


def test_a_stream_takes_no_thread_from_requests() -> None:
    resources = {"/events": Resource(endless), "/plain": Resource(plain)}
    with server(resources, threads=1) as running:
        client = running.raw(GET)
        assert client.recv(15) == b"HTTP/1.1 200 OK"
        with running.response("GET", "/plain") as got:
            assert got.status == 200
        client.close()


def test_streams_of_one_owner_leave_room_for_those_of_another() -> None:
    resources = {"/events": Resource(endless)}
    with (
        server(resources, threads=4, owner_of=owner_of) as running,
        ExitStack() as stack,
    ):
        answers = []
        for owner in (1, 1, 1, 2, 2, 2, 3):
            client = stack.enter_context(running.raw(get("events", owner)))
            answers.append(client.recv(1_000))

    statuses = [answer[9:12].decode() for answer in answers]
    assert statuses == ["200", "200", "503", "200", "200", "503", "200"]
    assert b"this memory has 2 streams" in answers[2]
    assert b"Retry-After: 1" in answers[2]


def test_requests_of_one_owner_leave_threads_to_another() -> None:
    going = threading.Event()

    def slow(_: HttpRequest) -> Response:
        assert going.wait(WAIT_S)
        return Response(HTTPStatus.OK, b"{}")

    resources = {"/slow": Resource(slow), "/plain": Resource(plain)}
    with (
        server(resources, threads=4, owner_of=owner_of) as running,
        ExitStack() as stack,
    ):
        stack.callback(going.set)
        clients = [
            stack.enter_context(running.raw(get("slow", owner)))
            for owner in (1, 1, 1, 1, 1, 2, 2, 2)
        ]
        other = stack.enter_context(running.raw(get("plain", 3)))
        assert other.recv(15) == b"HTTP/1.1 200 OK"
        going.set()
        assert {client.recv(15) for client in clients} == {b"HTTP/1.1 200 OK"}


def test_an_owner_whose_requests_wait_is_told_so(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    going = threading.Event()

    def slow(_: HttpRequest) -> Response:
        assert going.wait(WAIT_S)
        return Response(HTTPStatus.OK, b"{}")

    monkeypatch.setattr(workers, "WAITING_MAX", 1)
    resources = {"/slow": Resource(slow)}
    with (
        server(resources, threads=2, owner_of=owner_of) as running,
        ExitStack() as stack,
    ):
        stack.callback(going.set)
        clients = [stack.enter_context(running.raw(get("slow", 1))) for _ in range(4)]
        ready, _, _ = select.select(clients, [], [], WAIT_S)
        answer = ready[0].recv(1_000)
        assert answer.startswith(b"HTTP/1.1 503")
        assert b"wait for their turn" in answer
        assert b"Retry-After: 1" in answer


def test_streams_end_with_the_server() -> None:
    source = Source(ticking)
    for running in serve(source):
        client = running.raw(GET)
        assert client.recv(15) == b"HTTP/1.1 200 OK"
        started = time.monotonic()

    client.close()
    assert time.monotonic() - started < 2
    assert source.closed.wait(WAIT_S)


def test_a_stream_that_ends_as_the_server_stops_is_sent_whole(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    stopping = threading.Event()
    drain = workers.Workers.drain

    def noted(self: workers.Workers) -> None:
        drain(self)
        stopping.set()

    def told_of_the_stop() -> Iterator[bytes]:
        yield b"first"
        assert stopping.wait(WAIT_S)
        yield b"last"

    monkeypatch.setattr(workers.Workers, "drain", noted)
    for running in serve(Source(told_of_the_stop)):
        client = running.raw(GET)
        assert client.recv(15) == b"HTTP/1.1 200 OK"

    with client:
        received = b""
        while part := client.recv(10_000):
            received += part
    assert received.endswith(b"5\r\nfirst\r\n4\r\nlast\r\n0\r\n\r\n")
