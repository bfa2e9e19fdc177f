"""`/metrics`: the daemon's figures for Prometheus."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from functools import cache
from http import HTTPStatus
from pathlib import Path

from mnemosyned import process_memory
from mnemosyned.assembly.build import OpenMemory
from mnemosyned.daemon.prometheus import (
    CONTENT_TYPE,
    Collector,
    MetricTexts,
    Sample,
    ServerActivity,
    render,
    samples_by,
)
from mnemosyned.errors import MnemosynedError
from mnemosyned.http_messages import HttpRequest, Response, Route
from mnemosyned.logs import logger
from mnemosyned.text.rule_files import read_tables
from mnemosyned.verbs.upkeep import Status

HOOK_ROWS_MAX = 200
"""Pairs of a client and an event that are shown."""

log = logger()


@cache
def _metric_texts() -> MetricTexts:
    """Return the kinds and lines of help of all metrics, from the TOML file of this module."""
    return read_tables(__file__, "metrics.toml")


def metrics_route(collectors: Sequence[Collector]) -> Route:
    """Return the route of `/metrics`, with the figures of all collectors.

    A failing collector is left out.
    """

    def metrics(_: HttpRequest) -> Response:
        """Return the response with the metrics of all collectors that do not fail."""
        samples: list[Sample] = []
        for collect in collectors:
            try:
                samples += collect()
            except MnemosynedError as error:
                log.warning("metrics_missing", code=error.code)
        body = render(samples, _metric_texts()).encode()
        return Response(HTTPStatus.OK, body, content_type=CONTENT_TYPE)

    return metrics


def server_samples(activity: ServerActivity) -> Iterator[Sample]:
    """Yield the metrics of requests, connections, streams and the process.

    Those of the process have Prometheus' own names.
    """
    yield from activity.requests.samples()
    for (verb, status), count in sorted(activity.requests.counts().items()):
        labels = {"verb": verb, "status": status}
        yield Sample("mnemosyned_requests_total", count, labels)
    refused = {str(status): n for status, n in sorted(dict(activity.refused).items())}
    yield from samples_by("mnemosyned_requests_refused_total", "status", refused)
    tcp, socket = activity.connections[False], activity.connections[True]
    connections = {"socket": socket, "tcp": tcp}
    yield from samples_by("mnemosyned_connections", "listener", connections)
    yield Sample("mnemosyned_connections_max", activity.connections_max)
    yield Sample("mnemosyned_streams", activity.streams)
    yield Sample("process_start_time_seconds", round(activity.started_at, 3))
    yield Sample("process_resident_memory_bytes", process_memory.resident_bytes())
    yield Sample("process_cpu_seconds_total", time.process_time())
    descriptors = sum(1 for _ in Path("/proc/self/fd").iterdir())
    yield Sample("process_open_fds", descriptors)


def memory_samples(memory: OpenMemory) -> Iterator[Sample]:
    """Yield the metrics of an open memory: tiers, database, cycles, summarizer and hooks."""
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
    outcomes = dict(memory.sleeper.cycle.outcomes)
    for (trigger, outcome), count in sorted(outcomes.items()):
        labels = {"trigger": trigger, "outcome": outcome}
        yield Sample("mnemosyned_cycles_total", count, labels)
    status = stats.summarizer
    info = {"summarizer": status.name, "state": status.state.value}
    yield Sample("mnemosyned_summarizer_info", 1, info)
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
