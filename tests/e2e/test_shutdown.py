"""SIGTERM, SIGINT and Ctrl-C: the last sleep cycle, its deadline, and calls that take long."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, suppress
from datetime import datetime
from functools import partial
from pathlib import Path

import pytest
from e2e.conftest import Start
from e2e.consistency import damage, half_done
from e2e.daemons import (
    WAIT_S,
    Answer,
    Daemon,
    UnixConnection,
    episodes,
    eventually,
    kept,
    rows,
)
from e2e.terminals import on_terminal, popen
from support.endpoints import Behavior, Exchange, serving

from mnemosyned import Memory, Remember

pytestmark = pytest.mark.e2e


LONG_AGO = "2026-03-02T09:30:00Z"
GROUPS = 1500
GROUP = 3


@pytest.fixture(scope="module")
def many_groups(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A database whose last sleep cycle takes seconds."""
    database = tmp_path_factory.mktemp("backlog") / "memory.db"
    happened = datetime.fromisoformat(LONG_AGO)
    batch = [
        Remember(
            f"Step {n} of run {run}.",
            id=f"{run}-{n}",
            session=f"{run}",
            created_at=happened,
        )
        for run in range(GROUPS)
        for n in range(GROUP)
    ]
    with Memory(database) as memory:
        for start in range(0, len(batch), 900):
            memory.remember_many(batch[start : start + 900])
    return database


@pytest.fixture
def backlog(many_groups: Path, tmp_path: Path) -> Path:
    return Path(shutil.copy(many_groups, tmp_path / "memory.db"))


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_stop_signal_consolidates_once_more(
    daemon: Daemon, number: signal.Signals
) -> None:
    for n in range(3):
        aged = {"id": f"aged-{n}", "created_at": LONG_AGO}
        daemon.post("remember", content=f"Aged {n}.", **aged)
        daemon.post("remember", id=f"fresh-{n}", content=f"Fresh {n}.")

    code = daemon.stop(number)
    left = {path.name for path in daemon.home.iterdir()}

    assert code == 0
    assert not left & {"memory.db-wal", "memory.db-shm"}
    assert "STOPPING=1" in daemon.notices.received
    log = rows(
        daemon.database, 'SELECT "trigger", items_consolidated FROM consolidation_log'
    )
    assert log == [("shutdown", 3)]
    archived = rows(daemon.database, "SELECT id FROM archive ORDER BY id")
    working = rows(daemon.database, "SELECT id FROM working_memory ORDER BY id")
    assert archived == [("aged-0",), ("aged-1",), ("aged-2",)]
    assert working == [("fresh-0",), ("fresh-1",), ("fresh-2",)]
    assert list(daemon.socket.parent.glob("d.sock*")) == []


def test_a_daemon_that_drains_is_not_ready_and_serves_on(start: Start) -> None:
    daemon = start(MNEMOSYNE_SHUTDOWN_DRAIN_S="600")
    checks = {"database": "ok", "schema": "ok", "encoder": "off", "drain": "ok"}
    ready = daemon.request("GET", "/readyz")
    assert ready == Answer(200, {"ready": True, "failed": [], "checks": checks})

    daemon.process.send_signal(signal.SIGTERM)
    daemon.notices.wait("STATUS=draining for 600 s")
    assert "STOPPING=1" in daemon.notices.received
    ready = daemon.request("GET", "/readyz")
    assert (ready.status, ready.body["failed"]) == (503, ["drain"])
    assert daemon.request("GET", "/livez") == Answer(200, {"live": True})
    with closing(UnixConnection(daemon.socket)) as connection:
        connection.request("POST", "/v1/remember", b'{"content": "late", "id": "late"}')
        response = connection.getresponse()
        assert response.status == 200
        assert response.headers["Connection"] == "close"
    eventually(
        lambda: "EXTEND_TIMEOUT_USEC=30000000" in daemon.notices.received,
        "more time was asked for",
    )

    assert daemon.stop() == 0
    assert kept(daemon.database) == ["late"]


@pytest.mark.thorough
def test_a_long_final_cycle_asks_for_time(start: Start, backlog: Path) -> None:
    daemon = start(database=backlog)

    daemon.process.send_signal(signal.SIGTERM)
    daemon.notices.wait("STOPPING=1")
    eventually(lambda: episodes(daemon) > 0, "the last sleep cycle is under way")
    write = daemon.post("remember", content="late")
    sleep = daemon.post("sleep", dry_run=True)
    read = daemon.post("recall", query="step", limit=1)
    still_running = daemon.post("status").body["sleep"]["running"]
    second = daemon.stop()

    assert still_running
    assert (write.status, *write.error) == (503, "shutting_down", None)
    assert sleep.error == ("shutting_down", None)
    assert (read.status, len(read.body["hits"])) == (200, 1)
    assert second == 0, "a second signal ends it early"
    assert "EXTEND_TIMEOUT_USEC=30000000" in daemon.notices.received
    assert daemon.events("cycle_finished")[-1]["status"] == "partial"
    assert half_done(backlog) == {}
    assert len(kept(backlog)) == GROUPS * GROUP


@pytest.mark.thorough
def test_the_next_start_does_what_a_deadline_left(start: Start, backlog: Path) -> None:
    for deadline_s in ("0.3", "2", "9"):  # a machine may stand still for the first ones
        daemon = start(database=backlog, MNEMOSYNE_SLEEP_SHUTDOWN_DEADLINE_S=deadline_s)
        code = daemon.stop()
        if done := episodes(daemon):
            break
    broken = half_done(backlog)
    later = start(database=backlog)
    rest = later.post("sleep").body

    assert code == 0
    assert 0 < done < GROUPS
    assert broken == {}
    assert (rest["status"], rest["promoted"]) == ("done", GROUPS - done)
    assert half_done(backlog) == {}
    assert len(kept(backlog)) == GROUPS * GROUP
    later.stop()
    assert damage(backlog) == []


@pytest.mark.thorough
def test_a_deadline_of_zero_leaves_all(start: Start, backlog: Path) -> None:
    daemon = start(database=backlog, MNEMOSYNE_SLEEP_SHUTDOWN_DEADLINE_S="0")

    assert daemon.stop() == 0
    assert rows(backlog, "SELECT count(*) FROM episodic_memory WHERE level = 0") == [
        (0,)
    ]
    assert daemon.events("final_consolidation_failed") == []


@pytest.mark.thorough
def test_the_final_cycle_takes_over(start: Start, backlog: Path) -> None:
    daemon = start(database=backlog)

    with ThreadPoolExecutor(1) as pool:
        asked = pool.submit(daemon.post, "sleep", force=True)
        eventually(lambda: episodes(daemon) > 0, "the cycle is under way")
        code = daemon.stop()
        answer = asked.result(WAIT_S)

    assert code == 0
    assert (answer.status, answer.body["status"]) == (200, "partial")
    assert rows(backlog, "SELECT count(*) FROM episodic_memory WHERE level = 0") == [
        (GROUPS,)
    ]
    triggers = rows(
        backlog, 'SELECT DISTINCT "trigger" FROM consolidation_log ORDER BY 1'
    )
    assert triggers == [("explicit",), ("shutdown",)]
    assert half_done(backlog) == {}


# Ctrl-C at a call that takes long: the shell is back at once, and the daemon goes on.


CTRL_C = b"\x03"
NOTHING = "interrupted; nothing was changed"
HANGING = {
    ("status",): NOTHING,
    ("recall", "tea"): NOTHING,
    ("context", "tea"): NOTHING,
    ("list",): NOTHING,
    ("remember", "tea"): "interrupted; the daemon may still do this remember",
    ("forget", "--session", "x", "--yes"): "the daemon goes on with this forget",
    ("forget", "--session", "x"): NOTHING,
    ("backup", "copy.db"): "the daemon goes on with this backup until it is done",
    ("sleep",): "stop it with `mnem sleep --stop`",
    ("sleep", "--dry-run"): NOTHING,
    ("sleep", "--stop"): "the sleep cycle ends after its current batch",
    ("import", "-"): "interrupted",
}
"""What is said of a call to a daemon that does not answer, by its words."""
LONG = "We moved the printer to rack 4 and told Ines. " * 20


class Held:
    def __init__(self) -> None:
        self.asked = threading.Event()
        self.go_on = threading.Event()

    def __call__(self, exchange: Exchange) -> None:
        self.asked.set()
        self.go_on.wait(WAIT_S)
        exchange.reply(400, b"{}")


@pytest.fixture
def model() -> Iterator[Behavior]:
    held = Held()
    yield held
    held.go_on.set()


@pytest.fixture
def held_daemon(start: Start, model: Held) -> Iterator[Daemon]:
    with serving(model) as endpoint:
        daemon = start(MNEMOSYNE_LLM_ENDPOINT=endpoint.url)
        daemon.post(
            "remember_many", memories=[{"content": f"{n} {LONG}"} for n in range(3)]
        )
        yield daemon


def test_the_key_ends_no_cycle(held_daemon: Daemon, model: Held) -> None:
    with on_terminal(held_daemon, "sleep", "--force") as (process, seen):
        assert model.asked.wait(WAIT_S)
        seen.until(b"sleeping")
        seen.type(CTRL_C)
        code = process.wait(WAIT_S)
        said = seen().decode()

    assert code == 130
    assert "sleeping" in said
    assert said.count("mnem: ") == 1
    assert "the sleep cycle goes on in the daemon; watch it with `mnem status`" in said
    assert "Traceback" not in said
    assert held_daemon.post("status").body["sleep"]["running"]
    model.go_on.set()
    done = 'SELECT "trigger", items_consolidated FROM consolidation_log'
    eventually(
        lambda: rows(held_daemon.database, done) == [("explicit", 3)],
        "the cycle is in the log",
    )


def open_files(process: subprocess.Popen[bytes]) -> Iterator[str]:
    for link in Path(f"/proc/{process.pid}/fd").iterdir():
        with suppress(FileNotFoundError):  # closed meanwhile
            yield str(link.readlink())


def waits_for_the_daemon(process: subprocess.Popen[bytes]) -> bool:
    """Whether a client has sent its request: it sleeps, and has a socket."""
    connected = any(name.startswith("socket:") for name in open_files(process))
    state = Path(f"/proc/{process.pid}/stat").read_text().rpartition(") ")[2][0]
    return connected and state == "S"


@pytest.mark.thorough
def test_the_status_of_a_halted_daemon_names_its_process(start: Start) -> None:
    daemon = start()
    os.kill(daemon.process.pid, signal.SIGSTOP)
    try:
        with ThreadPoolExecutor() as pool:
            ask = [pool.submit(daemon.mnem, *words) for words in (["status"], [])]
            asked, glance = (each.result() for each in ask)
    finally:
        os.kill(daemon.process.pid, signal.SIGCONT)

    (line,) = asked.stderr.decode().splitlines()
    process = f"(process {daemon.process.pid})"
    assert f"{daemon.socket} {process} did not answer in time" in line
    assert asked.returncode != 0
    assert b"no daemon answers on its socket" in glance.stderr


@pytest.mark.thorough
def test_the_signal_ends_every_call_at_once(start: Start) -> None:
    daemon = start()
    os.kill(daemon.process.pid, signal.SIGSTOP)
    try:
        asking = {
            words: popen(daemon.socket, *words, home=daemon.home) for words in HANGING
        }
        for words, process in asking.items():
            eventually(partial(waits_for_the_daemon, process), f"{words} waits")
        for process in asking.values():
            process.send_signal(signal.SIGINT)
        answers = {
            words: (*process.communicate(timeout=WAIT_S), process.returncode)
            for words, process in asking.items()
        }
    finally:  # no call waited for the daemon
        os.kill(daemon.process.pid, signal.SIGCONT)

    for words, (out, said, code) in answers.items():
        (line,) = said.decode().strip().splitlines()
        assert (out, code) == (b"", 130), words
        assert line.startswith("mnem: "), words
        assert HANGING[words] in line


@pytest.mark.thorough
def test_a_cycle_is_stopped_after_its_batch(held_daemon: Daemon, model: Held) -> None:
    held_daemon.post("remember", content=f"another {LONG}", session="other")
    asking = popen(held_daemon.socket, "sleep", "--force", home=held_daemon.home)
    assert model.asked.wait(WAIT_S)

    stopping = popen(held_daemon.socket, "sleep", "--stop", home=held_daemon.home)
    eventually(
        lambda: held_daemon.post("status").body["sleep"]["paused_until"],
        "it is asked to end",
    )
    model.go_on.set()
    out, _ = stopping.communicate(timeout=WAIT_S)
    asked_out, _ = asking.communicate(timeout=WAIT_S)

    assert (stopping.returncode, asking.returncode) == (0, 0)
    assert out.startswith(b"stopped in")
    assert b"1 waits for the next cycle" in out
    assert out == asked_out
    assert not held_daemon.post("status").body["sleep"]["running"]
    left = rows(
        held_daemon.database, "SELECT substr(content, 1, 7) FROM working_memory"
    )
    assert left == [("another",)]
    again = held_daemon.mnem("sleep", "--stop")
    assert (again.returncode, again.stdout) == (1, b"no sleep cycle is running\n")
