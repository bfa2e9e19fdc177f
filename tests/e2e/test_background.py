"""Background work of the daemon: its schedule, triggers and backups, and the settings read again."""

from __future__ import annotations

import os
import pty
import signal
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest
from e2e.conftest import Start
from e2e.consistency import damage
from e2e.daemons import (
    WAIT_S,
    Daemon,
    Json,
    environment,
    episodes,
    eventually,
    kept,
    rows,
    running,
)
from e2e.programs import BIN

pytestmark = [pytest.mark.e2e, pytest.mark.thorough]


LONG_AGO = "2026-03-02T09:30:00Z"
SOON = {"MNEMOSYNE_SLEEP_INTERVAL_MINUTES": "0.01"}


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


def sockets(pid: int) -> int:
    """Count the sockets that a process has open; a file that it closes meanwhile is no error."""
    files = Path(f"/proc/{pid}/fd").iterdir()
    return sum(file.resolve().name.startswith("socket:") for file in files)


@pytest.mark.parametrize(
    ("words", "shown", "done"),
    [
        (["sleep"], ["sleeping", "9/9"], "done in"),
        (["forget", "--source", "chat", "--yes"], ["forgetting · 0 mem"], "forgot 9"),
    ],
)
def test_on_a_terminal_a_long_command_shows_how_far_it_is(
    daemon: Daemon, words: list[str], shown: list[str], done: str
) -> None:
    remember_old(daemon, 9, created_at=LONG_AGO, source="chat")
    reader, terminal = pty.openpty()

    daemon.process.send_signal(signal.SIGSTOP)
    command = subprocess.Popen(
        [BIN / "mnem", "--socket", str(daemon.socket), *words],
        env={**environment(daemon.home), "TERM": "xterm"},
        stdout=subprocess.PIPE,
        stderr=terminal,
    )
    eventually(lambda: sockets(command.pid) == 2, "it asks how far the daemon is")
    daemon.process.send_signal(signal.SIGCONT)
    printed, _ = command.communicate(timeout=WAIT_S)
    os.close(terminal)
    said = os.read(reader, 1 << 16).decode()
    os.close(reader)

    assert command.returncode == 0
    assert [part for part in shown if part in said] == shown
    assert printed.decode().startswith(done)


def test_working_memory_stays_under_its_cap(start: Start) -> None:
    daemon = start(MNEMOSYNE_WM_MAX="50")

    for number in range(160):
        daemon.post("remember", id=f"n{number:03}", content=f"This is memory {number}.")

    query = "SELECT id FROM working_memory ORDER BY seq"
    eventually(lambda: len(rows(daemon.database, query)) <= 50, "it is under its cap")
    assert rows(daemon.database, query)[-1] == ("n159",)
    assert kept(daemon.database) == [f"n{number:03}" for number in range(160)]
    assert set(triggers(daemon)) == {"cap"}


# SIGHUP: the settings are read again, or refused whole.


Reload = Callable[[str | None], Json]
FIRST = "auto_sleep: false\nwm_max: 500\nsleep:\n  interval_minutes: 30\n"


@pytest.fixture
def configured(start: Start, tmp_path: Path) -> Daemon:
    (tmp_path / "settings.yaml").write_text(FIRST)
    return start("--config", str(tmp_path / "settings.yaml"), MNEMOSYNE_AUTO_SLEEP=None)


@pytest.fixture
def reload(configured: Daemon, tmp_path: Path) -> Reload:
    """Write new settings, or delete them, have them read, and ask for the status."""

    def write(text: str | None) -> Json:
        before = answered(configured)
        if text is None:
            (tmp_path / "settings.yaml").unlink()
        else:
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
    def shown(status: Json) -> tuple[Json, ...]:
        return status["wm_max"], status["sleep"]["auto"], status["sleep"]["schedule"]

    before = configured.post("status").body
    after = reload("auto_sleep: true\nwm_max: 700\nsleep:\n  interval_minutes: 7\n")

    assert shown(before) == (500, False, "off")
    assert shown(after) == (700, True, "every 7 minutes")
    assert after["sleep"]["next_cycle"] is not None


def test_sighup_changes_what_is_logged(configured: Daemon, reload: Reload) -> None:
    configured.post("log")
    quiet = configured.events("request")

    reload(FIRST + "log:\n  level: debug\n")
    configured.post("log")

    assert quiet == []
    assert "/v1/log" in [event["path"] for event in configured.events("request")]


@pytest.mark.parametrize(
    ("broken", "reason"),
    [
        ("wm_max: 0\n", "wm_max"),
        ("wm_maxx: 5\n", "did you mean wm_max?"),
        ("wm_max: [\n", "line 2"),
        ("auto_sleep: true\nsleep:\n  cron: 99 3 * * *\n", "sleep.cron"),
        (None, "settings.yaml"),
    ],
    ids=["out of range", "unknown", "no yaml", "impossible cron", "gone"],
)
def test_broken_settings_are_refused_and_the_old_stay(
    configured: Daemon, reload: Reload, broken: str | None, reason: str
) -> None:
    before = reload("auto_sleep: true\nwm_max: 600\nsleep:\n  interval_minutes: 9\n")

    after = reload(broken)

    assert reason in configured.events("config_refused")[0]["reason"]
    assert (after["wm_max"], after["sleep"]) == (before["wm_max"], before["sleep"])
    assert after["sleep"]["next_cycle"] is not None


# A daemon that is given a folder makes backups there by itself, and says when that fails.


TICK = {"MNEMOSYNE_SLEEP_TICK_S": "0.05"}


def test_a_daily_backup_needs_a_folder_alone(start: Start, tmp_path: Path) -> None:
    copies = tmp_path / "copies"
    daemon = start(MNEMOSYNE_BACKUP_DIR=str(copies), **TICK)
    eventually(lambda: daemon.events("backup_made"), "a backup in the log")
    daemon.post("remember", content="Tea at four.", id="tea")

    status = daemon.post("status").body
    forgotten = daemon.post("forget", id="tea").body

    (copy,) = copies.glob("memory-*.auto.db")
    assert (status["backup"]["count"], status["warnings"]) == (1, [])
    assert (kept(copy), damage(copy)) == ([], [])
    assert str(copy) in forgotten["backups"]
    assert len(daemon.events("backup_made")) == 1


def test_a_failed_backup_is_warned_of(start: Start, tmp_path: Path) -> None:
    (tmp_path / "copies").write_text("in the way")
    daemon = start(MNEMOSYNE_BACKUP_DIR=str(tmp_path / "copies"), **TICK)

    eventually(lambda: daemon.events("backup_failed"), "the failure in the log")

    (warning,) = daemon.post("status").body["warnings"]
    assert warning.startswith("the last scheduled backup failed: the backup folder")
    assert b"the last scheduled backup failed" in daemon.mnem().stdout


# The built-in encoder in a daemon as it comes: by meaning, across languages, without a step.


def test_a_daemon_finds_by_meaning_without_a_step(tmp_path: Path) -> None:
    with running(tmp_path, MNEMOSYNE_EMBEDDING_ENCODER=None) as daemon:
        daemon.post(
            "remember", content="We moved the release to Thursday", id="release"
        )
        daemon.post("remember", content="The cat sleeps on the sofa", id="cat")

        def is_embedded() -> bool:
            return bool(daemon.post("status").body["embedder"]["embedded"] == 2)

        eventually(is_embedded, "both memories are embedded", timeout_s=120)
        assert b"2 of 2 memories embedded" in daemon.mnem("status").stdout
        answers = [
            daemon.mnem("recall", question, "--json").stdout
            for question in (
                "Auf welchen Tag wurde die Veröffentlichung verschoben?",
                "где спит кошка?",
            )
        ]
        assert daemon.stop() == 0

    assert b'"release"' in answers[0]
    assert b'"cat"' in answers[1]
    cached = [file.name for file in (tmp_path / ".cache" / "mnemosyned").iterdir()]
    assert len(cached) == 2


def test_a_daemon_without_the_encoder_loads_none_of_it(tmp_path: Path) -> None:
    with running(tmp_path, anew=True) as daemon:
        daemon.post("remember", content="We moved the release to Thursday")
        status = daemon.mnem("status").stdout
        recalled = daemon.mnem("recall", "release").stdout

        assert b"recall goes by words alone" in status
        assert b"by words alone" not in recalled
        maps = Path(f"/proc/{daemon.process.pid}/maps").read_text("utf-8")
        assert "numpy/_core" not in maps
    assert not (tmp_path / ".cache").exists()
