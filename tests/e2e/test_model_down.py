"""A daemon whose model dies, hangs or is elsewhere: nothing is lost, and it is said."""

from __future__ import annotations

import signal
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from e2e.conftest import Start
from e2e.daemons import WAIT_S, Daemon, episodes, eventually, rows
from support.endpoints import process, quotes, says, serving, waits

pytestmark = [pytest.mark.e2e, pytest.mark.fault]

GROUPS = 6
GROUP = 3
STOP_S = 10.0
"""For the last consolidation and the end of it all on a machine under load; the model takes 30."""
SECRET = "larch-4471"  # noqa: S105 what a memory says


def fill(daemon: Daemon) -> None:
    for group in range(GROUPS):
        for n in range(GROUP):
            daemon.post(
                "remember",
                content=f"Run {group} ended well at step {n}, and the code is {SECRET}.",
                source=f"run-{group}",
                created_at=f"2026-03-02T09:3{n}:00Z",
            )


def reasons(database: Path) -> list[tuple[str, str | None]]:
    return rows(
        database,
        "SELECT summarizer, fallback_reason FROM consolidation_log WHERE level = 0 ORDER BY id",
    )


def test_an_endpoint_that_dies_in_a_cycle_leaves_no_group_behind(start: Start) -> None:
    with process("--wait", "0.3") as (endpoint, server):
        daemon = start(
            MNEMOSYNE_LLM_ENDPOINT=endpoint.url, MNEMOSYNE_LLM_ENDPOINT_MODEL="small"
        )
        fill(daemon)
        with ThreadPoolExecutor(1) as pool:
            asked = pool.submit(daemon.post, "sleep")
            eventually(lambda: episodes(daemon) > 0, "the first summary is on disk")
            server.kill()
            report = asked.result(WAIT_S).body

    log = reasons(daemon.database)
    assert (report["status"], report["promoted"]) == ("done", GROUPS)
    assert log[0] == ("endpoint:small", None)
    assert log[-1][0] == "aaak"
    assert all(reason for name, reason in log if name == "aaak")
    assert rows(daemon.database, "SELECT count(*) FROM archive") == [(GROUPS * GROUP,)]
    assert len(daemon.events("model_left_alone")) == 1
    status = daemon.post("status").body["summarizer"]
    assert status["state"] == "fallback"
    assert "cannot be reached" in status["reason"]
    # The day that they became was composed by rule, which is no fallback.
    assert status["accepted"] + status["fallbacks"] == GROUPS
    (finished,) = daemon.events("cycle_finished")
    counts = ("accepted", "retried", "rejected", "fallbacks")
    assert {name: finished[name] for name in counts} == {
        name: status[name] for name in counts
    }
    shown = daemon.mnem("log", "--format", "table").stdout.decode()
    assert "written without the model: " in " ".join(shown.split())
    assert "summaries are extractive until" in daemon.mnem("status").stdout.decode()
    assert {group["fallback_reason"] for group in report["groups"]} == {
        row[1] for row in log
    }
    assert SECRET not in daemon.log.read_text()


@pytest.mark.parametrize("last", ["true", "false"])
def test_a_stop_signal_ends_what_the_model_writes(start: Start, last: str) -> None:
    with serving(waits(30, says("too late"))) as endpoint:
        daemon = start(
            MNEMOSYNE_LLM_ENDPOINT=endpoint.url, MNEMOSYNE_SLEEP_ON_SHUTDOWN=last
        )
        fill(daemon)
        with ThreadPoolExecutor(1) as pool:
            asked = pool.submit(daemon.post, "sleep")
            eventually(lambda: endpoint.seen, "the model writes")
            code = daemon.stop()
            answer = asked.result(WAIT_S)

    assert code == 0, daemon.log.read_text()
    assert daemon.seconds_between("stopping", "stopped") < STOP_S
    assert (answer.status, answer.body["status"], answer.body["promoted"]) == (
        200,
        "partial",
        1,
    )
    assert rows(
        daemon.database, "SELECT count(*) FROM episodic_memory WHERE level = 0"
    ) == [(GROUPS if last == "true" else 1,)]
    assert {name for name, _ in reasons(daemon.database)} == {"aaak"}
    assert len(endpoint.seen) == 1


@pytest.mark.parametrize(("deadline_s", "asked"), [("60", False), ("300", True)])
def test_a_model_writes_at_the_end_where_the_deadline_has_ample_room(
    start: Start, deadline_s: str, *, asked: bool
) -> None:
    with serving(quotes) as endpoint:
        daemon = start(
            MNEMOSYNE_LLM_ENDPOINT=endpoint.url,
            MNEMOSYNE_SLEEP_SHUTDOWN_DEADLINE_S=deadline_s,
        )
        fill(daemon)

        code = daemon.stop()

    assert code == 0
    assert (len(endpoint.seen) == GROUPS) is asked
    assert len(reasons(daemon.database)) == GROUPS
    assert {reason is None for _, reason in reasons(daemon.database)} == {asked}


def test_a_second_signal_ends_what_a_model_writes_at_the_end(start: Start) -> None:
    with serving(waits(30, quotes)) as endpoint:
        daemon = start(
            MNEMOSYNE_LLM_ENDPOINT=endpoint.url,
            MNEMOSYNE_SLEEP_SHUTDOWN_DEADLINE_S="300",
        )
        fill(daemon)
        daemon.process.send_signal(signal.SIGTERM)
        eventually(lambda: endpoint.seen, "the model writes")

        began = time.monotonic()
        code = daemon.stop()

    assert code == 0
    assert time.monotonic() - began < STOP_S
    assert len(endpoint.seen) == 1
    assert len(reasons(daemon.database)) == 1, (
        "the group under way, by rule; the rest waits"
    )


def test_no_reload_sends_memories_away(start: Start, tmp_path: Path) -> None:
    settings = tmp_path / "settings.yaml"
    settings.write_text("wm_max: 500\n")
    daemon = start("--config", str(settings))

    settings.write_text("wm_max: 600\nllm:\n  endpoint: http://192.0.2.1/v1\n")
    daemon.process.send_signal(signal.SIGHUP)
    eventually(lambda: daemon.events("config_refused"), "the settings are refused")
    status = daemon.post("status").body

    assert (status["wm_max"], status["summarizer"]["state"]) == (500, "rules")


def test_a_model_comes_with_a_reload(start: Start, tmp_path: Path) -> None:
    settings = tmp_path / "settings.yaml"
    settings.write_text("wm_max: 500\n")
    daemon = start("--config", str(settings))
    fill(daemon)
    with process() as (endpoint, _):
        settings.write_text(f"llm:\n  endpoint: {endpoint.url}\n")
        reload(daemon)
        daemon.post("sleep")
        before = daemon.post("status").body["summarizer"]
        settings.write_text(f"wm_max: 600\nllm:\n  endpoint: {endpoint.url}\n")
        reload(daemon)
        after = daemon.post("status").body

    assert before["state"] == "model"
    assert before["accepted"] > 0
    assert (after["wm_max"], after["summarizer"]) == (600, before)


def reload(daemon: Daemon) -> None:
    done = len(daemon.events("config_reloaded"))
    daemon.process.send_signal(signal.SIGHUP)
    eventually(
        lambda: len(daemon.events("config_reloaded")) > done,
        "the settings are read again",
    )
