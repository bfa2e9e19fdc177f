"""SIGTERM and SIGINT: the final consolidation, its deadline, and what is refused meanwhile."""

from __future__ import annotations

import shutil
import signal
from concurrent.futures import ThreadPoolExecutor
from datetime import datetime
from pathlib import Path

import pytest
from e2e.conftest import Start
from e2e.consistency import damage, half_done
from e2e.daemons import WAIT_S, Daemon, eventually, kept, rows

from mnemosyned import Memory, Remember

pytestmark = pytest.mark.e2e

LONG_AGO = "2026-03-02T09:30:00Z"
GROUPS = 1500
GROUP = 3


@pytest.fixture(scope="module")
def many_groups(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A database whose final consolidation takes seconds."""
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


def aged_and_fresh(daemon: Daemon) -> None:
    for n in range(3):
        daemon.post(
            "remember", id=f"aged-{n}", content=f"Aged {n}.", created_at=LONG_AGO
        )
        daemon.post("remember", id=f"fresh-{n}", content=f"Fresh {n}.")


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_stop_signal_consolidates_once_more(
    daemon: Daemon, number: signal.Signals
) -> None:
    aged_and_fresh(daemon)

    code = daemon.stop(number)

    assert code == 0
    assert "STOPPING=1" in daemon.notices.received
    log = rows(
        daemon.database, 'SELECT "trigger", items_consolidated FROM consolidation_log'
    )
    assert log == [("shutdown", 3)]
    archived = rows(daemon.database, "SELECT id FROM archive ORDER BY id")
    working = rows(daemon.database, "SELECT id FROM working_memory ORDER BY id")
    assert archived == [("aged-0",), ("aged-1",), ("aged-2",)]
    assert working == [("fresh-0",), ("fresh-1",), ("fresh-2",)]
    assert not daemon.socket.exists()


def test_the_final_consolidation_can_be_switched_off(start: Start) -> None:
    daemon = start(MNEMOSYNE_SLEEP_ON_SHUTDOWN="false")
    aged_and_fresh(daemon)

    assert daemon.stop() == 0
    assert rows(daemon.database, "SELECT count(*) FROM consolidation_log") == [(0,)]
    assert rows(daemon.database, "SELECT count(*) FROM working_memory") == [(6,)]


def test_nothing_is_left_beside_the_database(daemon: Daemon) -> None:
    aged_and_fresh(daemon)

    daemon.stop()

    assert not [
        path.name
        for path in daemon.home.iterdir()
        if path.name.endswith(("-wal", "-shm"))
    ]


@pytest.mark.thorough
def test_a_long_final_consolidation_asks_for_time_refuses_writes_and_answers(
    start: Start, backlog: Path
) -> None:
    daemon = start(database=backlog)

    daemon.process.send_signal(signal.SIGTERM)
    daemon.notices.wait("STOPPING=1")
    eventually(lambda: episodes(daemon) > 0, "the final consolidation is under way")
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
def test_the_deadline_cuts_it_short_and_the_next_start_does_the_rest(
    start: Start, backlog: Path
) -> None:
    daemon = start(database=backlog, MNEMOSYNE_SLEEP_SHUTDOWN_DEADLINE_S="0.3")

    code = daemon.stop()
    done = rows(backlog, "SELECT count(*) FROM episodic_memory WHERE level = 0")[0][0]
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
def test_a_deadline_of_zero_leaves_all_to_the_next_start(
    start: Start, backlog: Path
) -> None:
    daemon = start(database=backlog, MNEMOSYNE_SLEEP_SHUTDOWN_DEADLINE_S="0")

    assert daemon.stop() == 0
    assert rows(backlog, "SELECT count(*) FROM episodic_memory WHERE level = 0") == [
        (0,)
    ]
    assert daemon.events("final_consolidation_failed") == []


@pytest.mark.thorough
def test_a_cycle_under_way_ends_whole_and_the_final_one_takes_over(
    start: Start, backlog: Path
) -> None:
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


def episodes(daemon: Daemon) -> int:
    query = "SELECT count(*) FROM episodic_memory WHERE level = 0"
    count: int = rows(daemon.database, query)[0][0]
    return count
