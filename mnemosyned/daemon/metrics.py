"""`/metrics` for Prometheus, in text format 0.0.4, and the probes `/livez` and `/readyz`."""

from __future__ import annotations

import threading
import time
from bisect import bisect_left
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from http import HTTPStatus
from itertools import accumulate
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import msgspec

from mnemosyned import process_memory
from mnemosyned.errors import MnemosynedError, SchemaTooNew
from mnemosyned.http_messages import HttpRequest, Response, Route
from mnemosyned.logs import logger
from mnemosyned.memory.engine_ports import PoolFigures
from mnemosyned.memory.values import EmbedderState
from mnemosyned.text.rule_files import read_tables
from mnemosyned.verbs.upkeep import Status

if TYPE_CHECKING:
    from mnemosyned.assembly.build import OpenMemory
    from mnemosyned.assembly.owners import OwnerMemories
    from mnemosyned.daemon.http.server import EventLoop


METRICS_PATH = "/metrics"
CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"
LABEL_SETS_MAX = 1_000
"""Maximum sets of labels of one metric; further ones are not counted."""

MetricTexts = Mapping[str, Mapping[str, str]]
"""Lines of help by kind of metric, `counter`, `gauge` or `histogram`, and by name."""


class Sample(NamedTuple):
    """A value of a metric with its labels; `suffix` is appended to the metric's name."""

    name: str
    value: float
    labels: Mapping[str, str] = {}
    suffix: str = ""


Collector = Callable[[], Iterable[Sample]]
"""Function that returns samples for `/metrics`; those of one metric follow each other."""


def samples_by(name: str, label: str, values: Mapping[str, float]) -> Iterator[Sample]:
    """Yield a sample of the metric for each item of `values`, with its key as the label's value."""
    for key, value in values.items():
        yield Sample(name, value, {label: key})


class Histogram:
    """Histogram of durations, one for each set of label values; safe from any thread."""

    def __init__(
        self, name: str, labels: Sequence[str], *, bounds: Sequence[float]
    ) -> None:
        """Take the names of the labels, and the upper `bounds` of the buckets."""
        self._name = name
        self._labels = tuple(labels)
        self._bounds = tuple(bounds)
        self._lock = threading.Lock()
        self._counts: dict[tuple[str, ...], list[int]] = {}
        self._sums: dict[tuple[str, ...], float] = {}

    def observe(self, value: float, *labels: str) -> None:
        """Count a value, such as seconds, under labels; ignore new labels beyond `LABEL_SETS_MAX`."""
        bucket = bisect_left(self._bounds, value)
        with self._lock:
            counts = self._counts.get(labels)
            if counts is None:
                if len(self._counts) >= LABEL_SETS_MAX:
                    return
                counts = self._counts[labels] = [0] * (len(self._bounds) + 1)
                self._sums[labels] = 0.0
            counts[bucket] += 1
            self._sums[labels] += value

    def counts(self) -> dict[tuple[str, ...], int]:
        """Return the number of counted values for each tuple of label values."""
        with self._lock:
            return {labels: sum(each) for labels, each in self._counts.items()}

    def samples(self) -> Iterator[Sample]:
        """Yield the samples of each set of label values: cumulative buckets, then sum and count."""
        with self._lock:
            histograms = [
                (values, list(counts), self._sums[values])
                for values, counts in sorted(self._counts.items())
            ]
        limits = [*(_format_number(bound) for bound in self._bounds), "+Inf"]
        for values, counts, total in histograms:
            labels = dict(zip(self._labels, values, strict=True))
            for limit, count in zip(limits, accumulate(counts), strict=True):
                yield Sample(self._name, count, {**labels, "le": limit}, "_bucket")
            yield Sample(self._name, total, labels, "_sum")
            yield Sample(self._name, sum(counts), labels, "_count")


def render(samples: Iterable[Sample], texts: MetricTexts) -> str:
    """Return samples in Prometheus's text format, with help and type before each metric.

    `texts` are the help texts by type and name. Metrics without samples come last.
    """
    heads = {
        name: [f"# HELP {name} {_escape_text(text)}", f"# TYPE {name} {kind}"]
        for kind, named in texts.items()
        for name, text in named.items()
    }
    lines: list[str] = []
    for sample in samples:
        lines += heads.pop(sample.name, [])
        pairs = ",".join(
            f'{label}="{_escape_text(value, quote=True)}"'
            for label, value in sample.labels.items()
        )
        braces = f"{{{pairs}}}" if pairs else ""
        value = _format_number(sample.value)
        lines.append(f"{sample.name}{sample.suffix}{braces} {value}")
    for head in heads.values():
        lines += head
    return "\n".join(lines) + "\n"


def _escape_text(text: str, *, quote: bool = False) -> str:
    """Return a text with backslashes and line breaks escaped, with `quote` double quotes too."""
    text = text.replace("\\", "\\\\").replace("\n", "\\n")
    return text.replace('"', '\\"') if quote else text


def _format_number(value: float) -> str:
    """Return a number as text, without a fraction if it is whole."""
    return repr(int(value)) if value == int(value) else repr(float(value))


Trace = Callable[[HttpRequest, str, HTTPStatus, float], None]
"""Function that records an answered request: its label, its status and the seconds that it took."""
BOUNDS_S = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 60)
OTHER = "other"
"""The label of all paths that do not exist."""


class ServerActivity:
    """Counts of requests, connections and streams, for `/metrics`; any thread may read them."""

    def __init__(self) -> None:
        self.requests = Histogram(
            "mnemosyned_request_duration_seconds", ("verb", "status"), bounds=BOUNDS_S
        )
        self.refused: Counter[int] = Counter()
        """Requests refused before they were read, by status."""
        self.connections = {True: 0, False: 0}
        """Open connections over the socket, and over TCP."""
        self.connections_max = 0
        self.streams = 0
        """Streams that are being sent."""
        self.streams_max = 0
        self.errors: Counter[str] = Counter()
        """Errors of requests, by code."""
        self.trace: Trace | None = None
        """Records each answered request, if traces are sent."""
        self.pools: dict[str, Callable[[], PoolFigures | None]] = {}
        """Functions that return the use of pools, by name."""
        self.started_at = time.time()
        self._lock = threading.Lock()

    @contextmanager
    def count_stream(self) -> Iterator[None]:
        """Count one more stream as being sent during a block."""
        with self._lock:
            self.streams += 1
        try:
            yield
        finally:
            with self._lock:
                self.streams -= 1


UNAUTHORIZED = str(HTTPStatus.UNAUTHORIZED.value)
HOOK_ROWS_MAX = 200
"""Pairs of a client and an event that are shown."""

log = logger()


def metrics_route(collectors: Sequence[Collector]) -> Route:
    """Return the handler of `/metrics`; a collector that fails is left out and logged."""

    def metrics(_: HttpRequest) -> Response:
        samples: list[Sample] = []
        for collect in collectors:
            try:
                samples += collect()
            except MnemosynedError as error:
                log.warning("metrics_missing", code=error.code)
        body = render(samples, read_tables(__file__, "metrics.toml")).encode()
        return Response(HTTPStatus.OK, body, content_type=CONTENT_TYPE)

    return metrics


def server_samples(activity: ServerActivity) -> Iterator[Sample]:
    """Yield samples on requests, connections, streams and, by Prometheus's names, the process."""
    yield from activity.requests.samples()
    for (verb, status), count in sorted(activity.requests.counts().items()):
        labels = {"verb": verb, "status": status}
        yield Sample("mnemosyned_requests_total", count, labels)
    refused = {str(status): n for status, n in sorted(dict(activity.refused).items())}
    yield from samples_by("mnemosyned_requests_refused_total", "status", refused)
    tcp, socket = activity.connections[False], activity.connections[True]
    logins = sum(
        count
        for (_, status), count in activity.requests.counts().items()
        if status == UNAUTHORIZED
    )
    failed = logins + activity.refused[HTTPStatus.UNAUTHORIZED]
    yield Sample("mnemosyned_failed_logins_total", failed)
    errors = dict(sorted(dict(activity.errors).items()))
    yield from samples_by("mnemosyned_errors_total", "code", errors)
    connections = {"socket": socket, "tcp": tcp}
    yield from samples_by("mnemosyned_connections", "listener", connections)
    yield Sample("mnemosyned_connections_max", activity.connections_max)
    yield Sample("mnemosyned_streams", activity.streams)
    yield Sample("mnemosyned_streams_max", activity.streams_max)
    pools = {name: figures() for name, figures in dict(activity.pools).items()}
    for metric in PoolFigures._fields:
        used = {name: getattr(each, metric) for name, each in pools.items() if each}
        yield from samples_by(f"mnemosyned_pool_{metric}", "pool", used)
    yield Sample("process_start_time_seconds", round(activity.started_at, 3))
    yield Sample("process_resident_memory_bytes", process_memory.resident_bytes())
    yield Sample("process_cpu_seconds_total", time.process_time())
    descriptors = sum(1 for _ in Path("/proc/self/fd").iterdir())
    yield Sample("process_open_fds", descriptors)


def owner_samples(owners: OwnerMemories) -> Iterator[Sample]:
    """Yield samples about all owners together: memories, due work, and the last round of sleep cycles."""
    figures = owners.figures()
    yield Sample("mnemosyned_owners", figures.owners)
    yield Sample("mnemosyned_owners_open", len(owners.open_memories()))
    yield from samples_by("mnemosyned_owner_memories", "tier", figures.memories)
    yield Sample("mnemosyned_owners_due", figures.owners_due)
    yield Sample("mnemosyned_memories_due", figures.memories_due)
    yield Sample("mnemosyned_oldest_due_seconds", figures.due_s)
    yield Sample("mnemosyned_purges_due", figures.purges_due)
    yield Sample("mnemosyned_oldest_purge_seconds", figures.purge_s)
    yield Sample("mnemosyned_owner_embedding_backlog", figures.lacking_vectors)
    if last := owners.rounds.last_round:
        ended = last.ended_at.timestamp()
        yield Sample("mnemosyned_last_round_timestamp_seconds", ended)
        yield Sample("mnemosyned_last_round_seconds", last.duration_s)
        yield Sample("mnemosyned_last_round_owners", last.owners)


def memory_samples(memory: OpenMemory) -> Iterator[Sample]:
    """Yield samples on a memory: size, database, cycles, summaries and agents' hooks."""
    stats = memory.service.call(Status())
    tiers = {tier.value: totals for tier, totals in stats.tiers.items()}
    counts = {tier: totals.count for tier, totals in tiers.items()}
    characters = {tier: totals.characters for tier, totals in tiers.items()}
    build = {"version": stats.version, "schema": str(stats.schema_version)}
    yield Sample("mnemosyned_build_info", 1, build)
    yield from samples_by("mnemosyned_memories", "tier", counts)
    yield from samples_by("mnemosyned_memory_characters", "tier", characters)
    yield Sample("mnemosyned_database_bytes", stats.bytes_on_disk)
    yield Sample("mnemosyned_working_memory_max", stats.wm_max)
    yield Sample("mnemosyned_longest_write_seconds", stats.longest_write_ms / 1_000)
    yield Sample("mnemosyned_problems", len(stats.problems))
    yield Sample("mnemosyned_backups", stats.backup.count)
    if last := stats.backup.last:
        yield Sample("mnemosyned_last_backup_timestamp_seconds", last.timestamp())
    yield Sample("mnemosyned_working_memory_due", stats.sleep.due)
    yield Sample("mnemosyned_cycle_running", stats.sleep.running)
    if last := stats.sleep.last_cycle:
        yield Sample("mnemosyned_last_cycle_timestamp_seconds", last.timestamp())
    outcomes = dict(memory.service.sleeper.cycle.outcomes)
    for (trigger, outcome), count in sorted(outcomes.items()):
        labels = {"trigger": trigger, "outcome": outcome}
        yield Sample("mnemosyned_cycles_total", count, labels)
    status = stats.summarizer
    info = {"summarizer": status.name, "state": status.state.value}
    yield Sample("mnemosyned_summarizer_info", 1, info)
    encoder = stats.embedder
    info = {"encoder": encoder.name, "state": encoder.state.value}
    yield Sample("mnemosyned_encoder_info", 1, info)
    if encoder.state is not EmbedderState.OFF:
        memories = counts["working"] + counts["archive"]
        lacking = max(0, memories - encoder.embedded)
        yield Sample("mnemosyned_embedding_backlog", lacking)
    summaries = {
        "accepted": status.accepted,
        "retried": status.retried,
        "rejected": status.rejected,
        "fallback": status.fallbacks,
    }
    yield from samples_by("mnemosyned_model_summaries_total", "outcome", summaries)
    for figure in ("calls", "stored", "failures", "characters"):
        for agent in stats.agents[:HOOK_ROWS_MAX]:
            labels = {"client": agent.client, "event": agent.event}
            count = getattr(agent, figure)
            yield Sample(f"mnemosyned_hook_{figure}_total", count, labels)


LIVE_PATH, READY_PATH = PROBE_PATHS = ("/livez", "/readyz")
"""Answered without a token, as balancers have none."""
CACHED_S = 1.0
"""Seconds for which the result of a check answers further requests."""
CHECK_MAX_S = 3.0
"""A check that takes longer has failed."""
PASSED, UNKNOWN = "ok", "unknown"


class HealthProbe:
    """Answers to `/livez` and `/readyz`; safe from any thread.

    A check of the database runs in a thread of its own, so that neither busy worker threads nor a
    busy pool of connections fail it, and no event loop waits for it.
    """

    def __init__(self, *, now: Callable[[], float] = time.monotonic) -> None:
        """Begin as live and not ready; `now` is the monotonic clock."""
        self.loop: EventLoop | None = None
        """The event loop that serves requests, once there is one."""
        self.memory: OpenMemory | None = None
        """The memory that is checked, while it is open."""
        self.draining = False
        """Whether the daemon is about to stop, and still serves requests."""
        self._now = now
        self._changing = threading.Lock()
        self._began = -CACHED_S
        """When the last check began, by the monotonic clock."""
        self._found: Mapping[str, str] | None = {}
        """What the last check found, by the name of a part; None while it runs."""
        self._waiting: set[Callable[[], None]] = set()
        self._failed: list[str] = []

    def live(self) -> Response:
        """Return the response to `/livez`: 200, or 503 if event loop or worker threads have stopped."""
        is_live = self.loop is None or self.loop.is_working()
        status = HTTPStatus.OK if is_live else HTTPStatus.SERVICE_UNAVAILABLE
        return Response(status, msgspec.json.encode({"live": is_live}))

    def samples(self) -> Iterator[Sample]:
        """Yield the sample `mnemosyned_ready`, after waiting up to `CHECK_MAX_S` seconds for a check."""
        asked, checked = self._now(), threading.Event()
        response = self.ready(asked, checked.set)
        if response is None:
            checked.wait(CHECK_MAX_S)
            response = self.ready(asked, checked.set)
        is_ready = response is not None and response.status is HTTPStatus.OK
        yield Sample("mnemosyned_ready", is_ready)

    def ready(self, asked: float, wake: Callable[[], None]) -> Response | None:
        """Return the response to a request for `/readyz` that came at the monotonic time `asked`.

        Returns None while the database is being checked, which this call may start: call again after `wake`
        was called, or a moment later.
        """
        with self._changing:
            memory, now = self.memory, self._now()
            if memory is None or self.draining:
                state = UNKNOWN if memory else "awaited"
                return self._respond({"database": state, "schema": UNKNOWN}, memory)
            if self._found is None and now - self._began > CHECK_MAX_S:
                found = {"database": "no_answer", "schema": UNKNOWN}
                return self._respond(found, memory)
            if self._found is not None and self._began >= asked - CACHED_S:
                return self._respond(self._found, memory)
            if self._found is not None:
                check = threading.Thread(
                    target=self._check, args=(memory,), name="readiness", daemon=True
                )
                try:
                    check.start()
                except RuntimeError:
                    found = {"database": "no_thread", "schema": UNKNOWN}
                    return self._respond(found, memory)
                self._began, self._found = now, None
            self._waiting.add(wake)
        return None

    def _check(self, memory: OpenMemory) -> None:
        """Check the database, save the result, and call the waiting requests' `wake` functions."""
        found = {"database": PASSED, "schema": PASSED}
        try:
            memory.store.maintenance.check_ready()
        except SchemaTooNew as error:
            found["schema"] = error.code
        except MnemosynedError as error:
            found = {"database": error.code, "schema": UNKNOWN}
        except Exception:
            log.exception("readiness_failed")
            found = {"database": MnemosynedError.code, "schema": UNKNOWN}
        with self._changing:
            self._found, waiting = found, self._waiting
            self._waiting = set()
        for wake in waiting:
            wake()

    def _respond(self, found: Mapping[str, str], memory: OpenMemory | None) -> Response:
        """Return the response for a check's result; log if other parts fail than before."""
        encoder = memory.service.vectors.state if memory else EmbedderState.OFF
        drain = "draining" if self.draining else PASSED
        checks = {**found, "encoder": encoder.value, "drain": drain}
        failed = [
            name
            for name, state in checks.items()
            if name != "encoder" and state not in (PASSED, UNKNOWN)
        ]
        is_required = memory is not None and memory.config.embedding.required
        if is_required and encoder is not EmbedderState.READY:
            failed.append("encoder")
        if failed != self._failed:
            self._failed = failed
            log.info("readiness_changed", failed=failed, checks=checks)
        status = HTTPStatus.SERVICE_UNAVAILABLE if failed else HTTPStatus.OK
        body = {"ready": not failed, "failed": failed, "checks": checks}
        return Response(status, msgspec.json.encode(body))
