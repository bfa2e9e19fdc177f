"""Errors that the description of the API names, met at a real daemon."""

from __future__ import annotations

import json
import re
import threading
from collections.abc import Callable
from contextlib import closing
from typing import Any

import pytest
from e2e.conftest import Start
from e2e.daemons import Answer, Daemon, UnixConnection, eventually

from mnemosyned import MnemosynedError
from mnemosyned.daemon.http.protocol import STATUS_OF_KIND, error_response
from mnemosyned.daemon.openapi import openapi
from mnemosyned.errors import error_classes_by_code

pytestmark = [pytest.mark.e2e, pytest.mark.thorough]

Ask = Callable[[Daemon], Answer]


def posts(verb: str, **fields: object) -> Ask:
    return lambda daemon: daemon.post(verb, **fields)


def sends(path: str, body: bytes, method: str = "POST") -> Ask:
    return lambda daemon: daemon.request(method, path, body)


def raw(request: bytes) -> Ask:
    """Bytes on the socket, as no client sends them."""

    def ask(daemon: Daemon) -> Answer:
        with closing(UnixConnection(daemon.socket)) as connection:
            connection.connect()
            connection.sock.sendall(request)
            head, _, body = connection.sock.recv(10_000).partition(b"\r\n\r\n")
            return Answer(int(head.split()[1]), json.loads(body))

    return ask


def pruned(daemon: Daemon) -> Answer:
    """Bring back a memory whose words were pruned."""
    for number in range(5):
        daemon.post("remember", id=f"p{number}", content=f"lunch {number} was at noon")
    daemon.post("sleep", force=True)
    assert daemon.post("prune", characters_max=0).body["memories"] >= 5
    return daemon.post("restore", id="p1")


def sleeping(daemon: Daemon) -> Answer:
    """Ask for a cycle while one runs."""
    texts = [{"content": f"Ann met Bob for lunch on day {n}."} for n in range(1_000)]
    for _ in range(4):
        daemon.post("remember_many", memories=texts)
    first = threading.Thread(target=lambda: daemon.post("sleep", force=True))
    first.start()
    running = "a cycle is running"
    eventually(lambda: daemon.post("status").body["sleep"]["running"], running)
    answer = daemon.post("sleep", force=True)
    first.join()
    return answer


def replaced(daemon: Daemon) -> Answer:
    """Remember after another file took the database's place."""
    other = daemon.database.with_name("other.db")
    other.write_bytes(b"")
    other.replace(daemon.database)
    return daemon.post("remember", content="tea")


MET: dict[str, tuple[str, Ask]] = {
    "malformed_json": ("/v1/recall", sends("/v1/recall", b"{")),
    "malformed_request": ("/v1/recall", raw(b"tea at four\r\n\r\n")),
    "secret_refused": ("/v1/remember", posts("remember", content="the key is AKIAIOSFODNN7EXAMPLE")),
    "invalid_text": ("/v1/remember", posts("remember", content="a\0b")),
    "foreign_origin": (
        "/v1/recall",
        raw(b"GET /v1/recall HTTP/1.1\r\nHost: x\r\nOrigin: http://a.example\r\n\r\n"),
    ),
    "method_not_allowed": ("/v1/forget", sends("/v1/forget", b"", "GET")),
    "cannot_undo": ("/v1/undo", posts("undo")),
    "words_pruned": ("/v1/restore", pruned),
    "sleep_in_progress": ("/v1/sleep", sleeping),
    "database_replaced": ("/v1/remember", replaced),
}  # fmt: skip
"""Each code with a path that documents it. Those of bad input, of TCP, of full and failing disks and of
the end of the daemon have tests of their own."""


@pytest.fixture(scope="module")
def described() -> dict[str, Any]:
    return openapi()


@pytest.mark.parametrize("code", MET)
def test_an_error_is_answered_as_described(
    start: Start, described: dict[str, Any], code: str
) -> None:
    path, ask = MET[code]
    daemon = start(
        MNEMOSYNE_LIMITS_CONTENT_BYTES_MAX="8000", MNEMOSYNE_SECRETS="refuse"
    )

    answer = ask(daemon)

    assert answer.error[0] == code
    operation = described["paths"][path]["post"]
    response = operation["responses"][str(answer.status)]
    assert f"`{code}`" in response["description"]


@pytest.mark.parametrize("code", error_classes_by_code())
def test_each_error_has_its_documented_form(
    described: dict[str, Any], code: str
) -> None:
    error = error_classes_by_code()[code]
    response = error_response(error("what to do next", field="x"))
    body = json.loads(response.body)["error"]
    schema = described["components"]["schemas"]["Error"]["properties"]["error"]

    assert response.status == STATUS_OF_KIND[error.kind]
    assert sorted(body) == sorted(schema["required"])
    assert body["code"] in schema["properties"]["code"]["enum"]


def test_codes_are_described_under_their_own_status(described: dict[str, Any]) -> None:
    for path in described["paths"].values():
        for operation in path.values():
            for status, response in operation["responses"].items():
                for code in re.findall(
                    r"^- `(\w+)`", response["description"], re.MULTILINE
                ):
                    error: type[MnemosynedError] = error_classes_by_code()[code]
                    assert STATUS_OF_KIND[error.kind] == int(status)
