"""Times at both ends of the calendar, a clock beyond it, and an undo that survives a restart."""

from __future__ import annotations

import sqlite3
import subprocess
import sys
from contextlib import closing
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from e2e.conftest import Start
from e2e.daemons import (
    WAIT_S,
    Daemon,
    environment,
    eventually,
    listens,
    rows,
    short_room,
)
from e2e.wire import answer, connected, post

pytestmark = [pytest.mark.e2e, pytest.mark.thorough]


UNSET = "0001-01-01T00:00:00Z"
"""How Go writes a time that was never set."""
ACCEPTED = (UNSET, "9999-12-31T23:59:59.999999Z", "0001-01-01T00:00:00-14:00")
REFUSED = ("0001-01-01T00:00:00+14:00", "9999-12-31T23:59:59-14:00")


@pytest.mark.parametrize("zone", ["America/New_York", "Pacific/Kiritimati"])
def test_a_time_at_either_end_breaks_nothing(start: Start, zone: str) -> None:
    daemon = start(TZ=zone)
    memories = [
        {
            "content": f"yesterday the log of run {at} said created_at {UNSET}",
            "created_at": UNSET,
        }
        for at in range(5)
    ]
    assert daemon.post("remember_many", memories=memories).status == 200

    for asked in (*ACCEPTED, *REFUSED):
        query = f"why is created_at {asked} in the log of yesterday or last week?"
        message = {"role": "user", "content": query, "timestamp": asked}
        assert daemon.post("recall", query=query).status == 200
        found = daemon.post("recall", query=query, asked_at=asked)
        assert (found.status, len(found.body["hits"]) > 0) == (200, True)
        assert daemon.post("context", message=query, messages=[message]).status == 200
        assert daemon.post("compact", messages=[message] * 3, force=True).status == 200
        assert daemon.mnem("recall", "--asked-at", asked, query).returncode == 0
    for limit in ("since", "until"):
        for asked in ACCEPTED:
            assert daemon.post("recall", query="log", **{limit: asked}).status == 200
            preview = {"dry_run": True, limit: asked}
            assert daemon.post("forget", person="Ada", **preview).status == 200
        for asked in REFUSED:
            answer = daemon.post("recall", query="log", **{limit: asked})
            assert (answer.status, *answer.error) == (400, "invalid_time", limit)
    for asked in REFUSED:
        answer = daemon.post("remember", content="x", valid_until=asked)
        assert (answer.status, *answer.error) == (400, "invalid_time", "valid_until")
        answer = daemon.post("remember", content="x", created_at=asked)
        assert (answer.status, *answer.error) == (400, "invalid_time", "created_at")
    assert daemon.post("remember", content="x", valid_until=ACCEPTED[1]).status == 200

    slept = daemon.mnem("sleep", "--force")

    assert slept.returncode == 0, slept.stderr
    with closing(sqlite3.connect(daemon.database)) as connection:
        failed = connection.execute(
            "SELECT error FROM consolidation_log WHERE status = 'failed'"
        )
        assert failed.fetchall() == []
        archived = connection.execute(
            "SELECT COUNT(*) FROM archive WHERE created_at LIKE '0001%' AND content LIKE 'yest%'"
        )
        assert archived.fetchone() == (5,)
    assert daemon.mnem("log").returncode == 0


# A clock past 2262, which Python's `time.time()` cannot tell: the daemon goes on answering.


PROGRAM = """
import os, sys, time
clock, flag = time.time, sys.argv.pop()


def late():
    if os.path.exists(flag):
        raise OverflowError("timestamp too large to convert to C _PyTime_t")
    return clock()


time.time = late
from mnemosyned.daemon.main import main
main()
"""


def test_writes_and_cycles_are_answered_and_logged(tmp_path: Path) -> None:
    flag, log = tmp_path / "late", tmp_path / "log"
    with short_room() as room, log.open("wb") as output:
        process = subprocess.Popen(
            [sys.executable, "-P", "-c", PROGRAM, "--socket", room / "s", flag],
            env=environment(tmp_path, WATCHDOG_USEC="200000"),
            stderr=output,
        )
        try:
            eventually(lambda: listens(room / "s"), "it listens")
            flag.touch()
            with connected(room / "s") as connection:
                statuses = []
                for number in range(4):
                    connection.sendall(post("remember", content=f"number {number}"))
                    statuses.append(answer(connection)[0])
                connection.sendall(post("sleep", force=True))
                statuses.append(answer(connection)[0])
            process.terminate()
            code = process.wait(WAIT_S)
        finally:
            process.kill()
            process.wait(WAIT_S)

    assert statuses == [200] * 5
    assert code == 0
    assert b"cycle" in log.read_bytes()
    assert b"Traceback" not in log.read_bytes()


# How long an undo lasts, over a restart.


AWAKE = {"MNEMOSYNE_AUTO_SLEEP": "true", "MNEMOSYNE_SLEEP_TICK_S": "0.05"}


def remember(daemon: Daemon, name: str, *, days_ago: int) -> None:
    moment = (datetime.now(UTC) - timedelta(days=days_ago)).isoformat()
    batch = [
        {"id": f"{name}{n}", "content": f"{name} {n}", "created_at": moment}
        for n in range(3)
    ]
    daemon.post("remember_many", memories=batch)


def working(database: Path) -> list[str]:
    return [id for (id,) in rows(database, "SELECT id FROM working_memory ORDER BY id")]


def test_an_undo_survives_the_age_trigger_and_a_restart(start: Start) -> None:
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


def test_the_doctor_names_a_memory_that_is_dated_in_the_future(start: Start) -> None:
    """As after a clock that was ahead: a request with such a time is refused."""
    daemon = start(TZ="UTC")
    daemon.post("remember", content="Tea at four.")
    assert b"is dated" not in daemon.mnem("doctor").stdout

    with closing(sqlite3.connect(daemon.database)) as connection, connection:
        connection.execute(
            "UPDATE working_memory SET created_at = ?", ["2999-03-04T05:06:00.000000Z"]
        )

    shown = " ".join(daemon.mnem("doctor").stdout.decode().split())
    assert "a memory is dated 2999-03-04 05:06, as if the clock had been" in shown
    assert "mnem list --since 2" in shown
