"""Ctrl-C at a call that takes long: the shell is back at once, and the daemon goes on."""

from __future__ import annotations

import os
import signal
import subprocess
import threading
from collections.abc import Iterator
from contextlib import suppress
from functools import partial
from pathlib import Path

import pytest
from e2e.conftest import Start
from e2e.daemons import WAIT_S, Daemon, eventually, rows
from e2e.terminals import on_terminal, popen
from support.endpoints import Behavior, Exchange, serving

pytestmark = pytest.mark.e2e

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
    ("sleep", "--stop"): "the sleep cycle ends after its present batch",
    ("import", "-"): "interrupted",
}
"""What is said of a call to a daemon that does not answer, by its words."""
LONG = "We moved the printer to rack 4 and told Ines. " * 20


class Held:
    """A model that answers when it may."""

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
def daemon(start: Start, model: Held) -> Iterator[Daemon]:
    with serving(model) as endpoint:
        daemon = start(MNEMOSYNE_LLM_ENDPOINT=endpoint.url)
        daemon.post(
            "remember_many", memories=[{"content": f"{n} {LONG}"} for n in range(3)]
        )
        yield daemon


def cycles(database: Path) -> list[tuple[str, int]]:
    return rows(database, 'SELECT "trigger", items_consolidated FROM consolidation_log')


def test_the_key_ends_a_sleep_at_a_terminal_and_the_cycle_goes_on(
    daemon: Daemon, model: Held
) -> None:
    with on_terminal(daemon, "sleep", "--force") as (process, seen):
        assert model.asked.wait(WAIT_S)
        seen.type(CTRL_C)
        code = process.wait(WAIT_S)
        said = seen().decode()

    assert code == 130
    assert "sleeping" in said
    assert said.count("mnem: ") == 1
    assert "the sleep cycle goes on in the daemon; watch it with `mnem status`" in said
    assert "Traceback" not in said
    assert daemon.post("status").body["sleep"]["running"]
    model.go_on.set()
    eventually(
        lambda: cycles(daemon.database) == [("explicit", 3)], "the cycle is in the log"
    )


@pytest.mark.thorough
def test_the_signal_ends_one_that_is_piped(daemon: Daemon, model: Held) -> None:
    asking = popen(daemon.socket, "sleep", "--force", home=daemon.home)
    assert model.asked.wait(WAIT_S)

    asking.send_signal(signal.SIGINT)
    out, said = asking.communicate(timeout=WAIT_S)

    assert (asking.returncode, out) == (130, b"")
    assert daemon.post("status").body["sleep"]["running"]
    assert b"goes on in the daemon" in said
    model.go_on.set()
    eventually(
        lambda: cycles(daemon.database) == [("explicit", 3)], "the cycle is in the log"
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
def test_the_signal_ends_every_call_at_once_however_long_the_daemon_hangs(
    start: Start,
) -> None:
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


def test_a_cycle_is_stopped_after_its_present_batch(
    daemon: Daemon, model: Held
) -> None:
    daemon.post("remember", content=f"another {LONG}", session="other")
    asking = popen(daemon.socket, "sleep", "--force", home=daemon.home)
    assert model.asked.wait(WAIT_S)

    stopping = popen(daemon.socket, "sleep", "--stop", home=daemon.home)
    eventually(
        lambda: daemon.post("status").body["sleep"]["paused_until"],
        "it is asked to end",
    )
    model.go_on.set()
    out, _ = stopping.communicate(timeout=WAIT_S)
    asked_out, _ = asking.communicate(timeout=WAIT_S)

    assert (stopping.returncode, asking.returncode) == (0, 0)
    assert out.startswith(b"stopped in")
    assert b"1 waits for the next cycle" in out
    assert out == asked_out
    assert not daemon.post("status").body["sleep"]["running"]
    left = rows(daemon.database, "SELECT substr(content, 1, 7) FROM working_memory")
    assert left == [("another",)]
    again = daemon.mnem("sleep", "--stop")
    assert (again.returncode, again.stdout) == (1, b"no sleep cycle is running\n")
