"""What the daemon says of itself over HTTP: its figures, and the description of its API and errors."""

from __future__ import annotations

import json
import re
import threading
from collections.abc import Callable, Iterator
from contextlib import closing
from html.parser import HTMLParser
from http.client import HTTPConnection
from typing import Any

import pytest
from e2e.conftest import Start
from e2e.daemons import WAIT_S, Answer, Daemon, UnixConnection, eventually, running
from prometheus_client.parser import text_string_to_metric_families
from support.cases import each_case

from mnemosyned import MnemosynedError
from mnemosyned.daemon.http.protocol import STATUS_OF_KIND, error_response
from mnemosyned.daemon.openapi import openapi
from mnemosyned.errors import error_classes_by_code
from mnemosyned.verbs.facade import ALIASES, VERBS

pytestmark = pytest.mark.e2e

Labels = tuple[tuple[str, str], ...]


def fetched(daemon: Daemon, path: str) -> tuple[str, str]:
    with closing(UnixConnection(daemon.socket)) as connection:
        connection.request("GET", path)
        response = connection.getresponse()
        assert response.status == 200
        return response.headers["Content-Type"], response.read().decode()


def figures(daemon: Daemon) -> dict[tuple[str, Labels], float]:
    kind, text = fetched(daemon, "/metrics")
    assert kind == "text/plain; version=0.0.4; charset=utf-8"
    return {
        (sample.name, tuple(sorted(sample.labels.items()))): sample.value
        for family in text_string_to_metric_families(text)
        for sample in family.samples
    }


def requests_counted(daemon: Daemon, verb: str, status: str) -> float:
    key = ("mnemosyned_requests_total", (("status", status), ("verb", verb)))
    return figures(daemon).get(key, 0)


# ------------------------------------------------------------------- metrics


def test_requests_are_counted_by_verb_and_status(daemon: Daemon) -> None:
    for _ in range(3):
        daemon.post("remember", content="tea at four")
    daemon.post("remember", content="")
    daemon.request("GET", "/v1/recall?query=tea")

    assert requests_counted(daemon, "remember", "200") == 3
    assert requests_counted(daemon, "remember", "400") == 1
    assert requests_counted(daemon, "recall", "200") == 1
    values = figures(daemon)
    bucket = "mnemosyned_request_duration_seconds_bucket"
    inf = (("le", "+Inf"), ("status", "200"), ("verb", "remember"))
    assert values[bucket, inf] == 3


def test_unknown_paths_share_one_label(daemon: Daemon) -> None:
    for number in range(50):
        daemon.request("GET", f"/v1/nothing{number}")

    assert requests_counted(daemon, "other", "404") == 50
    verbs = {dict(labels).get("verb") for _, labels in figures(daemon)}
    assert not any(verb and verb.startswith("nothing") for verb in verbs)


def test_the_store_and_its_cycles_are_shown(daemon: Daemon) -> None:
    for number in range(5):
        daemon.post("remember", content=f"deploy {number} went out at noon")
    working = ("mnemosyned_memories", (("tier", "working"),))
    assert figures(daemon)[working] == 5

    daemon.post("sleep", force=True)
    daemon.post("sleep")

    values = figures(daemon)
    assert values[working] == 0
    assert values["mnemosyned_memories", (("tier", "archive"),)] == 5
    outcomes = {
        dict(labels)["outcome"]: value
        for (name, labels), value in values.items()
        if name == "mnemosyned_cycles_total"
    }
    assert outcomes == {"done": 1, "nothing_to_do": 1}
    assert values["mnemosyned_database_bytes", ()] > 0
    assert values["process_resident_memory_bytes", ()] > 1_000_000
    assert values["mnemosyned_connections", (("listener", "socket"),)] >= 1
    assert values["mnemosyned_working_memory_due", ()] == 0


def test_requests_that_are_none_are_counted(daemon: Daemon) -> None:
    with closing(UnixConnection(daemon.socket)) as connection:
        connection.connect()
        connection.sock.sendall(b"tea at four\r\n\r\n")
        assert connection.sock.recv(100).startswith(b"HTTP/1.1 400")

    refused = ("mnemosyned_requests_refused_total", (("status", "400"),))
    assert figures(daemon)[refused] == 1


@pytest.fixture(scope="module")
def metrics_port(tmp_path_factory: pytest.TempPathFactory) -> Iterator[int]:
    home = tmp_path_factory.mktemp("metrics")
    with running(home, MNEMOSYNE_METRICS_LISTEN="127.0.0.1:0") as daemon:
        (line,) = daemon.events("metrics_listening")
        yield int(line["address"].rpartition(":")[2])


@pytest.mark.parametrize(
    ("path", "headers", "status"),
    [
        ("/metrics", {}, 200),
        ("/livez", {}, 200),
        ("/readyz", {}, 200),
        ("/v1/status", {}, 404),
        ("/openapi.json", {}, 404),
        ("/metrics", {"Host": "evil.example"}, 403),
        ("/livez", {"Host": "evil.example"}, 403),
        ("/metrics", {"Origin": "https://evil.example"}, 403),
    ],
)
def test_an_address_of_their_own_shows_figures_and_probes_alone(
    metrics_port: int, path: str, headers: dict[str, str], status: int
) -> None:
    with closing(
        HTTPConnection("127.0.0.1", metrics_port, timeout=WAIT_S)
    ) as connection:
        connection.request("GET", path, headers=headers)
        response = connection.getresponse()
        text = response.read().decode()

    assert response.status == status
    if (path, status) == ("/metrics", 200):
        assert "mnemosyned_ready 1\n" in text
        assert 'mnemosyned_memories{tier="working"} 0' in text


# --------------------------------------------------------------- description


@pytest.fixture(scope="module")
def described() -> dict[str, Any]:
    return openapi()


def test_the_description_is_served(shared: Daemon, described: dict[str, Any]) -> None:
    kind, text = fetched(shared, "/openapi.json")

    assert kind == "application/json"
    assert json.loads(text) == json.loads(json.dumps(described))


def test_every_verb_is_described_with_its_methods(described: dict[str, Any]) -> None:
    paths = described["paths"]

    for name in (*VERBS, *ALIASES):
        verb = VERBS[ALIASES.get(name, name)]
        expected = {"post"} if verb.writes else {"get", "post"}
        assert set(paths[f"/v1/{name}"]) == expected
    assert {"/v1/health", "/metrics", "/openapi.json", "/docs"} <= set(paths)
    operations = [each for path in paths.values() for each in path.values()]
    names = {operation["operationId"] for operation in operations}
    assert len(names) == len(operations)


def test_every_reference_leads_to_a_schema(described: dict[str, Any]) -> None:
    schemas = described["components"]["schemas"]
    named = set(re.findall(r"#/components/schemas/(\w+)", json.dumps(described)))

    assert named == set(schemas)
    codes = schemas["Error"]["properties"]["error"]["properties"]["code"]["enum"]
    assert set(codes) == set(error_classes_by_code())


def test_an_operation_names_its_errors(described: dict[str, Any]) -> None:
    responses = described["paths"]["/v1/remember_many"]["post"]["responses"]

    assert "`id_taken`" in responses["409"]["description"]
    assert "`empty_content`" in responses["400"]["description"]
    assert "`shutting_down`" in responses["503"]["description"]
    assert "WWW-Authenticate" in responses["401"]["headers"]


# Errors that the description names, met at a real daemon.


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


@pytest.mark.thorough
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


@each_case("code", error_classes_by_code())
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


class _Loads(HTMLParser):
    """Keeps what a page would load, its links and the places they may lead to."""

    def __init__(self) -> None:
        super().__init__()
        self.loaded: list[str] = []
        self.links: set[str] = set()
        self.places: set[str] = set()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        given = dict(attrs)
        if tag in ("script", "link", "img", "iframe") or "src" in given:
            self.loaded.append(tag)
        if href := given.get("href"):
            self.links.add(href)
        if place := given.get("id"):
            self.places.add(f"#{place}")


def test_the_page_loads_nothing_and_has_every_route(shared: Daemon) -> None:
    kind, text = fetched(shared, "/docs")
    page = _Loads()
    page.feed(text)

    assert kind.startswith("text/html")
    assert "url(" not in text
    assert "@import" not in text
    assert page.loaded == []
    assert page.links - {"/openapi.json"} <= page.places
    assert {f"#v1-{name}" for name in VERBS} <= page.links
