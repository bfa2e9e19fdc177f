"""The daemon's own triggers, and what a terminal shows of a cycle that somebody asked for."""

from __future__ import annotations

import os
import pty
import subprocess

import pytest
from e2e.conftest import Start
from e2e.daemons import WAIT_S, Daemon, environment, eventually, rows
from e2e.programs import BIN

pytestmark = [pytest.mark.e2e, pytest.mark.thorough]

AWAKE = {
    "MNEMOSYNE_AUTO_SLEEP": "true",
    "MNEMOSYNE_SLEEP_TICK_S": "0.05",
    "MNEMOSYNE_SLEEP_MIN_AGE_MINUTES": "0.0001",
}
LONG_AGO = "2026-03-02T09:30:00Z"


def remember(daemon: Daemon, count: int, **fields: str) -> None:
    memories = [{"content": f"Note {at} of the day.", **fields} for at in range(count)]
    daemon.post("remember_many", memories=memories)


def triggers(daemon: Daemon) -> list[str]:
    return [
        name
        for (name,) in rows(daemon.database, 'SELECT "trigger" FROM consolidation_log')
    ]


@pytest.mark.parametrize(
    ("name", "setting", "value"),
    [
        ("count", "ON_COUNT", "6"),
        ("size", "ON_BYTES", "1000"),
        ("idle", "ON_IDLE_MINUTES", "0.005"),
        ("tokens", "ON_SESSION_TOKENS", "500"),
    ],
)
def test_a_trigger_that_is_switched_on_starts_a_cycle_and_is_logged(
    start: Start, name: str, setting: str, value: str
) -> None:
    daemon = start(**AWAKE, **{f"MNEMOSYNE_SLEEP_{setting}": value})

    remember(daemon, 90, source="chat")
    eventually(lambda: triggers(daemon), f"{name} starts a cycle")

    assert set(triggers(daemon)) == {name}


def test_age_starts_a_cycle_by_itself(start: Start) -> None:
    daemon = start(**AWAKE)

    remember(daemon, 3, created_at=LONG_AGO)
    eventually(lambda: triggers(daemon), "age starts a cycle")

    assert triggers(daemon)[0] == "age"


def test_switched_off_nothing_starts_by_itself(start: Start) -> None:
    settings = {
        **AWAKE,
        "MNEMOSYNE_AUTO_SLEEP": "false",
        "MNEMOSYNE_SLEEP_ON_COUNT": "3",
    }
    daemon = start(**settings)
    other = start(
        database=daemon.home / "other.db",
        **{**settings, "MNEMOSYNE_AUTO_SLEEP": "true"},
    )

    for one in (daemon, other):
        remember(one, 9, created_at=LONG_AGO)
    eventually(lambda: triggers(other), "the one that may does")

    assert triggers(daemon) == []


def test_on_a_terminal_a_cycle_shows_how_far_it_is(daemon: Daemon) -> None:
    remember(daemon, 9, created_at=LONG_AGO)
    reader, terminal = pty.openpty()

    slept = subprocess.run(
        [BIN / "mnem", "--socket", str(daemon.socket), "sleep"],
        env={**environment(daemon.home), "TERM": "xterm"},
        stdout=subprocess.PIPE,
        stderr=terminal,
        timeout=WAIT_S,
        check=True,
    )
    os.close(terminal)
    shown = os.read(reader, 1 << 16).decode()
    os.close(reader)

    assert "sleeping" in shown
    assert "9/9" in shown
    assert slept.stdout.decode().startswith("done in")
