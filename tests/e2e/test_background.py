"""Background work of the daemon: its schedule, triggers and cap, and the settings read again."""

from __future__ import annotations

import os
import pty
import signal
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest
from e2e.conftest import Start
from e2e.consistency import half_done
from e2e.daemons import WAIT_S, Daemon, Json, environment, eventually, kept, rows
from e2e.programs import BIN

pytestmark = [pytest.mark.e2e, pytest.mark.thorough]


LONG_AGO = "2026-03-02T09:30:00Z"
SOON = {"MNEMOSYNE_SLEEP_INTERVAL_MINUTES": "0.01"}
CAP = 50


def remember(daemon: Daemon) -> None:
    batch = [
        {"id": f"aged-{n}", "content": f"Aged {n}.", "created_at": LONG_AGO}
        for n in range(4)
    ]
    daemon.post(
        "remember_many", memories=[*batch, {"id": "fresh", "content": "Fresh."}]
    )


def cycles(daemon: Daemon) -> int:
    return len(daemon.events("cycle_finished"))


def test_it_sleeps_on_its_schedule_only_if_told_to(start: Start) -> None:
    asleep = start(MNEMOSYNE_AUTO_SLEEP="true", **SOON)
    awake = start(database=asleep.home / "awake.db", **SOON)
    remember(awake)
    remember(asleep)

    eventually(lambda: episodes(asleep) == 1, "the aged entries are consolidated")
    slept = cycles(asleep)
    eventually(lambda: cycles(asleep) >= slept + 2, "two cycles more")

    assert rows(
        asleep.database, 'SELECT DISTINCT "trigger" FROM consolidation_log'
    ) == [("schedule",)]
    assert rows(asleep.database, "SELECT id FROM working_memory") == [("fresh",)]
    status = asleep.post("status").body["sleep"]
    assert status["auto"]
    assert status["last_cycle"] < status["next_cycle"]
    assert (cycles(awake), episodes(awake)) == (0, 0)
    assert awake.post("status").body["sleep"]["due"] == 4


def test_working_memory_stays_under_its_cap_and_nothing_is_lost(start: Start) -> None:
    daemon = start(MNEMOSYNE_WM_MAX=str(CAP))
    ids = [f"n{number:03}" for number in range(160)]

    daemon.post("remember", id="pinned", content="Always at hand.", pinned=True)
    for id in ids:
        daemon.post(
            "remember", id=id, content=f"This is memory {id}.", session=f"s{id[-1]}"
        )
    eventually(
        lambda: len(working(daemon)) <= CAP and not sleeping(daemon),
        "working memory is under its cap, and the cycle that brought it there has ended",
    )

    left = working(daemon)
    assert left == ["pinned", *ids[-len(left) + 1 :]], (
        "the oldest went first, the pinned stayed"
    )
    assert len(left) > CAP // 2, "no more was consolidated than had to be"
    assert kept(daemon.database) == sorted([*ids, "pinned"])
    assert rows(
        daemon.database, 'SELECT DISTINCT "trigger" FROM consolidation_log'
    ) == [("cap",)]
    assert half_done(daemon.database) == {}
    assert (
        daemon.post("recall", query="memory n000").body["hits"][0]["lines"][0]["id"]
        == "n000"
    )


def sleeping(daemon: Daemon) -> bool:
    return bool(daemon.post("status").body["sleep"]["running"])


def episodes(daemon: Daemon) -> int:
    query = "SELECT count(*) FROM episodic_memory WHERE level = 0"
    count: int = rows(daemon.database, query)[0][0]
    return count


def working(daemon: Daemon) -> list[str]:
    found = rows(
        daemon.database, "SELECT id FROM working_memory ORDER BY created_at, seq"
    )
    return [id for (id,) in found]


# The daemon's own triggers, and what a terminal shows of a cycle that somebody asked for.


AWAKE = {
    "MNEMOSYNE_AUTO_SLEEP": "true",
    "MNEMOSYNE_SLEEP_TICK_S": "0.05",
    "MNEMOSYNE_SLEEP_MIN_AGE_MINUTES": "0.0001",
}


def remember_old(daemon: Daemon, count: int, **fields: str) -> None:
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

    remember_old(daemon, 90, source="chat")
    eventually(lambda: triggers(daemon), f"{name} starts a cycle")

    assert set(triggers(daemon)) == {name}


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
        remember_old(one, 9, created_at=LONG_AGO)
    eventually(lambda: triggers(other), "the one that may does")

    assert triggers(daemon) == []


def test_on_a_terminal_a_cycle_shows_how_far_it_is(daemon: Daemon) -> None:
    remember_old(daemon, 9, created_at=LONG_AGO)
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


# SIGHUP: the settings are read again, or refused whole.


Reload = Callable[[str], Json]
FIRST = "auto_sleep: false\nwm_max: 500\nsleep:\n  interval_minutes: 30\n"


@pytest.fixture
def configured(start: Start, tmp_path: Path) -> Daemon:
    (tmp_path / "settings.yaml").write_text(FIRST)
    return start("--config", str(tmp_path / "settings.yaml"), MNEMOSYNE_AUTO_SLEEP=None)


@pytest.fixture
def reload(configured: Daemon, tmp_path: Path) -> Reload:
    """Write new settings, have them read, and ask for the status."""

    def write(text: str) -> Json:
        before = answered(configured)
        (tmp_path / "settings.yaml").write_text(text)
        configured.process.send_signal(signal.SIGHUP)
        eventually(
            lambda: answered(configured) > before, "an answer to SIGHUP in the log"
        )
        return configured.post("status").body

    return write


def answered(daemon: Daemon) -> int:
    return len([*daemon.events("config_reloaded"), *daemon.events("config_refused")])


def test_sighup_takes_over_the_settings(configured: Daemon, reload: Reload) -> None:
    before = configured.post("status").body

    after = reload("auto_sleep: true\nwm_max: 700\nsleep:\n  interval_minutes: 7\n")

    assert (before["wm_max"], before["sleep"]["auto"], before["sleep"]["schedule"]) == (
        500,
        False,
        "off",
    )
    assert (after["wm_max"], after["sleep"]["auto"], after["sleep"]["schedule"]) == (
        700,
        True,
        "every 7 minutes",
    )
    assert after["sleep"]["next_cycle"] is not None


def test_sighup_changes_what_is_logged(configured: Daemon, reload: Reload) -> None:
    configured.post("log")
    quiet = configured.events("request")

    reload(FIRST + "log:\n  level: debug\n")
    configured.post("log")

    assert quiet == []
    assert "/v1/log" in [event["path"] for event in configured.events("request")]


def test_a_lower_cap_holds_from_the_next_memory_on(
    configured: Daemon, reload: Reload
) -> None:
    for number in range(30):
        configured.post("remember", content=f"number {number}")

    reload("auto_sleep: false\nwm_max: 10\n")
    configured.post("remember", content="one more")

    eventually(
        lambda: working_count(configured) <= 10, "working memory is under its new cap"
    )


@pytest.mark.parametrize(
    ("broken", "reason"),
    [
        ("wm_max: 0\n", "wm_max"),
        ("wm_maxx: 5\n", "did you mean wm_max?"),
        ("wm_max: [\n", "line 2"),
        ("auto_sleep: true\nsleep:\n  cron: 99 3 * * *\n", "sleep.cron"),
    ],
    ids=["out of range", "unknown", "no yaml", "impossible cron"],
)
def test_broken_settings_are_refused_and_the_old_stay(
    configured: Daemon, reload: Reload, broken: str, reason: str
) -> None:
    before = reload("auto_sleep: true\nwm_max: 600\nsleep:\n  interval_minutes: 9\n")

    after = reload(broken)

    assert reason in configured.events("config_refused")[0]["reason"]
    assert (after["wm_max"], after["sleep"]) == (before["wm_max"], before["sleep"])
    assert after["sleep"]["next_cycle"] is not None


def test_a_file_that_is_gone_is_refused_and_the_daemon_goes_on(
    configured: Daemon, tmp_path: Path
) -> None:
    (tmp_path / "settings.yaml").unlink()

    configured.process.send_signal(signal.SIGHUP)

    eventually(lambda: configured.events("config_refused"), "the refusal in the log")
    assert configured.post("status").body["wm_max"] == 500


def working_count(daemon: Daemon) -> int:
    count: int = daemon.post("status").body["tiers"]["working"]["count"]
    return count
