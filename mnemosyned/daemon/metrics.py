"""`/metrics`: the daemon's figures for Prometheus."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from http import HTTPStatus
from pathlib import Path

from mnemosyned import process_memory
from mnemosyned.assembly.build import OpenMemory
from mnemosyned.daemon.prometheus import (
    CONTENT_TYPE,
    Collector,
    Family,
    Sample,
    ServerActivity,
    counter,
    counters,
    gauge,
    gauges,
    render,
)
from mnemosyned.errors import MnemosynedError
from mnemosyned.http_messages import HttpRequest, Response, Route
from mnemosyned.logs import logger
from mnemosyned.memory.values import AgentActivity, SummarizerStatus
from mnemosyned.verbs.upkeep import SleepStatus, Stats, Status

HOOK_ROWS_MAX = 200
"""Pairs of a client and an event that are shown."""

log = logger()


def metrics_route(collectors: Sequence[Collector]) -> Route:
    """Return the route of `/metrics`, with the figures of all collectors.

    A failing collector is left out.
    """

    def metrics(_: HttpRequest) -> Response:
        """Return the response with the metrics of all collectors that do not fail."""
        families: list[Family] = []
        for collect in collectors:
            try:
                families += collect()
            except MnemosynedError as error:
                log.warning("metrics_missing", code=error.code)
        body = render(families).encode()
        return Response(HTTPStatus.OK, body, content_type=CONTENT_TYPE)

    return metrics


def server_collector(activity: ServerActivity) -> Collector:
    """Return a collector of metrics about requests, connections and the process."""

    def collect() -> Iterator[Family]:
        """Yield the metrics of requests, connections, streams and the process."""
        refused = dict(activity.refused)
        yield activity.requests.family()
        yield Family(
            "mnemosyned_requests_total",
            "counter",
            "Requests answered, by verb or path and by status.",
            [
                Sample(count, {"verb": verb, "status": status})
                for (verb, status), count in sorted(activity.requests.counts().items())
            ],
        )
        yield counters(
            "mnemosyned_requests_refused_total",
            "Requests refused before they were read, by status.",
            "status",
            {str(status): count for status, count in sorted(refused.items())},
        )
        yield gauges(
            "mnemosyned_connections",
            "Open connections, by listener.",
            "listener",
            {
                "socket": activity.connections[True],
                "tcp": activity.connections[False],
            },
        )
        yield gauge(
            "mnemosyned_connections_max",
            "Connections that may be open.",
            activity.connections_max,
        )
        yield gauge("mnemosyned_streams", "Streams being sent.", activity.streams)
        yield from _process_families(activity.started_at)

    return collect


def _process_families(started_at: float) -> Iterator[Family]:
    """Yield the process's start time, memory, CPU time and open files, under Prometheus' names."""
    yield gauge(
        "process_start_time_seconds",
        "Start time of the process since unix epoch in seconds.",
        round(started_at, 3),
    )
    yield gauge(
        "process_resident_memory_bytes",
        "Resident memory size in bytes.",
        process_memory.resident_bytes(),
    )
    yield counter(
        "process_cpu_seconds_total", "CPU time spent in seconds.", time.process_time()
    )
    descriptors = sum(1 for _ in Path("/proc/self/fd").iterdir())
    yield gauge("process_open_fds", "Number of open file descriptors.", descriptors)


def memory_collector(memory: OpenMemory) -> Collector:
    """Return a collector of metrics about an open memory: tiers, cycles, summarizer and hooks."""

    def collect() -> Iterator[Family]:
        """Yield the metrics of the memory as it is now."""
        stats = memory.service.call(Status())
        outcomes = dict(memory.sleeper.cycle.outcomes)
        yield from _store_families(stats)
        yield from _sleep_families(stats.sleep)
        yield Family(
            "mnemosyned_cycles_total",
            "counter",
            "Sleep cycles since the start, by cause and outcome.",
            [
                Sample(count, {"trigger": trigger, "outcome": outcome})
                for (trigger, outcome), count in sorted(outcomes.items())
            ],
        )
        yield from _summarizer_families(stats.summarizer)
        yield from _hook_families(stats.agents[:HOOK_ROWS_MAX])

    return collect


def _store_families(stats: Stats) -> Iterator[Family]:
    """Yield metrics of the database: version, memories by tier, bytes, problems and backups."""
    tiers = {tier.value: totals for tier, totals in stats.tiers.items()}
    yield gauge(
        "mnemosyned_build_info",
        "The version, and the schema of the database.",
        1,
        version=stats.version,
        schema=str(stats.schema_version),
    )
    yield gauges(
        "mnemosyned_memories",
        "Memories, by tier.",
        "tier",
        {tier: totals.count for tier, totals in tiers.items()},
    )
    yield gauges(
        "mnemosyned_memory_characters",
        "Characters of text, by tier.",
        "tier",
        {tier: totals.characters for tier, totals in tiers.items()},
    )
    yield gauge("mnemosyned_database_bytes", "Bytes on disk.", stats.bytes_on_disk)
    yield gauge(
        "mnemosyned_working_memory_max",
        "Memories that working memory may hold before cycles start for it.",
        stats.wm_max,
    )
    yield gauge(
        "mnemosyned_longest_write_seconds",
        "The longest time that one commit has blocked other writers since the start.",
        stats.longest_write_ms / 1_000,
    )
    yield gauge(
        "mnemosyned_problems", "Problems in `mnem status`.", len(stats.problems)
    )
    yield gauge(
        "mnemosyned_backups", "Dated backups in the folder.", stats.backup.count
    )
    if stats.backup.last:
        yield gauge(
            "mnemosyned_last_backup_timestamp_seconds",
            "When the newest dated backup was made.",
            stats.backup.last.timestamp(),
        )


def _sleep_families(sleep: SleepStatus) -> Iterator[Family]:
    """Yield metrics of sleep: memories due, whether a cycle runs, and the end of the last cycle."""
    yield gauge(
        "mnemosyned_working_memory_due",
        "Memories that wait for the next cycle.",
        sleep.due,
    )
    yield gauge(
        "mnemosyned_cycle_running", "Whether a cycle is running.", sleep.running
    )
    if sleep.last_cycle:
        yield gauge(
            "mnemosyned_last_cycle_timestamp_seconds",
            "The end of the last cycle.",
            sleep.last_cycle.timestamp(),
        )


def _summarizer_families(status: SummarizerStatus) -> Iterator[Family]:
    """Yield the summarizer's name and state, and counts of the model's summaries by outcome."""
    yield gauge(
        "mnemosyned_summarizer_info",
        "The summarizer in force, and who writes the next summary.",
        1,
        summarizer=status.name,
        state=status.state.value,
    )
    yield counters(
        "mnemosyned_model_summaries_total",
        "What became of the model's summaries since the start.",
        "outcome",
        {
            "accepted": status.accepted,
            "retried": status.retried,
            "rejected": status.rejected,
            "fallback": status.fallbacks,
        },
    )


def _hook_families(activities: Sequence[AgentActivity]) -> Iterator[Family]:
    """Yield counts of agents' hooks, by client and event: calls, memories, failures, characters."""
    figures = (
        ("calls", "Calls of agents' hooks.", [each.calls for each in activities]),
        ("stored", "Memories that hooks stored.", [each.stored for each in activities]),
        ("failures", "Hooks that failed.", [each.failures for each in activities]),
        (
            "characters",
            "Characters that hooks told agents.",
            [each.characters for each in activities],
        ),
    )
    labels = [{"client": each.client, "event": each.event} for each in activities]
    for name, text, counts in figures:
        samples = [Sample(*pair) for pair in zip(counts, labels, strict=True)]
        yield Family(f"mnemosyned_hook_{name}_total", "counter", text, samples)
