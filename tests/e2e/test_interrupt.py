"""Ctrl-C at a call that takes long: the shell is back at once, and the daemon goes on."""

from __future__ import annotations

import signal
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from e2e.conftest import Start
from e2e.daemons import WAIT_S, Daemon, eventually, rows
from e2e.terminals import on_terminal, popen
from support.endpoints import Behavior, Exchange, serving

pytestmark = pytest.mark.e2e

CTRL_C = b"\x03"
AT_ONCE_S = 5.0
"""On a machine under load; the model would take for as long as the test lets it."""
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
        began = time.monotonic()
        seen.type(CTRL_C)
        code = process.wait(WAIT_S)
        took_s = time.monotonic() - began
        said = seen().decode()

    assert (code, took_s < AT_ONCE_S) == (130, True)
    assert "sleeping" in said
    assert "the cycle continues in the daemon; mnem status shows its progress" in said
    assert "Traceback" not in said
    assert daemon.post("status").body["sleep"]["running"]
    model.go_on.set()
    eventually(
        lambda: cycles(daemon.database) == [("explicit", 3)], "the cycle is in the log"
    )


def test_the_signal_ends_one_that_is_piped(daemon: Daemon, model: Held) -> None:
    asking = popen(daemon.socket, "sleep", "--force", home=daemon.home)
    assert model.asked.wait(WAIT_S)

    began = time.monotonic()
    asking.send_signal(signal.SIGINT)
    out, said = asking.communicate(timeout=WAIT_S)

    assert (asking.returncode, out) == (130, b"")
    assert time.monotonic() - began < AT_ONCE_S
    assert b"continues in the daemon" in said
    model.go_on.set()
    eventually(
        lambda: cycles(daemon.database) == [("explicit", 3)], "the cycle is in the log"
    )
