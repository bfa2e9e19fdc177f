"""SIGHUP: the settings are read again, or refused whole."""

from __future__ import annotations

import signal
from collections.abc import Callable
from pathlib import Path

import pytest
from e2e.conftest import Start
from e2e.daemons import Daemon, Json, eventually

pytestmark = [pytest.mark.e2e, pytest.mark.thorough]

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


def test_sighup_can_end_the_schedule(reload: Reload) -> None:
    reload("auto_sleep: true\n")

    status = reload("auto_sleep: false\n")

    assert (status["sleep"]["auto"], status["sleep"]["next_cycle"]) == (False, None)


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

    eventually(lambda: working(configured) <= 10, "working memory is under its new cap")


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


def working(daemon: Daemon) -> int:
    count: int = daemon.post("status").body["tiers"]["working"]["count"]
    return count
