"""Times that survive restarts: how long an undo lasts, and a clock that is not trusted."""

from __future__ import annotations

import sqlite3
import time
from contextlib import closing
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from e2e.conftest import Start
from e2e.daemons import WAIT_S, Daemon, eventually, rows
from e2e.terminals import on_terminal

pytestmark = pytest.mark.e2e

AWAKE = {"MNEMOSYNE_AUTO_SLEEP": "true", "MNEMOSYNE_SLEEP_TICK_S": "0.05"}
KEEP = {"MNEMOSYNE_ARCHIVE_KEEP_DAYS": "365"}


def remember(daemon: Daemon, name: str, *, days_ago: int) -> None:
    moment = (datetime.now(UTC) - timedelta(days=days_ago)).isoformat()
    batch = [
        {"id": f"{name}{n}", "content": f"{name} {n}", "created_at": moment}
        for n in range(3)
    ]
    daemon.post("remember_many", memories=batch)


def working(database: Path) -> list[str]:
    return [id for (id,) in rows(database, "SELECT id FROM working_memory ORDER BY id")]


def with_words(database: Path) -> list[str]:
    return [
        id
        for (id,) in rows(
            database, "SELECT id FROM archive WHERE content != '' ORDER BY id"
        )
    ]


def test_an_undo_survives_the_age_trigger_and_a_restart(
    start: Start,
) -> None:
    daemon = start()
    remember(daemon, "held", days_ago=3)
    daemon.mnem("sleep")

    undone = daemon.mnem("undo", "--keep-hours", "2", "--yes").stdout.decode()
    slept = daemon.mnem("sleep").stdout.decode()
    stopped = daemon.stop()
    after_stop = working(daemon.database)
    again = start(database=daemon.database, **AWAKE)
    remember(again, "other", days_ago=3)
    eventually(
        lambda: "other0" not in working(again.database), "the age trigger has its cycle"
    )

    until = datetime.fromisoformat(
        rows(again.database, "SELECT held_until FROM working_state")[0][0]
    )
    assert timedelta(hours=1) < until - datetime.now(UTC) <= timedelta(hours=2)
    assert f"they stay until {until.astimezone():%Y-%m-%d %H:%M}" in undone
    assert "held back after an undo" in slept
    assert (stopped, after_stop) == (0, ["held0", "held1", "held2"])
    assert working(again.database) == ["held0", "held1", "held2"]


def off_for(database: Path, *, days: int) -> None:
    """Make the last sighting older, as if the machine had been off until it was started."""
    up_s = time.clock_gettime(time.CLOCK_BOOTTIME)
    with closing(sqlite3.connect(database)) as connection:
        connection.execute(
            "UPDATE clock_seen SET moment = "
            f"strftime('%Y-%m-%dT%H:%M:%f', moment, '-{days} days', '-{up_s} seconds') || '000Z', "
            "boot = 'before'"
        )
        connection.commit()


def test_a_machine_that_was_off_for_800_days_asks_before_it_prunes(
    start: Start,
) -> None:
    before = start()
    remember(before, "old", days_ago=801)
    before.mnem("sleep", "--force")
    before.stop()
    off_for(before.database, days=800)

    daemon = start(database=before.database, **KEEP)
    daemon.mnem("sleep", "--force")
    after_sleep = with_words(daemon.database)
    status = daemon.mnem("status").stdout.decode()
    refused = daemon.mnem("archive", "prune", "--yes")
    after_refusal = with_words(daemon.database)
    with on_terminal(daemon, "archive", "prune") as (process, seen):
        seen.type(b"y\n")
        process.wait(WAIT_S)
        asked = seen().decode()

    assert after_sleep == after_refusal == ["old0", "old1", "old2"]
    assert "800 days later than can have passed" in " ".join(status.split())
    assert "mnem archive prune --believe-clock" in status
    assert (refused.returncode, refused.stdout) == (5, b"")
    assert b"nothing was pruned: the clock says" in refused.stderr
    assert [event["ahead"] for event in daemon.events("clock_not_believed")] == [
        "800 days"
    ]
    assert "800 days later" in " ".join(asked.split())
    assert "would prune: the words of 3 originals" in asked
    assert with_words(daemon.database) == []
    assert "believe-clock" not in daemon.mnem("status").stdout.decode()
    assert len(daemon.events("clock_believed")) == 1
