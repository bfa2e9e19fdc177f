"""Figures of a daemon with owners, on an address of their own: all owners together, and no name."""

from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from datetime import UTC, datetime, timedelta

import pytest
from e2e.daemons import WAIT_S, eventually
from postgres.daemons import Serve, Service, port_of
from prometheus_client.parser import text_string_to_metric_families

from mnemosyned.memory.engine_ports import PoolFigures
from mnemosyned.storage.postgres.connections import (
    CONNECTIONS_MAX,
    Connections,
    Use,
    check_alive,
)

pytestmark = pytest.mark.postgres
NAMES = ("anna-of-the-mill", "bert-of-the-mill")


def figures(service: Service, port: int) -> dict[str, float]:
    """Values by metric, of those with labels by the metric and the values of its labels."""
    status, _, text = service.ask("/metrics", method="GET", port=port)
    assert status == 200
    assert not any(name in text for name in NAMES)
    families = list(text_string_to_metric_families(text))
    assert [each.name for each in families if each.type == "unknown"] == []
    return {
        ":".join((sample.name, *sample.labels.values())): sample.value
        for family in families
        for sample in family.samples
    }


def test_figures_are_of_all_owners_and_name_none(serve: Serve) -> None:
    long_ago = (datetime.now(UTC) - timedelta(hours=13)).isoformat()
    with serve(MNEMOSYNE_METRICS_LISTEN="127.0.0.1:0") as service:
        ask, tokens = service.status, [service.token(name) for name in NAMES]
        for token in tokens:
            for number in range(3):
                aged = {"created_at": long_ago} if number else {}
                content = f"The mill turns at {number}."
                assert ask("/v1/remember", token, content=content, **aged) == 200
        assert ask("/v1/pin", tokens[0], query="1") == 200
        assert ask("/v1/status", "mnt_2_" + "x" * 43) == 401
        for path, status in (("/v1/status", 401), ("/metrics", 401), ("/readyz", 200)):
            assert service.ask(path, method="GET")[0] == status
        assert ask("/v1/owners/groups", tokens[0]) == 200
        assert ask("/v1/nowhere", tokens[0]) == 404

        port = port_of(service.daemon, "metrics_listening")
        at_work = "mnemosyned_pool_in_use:threads"
        # The thread of the last answer is free a moment after the answer.
        eventually(lambda: not figures(service, port)[at_work], "all threads are free")
        values = figures(service, port)

    assert 3_600 <= values["mnemosyned_oldest_due_seconds"] < 4_000
    expected = {
        "owners": 3,
        "owners_open": 2,
        "owner_memories:working": 6,
        "owners_due": 2,
        "memories_due": 3,
        "failed_logins_total": 3,
        "requests_total:remember:200": 6,
        "requests_total:owners/groups:200": 1,
        "requests_total:other:404": 1,
        "pool_max:database": 8,
        "pool_in_use:threads": 0,
        "streams_max": 64,
        "ready": 1,
        "purges_due": 0,
    }
    assert {name: values[f"mnemosyned_{name}"] for name in expected} == expected


def test_waits_for_a_connection_are_counted(dsn: str) -> None:
    connections = Connections(dsn)
    done = threading.Event()

    def use(event: threading.Event) -> None:
        with connections.lend(check_alive, owner=1, use=Use.READ):
            event.set()
            assert done.wait(WAIT_S)

    with ThreadPoolExecutor(CONNECTIONS_MAX + 1) as threads, closing(connections):
        lent = [threading.Event() for _ in range(CONNECTIONS_MAX)]
        for event in lent:
            threads.submit(use, event)
        assert all(event.wait(WAIT_S) for event in lent)
        full = PoolFigures(CONNECTIONS_MAX, CONNECTIONS_MAX, 0, 0, 0.0)
        assert connections.figures() == full

        late = threads.submit(use, threading.Event())
        eventually(lambda: connections.figures().waiting == 1, "one waits")
        done.set()
        late.result(WAIT_S)

    figures = connections.figures()
    assert (figures.in_use, figures.waiting, figures.waits_total) == (0, 0, 1)
    assert figures.wait_seconds_total > 0
