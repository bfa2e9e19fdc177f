"""Figures of `/metrics`, read back, and what they say of the last minute."""

from __future__ import annotations

import re
from collections import Counter, deque
from collections.abc import Mapping
from dataclasses import dataclass, field

SAMPLES_MAX = 61
"""Samples that are kept: of a minute, one a second."""
RATE_SAMPLES = 6
"""Samples that a rate is taken over: some five seconds."""
PERCENTILES = (0.5, 0.95)
GROUPS: Mapping[str, frozenset[str]] = {
    "remember": frozenset({"remember", "remember_many"}),
    "recall": frozenset({"recall"}),
    "context": frozenset({"context", "compact"}),
    "hooks": frozenset({"/hooks"}),
    "MCP": frozenset({"/mcp"}),
}
"""Rows of the view, each with the verbs or paths that it counts."""
_DURATIONS = "mnemosyned_request_duration_seconds"
_LINE = re.compile(r"(?P<name>[a-z_]+)(?:\{(?P<labels>.*)\})? (?P<value>\S+)")
_LABEL = re.compile(r'(\w+)="((?:[^"\\]|\\.)*)"')


@dataclass(frozen=True, slots=True)
class Figures:
    """The figures of one moment."""

    moment: float
    """Seconds of a clock that only goes forward."""
    started_at: float = 0.0
    """The start of the daemon's process."""
    resident_bytes: float = 0.0
    memories: float = 0.0
    """Originals kept, in working memory and in the archive."""
    buckets: Mapping[str, Counter[float]] = field(default_factory=dict)
    """By group: requests that took at most so many seconds."""
    requests: Counter[str] = field(default_factory=Counter)
    failures: Counter[str] = field(default_factory=Counter)
    """By group: requests that were answered with an error."""


@dataclass(frozen=True, slots=True)
class Row:
    """One group of requests."""

    name: str
    per_s: float
    p50_s: float | None
    """None where none was answered in the last minute."""
    p95_s: float | None
    total: int
    failures: int


def read_figures(page: str, *, moment: float) -> Figures:
    """Read the figures of a page in the text format of Prometheus; unknown ones are left out."""
    sums = _Sums()
    for line in page.splitlines():
        if match := _LINE.fullmatch(line):
            labels = dict(_LABEL.findall(match["labels"] or ""))
            sums.add(match["name"], labels, float(match["value"]))
    return Figures(
        moment=moment,
        started_at=sums.plain.get("process_start_time_seconds", 0.0),
        resident_bytes=sums.plain.get("process_resident_memory_bytes", 0.0),
        memories=sums.memories,
        buckets=sums.buckets,
        requests=sums.requests,
        failures=sums.failures,
    )


class _Sums:
    """The figures of a page so far."""

    def __init__(self) -> None:
        self.plain: dict[str, float] = {}
        self.memories = 0.0
        self.buckets: dict[str, Counter[float]] = {name: Counter() for name in GROUPS}
        self.requests: Counter[str] = Counter()
        self.failures: Counter[str] = Counter()

    def add(self, name: str, labels: Mapping[str, str], value: float) -> None:
        """Add a figure to that of its group, or to that of its name."""
        group = _group(labels.get("verb", ""))
        if name == f"{_DURATIONS}_bucket" and group:
            self.buckets[group][float(labels["le"])] += int(value)
        elif name == f"{_DURATIONS}_count" and group:
            self.requests[group] += int(value)
            self.failures[group] += int(value) if labels["status"] >= "400" else 0
        elif name == "mnemosyned_memories" and labels.get("tier") != "episodic":
            self.memories += value
        elif not labels:
            self.plain[name] = value


def _group(verb: str) -> str:
    return next((name for name, verbs in GROUPS.items() if verb in verbs), "")


class LastMinute:
    """The figures of the last minute, as they were read; a restart of the daemon empties it."""

    def __init__(self) -> None:
        self._samples: deque[Figures] = deque(maxlen=SAMPLES_MAX)

    def add(self, figures: Figures) -> None:
        """Add the newest figures."""
        if self._samples and figures.started_at != self._samples[-1].started_at:
            self._samples.clear()
        self._samples.append(figures)

    @property
    def newest(self) -> Figures | None:
        """The newest figures."""
        return self._samples[-1] if self._samples else None

    def rows(self) -> list[Row]:
        """Each group with its rate and its latencies."""
        newest = self.newest
        return [self._row(name, newest) for name in GROUPS] if newest else []

    def memories_per_s(self) -> float:
        """Memories that came a second, less those that were forgotten."""
        newest = self.newest
        if newest is None:
            return 0.0
        before = self._before()
        return _rate(newest.memories - before.memories, before, newest)

    def _before(self) -> Figures:
        return self._samples[max(0, len(self._samples) - RATE_SAMPLES)]

    def _row(self, name: str, newest: Figures) -> Row:
        before = self._before()
        answered = newest.requests[name] - before.requests[name]
        taken = Counter(newest.buckets[name])
        if len(self._samples) > 1:
            taken.subtract(self._samples[0].buckets[name])
        p50_s, p95_s = (percentile(taken, share) for share in PERCENTILES)
        return Row(
            name=name,
            per_s=_rate(answered, before, newest),
            p50_s=p50_s,
            p95_s=p95_s,
            total=newest.requests[name],
            failures=newest.failures[name],
        )


def _rate(difference: float, before: Figures, newest: Figures) -> float:
    seconds = newest.moment - before.moment
    return difference / seconds if seconds > 0 else 0.0


def percentile(buckets: Mapping[float, int], share: float) -> float | None:
    """The value that this share of a histogram lies below, even within a bucket.

    `buckets` counts the values up to each bound. None where there are no values; the last bound
    where it lies beyond.
    """
    bounds = sorted(buckets)
    total = buckets[bounds[-1]] if bounds else 0
    if total <= 0:
        return None
    wanted = share * total
    lower, below = 0.0, 0
    for bound in bounds:
        count = buckets[bound]
        if count >= wanted and bound != float("inf"):
            within = (wanted - below) / (count - below)
            return lower + (bound - lower) * within
        if bound != float("inf"):
            lower, below = bound, count
    return lower
