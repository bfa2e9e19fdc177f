"""HTTP requests out of bytes, however they arrive; what is none is refused with its reason."""

from http import HTTPStatus

import pytest

from mnemosyned.server.parser import HEAD_BYTES_MAX, HttpRequest, RequestParser, RequestRefused

MOST = 1_000
PLAIN = b"POST /v1/recall?a=b HTTP/1.1\r\nHost: x\r\nContent-Length: 5\r\n\r\nhello"
CHUNKS = (
    b"POST /v1/recall?a=b HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n"
    b"3;name=value\r\nhel\r\n2\r\nlo\r\n0\r\nTrailer: x\r\n\r\n"
)


def parsed(*parts: bytes) -> list[HttpRequest]:
    """The requests that have come whole after these parts."""
    parser, requests = RequestParser(body_bytes_max=MOST), []
    for part in parts:
        parser.feed(part)
        while request := parser.next():
            requests.append(request)
    return requests


@pytest.mark.parametrize("data", [PLAIN, CHUNKS, b"\r\n\r\n" + PLAIN])
def test_a_request_is_the_same_whole_in_halves_and_byte_by_byte(data: bytes) -> None:
    expected = HttpRequest("POST", "/v1/recall", "a=b", bytearray(b"hello"), keep_alive=True)

    assert parsed(data) == [expected]
    assert parsed(*(bytes([byte]) for byte in data)) == [expected]
    for cut in range(len(data)):
        assert parsed(data[:cut], data[cut:]) == [expected]
    assert parsed(data * 3) == [expected] * 3


@pytest.mark.parametrize(
    ("head", "path", "query", "keep_alive"),
    [
        (b"GET / HTTP/1.1", "/", "", True),
        (b"GET /a%20b?q=%C3%A9 HTTP/1.1", "/a b", "q=%C3%A9", True),
        ("GET /?q=é HTTP/1.1".encode(), "/", "q=é", True),
        (b"GET http://localhost/v1/status?x HTTP/1.1", "/v1/status", "x", True),
        (b"GET http://localhost HTTP/1.1", "/", "", True),
        (b"GET /a HTTP/1.0", "/a", "", False),
        (b"GET /a HTTP/1.0\r\nConnection: Keep-Alive", "/a", "", True),
        (b"GET /a HTTP/1.1\r\nconnection:close", "/a", "", False),
    ],
)
def test_the_target_and_the_connection_are_read(
    head: bytes, path: str, query: str, *, keep_alive: bool
) -> None:
    (request,) = parsed(head + b"\r\n\r\n")

    assert (request.path, request.query) == (path, query)
    assert request.keep_alive == keep_alive
    assert not request.body


POST = b"POST / HTTP/1.1\r\n"


@pytest.mark.parametrize(
    ("data", "status"),
    [
        (b"tea at four\r\n\r\n", 400),
        (b"GET / HTTP/2.0\r\n\r\n", 400),
        (b"GET / HTTP/1.1\n\n", 400),
        (b"\n", 400),
        (b"GET /\x00 HTTP/1.1\r\n\r\n", 400),
        (b"GET /%ff HTTP/1.1\r\n\r\n", 400),
        (b"\xef\xbb\xbfGET / HTTP/1.1\r\n\r\n", 400),
        (POST + b"No colon\r\n\r\n", 400),
        (POST + b" Folded: x\r\n\r\n", 400),
        (POST + b"Name : x\r\n\r\n", 400),
        (POST + b"Name: a\x00b\r\n\r\n", 400),
        (POST + b"Name: a\nX: b\r\n\r\n", 400),
        (POST + b"Content-Length: -5\r\n\r\n", 400),
        (POST + b"Content-Length: +5\r\n\r\n", 400),
        (POST + b"Content-Length: 5, 5\r\n\r\n", 400),
        (POST + b"Content-Length: 5\r\nContent-Length: 5\r\n\r\n", 400),
        (POST + b"Content-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n", 400),
        (POST + b"Transfer-Encoding: gzip, chunked\r\n\r\n", 501),
        (POST + b"Content-Length: 1001\r\n\r\n", 413),
        (POST + b"Content-Length: 99999999999999999999\r\n\r\n", 400),
        (POST + b"Transfer-Encoding: chunked\r\n\r\nzz\r\n", 400),
        (POST + b"Transfer-Encoding: chunked\r\n\r\n-1\r\n", 400),
        (POST + b"Transfer-Encoding: chunked\r\n\r\n3\r\nabcd\r\n", 400),
        (POST + b"Transfer-Encoding: chunked\r\n\r\n1;" + b"x" * 1_000, 400),
        (POST + b"Transfer-Encoding: chunked\r\n\r\n" + b"1f4\r\n%s\r\n" % (b"x" * 500) * 3, 413),
        (POST + b"X: " + b"x" * HEAD_BYTES_MAX, 431),
        (POST + b"X: " + b"x" * HEAD_BYTES_MAX + b"\r\n\r\n", 431),
    ],
)
def test_what_is_no_request_is_refused(data: bytes, status: int) -> None:
    with pytest.raises(RequestRefused) as whole:
        parsed(data)
    with pytest.raises(RequestRefused) as dripped:
        parsed(*(data[cut : cut + 1] for cut in range(min(len(data), 2_000))), data[2_000:])

    assert whole.value.status == dripped.value.status == HTTPStatus(status)


def test_trailers_have_a_limit() -> None:
    with pytest.raises(RequestRefused):
        parsed(
            POST + b"Transfer-Encoding: chunked\r\n\r\n0\r\n",
            b"X: y\r\n" * (HEAD_BYTES_MAX // 6 + 1),
        )


def test_what_is_held_is_known_while_it_comes() -> None:
    parser = RequestParser(body_bytes_max=MOST)
    assert not parser.started

    parser.feed(b"POST / HTTP/1.1\r\nExpect: 100-continue\r\nContent-Length: 9\r\n")
    assert parser.next() is None
    assert (parser.started, parser.in_body, parser.take_expectation()) == (True, False, False)

    parser.feed(b"\r\n")
    assert parser.next() is None
    assert (parser.in_body, parser.in_chunks, parser.body_bytes) == (True, False, 9)
    assert (parser.take_expectation(), parser.take_expectation()) == (True, False)
