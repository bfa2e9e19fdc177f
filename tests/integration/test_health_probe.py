"""`/livez` and `/readyz`: what each part's failure answers, and that busy threads fail neither."""

import json
import threading
from collections.abc import Callable
from contextlib import ExitStack
from http import HTTPStatus
from types import SimpleNamespace
from typing import Any, cast

import pytest
from support.cases import each_case
from support.fakes import FakeTime, raising
from support.http_server import WAIT_S, server

from mnemosyned.assembly.build import OpenMemory
from mnemosyned.daemon import metrics
from mnemosyned.daemon.http import workers
from mnemosyned.daemon.http.protocol import Access, HttpProtocol, RequestRefused
from mnemosyned.daemon.metrics import CACHED_S, CHECK_MAX_S, PROBE_PATHS, HealthProbe
from mnemosyned.errors import DatabaseUnreachable, SchemaTooNew, StorageFailed
from mnemosyned.http_messages import HttpRequest, Resource, Response
from mnemosyned.memory.values import EmbedderState

Check = Callable[[], object]


def open_memory(
    check: Check,
    encoder: EmbedderState = EmbedderState.READY,
    *,
    required: bool = False,
) -> OpenMemory:
    """A memory of which the probe sees its check of the database and its encoder."""
    parts = SimpleNamespace(
        store=SimpleNamespace(maintenance=SimpleNamespace(check_ready=check)),
        service=SimpleNamespace(vectors=SimpleNamespace(state=encoder)),
        config=SimpleNamespace(embedding=SimpleNamespace(required=required)),
    )
    return cast("OpenMemory", parts)


class TimedProbe(HealthProbe):
    """A probe of a memory, whose time a test moves."""

    def __init__(self, memory: OpenMemory | None) -> None:
        self.time = FakeTime()
        super().__init__(now=self.time)
        self.memory = memory

    def asked(self) -> tuple[int, dict[str, Any]]:
        """Status and body of `/readyz`, once the check is done."""
        done = threading.Event()
        response = self.ready(self.time.now, done.set)
        if response is None:
            assert done.wait(WAIT_S)
            response = self.ready(self.time.now, done.set)
        assert response
        return response.status, json.loads(response.body)


def ready(*_: object) -> None:
    """The database answers."""


OFF, LOADING = EmbedderState.OFF, EmbedderState.LOADING


@each_case(
    ("memory", "failed", "checks"),
    [
        (open_memory(ready), "", {"database": "ok", "schema": "ok"}),
        (None, "database", {"database": "awaited", "encoder": "off"}),
        (
            open_memory(raising(DatabaseUnreachable("at db.example"))),
            "database",
            {"database": "database_unreachable", "schema": "unknown"},
        ),
        (
            open_memory(raising(StorageFailed("a standby"))),
            "database",
            {"database": "storage_failed"},
        ),
        (
            open_memory(raising(SchemaTooNew("20"))),
            "schema",
            {"database": "ok", "schema": "schema_too_new"},
        ),
        (open_memory(raising(ValueError("bug"))), "database", {"database": "internal_error"}),
        (open_memory(ready, LOADING), "", {"encoder": "loading"}),
        (open_memory(ready, LOADING, required=True), "encoder", {"database": "ok", "encoder": "loading"}),
        (open_memory(ready, OFF, required=True), "encoder", {"encoder": "off"}),
    ],
)  # fmt: skip
def test_the_body_names_what_failed(
    memory: OpenMemory | None, failed: str, checks: dict[str, str]
) -> None:
    status, body = TimedProbe(memory).asked()

    assert status == (503 if failed else 200)
    assert (body["ready"], body["failed"]) == (not failed, [failed] if failed else [])
    assert body["checks"].items() >= checks.items()
    assert "db.example" not in json.dumps(body)


def test_a_daemon_that_drains_is_not_ready_and_asks_no_database() -> None:
    probe = TimedProbe(open_memory(raising(AssertionError("was asked"))))
    probe.draining = True

    status, body = probe.asked()

    assert (status, body["failed"]) == (503, ["drain"])
    assert body["checks"]["drain"] == "draining"


def test_a_check_serves_the_requests_of_a_second() -> None:
    calls: list[float] = []
    probe = TimedProbe(open_memory(lambda: calls.append(probe.time.now)))

    for after_s in (0.0, CACHED_S / 2, CACHED_S / 2, CACHED_S / 10):
        probe.time.now += after_s
        assert probe.asked()[0] == 200

    assert calls == [1_000.0, 1_000.0 + CACHED_S * 1.1]


def test_a_check_without_an_end_is_a_failure_and_no_second_one_begins() -> None:
    hang, calls = threading.Event(), list[int]()

    def check() -> None:
        calls.append(1)
        hang.wait(WAIT_S)

    probe = TimedProbe(open_memory(check))
    done = threading.Event()
    assert probe.ready(probe.time.now, done.set) is None

    probe.time.now += CHECK_MAX_S + 0.1
    for _ in range(2):
        response = probe.ready(probe.time.now, done.set)
        assert response
        assert json.loads(response.body)["checks"]["database"] == "no_answer"

    hang.set()
    assert done.wait(WAIT_S)
    assert len(calls) == 1
    assert probe.asked()[0] == 200


def test_a_check_without_a_thread_is_a_failure_and_the_next_one_is_tried(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def no_thread(**_: object) -> threading.Thread:
        thread = threading.Thread()
        monkeypatch.setattr(thread, "start", raising(RuntimeError("no thread")))
        return thread

    probe = HealthProbe()
    probe.memory = open_memory(ready)
    with server({}, probe=probe) as running:
        with monkeypatch.context() as patched:
            threads = SimpleNamespace(Thread=no_thread, Lock=None)
            patched.setattr(metrics, "threading", threads)
            with running.response("GET", "/readyz") as response:
                assert response.status == 503
                found = json.loads(response.read())
        assert found["checks"]["database"] == "no_thread"
        with running.response("GET", "/readyz") as response:
            assert response.status == 200


def test_a_failing_probe_ends_one_connection(monkeypatch: pytest.MonkeyPatch) -> None:
    probe = HealthProbe()
    with server({}, probe=probe) as running:
        with monkeypatch.context() as patched:
            patched.setattr(probe, "ready", raising(ValueError("a fault")))
            with pytest.raises(ConnectionError), running.response("GET", "/readyz"):
                pass
        with running.response("GET", "/readyz") as response:
            assert response.status == 503


def test_neither_path_waits_for_busy_threads(monkeypatch: pytest.MonkeyPatch) -> None:
    probe, held = HealthProbe(), threading.Event()
    probe.memory = open_memory(ready)
    begun = threading.Semaphore(0)

    def hold(_: HttpRequest) -> Response:
        begun.release()
        held.wait(WAIT_S)
        return Response(HTTPStatus.OK, b"{}")

    def statuses() -> list[int]:
        found = []
        for path in ("/livez", "/readyz"):
            with running.response("GET", path) as response:
                found.append(response.status)
                assert json.loads(response.read())
        return found

    resources = {"/hold": Resource(hold)}
    with server(resources, threads=2, probe=probe) as running, ExitStack() as stack:
        probe.loop = running.loop
        clients = [
            stack.enter_context(running.raw(b"GET /hold HTTP/1.1\r\nHost: x\r\n\r\n"))
            for _ in "123"
        ]
        stack.callback(held.set)
        assert all(begun.acquire(timeout=WAIT_S) for _ in "12")
        assert statuses() == [200, 200]

        monkeypatch.setattr(workers, "STUCK_S", -1)
        assert statuses() == [503, 200]

        held.set()
        for client in clients:
            assert client.recv(1_000).startswith(b"HTTP/1.1 200")
        assert statuses() == [200, 200]

        with running.response("POST", "/readyz") as response:
            assert response.status == 405
            assert response.headers["Allow"] == "GET, HEAD, OPTIONS"


LISTENER = Access(
    local=False,
    hosts=frozenset({"127.0.0.1:7464"}),
    is_token=lambda _: False,
    open_paths=frozenset(PROBE_PATHS),
)


@each_case(
    ("head", "status"),
    [
        ("GET /livez", None),
        ("HEAD /readyz", None),
        ("GET http://127.0.0.1:7464/readyz?verbose", None),
        ("GET /health", 401),
        ("GET /livez/", 401),
        ("GET /readyz HTTP/1.1\r\nContent-Length: 5000", 413),
        ("GET /readyz HTTP/1.1\r\nTransfer-Encoding: chunked", 411),
        ("GET /readyz HTTP/1.1\r\nOrigin: https://evil.example", 403),
        ("GET http://evil.example/readyz", 403),
        ("GET http://127.0.0.1:7464/readyz HTTP/1.1\r\nHost: evil.example", 403),
        ("GET /livez HTTP/1.1\r\nHost: evil.example", 403),
    ],
)
def test_a_probe_needs_no_token_but_the_host(head: str, status: int | None) -> None:
    protocol = HttpProtocol(body_bytes_max=10_000, access=LISTENER)
    line, _, headers = head.partition(" HTTP/1.1\r\n")
    host = "" if "Host:" in headers else "Host: 127.0.0.1:7464\r\n"
    more = f"{headers}\r\n" if headers else ""
    protocol.feed(f"{line} HTTP/1.1\r\n{host}{more}\r\n".encode())

    if status is None:
        assert protocol.next_request()
        return
    with pytest.raises(RequestRefused) as refused:
        protocol.next_request()
    assert refused.value.status == status


def test_a_change_of_what_fails_is_logged_once(monkeypatch: pytest.MonkeyPatch) -> None:
    failed: list[object] = []

    def note(event: str, **fields: object) -> None:
        assert event == "readiness_changed"
        failed.append(fields["failed"])

    monkeypatch.setattr(metrics.log, "info", note)
    probe = TimedProbe(None)
    unreachable = raising(DatabaseUnreachable("x"))
    for check in (ready, unreachable, unreachable, ready):
        probe.memory = open_memory(check)
        probe.asked()
        probe.time.now += CACHED_S * 2

    assert failed == [["database"], []]
