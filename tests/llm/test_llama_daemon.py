"""A real daemon with a real language model: it writes, dies, is killed, and nothing is lost."""

import os
import signal
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from e2e.daemons import WAIT_S, Daemon, Json, eventually, rows, running
from support import llama
from support.gguf import canned_model, keywords_model
from support.processes import child_pids, has_ended

pytestmark = pytest.mark.llm

WORDS = ["harbour", "ferry", "lantern"]
GROUPS = 3
GROUP = 4
LONG = 20
"""Times as many words, so that a model has tokens for seconds."""
ENDLESS: dict[str, Json] = {
    "MNEMOSYNE_LLM_CONTEXT_TOKENS": "60000",
    "MNEMOSYNE_LLM_MAX_TOKENS": "32000",
}


def fill(daemon: Daemon, *, times: int = 1) -> None:
    for group in range(GROUPS):
        for n in range(GROUP):
            daemon.post(
                "remember",
                content=f"The ferry left the harbour at step {n}, and a lantern was lit. "
                * times,
                source=f"run-{group}",
                created_at=f"2026-03-02T09:3{n}:00Z",
            )


def model_of(daemon: Daemon) -> int:
    """The process of the model, once it has work."""
    eventually(lambda: daemon.events("model_started"), "the model is loaded")
    (pid,) = child_pids(daemon.process.pid)
    return pid


def archived(daemon: Daemon) -> int:
    (total,) = rows(daemon.database, "SELECT count(*) FROM archive")[0]
    return int(total)


@pytest.fixture
def endless(tmp_path: Path) -> Path:
    return canned_model(
        tmp_path / "endless.gguf", llama.ENDLESS, endless=True, context=60_000
    )


def test_a_model_writes_the_summaries_and_its_process_ends(tmp_path: Path) -> None:
    model = keywords_model(tmp_path / "words.gguf", WORDS, context=4096)
    settings: dict[str, Json] = {
        "MNEMOSYNE_LLM_MODEL_PATH": str(model),
        "MNEMOSYNE_LLM_IDLE_S": "1",
    }
    with running(tmp_path, MNEMOSYNE_LOG_LEVEL="info", **settings) as daemon:
        fill(daemon)
        report = daemon.post("sleep").body
        lowest = "FROM {} WHERE level = 0"
        written = rows(
            daemon.database, "SELECT content " + lowest.format("episodic_memory")
        )
        by = rows(
            daemon.database, "SELECT summarizer " + lowest.format("consolidation_log")
        )

        assert (report["status"], report["promoted"]) == ("done", GROUPS)
        assert set(by) == {("llama:words",)}
        assert all("ferry" in text for (text,) in written)
        assert archived(daemon) == GROUPS * GROUP
        eventually(
            lambda: not child_pids(daemon.process.pid), "the model's process has ended"
        )


def test_a_killed_model_leaves_no_group_behind(tmp_path: Path, endless: Path) -> None:
    with running(tmp_path, MNEMOSYNE_LLM_MODEL_PATH=str(endless), **ENDLESS) as daemon:
        fill(daemon, times=LONG)
        with ThreadPoolExecutor(1) as pool:
            asked = pool.submit(daemon.post, "sleep")
            for _ in range(60):
                for pid in child_pids(daemon.process.pid):
                    os.kill(pid, signal.SIGKILL)
                time.sleep(0.5)
                if asked.done():
                    break
            report = asked.result(WAIT_S).body

        assert (report["status"], report["promoted"]) == ("done", GROUPS)
        assert archived(daemon) == GROUPS * GROUP


@pytest.mark.parametrize("last", ["true", "false"])
def test_a_stop_signal_ends_the_model(tmp_path: Path, endless: Path, last: str) -> None:
    settings: dict[str, Json] = {
        "MNEMOSYNE_LLM_MODEL_PATH": str(endless),
        "MNEMOSYNE_SLEEP_ON_SHUTDOWN": last,
    }
    with running(tmp_path, **settings, **ENDLESS) as daemon:
        fill(daemon, times=LONG)
        with ThreadPoolExecutor(1) as pool:
            asked = pool.submit(daemon.post, "sleep")
            pid = model_of(daemon)
            time.sleep(0.5)
            code = daemon.stop()
            asked.result(WAIT_S)
        ended_s = daemon.seconds_between("stopping", "model_ended")

    assert (code, has_ended(pid)) == (0, True)
    assert ended_s < 1


def test_a_killed_daemon_takes_the_model_with_it(tmp_path: Path, endless: Path) -> None:
    with running(tmp_path, MNEMOSYNE_LLM_MODEL_PATH=str(endless), **ENDLESS) as daemon:
        fill(daemon, times=LONG)
        with ThreadPoolExecutor(1) as pool:
            asked = pool.submit(daemon.post, "sleep")
            pid = model_of(daemon)
            time.sleep(0.5)
            daemon.kill()
            assert asked.exception(WAIT_S)

    eventually(lambda: has_ended(pid), "the model's process has ended", timeout_s=2)
