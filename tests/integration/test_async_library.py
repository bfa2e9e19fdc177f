"""`AsyncMemory`: a database in this process that never blocks the event loop."""

from __future__ import annotations

import asyncio
import threading
import time
from datetime import UTC, datetime
from pathlib import Path

import pytest

from mnemosyned import AsyncMemory, DatabaseInUse, Memory, NotFound

WAIT_S = 20.0


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


def opened_in_time(path: Path) -> Memory:
    """A database that another thread is about to close."""
    deadline = time.monotonic() + WAIT_S
    while True:
        try:
            return Memory(path)
        except DatabaseInUse:
            assert time.monotonic() < deadline, "it was not closed"
            time.sleep(0.01)


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


def test_the_loop_runs_while_calls_wait_on_a_few_threads(tmp_path: Path) -> None:
    clock = HeldClock()
    clock.released.set()

    async def talk() -> None:
        database = AsyncMemory(tmp_path / "memory.db", threads=2, clock=clock)
        async with database as memory:
            clock.readers.clear()
            clock.released.clear()
            calls = [
                asyncio.create_task(memory.remember(f"number {number}"))
                for number in range(20)
            ]
            for _ in range(20):
                await asyncio.sleep(0.005)
            assert not any(call.done() for call in calls)
            clock.released.set()
            assert len(await asyncio.gather(*calls)) == 20

    asyncio.run(talk())

    assert 1 <= len(clock.readers) <= 2


def test_a_call_cancelled_amid_its_work_is_finished(tmp_path: Path) -> None:
    clock = HeldClock()
    clock.released.set()

    async def talk() -> None:
        async with AsyncMemory(tmp_path / "memory.db", clock=clock) as memory:
            clock.read.clear()
            clock.released.clear()
            call = asyncio.create_task(memory.remember("tea", id="tea"))
            await asyncio.to_thread(clock.read.wait, WAIT_S)
            call.cancel()
            with pytest.raises(asyncio.CancelledError):
                await call
            clock.released.set()

    asyncio.run(talk())

    with Memory(tmp_path / "memory.db") as memory:
        assert memory.get("tea").memory


def test_an_opening_that_is_cancelled_leaves_the_file_free(tmp_path: Path) -> None:
    async def talk() -> None:
        opening = asyncio.create_task(AsyncMemory(tmp_path / "memory.db").__aenter__())
        await asyncio.sleep(0)
        opening.cancel()
        with pytest.raises(asyncio.CancelledError):
            await opening

    asyncio.run(talk())

    with opened_in_time(tmp_path / "memory.db") as memory:
        assert memory.remember("tea").stored


def test_a_database_that_is_not_open_says_how_to_open_it(tmp_path: Path) -> None:
    database = AsyncMemory(tmp_path / "memory.db")

    with pytest.raises(RuntimeError, match="async with"):
        asyncio.run(database.recall("tea"))
    asyncio.run(database.close())
    with pytest.raises(ValueError, match="at least 1"):
        AsyncMemory(tmp_path / "memory.db", threads=0)
