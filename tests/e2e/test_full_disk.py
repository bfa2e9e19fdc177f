"""A disk of a few megabytes that is full: what is said of it is true, and room heals everything."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
from e2e.consistency import damage
from e2e.daemons import Daemon, kept, running, spawn
from support.fakes import files_containing

pytestmark = [pytest.mark.e2e, pytest.mark.fault]

WORD = "Zqxjvkwyz"
FREE_SPACE = "free space"


@pytest.fixture
def disk(tmp_path: Path) -> Iterator[Path]:
    """A file system of 4 MB of its own."""
    if os.geteuid() and "CI" not in os.environ:
        pytest.skip("only root can mount a small disk")
    room = tmp_path / "disk"
    room.mkdir()
    subprocess.run(
        ["mount", "-t", "tmpfs", "-o", "size=4m", "mnemosyned-test", room], check=True
    )
    yield room
    subprocess.run(["umount", "-l", room], check=True)


def fill(disk: Path, *, leave: int = 0) -> Path:
    """Leave so many bytes of it."""
    ballast = disk / "ballast"
    room = os.statvfs(disk)
    ballast.write_bytes(bytes(room.f_bavail * room.f_frsize - leave))
    return ballast


def remember(daemon: Daemon, name: str, size: int) -> list[str]:
    ids = [f"{name}{number}" for number in range(size)]
    texts = [
        {"id": id, "content": f"{id} is {WORD}. " + "It rained. " * 20} for id in ids
    ]
    assert daemon.post("remember_many", memories=texts).status == 200
    return ids


def test_a_start_on_a_full_disk_says_what_is_wrong(disk: Path, tmp_path: Path) -> None:
    ballast = fill(disk)
    log = tmp_path / "log"
    options = ("--database", str(disk / "memory.db"), "--socket", str(tmp_path / "s"))

    process = spawn(*options, home=tmp_path, log=log)

    assert process.wait(20) == 1
    assert FREE_SPACE in log.read_text()
    assert "Traceback" not in log.read_text()
    ballast.unlink()
    with running(tmp_path, database=disk / "memory.db") as daemon:
        assert daemon.post("remember", content="Tea.").status == 200


def test_a_full_disk_refuses_what_it_cannot_keep_and_lets_the_daemon_stop(
    disk: Path, tmp_path: Path
) -> None:
    with running(tmp_path, database=disk / "memory.db") as daemon:
        ids = remember(daemon, "a", 50)
        ballast = fill(disk)
        refused = None
        for number in range(500):
            answer = daemon.post(
                "remember", id=f"b{number}", content="It rained. " * 200
            )
            if answer.status != 200:
                refused = answer
                break
            ids.append(f"b{number}")
        assert refused
        assert refused.error[0] == "storage_failed"
        assert FREE_SPACE in refused.body["error"]["message"]

        assert daemon.stop() == 0

        assert daemon.events("stopped")
    ballast.unlink()
    with running(tmp_path, database=disk / "memory.db") as daemon:
        assert kept(daemon.database) == sorted(ids)
        daemon.stop()
    assert damage(disk / "memory.db") == []


def test_what_is_forgotten_on_a_full_disk_is_purged_once_there_is_room(
    disk: Path, tmp_path: Path
) -> None:
    with running(tmp_path, database=disk / "memory.db") as daemon:
        remember(daemon, "a", 600)
        ballast = fill(disk, leave=200_000)

        first = daemon.post("forget", id="a0")

        assert first.status == 200
        assert not first.body["complete"]
        assert FREE_SPACE in first.body["reason"]
        assert "a0" not in kept(daemon.database)
        assert daemon.post("forget", id="a0").error == ("not_purged", "id")
        ballast.unlink()
        assert daemon.post("forget", id="a0").error == ("not_found", "id")
        assert daemon.post("forget", query=WORD).body["complete"]
        assert files_containing(disk, WORD) == []


def test_a_sleep_that_fills_the_disk_reports_what_it_did(
    disk: Path, tmp_path: Path
) -> None:
    with running(
        tmp_path, database=disk / "memory.db", MNEMOSYNE_SLEEP_GROUP_ENTRIES_MAX="5"
    ) as daemon:
        remember(daemon, "a", 1_000)
        ballast = fill(disk, leave=500_000)

        report = daemon.post("sleep", force=True)

        assert report.status == 200
        assert report.body["status"] == "partial"
        assert report.body["promoted"] > 0
        assert report.body["failed"] > 0
        ballast.unlink()
        back = daemon.post("undo", cycle=report.body["cycle"])
        assert back.body["restored"] == report.body["evicted"] > 0
        assert len(kept(daemon.database)) == 1_000


def test_a_deleted_database_is_put_back_once_there_is_room(
    disk: Path, tmp_path: Path
) -> None:
    with running(
        tmp_path, database=disk / "memory.db", WATCHDOG_USEC="200000"
    ) as daemon:
        ids = remember(daemon, "a", 300)
        ballast = fill(disk)
        daemon.database.unlink()
        refused = daemon.post("remember", content="Tea.")
        assert refused.error[0] == "database_replaced"
        assert FREE_SPACE in refused.body["error"]["message"]
        ballast.unlink()

        assert daemon.stop() == 0

        assert kept(daemon.database) == sorted(ids)
