"""Figures of a daemon with owners, on an address of their own: all owners together, and no name."""

from __future__ import annotations

import json
import threading
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from datetime import UTC, datetime, timedelta
from http.client import HTTPConnection
from pathlib import Path
from typing import Any

import psycopg
import pytest
from e2e.daemons import WAIT_S, Daemon, eventually, running
from prometheus_client.parser import text_string_to_metric_families

from mnemosyned.memory.engine_ports import PoolFigures, Scope
from mnemosyned.paths import shipped
from mnemosyned.storage.postgres.connections import (
    CONNECTIONS_MAX,
    Connections,
    Use,
    check_alive,
)
from mnemosyned.storage.postgres.owners import PostgresOwners

pytestmark = pytest.mark.postgres
MIGRATIONS = shipped("migrations") / "postgres"
NAMES = ("anna-of-the-mill", "bert-of-the-mill")


def port_of(daemon: Daemon, event: str) -> int:
    (line,) = daemon.events(event)
    return int(line["address"].rpartition(":")[2])


def got(
    port: int, path: str, headers: Mapping[str, str] | None = None
) -> tuple[int, str]:
    with closing(HTTPConnection("127.0.0.1", port, timeout=WAIT_S)) as connection:
        connection.request("GET", path, headers=dict(headers or {}))
        response = connection.getresponse()
        return response.status, response.read().decode()


def figures(port: int) -> dict[str, float]:
    """Values by metric, of those with labels by the metric and the values of its labels."""
    status, text = got(port, "/metrics")
    assert status == 200
    assert not any(name in text for name in NAMES)
    families = list(text_string_to_metric_families(text))
    assert [each.name for each in families if each.type == "unknown"] == []
    return {
        ":".join((sample.name, *sample.labels.values())): sample.value
        for family in families
        for sample in family.samples
    }


def post(port: int, verb: str, token: str, **fields: Any) -> int:  # noqa: ANN401
    with closing(HTTPConnection("127.0.0.1", port, timeout=WAIT_S)) as connection:
        headers = {"Authorization": f"Bearer {token}"}
        connection.request("POST", f"/v1/{verb}", json.dumps(fields), headers)
        return connection.getresponse().status


def test_figures_are_of_all_owners_and_name_none(
    dsn: str, owners: PostgresOwners, tmp_path: Path
) -> None:
    tokens = []
    for name in NAMES:
        owners.add(name)
        tokens.append(owners.issue(name, "test", tuple(Scope)).secret)
    settings: dict[str, Any] = {
        "MNEMOSYNE_LISTEN": "127.0.0.1:0",
        "MNEMOSYNE_METRICS_LISTEN": "127.0.0.1:0",
        "MNEMOSYNE_OWNERS_SERVE": "true",
        "MNEMOSYNE_SLEEP_ON_SHUTDOWN": "false",
    }
    long_ago = (datetime.now(UTC) - timedelta(hours=13)).isoformat()
    with running(tmp_path, "--database", dsn, **settings) as daemon:
        served = port_of(daemon, "listening")
        port = port_of(daemon, "metrics_listening")
        for token in tokens:
            for number in range(3):
                content = f"The mill turns at {number}."
                aged = {"created_at": long_ago} if number else {}
                assert post(served, "remember", token, content=content, **aged) == 200
        assert post(served, "pin", tokens[0], query="1") == 200
        assert got(served, "/v1/status")[0] == 401
        assert post(served, "status", "mnt_2_" + "x" * 43) == 401
        assert got(served, "/metrics")[0] == 401
        assert got(served, "/readyz")[0] == 200

        values = figures(port)

    assert values["mnemosyned_owners"] == 3
    assert values["mnemosyned_owners_open"] == 2
    assert values["mnemosyned_owner_memories:working"] == 6
    assert (values["mnemosyned_owners_due"], values["mnemosyned_memories_due"]) == (
        2,
        3,
    )
    assert 3_600 <= values["mnemosyned_oldest_due_seconds"] < 4_000
    assert values["mnemosyned_failed_logins_total"] == 3
    assert values["mnemosyned_requests_total:remember:200"] == 6
    assert values["mnemosyned_pool_max:database"] == 8
    assert values["mnemosyned_pool_in_use:threads"] == 0
    assert values["mnemosyned_streams_max"] == 64
    assert values["mnemosyned_ready"] == 1
    assert values["mnemosyned_purges_due"] == 0


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


def test_a_login_without_tables_sees_the_figures(
    dsn: str, owners: PostgresOwners
) -> None:
    owners.add("anna")
    with psycopg.connect(dsn) as connection:
        role, *_ = connection.execute(
            "SELECT 'mnemosyned_request_' || current_database()"
        ).fetchone() or ("",)
        connection.execute(f'SET ROLE "{role}"'.encode())
        row = connection.execute("SELECT * FROM owner_figures(now(), '')").fetchone()

    assert row is not None
    assert row[0] >= 1
