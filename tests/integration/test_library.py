"""`Memory(path)` and `AsyncMemory(path)`: every verb without a daemon, in a file that survives."""

import asyncio
import os
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from pathlib import Path

import numpy as np
import pytest
from support.cases import each_case
from support.fakes import NOON, FakeClock

import mnemosyned
from mnemosyned import AsyncMemory, NotFound
from mnemosyned.assembly.embedded import Memory
from mnemosyned.errors import (
    ConfigInvalid,
    DatabaseInUse,
    InvalidRequest,
    InvalidText,
    StorageFailed,
)
from mnemosyned.memory.consolidation import CycleReport, CycleStatus
from mnemosyned.memory.values import Tier
from mnemosyned.verbs.memories import Remember

WRITER = """
import os, sys, threading
from mnemosyned import Memory

memory = Memory(sys.argv[1])

def write(thread):
    for at in range(1000):
        known = memory.remember(f"note {thread} {at}", id=f"{thread}-{at}")
        os.write(1, (known.id + "\\n").encode())

for thread in range(4):
    threading.Thread(target=write, args=(thread,), daemon=True).start()
threading.Event().wait(30)
"""


@pytest.fixture
def mem(database: Path, clock: FakeClock) -> Iterator[Memory]:
    with Memory(database, clock=clock) as opened:
        yield opened


def test_it_is_at_hand_under_the_packages_name() -> None:
    assert mnemosyned.Memory is Memory
    assert mnemosyned.Remember is Remember
    with pytest.raises(AttributeError, match="no attribute 'Memorie'"):
        _ = mnemosyned.Memorie  # type: ignore[attr-defined]  # mypy finds it, too


@each_case(
    "hand_in",
    [
        lambda memory: memory.remember_many(5),
        lambda memory: memory.remember_many(object()),
        lambda memory: memory.remember_many(Remember("not in a list")),
        lambda memory: memory.remember("\ud800"),
        lambda memory: memory.remember("x", importance=float("nan")),
        lambda memory: memory.remember("x", importance=np.float32("nan")),
        lambda memory: memory.remember("x", metadata={"a": [{"b": float("-inf")}]}),
        lambda memory: memory.remember("x", metadata={"a": {1, 2}, "b": object()}),
    ],
)
def test_what_only_python_can_hand_in_is_refused_in_words(
    mem: Memory, hand_in: Callable[[Memory], object]
) -> None:
    with pytest.raises((InvalidRequest, InvalidText)):
        hand_in(mem)

    assert mem.status().tiers[Tier.WORKING].count == 0


class Timestamp(datetime):
    """A time with a type of its own, as pandas has."""


def test_values_of_other_libraries_are_stored_as_what_they_stand_for(
    mem: Memory,
) -> None:
    row = {"rank": np.int64(3), "vector": np.array([0.5, 2]), "file": Path("a.txt")}

    mem.remember(
        np.str_("The rotor leaks."),
        created_at=Timestamp(2026, 3, 9, 10, tzinfo=UTC),
        importance=np.float64(0.25),
        pinned=np.array([True])[0],
        metadata=row,
    )

    (stored,) = mem.list(since=Timestamp(2026, 3, 9)).memories
    assert stored.content == "The rotor leaks."
    assert stored.created_at == datetime(2026, 3, 9, 10, tzinfo=UTC)
    assert (stored.importance, stored.pinned) == (0.25, True)
    assert stored.metadata == {"rank": 3, "vector": [0.5, 2.0], "file": "a.txt"}


def test_a_database_in_memory_has_every_verb_and_leaves_nothing(tmp_path: Path) -> None:
    with Memory(":memory:") as memory, Memory(":memory:") as other:
        for day in range(3):
            memory.remember(f"The bike of day {day} is blue.", id=f"{day}")
        report = memory.sleep(force=True)
        episode = memory.recall("bike").hits[0].id
        originals = memory.expand(episode).originals
        forgotten = memory.forget("0")
        undone = memory.undo(report.cycle)
        memory.backup(str(tmp_path / "copy.db"))
        place = Path(memory.status().database)

        assert (report.evicted, len(originals), undone.memories) == (3, 3, 2)
        assert (forgotten.memories, forgotten.complete) == (1, True)
        assert place.is_relative_to("/dev/shm")  # noqa: S108 where that is memory
        assert not other.recall("bike").hits

    assert not place.parent.exists()
    assert not Path(":memory:").exists()
    with Memory(tmp_path / "copy.db") as copy:
        assert copy.status().tiers[Tier.WORKING].count == 2


@pytest.mark.thorough
def test_the_next_database_in_memory_deletes_what_a_killed_program_left() -> None:
    script = "import os; from mnemosyned import Memory; m = Memory(':memory:'); "
    script += "print(m.status().database, flush=True); os.kill(os.getpid(), 9)"
    killed = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=False
    )
    left = Path(killed.stdout.strip()).parent
    os.utime(left, (0, 0))
    with Memory(":memory:") as running:
        os.utime(Path(running.status().database).parent, (0, 0))

        with Memory(":memory:"):
            assert not left.exists()
            assert running.recall("x").hits == []


def test_settings_are_given_by_their_keys(database: Path, clock: FakeClock) -> None:
    with Memory(database, clock=clock, wm_max=3, **{"sleep.ttl_hours": 2}) as memory:
        for id in ("a", "b"):
            moment = NOON - timedelta(hours=1, minutes=1)
            memory.remember(id, created_at=moment)
            # Both names are the same call.
            report = memory.sleep() if id == "a" else memory.consolidate()
            assert isinstance(report, CycleReport)
            assert report.evicted == 1
        assert memory.sleep().status is CycleStatus.NOTHING_TO_DO
        assert memory.sleep(force=True, dry_run=True).dry_run
        assert memory.status().wm_max == 3
    with pytest.raises(ConfigInvalid):
        Memory(database, wm_maximum=3)


def test_it_sleeps_in_the_background_only_when_asked_to(
    database: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("MNEMOSYNE_AUTO_SLEEP", raising=False)
    with Memory(database) as memory:
        assert memory.status().sleep.auto is False
    with Memory(database, auto_sleep=True) as memory:
        assert memory.status().sleep.auto is True
    monkeypatch.setenv("MNEMOSYNE_AUTO_SLEEP", "on")
    with Memory(database) as memory:
        assert memory.status().sleep.next_cycle is not None


def test_closing_leaves_no_thread_behind(database: Path) -> None:
    before = threading.active_count()
    memory = Memory(database, auto_sleep=True)
    memory.remember("x")

    memory.close()
    memory.close()

    assert threading.active_count() == before
    with pytest.raises(StorageFailed, match="closed"):
        memory.recall("x")


def run_program(text: str, database: Path) -> subprocess.CompletedProcess[str]:
    """Run a program of its own, whose argument is the database; it must succeed within a minute."""
    return subprocess.run(
        [sys.executable, "-c", text, str(database)],
        capture_output=True,
        text=True,
        timeout=60,
        check=True,
    )


UNTIDY = """
import sys
from mnemosyned import Memory
from mnemosyned.errors import StorageFailed

memory = Memory(sys.argv[1])
memory.close()
try:
    memory.recall("x")
except StorageFailed as error:
    print(error)
memory = Memory(sys.argv[1], auto_sleep=True)
print(memory.remember("x").stored)
"""


@pytest.mark.thorough
def test_a_program_ends_without_closing_and_a_closed_memory_logs_nothing(
    database: Path,
) -> None:
    ran = run_program(UNTIDY, database)

    assert ran.stdout.splitlines() == ["the memory is closed; open it again", "True"]
    assert ran.stderr == ""


def test_a_program_that_opens_a_file_twice_hears_that_it_has_it_open(
    database: Path,
) -> None:
    with Memory(database), pytest.raises(DatabaseInUse, match="It is this process"):
        Memory(database)


def test_an_empty_path_is_refused() -> None:
    with pytest.raises(ConfigInvalid, match="name a file"):
        Memory("")


FORKED = """
import os, sys
from mnemosyned import Memory
from mnemosyned.errors import DatabaseInUse

memory = Memory(sys.argv[1])
memory.remember("before", id="1")
if os.fork() == 0:
    try:
        memory.remember("in the fork", id="2")
    except DatabaseInUse as error:
        print(error, flush=True)
    memory.close()
    sys.exit(0)
print(os.wait()[1], memory.remember("after", id="3").stored, flush=True)
"""


@pytest.mark.thorough
def test_a_fork_leaves_the_file_to_the_process_that_opened_it(database: Path) -> None:
    ran = run_program(FORKED, database)

    refused, parent = ran.stdout.splitlines()
    assert "before a fork" in refused
    assert parent == "0 True"
    assert ran.stderr == ""  # though the program did not close it
    with Memory(database) as memory:
        assert sorted(known.id for known in memory.list().memories) == ["1", "3"]


FORKED_ASYNC = """
import asyncio, os, sys
from mnemosyned import AsyncMemory
from mnemosyned.errors import DatabaseInUse

async def main():
    async with AsyncMemory(sys.argv[1]) as memory:
        await memory.remember("before", id="1")
        if os.fork() == 0:
            try:
                await memory.remember("in the fork", id="2")
            except DatabaseInUse as error:
                print(error, flush=True)
            os._exit(0)
        os.wait()

asyncio.run(main())
"""


@pytest.mark.thorough
def test_a_fork_of_a_program_with_asyncio_is_refused_at_once(database: Path) -> None:
    ran = run_program(FORKED_ASYNC, database)

    assert "before a fork" in ran.stdout


def test_a_relative_path_holds_when_the_program_changes_its_directory(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "elsewhere").mkdir()
    monkeypatch.chdir(tmp_path)
    with Memory("memory.db") as memory:
        monkeypatch.chdir(tmp_path / "elsewhere")
        memory.remember("the bike is blue", id="1")

        assert memory.recall("bike").hits[0].id == "1"
        assert memory.status().bytes_on_disk > 0


@pytest.mark.thorough
def test_a_killed_program_loses_nothing_and_leaves_the_file_free(
    database: Path,
) -> None:
    command = [sys.executable, "-c", WRITER, str(database)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout
        acknowledged = [process.stdout.readline().strip() for _ in range(40)]
        with pytest.raises(DatabaseInUse, match=f"process {process.pid}"):
            Memory(database)
        process.kill()
        acknowledged += process.stdout.read().split()

    with Memory(database) as memory:
        assert {memory.get(id).memory is not None for id in acknowledged} == {True}


# `AsyncMemory`: a database in this process that never blocks the event loop.


WAIT_S = 60.0


class HeldClock:
    """The machine's clock, which `remember` waits for until it is released."""

    def __init__(self) -> None:
        self.released = threading.Event()
        self.read = threading.Event()
        self.readers: set[str] = set()

    def now(self) -> datetime:
        name = threading.current_thread().name
        if name.startswith("memory"):
            self.readers.add(name)
            self.read.set()
            self.released.wait(WAIT_S)
        return datetime.now(UTC)


def test_what_is_remembered_is_recalled(tmp_path: Path) -> None:
    async def talk() -> None:
        async with AsyncMemory(tmp_path / "memory.db", wm_max=500) as memory:
            bike = await memory.remember("The bike is blue.")
            hits = (await memory.recall("bike")).hits
            assert [hit.id for hit in hits] == [bike.id]
            assert (await memory.status()).wm_max == 500
            with pytest.raises(NotFound):
                await memory.get("nobody")

    asyncio.run(talk())

    with Memory(tmp_path / "memory.db") as memory:
        assert memory.recall("bike").hits


def test_the_loop_runs_while_calls_wait_on_a_few_threads_and_a_cancelled_one_is_finished(
    tmp_path: Path,
) -> None:
    clock = HeldClock()
    clock.released.set()

    async def talk() -> None:
        database = AsyncMemory(tmp_path / "memory.db", threads=2, clock=clock)
        async with database as memory:
            clock.readers.clear()
            clock.read.clear()
            clock.released.clear()
            calls = [
                asyncio.create_task(memory.remember(f"number {number}", id=f"{number}"))
                for number in range(20)
            ]
            await asyncio.to_thread(clock.read.wait, WAIT_S)
            for _ in range(20):
                await asyncio.sleep(0.005)
            assert not any(call.done() for call in calls)
            calls[0].cancel()
            with pytest.raises(asyncio.CancelledError):
                await calls[0]
            clock.released.set()
            assert len(await asyncio.gather(*calls[1:])) == 19

    asyncio.run(talk())

    assert 1 <= len(clock.readers) <= 2
    with Memory(tmp_path / "memory.db") as memory:
        assert memory.get("0").memory


def test_an_opening_that_is_cancelled_leaves_the_file_free(tmp_path: Path) -> None:
    async def talk() -> None:
        opening = asyncio.create_task(AsyncMemory(tmp_path / "memory.db").__aenter__())
        await asyncio.sleep(0)
        opening.cancel()
        with pytest.raises(asyncio.CancelledError):
            await opening

    asyncio.run(talk())

    deadline = time.monotonic() + WAIT_S
    stored = False
    while not stored and time.monotonic() < deadline:
        # Another thread is about to close the database.
        with suppress(DatabaseInUse), Memory(tmp_path / "memory.db") as memory:
            stored = memory.remember("tea").stored
        time.sleep(0.01)
    assert stored


def test_a_database_that_is_not_open_says_how_to_open_it(tmp_path: Path) -> None:
    async def use(database: AsyncMemory) -> None:
        async with database:
            assert not (await database.recall("tea")).hits

    database = AsyncMemory(tmp_path / "memory.db")

    with pytest.raises(RuntimeError, match="async with"):
        asyncio.run(database.recall("tea"))
    asyncio.run(database.close())
    asyncio.run(use(database))
    with pytest.raises(RuntimeError, match="async with"):
        asyncio.run(database.recall("tea"))
    with Memory(tmp_path / "memory.db"), pytest.raises(DatabaseInUse):
        asyncio.run(use(database))
    asyncio.run(use(database))
    with pytest.raises(ValueError, match="at least 1"):
        AsyncMemory(tmp_path / "memory.db", threads=0)
