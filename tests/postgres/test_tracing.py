"""Traces of a daemon, as a collector over HTTP gets them: spans of requests, without texts or owners."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import closing, contextmanager
from http.server import ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest
from e2e.daemons import UnixConnection, eventually, running
from support.endpoints import QuietHandler, in_thread

pytest.importorskip("opentelemetry.sdk")
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import (
    ExportTraceServiceRequest,
)
from postgres.daemons import Serve

pytestmark = pytest.mark.postgres
TRACE, PARENT = "4bf92f3577b34da6a3ce929d0e0e4736", "00f067aa0ba902b7"


class Collector:
    """What was sent to a collector: its bytes, and each span with its attributes."""

    def __init__(self) -> None:
        self.bodies: list[bytes] = []
        self.resources: list[dict[str, Any]] = []
        self.spans: list[tuple[Any, dict[str, Any]]] = []
        self.url = ""

    def take(self, body: bytes) -> None:
        self.bodies.append(body)
        for resource in ExportTraceServiceRequest.FromString(body).resource_spans:
            self.resources.append(values(resource.resource.attributes))
            for scope in resource.scope_spans:
                self.spans += [(span, values(span.attributes)) for span in scope.spans]


def values(attributes: Any) -> dict[str, Any]:  # noqa: ANN401 of a generated class
    return {
        each.key: getattr(each.value, each.value.WhichOneof("value"))
        for each in attributes
    }


@contextmanager
def collecting() -> Iterator[Collector]:
    collector = Collector()

    class Handler(QuietHandler):
        def do_POST(self) -> None:  # noqa: N802 named by `BaseHTTPRequestHandler`
            length = int(self.headers["Content-Length"])
            collector.take(self.rfile.read(length))
            self.reply(200, b"")

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    collector.url = f"http://127.0.0.1:{server.server_port}/v1/traces"
    with in_thread(server):
        yield collector


def test_a_span_tells_verb_status_and_time_of_each_request(tmp_path: Path) -> None:
    with (
        collecting() as collector,
        running(tmp_path, MNEMOSYNE_TRACING_ENDPOINT=collector.url) as daemon,
    ):
        with closing(UnixConnection(daemon.socket)) as connection:
            connection.request(
                "POST",
                "/v1/remember",
                json.dumps({"content": "a secret of the mill", "session": "mill-1"}),
                {"traceparent": f"00-{TRACE}-{PARENT}-01"},
            )
            assert connection.getresponse().status == 200
        assert daemon.request("GET", "/v1/recall?query=mill").status == 200
        assert daemon.post("remember", content="").status == 400
        assert daemon.stop() == 0

    spans = {span.name: (span, attributes) for span, attributes in collector.spans[:2]}
    remember, attributes = spans["remember"]
    assert (remember.trace_id.hex(), remember.parent_span_id.hex()) == (TRACE, PARENT)
    assert attributes["http.response.status_code"] == 200
    assert attributes["mnemosyned.verb"] == "remember"
    assert attributes["network.transport"] == "unix"
    duration_s = (remember.end_time_unix_nano - remember.start_time_unix_nano) / 1e9
    assert 0 < attributes["mnemosyned.database_s"] <= duration_s
    recall, attributes = spans["recall"]
    assert recall.trace_id.hex() != TRACE
    assert attributes["mnemosyned.database_s"] > 0
    assert [each["http.response.status_code"] for _, each in collector.spans][2] == 400
    assert collector.resources[0]["service.name"] == "mnemosyned"
    for word in (b"secret", b"mill", b"query"):
        assert not any(word in body for body in collector.bodies)


def test_no_span_names_an_owner_or_a_token(serve: Serve) -> None:
    with (
        collecting() as collector,
        serve(MNEMOSYNE_TRACING_ENDPOINT=collector.url) as service,
    ):
        token = service.token("anna-of-the-mill")
        assert service.ask("/v1/status", token, method="GET")[0] == 200
        assert service.daemon.stop() == 0

    ((span, attributes),) = collector.spans
    assert (span.name, attributes["network.transport"]) == ("status", "tcp")
    assert attributes["mnemosyned.database_s"] > 0
    for word in (b"anna", b"test", token.encode(), token[6:20].encode()):
        assert not any(word in body for body in collector.bodies)


def test_an_absent_collector_is_logged_once(tmp_path: Path) -> None:
    with collecting() as collector:
        url = collector.url  # of nobody, in a moment
    settings: dict[str, Any] = {
        "MNEMOSYNE_TRACING_ENDPOINT": url,
        "OTEL_BSP_SCHEDULE_DELAY": "50",
    }
    with running(tmp_path, **settings) as daemon:
        for _ in range(2):
            assert daemon.post("remember", content="tea at four").status == 200
        eventually(lambda: daemon.events("traces_not_sent"), "a line in the log")
        assert daemon.post("remember", content="tea at five").status == 200
        assert daemon.stop() == 0
        events = [line["event"] for line in daemon.events()]

    assert events.count("traces_not_sent") == 1
    assert events[-1] == "stopped"
