"""Figures in the text format of Prometheus, version 0.0.4, and counts of what the server does."""

from __future__ import annotations

import threading
import time
from bisect import bisect_left
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import accumulate

CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"
LABEL_SETS_MAX = 1_000
"""Label sets of one family; further ones are not counted."""

Labels = Mapping[str, str]


@dataclass(frozen=True, slots=True)
class Sample:
    """A value of a metric with its labels; `suffix` is appended to the metric's name."""

    value: float
    labels: Labels
    suffix: str = ""


@dataclass(frozen=True, slots=True)
class Family:
    """A metric of one name, of the kind `counter`, `gauge` or `histogram`, with its samples."""

    name: str
    kind: str
    help: str
    samples: Sequence[Sample]


Collector = Callable[[], Iterable[Family]]
"""Brings figures when they are asked for."""


def gauge(name: str, help: str, value: float, **labels: str) -> Family:
    """Return a metric with one value, which may rise and fall."""
    return Family(name, "gauge", help, [Sample(value, labels)])


def gauges(name: str, help: str, label: str, values: Mapping[str, float]) -> Family:
    """Return a metric with values that may rise and fall, by the value of one label."""
    samples = [Sample(value, {label: key}) for key, value in values.items()]
    return Family(name, "gauge", help, samples)


def counter(name: str, help: str, value: float, **labels: str) -> Family:
    """Return a metric with one count, which only rises until the process restarts."""
    return Family(name, "counter", help, [Sample(value, labels)])


def counters(name: str, help: str, label: str, values: Mapping[str, float]) -> Family:
    """Return a metric with counts that only rise, by the value of one label."""
    samples = [Sample(value, {label: key}) for key, value in values.items()]
    return Family(name, "counter", help, samples)


class Histogram:
    """Histogram of durations, one for each set of label values; safe from any thread."""

    def __init__(
        self, name: str, help: str, labels: Sequence[str], *, bounds: Sequence[float]
    ) -> None:
        """Take the names of the labels, and the upper `bounds` of the buckets."""
        self._name = name
        self._help = help
        self._labels = tuple(labels)
        self._bounds = tuple(bounds)
        self._lock = threading.Lock()
        self._counts: dict[tuple[str, ...], list[int]] = {}
        self._sums: dict[tuple[str, ...], float] = {}

    def observe(self, value: float, *labels: str) -> None:
        """Count a value in the histogram of these label values."""
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
        """Return how many values were counted, by label values."""
        with self._lock:
            return {labels: sum(each) for labels, each in self._counts.items()}

    def family(self) -> Family:
        """Return the histograms of all label values as one metric."""
        with self._lock:
            counts = {labels: list(each) for labels, each in self._counts.items()}
            sums = dict(self._sums)
        samples = [
            sample
            for values in sorted(counts)
            for sample in self._histogram_samples(values, counts[values], sums[values])
        ]
        return Family(self._name, "histogram", self._help, samples)

    def _histogram_samples(
        self, values: tuple[str, ...], counts: Sequence[int], total: float
    ) -> Iterator[Sample]:
        """Yield the samples of one histogram: cumulative buckets, sum and count."""
        labels = dict(zip(self._labels, values, strict=True))
        limits = [*(_format_number(bound) for bound in self._bounds), "+Inf"]
        for limit, count in zip(limits, accumulate(counts), strict=True):
            yield Sample(count, {**labels, "le": limit}, "_bucket")
        yield Sample(total, labels, "_sum")
        yield Sample(sum(counts), labels, "_count")


def render(families: Iterable[Family]) -> str:
    """Return metrics in the text format of Prometheus."""
    lines: list[str] = []
    for family in families:
        lines.append(f"# HELP {family.name} {_escape_text(family.help)}")
        lines.append(f"# TYPE {family.name} {family.kind}")
        lines.extend(_format_sample(family.name, sample) for sample in family.samples)
    return "\n".join(lines) + "\n"


def _format_sample(name: str, sample: Sample) -> str:
    """Return a sample of the metric `name` as one line of text."""
    pairs = ",".join(
        f'{label}="{_escape_text(value, quote=True)}"'
        for label, value in sample.labels.items()
    )
    braces = f"{{{pairs}}}" if pairs else ""
    return f"{name}{sample.suffix}{braces} {_format_number(sample.value)}"


def _escape_text(text: str, *, quote: bool = False) -> str:
    """Return a text with backslashes and line ends escaped, and with `quote` also double quotes."""
    text = text.replace("\\", "\\\\").replace("\n", "\\n")
    return text.replace('"', '\\"') if quote else text


def _format_number(value: float) -> str:
    """Return a number as text, without a fraction if it is whole."""
    return repr(int(value)) if value == int(value) else repr(float(value))


BOUNDS_S = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 60)
OTHER = "other"
"""The label of all paths that do not exist."""


class ServerActivity:
    """Counts of requests, connections and streams, for `/metrics`; any thread may read them."""

    def __init__(self) -> None:
        self.requests = Histogram(
            "mnemosyned_request_duration_seconds",
            "Time to answer a request, by verb or path and by status; of a stream, to its head.",
            ("verb", "status"),
            bounds=BOUNDS_S,
        )
        self.refused: Counter[int] = Counter()
        """Requests refused before they were read, by status."""
        self.connections = {True: 0, False: 0}
        """Open connections over the socket, and over TCP."""
        self.connections_max = 0
        self.streams = 0
        """Streams that are being sent."""
        self.started_at = time.time()
        self._lock = threading.Lock()

    @contextmanager
    def count_stream(self) -> Iterator[None]:
        """Count a stream as being sent while the block runs."""
        with self._lock:
            self.streams += 1
        try:
            yield
        finally:
            with self._lock:
                self.streams -= 1

    def refuse(self, status: int) -> None:
        """Count a request that was refused with an HTTP status before it was read."""
        self.refused[status] += 1
