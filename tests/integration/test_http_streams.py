"""Streams: sent while they are made, at the client's speed, and ended when it leaves."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from http import HTTPStatus

import pytest
from support.http_server import WAIT_S, Server, server

from mnemosyned.daemon.server import workers
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
