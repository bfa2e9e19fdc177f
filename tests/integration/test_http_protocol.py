"""HTTP requests out of bytes, however they arrive; what is none is refused with its reason."""

from http import HTTPStatus

import pytest

from mnemosyned.daemon.http.protocol import HEAD_BYTES_MAX, HttpProtocol, RequestRefused
from mnemosyned.http_messages import HttpRequest, Response

MOST = 1_000
ANSWER = Response(HTTPStatus.OK, b"{}")
PLAIN = b"POST /v1/recall?a=b HTTP/1.1\r\nHost: x\r\nContent-Length: 5\r\n\r\nhello"
CHUNKS = (
    b"POST /v1/recall?a=b HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n"
    b"3;name=value\r\nhel\r\n2\r\nlo\r\n0\r\nTrailer: x\r\n\r\n"
)


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


@pytest.mark.parametrize("data", [PLAIN, CHUNKS])
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


@pytest.mark.parametrize(
    ("head", "path", "query"),
    [
        (b"GET / HTTP/1.1", "/", ""),
        (b"GET /a%20b?q=%C3%A9 HTTP/1.1", "/a b", "q=%C3%A9"),
        (b"GET /%C3%A9 HTTP/1.1", "/é", ""),
        (b"GET http://localhost/v1/status?x HTTP/1.1", "/v1/status", "x"),
        (b"GET http://localhost HTTP/1.1", "/", ""),
    ],
)
def test_the_target_is_read(head: bytes, path: str, query: str) -> None:
    (request,) = parsed(head + b"\r\nHost: x\r\n\r\n")

    assert (request.path, request.query) == (path, query)
    assert not request.body


@pytest.mark.parametrize(
    ("head", "reusable"),
    [
        (b"GET / HTTP/1.1\r\nHost: x", True),
        (b"GET / HTTP/1.1\r\nHost: x\r\nConnection: upgrade\r\nUpgrade: h2c", True),
        (b"GET / HTTP/1.1\r\nHost: x\r\nconnection:close", False),
        (b"GET / HTTP/1.0", False),
    ],
)
def test_the_connection_is_kept_where_the_client_keeps_it(
    head: bytes, *, reusable: bool
) -> None:
    protocol = HttpProtocol(body_bytes_max=MOST)
    protocol.feed(head + b"\r\n\r\n")
    assert protocol.next_request()

    answer, body = protocol.encode_response(ANSWER, last=False)

    assert body == b"{}"
    assert (protocol.reusable, b"\r\nConnection: close\r\n" not in answer) == (
        reusable,
        reusable,
    )


def test_an_answer_to_head_has_the_length_and_no_body() -> None:
    protocol = HttpProtocol(body_bytes_max=MOST)
    protocol.feed(b"HEAD / HTTP/1.1\r\nHost: x\r\n\r\n")
    assert protocol.next_request()

    head, body = protocol.encode_response(Response(HTTPStatus.OK, b"12345"), last=False)

    assert (b"Content-Length: 5\r\n" in head, body, protocol.reusable) == (
        True,
        b"",
        True,
    )


HOST = b"POST / HTTP/1.1\r\nHost: x\r\n"
IN_CHUNKS = HOST + b"Transfer-Encoding: chunked\r\n\r\n"


@pytest.mark.parametrize(
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
def test_a_malformed_request_is_refused_with_an_answer(
    data: bytes, status: int
) -> None:
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


def test_a_target_may_be_sent_as_it_is_typed() -> None:
    (request,) = parsed(
        "GET /v1/recall?query=café HTTP/1.1\r\nHost: x\r\n\r\n".encode()
    )

    assert request.query == "query=caf%C3%A9"


@pytest.mark.parametrize("blank", [b" ", b"\t", b" \t"])
@pytest.mark.parametrize(
    "before", [HOST, IN_CHUNKS + b"0\r\n"], ids=["headers", "trailers"]
)
def test_blanks_without_end_are_refused_before_they_cost_time(
    before: bytes, blank: bytes
) -> None:
    with pytest.raises(RequestRefused):
        parsed(before + b"X:" + blank * 60_000 + b"\x00\r\n\r\n")


def test_the_bytes_of_a_body_are_counted_while_it_arrives() -> None:
    protocol = HttpProtocol(body_bytes_max=MOST)
    assert not protocol.has_input

    protocol.feed(HOST + b"Expect: 100-continue\r\nContent-Length: 9\r\n")
    assert protocol.next_request() is None
    assert (protocol.has_input, protocol.in_body, protocol.continue_response()) == (
        True,
        False,
        b"",
    )

    protocol.feed(b"\r\n")
    assert protocol.next_request() is None
    assert (protocol.in_body, protocol.in_chunks, protocol.body_bytes) == (
        True,
        False,
        9,
    )
    assert protocol.continue_response() == b"HTTP/1.1 100 Continue\r\n\r\n"
    assert protocol.continue_response() == b""


def test_the_size_of_a_chunked_body_is_what_has_arrived() -> None:
    protocol = HttpProtocol(body_bytes_max=MOST)
    protocol.feed(IN_CHUNKS + b"5\r\nhel")

    assert protocol.next_request() is None
    assert (protocol.in_body, protocol.in_chunks, protocol.body_bytes) == (
        True,
        True,
        3,
    )
