"""A disk that is full, or whose n-th write fails: every answer is true, and room heals everything."""

from __future__ import annotations

import errno
import os
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from e2e.consistency import damage, half_done
from e2e.daemons import Answer, Daemon, kept, rows, running, spawn
from e2e.failing_io import Faults, build, failing
from support.fakes import files_containing

pytestmark = [pytest.mark.e2e, pytest.mark.fault]


WORD = "Zqxjvkwyz"
FREE_SPACE = "free space"


@pytest.fixture
def disk(tmp_path: Path) -> Iterator[Path]:
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


def test_a_full_disk_lets_the_daemon_stop(disk: Path, tmp_path: Path) -> None:
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


def test_a_full_disk_puts_off_a_purge(disk: Path, tmp_path: Path) -> None:
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


def test_a_sleep_that_fills_the_disk_says_so(disk: Path, tmp_path: Path) -> None:
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
        back = daemon.post("undo", action=report.body["cycle"])
        assert back.body["memories"] == report.body["evicted"] > 0
        assert len(kept(daemon.database)) == 1_000


def test_a_full_disk_puts_off_a_rescue(disk: Path, tmp_path: Path) -> None:
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


# The n-th write, sync or truncation fails: every answer is true, and the file stays whole.


TRIALS = int(os.environ.get("IOFAULT_TRIALS", "10"))
MOMENTS_MAX = 2_000
ERRORS = [errno.ENOSPC, errno.EIO]
REFUSALS = {"storage_failed", "partly_done", "not_purged"}
FAILED_GROUPS = "rows of the log without their episode"
"""Groups that failed are in the log, as they should be; here nothing else is counted of it."""
GROUPS = {"MNEMOSYNE_SLEEP_GROUP_ENTRIES_MAX": "3"}


@pytest.fixture(scope="module")
def shim(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return build(tmp_path_factory.mktemp("shim"))


def moments() -> Iterator[int]:
    """Which operation fails first: each of the early ones, then further and further apart."""
    number = 1
    for _ in range(TRIALS or MOMENTS_MAX):
        yield number
        number += 1 if not TRIALS else max(1, number // 2)


def sweep(
    faults: Faults,
    error: int,
    prepare: Callable[[int], object],
    act: Callable[[int], Answer],
) -> Iterator[tuple[int, Answer]]:
    """Each trial with its answer; the faults are over when the test looks at it."""
    met = 0
    for moment in moments():
        prepare(moment)
        faults.arm(moment, error=error, count=moment % 2)  # once, or all from there on
        answer = act(moment)
        seen = faults.disarm()
        assert answer.status in (200, 404, 503), answer
        if answer.status == 503:
            assert answer.error[0] in REFUSALS, answer
        yield moment, answer
        if seen < moment:
            break
        met += 1
    assert met, "no operation failed; the moments are badly chosen"


def whole(daemon: Daemon) -> None:
    """The daemon stops as usual, and nothing in its file is half done."""
    assert daemon.stop() == 0
    broken = half_done(daemon.database)
    broken.pop(FAILED_GROUPS, None)
    assert broken == {}
    assert damage(daemon.database) == []


def fill_memory(daemon: Daemon, name: str, size: int, **fields: object) -> list[str]:
    ids = [f"{name}-{number}" for number in range(size)]
    memories = [
        {"id": id, "content": f"{id} took {len(id)} minutes of {WORD}{name}.", **fields}
        for id in ids
    ]
    answer = daemon.post("remember_many", memories=memories)
    assert answer.status == 200, answer
    return ids


@pytest.mark.parametrize("error", ERRORS)
def test_a_refused_memory_is_not_kept(shim: Path, tmp_path: Path, error: int) -> None:
    with failing(tmp_path, shim) as (daemon, faults):
        acknowledged = set()

        def remember(moment: int) -> Answer:
            return daemon.post(
                "remember", id=f"m{moment}", content=f"Note {moment}: tea at four."
            )

        for moment, answer in sweep(faults, error, lambda _: None, remember):
            if answer.status == 200:
                acknowledged.add(f"m{moment}")
            assert set(kept(daemon.database)) == acknowledged
        whole(daemon)


@pytest.mark.parametrize("error", ERRORS)
def test_a_sleep_reports_what_it_did(shim: Path, tmp_path: Path, error: int) -> None:
    with failing(tmp_path, shim, **GROUPS) as (daemon, faults):
        archived = 0

        def sleep(_: int) -> Answer:
            return daemon.post("sleep", force=True)

        def prepare(moment: int) -> None:
            nonlocal archived
            fill_memory(daemon, f"s{moment}", 12, session=f"s{moment}")
            ((archived,),) = rows(daemon.database, "SELECT count(*) FROM archive")

        for _, answer in sweep(faults, error, prepare, sleep):
            ((now,),) = rows(daemon.database, "SELECT count(*) FROM archive")
            if answer.status == 200:
                assert answer.body["evicted"] == now - archived
                assert answer.body["cycle"]
            else:
                assert now == archived, answer
        whole(daemon)


@pytest.mark.parametrize("error", ERRORS)
def test_forgetting_says_what_is_gone(shim: Path, tmp_path: Path, error: int) -> None:
    with failing(tmp_path, shim) as (daemon, faults):
        ids: list[str] = []

        def prepare(moment: int) -> None:
            ids[:] = fill_memory(daemon, f"f{moment}x", 6)
            daemon.post("sleep", force=moment % 2 == 0)

        def forget(_: int) -> Answer:
            return daemon.post("forget", id=ids[0])

        for moment, answer in sweep(faults, error, prepare, forget):
            there = ids[0] in kept(daemon.database)
            if answer.status == 503:
                assert there, answer
                assert daemon.post("forget", id=ids[0]).body["complete"]
            else:
                assert not there
                if not answer.body["complete"]:
                    assert answer.body["reason"]
                    again = daemon.post("forget", id=ids[0])
                    assert (
                        again.error[0] == "not_found"
                    )  # by now all of it left the file
            daemon.post("forget", query=f"{WORD}f{moment}x")
            assert files_containing(tmp_path, f"{WORD}f{moment}x") == []
        whole(daemon)


@pytest.mark.parametrize("error", ERRORS)
def test_an_undo_says_what_it_put_back(shim: Path, tmp_path: Path, error: int) -> None:
    with failing(tmp_path, shim, **GROUPS) as (daemon, faults):
        cycle, archived = "", 0

        def prepare(moment: int) -> None:
            nonlocal cycle, archived
            fill_memory(daemon, f"u{moment}", 30, session=f"u{moment}")
            cycle = daemon.post("sleep", force=True).body["cycle"]
            ((archived,),) = rows(daemon.database, "SELECT count(*) FROM archive")

        def undo(_: int) -> Answer:
            return daemon.post("undo", action=cycle)

        for _, answer in sweep(faults, error, prepare, undo):
            ((now,),) = rows(daemon.database, "SELECT count(*) FROM archive")
            if answer.status == 200:
                assert answer.body["memories"] == archived - now > 0
            elif answer.error[0] == "partly_done":
                assert now < archived
            else:
                assert now == archived
        whole(daemon)


@pytest.mark.parametrize("error", ERRORS)
def test_a_refused_compact_keeps_none(shim: Path, tmp_path: Path, error: int) -> None:
    with failing(tmp_path, shim) as (daemon, faults):
        before: list[str] = []

        def prepare(_: int) -> None:
            before[:] = kept(daemon.database)

        def compact(moment: int) -> Answer:
            said = [
                {
                    "role": "user" if n % 2 else "assistant",
                    "content": f"Step {moment} {n}: carrots.",
                }
                for n in range(20)
            ]
            return daemon.post(
                "compact",
                messages=said,
                session=f"c{moment}",
                max_tokens=100,
                force=True,
            )

        for _, answer in sweep(faults, error, prepare, compact):
            assert (kept(daemon.database) == before) is (answer.status != 200), answer
        whole(daemon)


@pytest.mark.parametrize("error", ERRORS)
def test_a_failing_disk_allows_a_stop(shim: Path, tmp_path: Path, error: int) -> None:
    ids: list[str] = []
    for moment in (1, 2, 3, 6):
        with failing(tmp_path, shim, MNEMOSYNE_SLEEP_TTL_HOURS="0.0001") as (
            daemon,
            faults,
        ):
            ids += fill_memory(daemon, f"e{moment}", 6)
            faults.arm(moment, error=error)

            assert daemon.stop() == 0, daemon.log.read_text()

            assert daemon.events("stopped")
    with running(tmp_path) as daemon:
        assert kept(daemon.database) == sorted(ids)
        whole(daemon)
