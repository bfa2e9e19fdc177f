"""Background work of the daemon: it sleeps on its schedule and keeps working memory in bounds."""

from __future__ import annotations

import pytest
from e2e.conftest import Start
from e2e.consistency import half_done
from e2e.daemons import Daemon, eventually, kept, rows

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
    eventually(lambda: len(working(daemon)) <= CAP, "working memory is under its cap")

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


def test_a_burst_over_the_cap_is_no_reason_for_warnings(start: Start) -> None:
    daemon = start(MNEMOSYNE_WM_MAX=str(CAP))

    for number in range(400):
        daemon.post("remember", content=f"memory {number}")
    eventually(lambda: len(working(daemon)) <= CAP, "working memory is under its cap")

    assert [event for event in daemon.events() if event["level"] != "info"] == []


def episodes(daemon: Daemon) -> int:
    query = "SELECT count(*) FROM episodic_memory WHERE level = 0"
    count: int = rows(daemon.database, query)[0][0]
    return count


def working(daemon: Daemon) -> list[str]:
    found = rows(
        daemon.database, "SELECT id FROM working_memory ORDER BY created_at, seq"
    )
    return [id for (id,) in found]
