"""Paths, methods and headers: which handler a request reaches, and what it is given."""

from __future__ import annotations

import json
from collections.abc import Iterator
from http import HTTPStatus

import pytest
from support.http_server import Server, server

from mnemosyned.errors import NotFound
from mnemosyned.http_messages import HttpRequest, Resource, Response


def echo(request: HttpRequest) -> Response:
    seen = {
        "method": request.method,
        "headers": dict(request.headers),
        "local": request.local,
    }
    return Response(HTTPStatus.OK, json.dumps(seen).encode())


def page(_: HttpRequest) -> Response:
    return Response(
        HTTPStatus.ACCEPTED,
        b"<p>",
        content_type="text/html",
        headers=(("X-Page", "1"),),
    )


def missing(_: HttpRequest) -> Response:
    raise NotFound("there is none")


RESOURCES = {
    "/echo": Resource(echo, methods=("GET", "POST")),
    "/page": Resource(page),
    "/missing": Resource(missing),
    "/empty": Resource(lambda _: Response(HTTPStatus.ACCEPTED, content_type="")),
    "/write": Resource(echo, methods=("POST",), local_only=True),
}


@pytest.fixture(scope="module")
def served() -> Iterator[Server]:
    with server(RESOURCES) as running:
        yield running


def test_a_handler_gets_the_headers_by_lower_case_name(served: Server) -> None:
    with served.response("GET", "/echo", {"Mcp-Name": "Recall"}) as got:
        seen = json.loads(got.read())

    assert seen["headers"]["mcp-name"] == "Recall"
    assert seen["local"]


def test_a_repeated_header_is_joined(served: Server) -> None:
    request = (
        b"GET /echo HTTP/1.1\r\nHost: x\r\nAccept: a\r\nConnection: close\r\n"
        b"Accept: b\r\n\r\n"
    )
    with served.raw(request) as connection:
        received = b""
        while part := connection.recv(10_000):
            received += part

    assert json.loads(received.partition(b"\r\n\r\n")[2])["headers"]["accept"] == "a, b"


def test_a_response_has_its_status_type_and_headers(served: Server) -> None:
    with served.response("GET", "/page") as got:
        assert (got.status, got.read()) == (202, b"<p>")
        assert got.headers["Content-Type"] == "text/html"
        assert got.headers["X-Page"] == "1"


def test_head_is_answered_as_get_without_the_body(served: Server) -> None:
    with served.response("HEAD", "/page") as got:
        assert (got.status, got.headers["Content-Length"]) == (202, "3")
        assert got.read() == b""


def test_a_response_without_content_names_no_type(served: Server) -> None:
    with served.response("GET", "/empty") as got:
        assert (got.status, got.headers["Content-Length"]) == (202, "0")
        assert got.headers["Content-Type"] is None


@pytest.mark.parametrize("method", ["PUT", "DELETE", "PATCH", "BREW"])
def test_a_wrong_method_is_told_the_right_ones(served: Server, method: str) -> None:
    with served.response(method, "/echo") as got:
        error = json.loads(got.read())["error"]

    assert (got.status, error["code"]) == (405, "method_not_allowed")
    assert got.headers["Allow"] == "GET, POST, HEAD, OPTIONS"


def test_head_of_what_cannot_be_read_is_a_wrong_method(served: Server) -> None:
    with served.response("HEAD", "/write") as got:
        assert (got.status, got.headers["Allow"]) == (405, "POST, OPTIONS")
        assert got.read() == b""


def test_options_says_the_methods_and_allows_no_foreign_page(served: Server) -> None:
    with served.response("OPTIONS", "/echo") as got:
        assert (got.status, got.read()) == (204, b"")
        assert got.headers["Allow"] == "GET, POST, HEAD, OPTIONS"
        assert not any(name.startswith("Access-Control") for name in got.headers)


@pytest.mark.parametrize("method", ["GET", "POST", "OPTIONS"])
def test_a_path_without_a_handler_is_not_found(served: Server, method: str) -> None:
    with served.response(method, "/other") as got:
        assert got.status == 404
        assert json.loads(got.read())["error"]["code"] == "unknown_verb"


def test_an_error_of_a_handler_is_answered_by_its_code(served: Server) -> None:
    with served.response("GET", "/missing") as got:
        assert got.status == 404
        assert json.loads(got.read())["error"]["code"] == "not_found"


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
def test_pages_of_this_machine_alone_may_ask(
    served: Server, origin: str, status: int
) -> None:
    with served.response("GET", "/echo", {"Origin": origin}) as got:
        assert got.status == status


def test_two_origins_are_refused(served: Server) -> None:
    both = b"Origin: http://localhost\r\nOrigin: http://localhost\r\n"
    with served.raw(b"GET /echo HTTP/1.1\r\nHost: x\r\n" + both + b"\r\n") as client:
        assert client.recv(100).startswith(b"HTTP/1.1 403 ")
