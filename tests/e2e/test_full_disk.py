"""A disk that is full, or whose n-th write fails: every answer is true, and room heals everything."""

from __future__ import annotations

import errno
import mmap
import os
import struct
import subprocess
from collections.abc import Callable, Generator, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import pytest
from e2e.consistency import damage, half_done
from e2e.daemons import Answer, Daemon, Json, kept, mnem, refused, rows, running
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
    # Unbuffered, it takes what is left: the daemon may have written since.
    with ballast.open("wb", buffering=0) as file:
        file.write(bytes(room.f_bavail * room.f_frsize - leave))
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
    options = (f"--database={disk / 'memory.db'}", f"--socket={tmp_path / 's'}")

    code, said = refused(*options, home=tmp_path)

    assert code == 1
    assert FREE_SPACE in said
    assert "Traceback" not in said
    ballast.unlink()
    with running(tmp_path, database=disk / "memory.db") as daemon:
        assert daemon.post("remember", content="Tea.").status == 200


def test_a_full_disk_lets_the_daemon_stop(disk: Path, tmp_path: Path) -> None:
    with running(tmp_path, database=disk / "memory.db") as daemon:
        ids = remember(daemon, "a", 50)
        ballast = fill(disk)
        for command in ("status", ""):
            shown = daemon.mnem(*command.split()).stdout.decode()
            assert f"the disk is almost full: 0 MB are free in {disk}" in shown
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


def test_a_backup_that_fills_the_disk_leaves_nothing(
    disk: Path, tmp_path: Path
) -> None:
    with running(tmp_path) as daemon:
        for letter in "abcd":
            remember(daemon, letter, 1_000)
        ballast = fill(disk, leave=16_384)

        answer = daemon.post("backup", file=str(disk / "copy.db"))

    assert answer.error[0] == "storage_failed"
    assert list(disk.iterdir()) == [ballast]


def test_an_export_that_fills_the_disk_names_its_file(
    disk: Path, tmp_path: Path
) -> None:
    export = disk / "memory.jsonl"
    with running(tmp_path) as daemon:
        remember(daemon, "a", 1_000)
        ballast = fill(disk, leave=16_384)

        done = daemon.mnem("export", str(export))

    said = f"mnem: {export}: the disk is full: free space, then try again\n"
    assert (done.returncode, done.stderr.decode()) == (1, said)
    assert list(disk.iterdir()) == [ballast]


def test_an_import_of_a_pipe_that_fills_the_disk_names_the_folder(
    disk: Path, tmp_path: Path
) -> None:
    with running(tmp_path) as daemon:
        done = mnem(
            "--socket", str(daemon.socket), "import", "-",
            home=daemon.home, stdin=bytes(5_000_000), TMPDIR=str(disk),
        )  # fmt: skip

    said = f"mnem: the pipe could not be copied to {disk}: the disk is full: free space, then try again\n"
    assert (done.returncode, done.stderr.decode()) == (1, said)
    assert list(disk.iterdir()) == []


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


SOURCE = Path(__file__).with_name("ioshim.c")
CONTROL = struct.Struct("5i")
TRIALS = int(os.environ.get("IOFAULT_TRIALS", "10"))
MOMENTS_MAX = 2_000
ERRORS = [errno.ENOSPC, errno.EIO]
REFUSALS = {"storage_failed", "partly_done", "not_purged"}
FAILED_GROUPS = "rows of the log without their episode"
"""Groups that failed are in the log, as they should be; here nothing else is counted of it."""
GROUPS = {"MNEMOSYNE_SLEEP_GROUP_ENTRIES_MAX": "3"}


class Faults:
    """The control of one daemon's shim."""

    def __init__(self, control: mmap.mmap) -> None:
        self._control = control

    def arm(self, first: int, *, error: int, count: int = 0) -> None:
        """From the `first` operation on, let `count` of them fail; 0 is all."""
        CONTROL.pack_into(self._control, 0, 1, first, count, error, 0)

    def disarm(self) -> int:
        """Let everything succeed again; how many operations there were."""
        seen: int = CONTROL.unpack_from(self._control)[4]
        CONTROL.pack_into(self._control, 0, 0, 0, 0, 0, 0)
        return seen


@pytest.fixture(scope="module")
def shim(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """`ioshim.c`, compiled."""
    library = tmp_path_factory.mktemp("shim") / "ioshim.so"
    flags = "-shared -fPIC -O1 -ldl".split()
    subprocess.run(["cc", "-o", library, SOURCE, *flags], check=True)
    return library


@contextmanager
def failing(
    home: Path, library: Path, **settings: Json
) -> Iterator[tuple[Daemon, Faults]]:
    """A running daemon with the shim in it, disarmed."""
    path = home / "control"
    path.write_bytes(bytes(CONTROL.size))
    shimmed: dict[str, Json] = {"LD_PRELOAD": str(library), "IOSHIM_CONTROL": str(path)}
    with (
        path.open("r+b") as file,
        mmap.mmap(file.fileno(), CONTROL.size) as control,
        running(home, anew=True, **shimmed, **settings) as daemon,
    ):
        yield daemon, Faults(control)


def moments() -> Iterator[int]:
    """Which operation fails first: each of the early ones, then further and further apart."""
    number = 1
    for _ in range(TRIALS or MOMENTS_MAX):
        yield number
        number += 1 if not TRIALS else max(1, number // 2)


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


def archived(daemon: Daemon) -> int:
    ((count,),) = rows(daemon.database, "SELECT count(*) FROM archive")
    return int(count)


Trial = Generator[Callable[[], Answer], Answer]
"""It prepares, yields the request that meets the faults, and judges the answer that it is sent."""


def remembering(daemon: Daemon, moment: int) -> Trial:
    before = set(kept(daemon.database))
    content = f"Note {moment}: tea at four."
    answer = yield lambda: daemon.post("remember", id=f"m{moment}", content=content)

    acknowledged = {f"m{moment}"} if answer.status == 200 else set()
    assert set(kept(daemon.database)) == before | acknowledged


def sleeping(daemon: Daemon, moment: int) -> Trial:
    fill_memory(daemon, f"s{moment}", 12, session=f"s{moment}")
    before = archived(daemon)
    answer = yield lambda: daemon.post("sleep", force=True)

    done = answer.body["evicted"] if answer.status == 200 else 0
    assert archived(daemon) - before == done
    assert answer.status != 200 or answer.body["cycle"]


def forgetting(daemon: Daemon, moment: int) -> Trial:
    id, *_ = fill_memory(daemon, f"f{moment}x", 6)
    daemon.post("sleep", force=moment % 2 == 0)
    answer = yield lambda: daemon.post("forget", id=id)

    there = id in kept(daemon.database)
    assert there == (answer.status == 503), answer
    if there:
        assert daemon.post("forget", id=id).body["complete"]
    elif not answer.body["complete"]:
        assert answer.body["reason"]
        # By now all of it left the file.
        assert daemon.post("forget", id=id).error[0] == "not_found"
    daemon.post("forget", query=f"{WORD}f{moment}x")
    assert files_containing(daemon.home, f"{WORD}f{moment}x") == []


def undoing(daemon: Daemon, moment: int) -> Trial:
    fill_memory(daemon, f"u{moment}", 30, session=f"u{moment}")
    cycle = daemon.post("sleep", force=True).body["cycle"]
    before = archived(daemon)
    answer = yield lambda: daemon.post("undo", action=cycle)

    back = before - archived(daemon)
    if answer.status == 200:
        assert answer.body["memories"] == back > 0
    else:
        assert (back > 0) == (answer.error[0] == "partly_done")


def compacting(daemon: Daemon, moment: int) -> Trial:
    before = kept(daemon.database)
    said = [
        {"role": role, "content": f"Step {moment} {n}: carrots."}
        for n in range(10)
        for role in ("assistant", "user")
    ]
    limits = {"max_tokens": 100, "force": True}
    session = f"c{moment}"
    answer = yield lambda: daemon.post(
        "compact", messages=said, session=session, **limits
    )

    assert (kept(daemon.database) == before) is (answer.status != 200), answer


@pytest.mark.parametrize("error", ERRORS)
@pytest.mark.parametrize(
    "trial", [remembering, sleeping, forgetting, undoing, compacting]
)
def test_every_answer_is_true_wherever_the_disk_fails(
    shim: Path, tmp_path: Path, trial: Callable[[Daemon, int], Trial], error: int
) -> None:
    met = 0
    with failing(tmp_path, shim, **GROUPS) as (daemon, faults):
        for moment in moments():
            tried = trial(daemon, moment)
            act = next(tried)
            faults.arm(moment, error=error, count=moment % 2)  # once, or all from there
            answer = act()
            seen = faults.disarm()
            assert answer.status in (200, 404, 503), answer
            assert answer.status != 503 or answer.error[0] in REFUSALS, answer
            with suppress(StopIteration):
                tried.send(answer)
            if seen < moment:
                break
            met += 1
        whole(daemon)
    assert met, "no operation failed; the moments are badly chosen"


@pytest.mark.parametrize("error", ERRORS)
def test_a_failing_disk_allows_a_stop(shim: Path, tmp_path: Path, error: int) -> None:
    ids: list[str] = []
    for moment in (1, 2, 3, 6):
        soon = {"MNEMOSYNE_SLEEP_TTL_HOURS": "0.0001"}
        with failing(tmp_path, shim, **soon) as (daemon, faults):
            ids += fill_memory(daemon, f"e{moment}", 6)
            faults.arm(moment, error=error)

            assert daemon.stop() == 0, daemon.log.read_text()

            assert daemon.events("stopped")
    with running(tmp_path) as daemon:
        assert kept(daemon.database) == sorted(ids)
        whole(daemon)
