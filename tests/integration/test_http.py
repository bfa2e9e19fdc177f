"""HTTP: requests out of bytes, handlers by path and method, and streams."""

import json
import select
import socket
import threading
import time
import weakref
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from http import HTTPStatus
from typing import Any, cast

import h11
import pytest
from support.cases import each_case
from support.http_server import WAIT_S, Server, server
from support.vector_service import wait_until

from mnemosyned.daemon.http import workers
from mnemosyned.daemon.http.protocol import HEAD_BYTES_MAX, HttpProtocol, RequestRefused
from mnemosyned.daemon.http.workers import STREAMS_MAX
from mnemosyned.errors import NotFound
from mnemosyned.http_messages import HttpRequest, Resource, Response

MOST = 1_000
ACCEPTED = HTTPStatus.ACCEPTED
Headers = dict[str, str | None]


OK = b"HTTP/1.1 200 OK"
ANSWER = Response(HTTPStatus.OK, b"{}")
PLAIN = b"POST /v1/recall?a=b HTTP/1.1\r\nHost: x\r\nContent-Length: 5\r\n\r\nhello"
CHUNKS = (
    b"POST /v1/recall?a=b HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n"
    b"3;name=value\r\nhel\r\n2\r\nlo\r\n0\r\nTrailer: x\r\n\r\n"
)


def read_whole(client: socket.socket) -> bytes:
    """What comes until the server closes the connection."""
    return b"".join(iter(lambda: client.recv(10_000), b""))


def parsed(*parts: bytes) -> list[HttpRequest]:
    """The requests that have come whole after these parts, each answered at once."""
    protocol, requests = HttpProtocol(body_bytes_max=MOST), []
    for part in parts:
        protocol.feed(part)
        while request := protocol.next_request():
            requests.append(request)
            protocol.encode_response(ANSWER, last=False)
            if not protocol.reusable:
                return requests
    return requests


@each_case("data", [PLAIN, CHUNKS])
def test_a_request_is_the_same_whole_in_halves_and_byte_by_byte(data: bytes) -> None:
    (expected,) = parsed(data)

    assert (expected.method, expected.path) == ("POST", "/v1/recall")
    assert (expected.query, expected.body) == ("a=b", b"hello")
    assert expected.headers["host"] == "x"
    assert expected.local
    assert parsed(*(bytes([byte]) for byte in data)) == [expected]
    for cut in range(1, len(data)):
        assert parsed(data[:cut], data[cut:]) == [expected]
    assert parsed(data * 3) == [expected] * 3


@each_case(
    ("head", "path", "query"),
    [
        (b"GET / HTTP/1.1", "/", ""),
        (b"GET /a%20b?q=%C3%A9 HTTP/1.1", "/a b", "q=%C3%A9"),
        (b"GET /%C3%A9 HTTP/1.1", "/é", ""),
        (b"GET http://localhost/v1/status?x HTTP/1.1", "/v1/status", "x"),
        (b"GET http://localhost HTTP/1.1", "/", ""),
        ("GET /x?query=café HTTP/1.1".encode(), "/x", "query=caf%C3%A9"),
    ],
)
def test_the_target_is_read(head: bytes, path: str, query: str) -> None:
    (request,) = parsed(head + b"\r\nHost: x\r\n\r\n")

    assert (request.path, request.query) == (path, query)
    assert not request.body


@each_case(
    ("head", "body", "reusable"),
    [
        (b"GET / HTTP/1.1\r\nHost: x", b"{}", True),
        (b"HEAD / HTTP/1.1\r\nHost: x", b"", True),
        (b"GET / HTTP/1.1\r\nHost: x\r\nConnection: upgrade\r\nUpgrade: h2c", b"{}", True),
        (b"GET / HTTP/1.1\r\nHost: x\r\nconnection:close", b"{}", False),
        (b"GET / HTTP/1.0", b"{}", False),
    ],
)  # fmt: skip
def test_the_connection_is_kept_where_the_client_keeps_it(
    head: bytes, body: bytes, *, reusable: bool
) -> None:
    protocol = HttpProtocol(body_bytes_max=MOST)
    protocol.feed(head + b"\r\n\r\n")
    assert protocol.next_request()

    answer, sent = protocol.encode_response(ANSWER, last=False)

    assert sent == body
    assert b"Content-Length: 2\r\n" in answer
    kept = b"\r\nConnection: close\r\n" not in answer
    assert (protocol.reusable, kept) == (reusable, reusable)


HOST = b"POST / HTTP/1.1\r\nHost: x\r\n"
IN_CHUNKS = HOST + b"Transfer-Encoding: chunked\r\n\r\n"


def test_small_chunks_are_parsed_together(monkeypatch: pytest.MonkeyPatch) -> None:
    given: list[bytes] = []
    receive = h11.Connection.receive_data

    def counted(http: h11.Connection, data: bytes) -> None:
        given.append(data)
        receive(http, data)

    monkeypatch.setattr(h11.Connection, "receive_data", counted)

    (request,) = parsed(IN_CHUNKS + b"1\r\nx\r\n" * 500 + b"0\r\n\r\n")

    assert request.body == b"x" * 500
    assert len(given) < 10


@each_case(
    ("data", "status"),
    [
        (b"tea at four\r\n\r\n", 400),
        (b"\n", 400),
        (b"GET / HTTP/1.1\r\n\r\n", 400),
        (b"GET /\x00 HTTP/1.1\r\nHost: x\r\n\r\n", 400),
        (b"GET /%ff HTTP/1.1\r\nHost: x\r\n\r\n", 400),
        (b"CONNECT /health HTTP/1.1\r\nHost: x\r\n\r\n", 400),
        (HOST + b"No colon\r\n\r\n", 400),
        (HOST + b"Content-Length: -5\r\n\r\n", 400),
        (HOST + b"Content-Length: 5\r\nContent-Length: 6\r\n\r\n", 400),
        (HOST + b"Transfer-Encoding: gzip, chunked\r\n\r\n", 501),
        (HOST + b"Transfer-Encoding:\r\n chunked\r\n\r\n0\r\n\r\n", 400),
        (HOST + b"X: a\n\tb\r\n\r\n", 400),
        (HOST + b"Content-Length: 5\r\n" + IN_CHUNKS[len(HOST) :] + b"0\r\n\r\n", 400),
        (IN_CHUNKS[:-2] + b"Content-Length: 5\r\n\r\n0\r\n\r\n", 400),
        (b"PRI * HTTP/2.0\r\nHost: x\r\n\r\n", 505),
        (b"GET / HTTP/9.9\r\nHost: x\r\n\r\n", 505),
        (b"GET / HTTP/0.9\r\nHost: x\r\n\r\n", 505),
        (HOST + b"Content-Length: 1001\r\n\r\n", 413),
        (b"HEAD" + HOST[4:] + b"Content-Length: 1001\r\n\r\n", 413),
        (IN_CHUNKS + b"zz\r\n", 400),
        (IN_CHUNKS + b"2 \r\n{}\r\n0\r\n\r\n", 400),
        (IN_CHUNKS + b"2\t;a\r\n{}\r\n0\r\n\r\n", 400),
        (IN_CHUNKS + b"2\n{}\n0\n\n", 400),
        (IN_CHUNKS + b"2\r\n{}\r\n0 \r\n\r\n", 400),
        (IN_CHUNKS + b"fffffffffffffff\r\n", 413),
        (IN_CHUNKS + b"3\r\nabcd\r\n", 400),
        (IN_CHUNKS + b"1f4\r\n%s\r\n" % (b"x" * 500) * 3, 413),
        (HOST + b"X: " + b"x" * HEAD_BYTES_MAX, 431),
        (IN_CHUNKS + b"1;" + b"x" * HEAD_BYTES_MAX, 431),
        (IN_CHUNKS + b"0\r\n" + b"X: y\r\n" * (HEAD_BYTES_MAX // 6 + 1), 431),
    ],
)
def test_a_malformed_request_gets_an_answer(data: bytes, status: int) -> None:
    protocol = HttpProtocol(body_bytes_max=MOST)
    protocol.feed(data)
    with pytest.raises(RequestRefused) as whole:
        protocol.next_request()
    with pytest.raises(RequestRefused) as dripped:
        parsed(
            *(data[cut : cut + 1] for cut in range(min(len(data), 2_000))), data[2_000:]
        )

    assert whole.value.status == dripped.value.status == HTTPStatus(status)
    assert len(whole.value.message) < 300
    head, _ = protocol.encode_response(whole.value.response, last=True)
    assert b"\r\nConnection: close\r\n" in head
    assert not protocol.reusable


@pytest.mark.parametrize("blank", [b" ", b"\t", b" \t"])
@pytest.mark.parametrize(
    "before", [HOST, IN_CHUNKS + b"0\r\n"], ids=["headers", "trailers"]
)
def test_endless_blanks_are_refused_at_once(before: bytes, blank: bytes) -> None:
    with pytest.raises(RequestRefused):
        parsed(before + b"X:" + blank * 60_000 + b"\x00\r\n\r\n")


# Paths, methods and headers: which handler a request reaches, and what it is given.


def echo(request: HttpRequest) -> Response:
    seen = {"headers": dict(request.headers), "local": request.local}
    return Response(HTTPStatus.OK, json.dumps(seen).encode())


def page(_: HttpRequest) -> Response:
    return Response(
        ACCEPTED, b"<p>", content_type="text/html", headers=(("X-Page", "1"),)
    )


def missing(_: HttpRequest) -> Response:
    raise NotFound("there is none")


ECHO_METHODS = "GET, POST, HEAD, OPTIONS"
RESOURCES = {
    "/echo": Resource(echo, methods=("GET", "POST")),
    "/page": Resource(page),
    "/missing": Resource(missing),
    "/empty": Resource(lambda _: Response(ACCEPTED, content_type="")),
    "/write": Resource(echo, methods=("POST",), local_only=True),
}


@pytest.fixture(scope="module")
def served() -> Iterator[Server]:
    with server(RESOURCES) as running:
        yield running


def test_a_handler_gets_the_headers_by_lower_case_name_and_joined(
    served: Server,
) -> None:
    request = (
        b"GET /echo HTTP/1.1\r\nHost: x\r\nMcp-Name: Recall\r\nAccept: a\r\n"
        b"Connection: close\r\nAccept: b\r\n\r\n"
    )
    with served.raw(request) as connection:
        seen = json.loads(read_whole(connection).partition(b"\r\n\r\n")[2])

    assert seen["headers"]["mcp-name"] == "Recall"
    assert seen["headers"]["accept"] == "a, b"
    assert seen["local"]


@pytest.mark.parametrize(
    ("request_", "status", "body", "headers"),
    [
        ("GET /page", 202, b"<p>", {"Content-Type": "text/html", "X-Page": "1"}),
        ("HEAD /page", 202, b"", {"Content-Length": "3"}),
        ("GET /empty", 202, b"", {"Content-Length": "0", "Content-Type": None}),
        ("HEAD /write", 405, b"", {"Allow": "POST, OPTIONS"}),
        ("OPTIONS /echo", 204, b"", {"Allow": ECHO_METHODS}),
        *((f"{method} /other", 404, None, {}) for method in ("GET", "POST", "OPTIONS")),
        ("PUT /echo", 405, b"method_not_allowed", {"Allow": ECHO_METHODS}),
        ("BREW /echo", 405, b"method_not_allowed", {"Allow": ECHO_METHODS}),
        ("GET /missing", 404, b"not_found", {"Allow": None}),
    ],
)
def test_a_response_has_its_status_type_headers_and_body(
    served: Server, request_: str, status: int, body: bytes | None, headers: Headers
) -> None:
    method, path = request_.split()
    with served.response(method, path) as got:
        assert got.status == status
        sent = got.read()
        if sent and got.status >= 400:
            sent = json.loads(sent)["error"]["code"].encode()
        assert body in (None, sent)
        assert {name: got.headers[name] for name in headers} == headers
        assert not any(name.startswith("Access-Control") for name in got.headers)


def test_the_error_of_an_unknown_path_lists_the_paths_of_the_socket(
    served: Server,
) -> None:
    with served.response("GET", "/other") as got:
        message = json.loads(got.read())["error"]["message"]

    assert "/echo" in message
    assert "/write" in message


@pytest.mark.parametrize(
    ("origin", "status"),
    [
        ("http://localhost:3000", 200),
        ("https://127.0.0.1", 200),
        ("http://[::1]:8080", 200),
        ("http://localhost.attacker", 403),
        ("https://attacker.example", 403),
        ("http://127.0.0.1.attacker:80", 403),
        ("null", 403),
        ("", 403),
    ],
)
def test_pages_elsewhere_may_not_ask(served: Server, origin: str, status: int) -> None:
    with served.response("GET", "/echo", {"Origin": origin}) as got:
        assert got.status == status


def test_two_origins_are_refused(served: Server) -> None:
    both = b"Origin: http://localhost\r\nOrigin: http://localhost\r\n"
    with served.raw(b"GET /echo HTTP/1.1\r\nHost: x\r\n" + both + b"\r\n") as client:
        assert client.recv(100).startswith(b"HTTP/1.1 403 ")


# Streams: sent while they are made, at the client's speed, and ended when it leaves.


EVENTS = "text/event-stream"
GET = b"GET /events HTTP/1.1\r\nHost: x\r\n\r\n"


class Source:
    """Chunks on demand, of one stream at a time, and how many were asked for."""

    def __init__(self, chunks: Callable[[], Iterator[bytes]]) -> None:
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
    return ANSWER


@contextmanager
def serve(source: Source) -> Iterator[Server]:
    resources = {"/events": Resource(source), "/plain": Resource(plain)}
    with server(resources) as running:
        yield running


def test_each_chunk_arrives_before_the_next_is_made() -> None:
    step = threading.Semaphore(0)

    def chunks() -> Iterator[bytes]:
        for number in range(3):
            assert step.acquire(timeout=WAIT_S)
            yield b"data: %d\n\n" % number

    source = Source(chunks)
    with serve(source) as running, running.response("GET", "/events") as got:
        assert got.headers["Content-Type"] == EVENTS
        assert got.headers["Transfer-Encoding"] == "chunked"
        for number in range(3):
            step.release()
            assert got.read(9) == b"data: %d\n\n" % number
        assert got.read() == b""

    assert source.closed.is_set()


def test_the_connection_serves_on_after_a_stream() -> None:
    last = b"GET /plain HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n"
    with (
        serve(Source(lambda: iter([b"a", b"", b"b"]))) as running,
        running.raw(GET + last) as client,
    ):
        received = read_whole(client)

    assert b"\r\n\r\n1\r\na\r\n1\r\nb\r\n0\r\n\r\nHTTP/1.1 200 " in received
    assert received.endswith(b"{}")


def test_head_starts_no_stream() -> None:
    source = Source(flood)
    with serve(source) as running, running.response("HEAD", "/events") as got:
        assert (got.status, got.read()) == (200, b"")

    assert source.given == 0


def test_a_client_of_http_1_0_reads_to_the_end() -> None:
    with (
        serve(Source(lambda: iter([b"a", b"b"]))) as running,
        running.raw(b"GET /events HTTP/1.0\r\n\r\n") as client,
    ):
        assert read_whole(client).endswith(b"\r\n\r\nab")


@each_case("chunks", [ticking, flood])
def test_a_stream_ends_with_its_client(chunks: Callable[[], Iterator[bytes]]) -> None:
    source = Source(chunks)
    with serve(source) as running:
        with running.raw(GET) as client:
            assert client.recv(15) == OK

        assert source.closed.wait(WAIT_S)


def test_a_client_that_reads_nothing_is_left(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(workers, "STREAM_STALL_S", 0.5)
    source = Source(flood)
    with serve(source) as running, running.raw(GET):
        assert source.closed.wait(WAIT_S)

    assert source.given < 20


@each_case(("chunks", "end"), [(ticking, b"\r\n\r\n"), (failing, b"5\r\nfirst\r\n")])
def test_a_stream_past_its_deadline_or_with_a_failure_is_cut_without_its_end(
    chunks: Callable[[], Iterator[bytes]], end: bytes, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(workers, "STREAM_S", 0.2)
    with serve(Source(chunks)) as running, running.raw(GET) as client:
        received = read_whole(client)

    assert received.startswith(b"HTTP/1.1 200 ")
    assert received.endswith(end)
    assert not received.endswith(b"0\r\n\r\n")


def test_a_stream_without_a_thread_takes_no_place(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def fail(_: threading.Thread) -> None:
        raise RuntimeError("can't start new thread")

    source = Source(ticking)
    with serve(source) as running:
        with monkeypatch.context() as patched:
            patched.setattr(threading.Thread, "start", fail)
            for _ in range(STREAMS_MAX):
                with running.response("GET", "/events") as got:
                    assert got.status == 503
        assert source.closed.is_set()
        with running.raw(GET) as client:
            assert client.recv(15) == OK


def owner_of(request: HttpRequest) -> int:
    return int(request.headers["x-owner"])


def get(path: str, owner: int) -> bytes:
    return f"GET /{path} HTTP/1.1\r\nHost: x\r\nX-Owner: {owner}\r\n\r\n".encode()


def endless(_: HttpRequest) -> Response:
    return Response(HTTPStatus.OK, stream=ticking())


@pytest.mark.parametrize(("threads", "streams"), [(4, 2), (1, 1)])
def test_streams_leave_threads_for_others(threads: int, streams: int) -> None:
    resources = {"/events": Resource(endless), "/plain": Resource(plain)}
    with server(resources, threads=threads) as running, ExitStack() as stack:
        for _ in range(streams):
            client = stack.enter_context(running.raw(GET))
            assert client.recv(15) == OK
        with running.response("GET", "/events") as refused:
            assert (refused.status, b"daemon_busy" in refused.read()) == (503, True)
        with running.response("GET", "/plain") as got:
            assert got.status == 200


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


@contextmanager
def holding(
    threads: int,
) -> Iterator[tuple[Callable[[str, int], socket.socket], threading.Event]]:
    """A server whose answers to `/slow` wait for an event, and what sends it an owner's request."""
    going = threading.Event()

    def hold(_: HttpRequest) -> Response:
        assert going.wait(WAIT_S)
        return ANSWER

    resources = {"/slow": Resource(hold), "/plain": Resource(plain)}
    with (
        server(resources, threads=threads, owner_of=owner_of) as running,
        ExitStack() as stack,
    ):
        stack.callback(going.set)
        yield (
            lambda path, owner: stack.enter_context(running.raw(get(path, owner))),
            going,
        )


def test_requests_of_one_owner_leave_threads_to_another() -> None:
    with holding(threads=4) as (send, going):
        clients = [send("slow", owner) for owner in (1, 1, 1, 1, 1, 2, 2, 2)]
        assert send("plain", 3).recv(15) == OK
        going.set()
        assert {client.recv(15) for client in clients} == {OK}


def test_an_owner_is_told_that_requests_wait(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(workers, "WAITING_MAX", 1)
    with holding(threads=2) as (send, _):
        clients = [send("slow", 1) for _ in range(4)]
        ready, _, _ = select.select(clients, [], [], WAIT_S)
        answer = ready[0].recv(1_000)

    assert answer.startswith(b"HTTP/1.1 503")
    assert b"wait for their turn" in answer
    assert b"Retry-After: 1" in answer


def test_streams_end_with_the_server() -> None:
    source = Source(ticking)
    with serve(source) as running:
        client = running.raw(GET)
        assert client.recv(15) == OK

    client.close()
    assert source.closed.wait(WAIT_S)


def test_a_stream_that_ends_in_time_is_whole(monkeypatch: pytest.MonkeyPatch) -> None:
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
    with serve(Source(told_of_the_stop)) as running:
        client = running.raw(GET)
        assert client.recv(15) == OK

    with client:
        received = read_whole(client)
    assert received.endswith(b"5\r\nfirst\r\n4\r\nlast\r\n0\r\n\r\n")


def test_no_thread_holds_an_answer_that_it_gave() -> None:
    class Words(list[bytes]):
        """An iterable that can be referred to weakly, unlike bytes."""

    given: list[weakref.ref[Words]] = []

    def answer(_: HttpRequest) -> Response:
        words = Words()
        given.append(weakref.ref(words))
        return Response(HTTPStatus.OK, b"{}", headers=cast("Any", words))

    with server({"/v1/x": Resource(answer)}) as running:
        with running.response("GET", "/v1/x") as response:
            response.read()
        wait_until(lambda: given[0]() is None)
