"""Traces of requests by OpenTelemetry: a span for each, without texts and without owners.

Loaded where the setting `tracing.endpoint` is set; needs the extra `otel`. Variables such as
`OTEL_TRACES_SAMPLER` and `OTEL_RESOURCE_ATTRIBUTES` count as in other programs.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from http import HTTPStatus

from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace import ReadableSpan, TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor, SpanExportResult
from opentelemetry.trace import SpanKind, StatusCode
from opentelemetry.trace.propagation.tracecontext import TraceContextTextMapPropagator

from mnemosyned.daemon.metrics import Trace
from mnemosyned.fairness import take_database_time
from mnemosyned.http_messages import HttpRequest
from mnemosyned.logs import logger
from mnemosyned.version import __version__

EXPORT_S = 2.0
"""Time limit for sending spans; those that are not sent by then are lost."""
LOGGED_EVERY_S = 600.0
_parents = TraceContextTextMapPropagator()

log = logger()


class SpanSender:
    """Exporter of spans to a collector; logs at most every ten minutes that it cannot be reached."""

    def __init__(self, endpoint: str) -> None:
        """Send spans to the URL of a collector's traces."""
        self._exporter = OTLPSpanExporter(endpoint, timeout=EXPORT_S)
        self._logged = -LOGGED_EVERY_S

    def export(self, spans: Sequence[ReadableSpan]) -> SpanExportResult:
        """Send spans; return success or failure, and log a failure at most once in `LOGGED_EVERY_S` seconds."""
        result = self._exporter.export(spans)
        now = time.monotonic()
        is_sent = result is SpanExportResult.SUCCESS
        if not is_sent and now - self._logged >= LOGGED_EVERY_S:
            self._logged = now
            log.warning("traces_not_sent", spans=len(spans))
        return result

    def shutdown(self) -> None:
        """Stop sending."""
        self._exporter.shutdown()


@contextmanager
def trace_requests(endpoint: str) -> Iterator[Trace]:
    """Send spans to a collector's URL in a block; yield the function that records a request.

    A request's header `traceparent` names the parent span. Spans beyond the queue are dropped.
    """
    logging.getLogger("opentelemetry").setLevel(logging.CRITICAL)  # see `SpanSender`
    resource = {"service.name": "mnemosyned", "service.version": __version__}
    provider = TracerProvider(
        resource=Resource.create(resource), shutdown_on_exit=False
    )
    provider.add_span_processor(BatchSpanProcessor(SpanSender(endpoint)))
    tracer = provider.get_tracer("mnemosyned")

    def record(
        request: HttpRequest, verb: str, status: HTTPStatus, duration_s: float
    ) -> None:
        """Record, as a span, a request that this thread just answered, after `duration_s` seconds."""
        ended = time.time_ns()
        span = tracer.start_span(
            verb,
            context=_parents.extract(request.headers),
            kind=SpanKind.SERVER,
            start_time=ended - int(duration_s * 1e9),
            attributes={
                "mnemosyned.verb": verb,
                "mnemosyned.database_s": round(take_database_time(), 6),
                "http.request.method": request.method,
                "http.response.status_code": status.value,
                "network.transport": "unix" if request.local else "tcp",
            },
        )
        if status >= HTTPStatus.INTERNAL_SERVER_ERROR:
            span.set_status(StatusCode.ERROR)
        span.end(ended)

    try:
        yield record
    finally:
        provider.shutdown()
