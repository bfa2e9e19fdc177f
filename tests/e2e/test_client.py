"""`Client` and `Memory` beside a daemon that restarts, hangs up, or is killed."""

from __future__ import annotations

import gc
import socket
import threading
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime
from pathlib import Path

import pytest
from e2e.conftest import Start
from e2e.daemons import WAIT_S, Daemon, eventually, kept, short_room
from e2e.scripted_daemon import answer, saying, scripted

from mnemosyned import Client, Memory, Remember
from mnemosyned.errors import (
    DaemonUnreachable,
    DatabaseInUse,
    IdTaken,
    InvalidTime,
    MnemosynedError,
    NotFound,
)

pytestmark = pytest.mark.e2e


def test_a_client_outlives_a_restart_of_the_daemon(start: Start) -> None:
    first = start()
    with Client(first.socket) as client:
        client.remember("before", id="before")
        first.stop()
        start("--socket", str(first.socket))

        client.remember("after", id="after")

        assert [client.get(id=id).memory is not None for id in ("before", "after")] == [
            True
        ] * 2


def test_a_client_without_a_daemon_says_how_to_start_one(tmp_path: Path) -> None:
    with (
        Client(tmp_path / "none.sock") as client,
        pytest.raises(DaemonUnreachable, match="Start it with `mnem start`"),
    ):
        client.status()


def test_an_idle_connection_that_was_closed_is_replaced() -> None:
    with (
        short_room() as room,
        scripted(room / "s", *[saying(answer())] * 3),
        Client(room / "s") as client,
    ):
        logs = [client.log(), client.log(), client.log()]

    assert [log.rows for log in logs] == [[], [], []]


def test_a_daemon_that_stays_silent_is_given_up() -> None:
    with short_room() as room, socket.socket(socket.AF_UNIX) as silent:
        silent.bind(str(room / "s"))
        silent.listen()

        with (
            Client(room / "s", timeout_s=0.2) as client,
            pytest.raises(DaemonUnreachable, match="in time"),
        ):
            client.status()


def test_errors_are_those_of_the_domain(daemon: Daemon) -> None:
    with daemon.client() as client:
        client.remember("tea", id="tea")

        with pytest.raises(NotFound) as unknown:
            client.get(id="nobody")
        with pytest.raises(IdTaken) as taken:
            client.remember("coffee", id="tea")
        with pytest.raises(InvalidTime, match="try yesterday, 7d or 2026-03-09"):
            client.recall("tea", since="soon")

    assert (unknown.value.field, taken.value.field) == ("id", "id")


@pytest.mark.thorough
def test_threads_share_a_client(daemon: Daemon) -> None:
    def work(number: int) -> None:
        for turn in range(10):
            id = f"{number:02}-{turn}"
            assert client.remember(f"thread {number} says {turn}", id=id).stored
            found = client.get(id=id).memory
            assert found
            assert found.content == f"thread {number} says {turn}"

    with daemon.client() as client, ThreadPoolExecutor(16) as pool:
        list(pool.map(work, range(16)))

    assert kept(daemon.database) == [
        f"{n:02}-{turn}" for n in range(16) for turn in range(10)
    ]


def test_more_threads_than_idle_connections_leave_none_open(daemon: Daemon) -> None:
    together = threading.Barrier(40)

    def work(_: int) -> None:
        together.wait(WAIT_S)
        client.status()

    with daemon.client() as client, ThreadPoolExecutor(40) as pool:
        list(pool.map(work, range(40)))
    gc.collect()  # a socket nobody closed is a warning, and so a failure, here


def test_memory_of_a_file_with_a_daemon_goes_through_the_daemon(daemon: Daemon) -> None:
    with Memory(daemon.database) as memory:
        memory.remember("said to the library", id="lib")

        assert memory.status().pid == daemon.process.pid
        assert (
            daemon.post("get", id="lib").body["memory"]["content"]
            == "said to the library"
        )


def test_a_file_that_a_program_embeds_is_refused_to_the_next(tmp_path: Path) -> None:
    with (
        Memory(tmp_path / "memory.db"),
        pytest.raises(DatabaseInUse, match="in use by process"),
    ):
        Memory(tmp_path / "memory.db")


class HeldClock:
    """The machine's clock, which the thread named "asleep" may read once and then waits for."""

    def __init__(self) -> None:
        self.held = threading.Event()
        self.released = threading.Event()
        self._read = 0

    def now(self) -> datetime:
        if threading.current_thread().name == "asleep":
            self._read += 1
            if self._read == 2:
                self.held.set()
                self.released.wait(WAIT_S)
        return datetime.now(UTC)


@pytest.mark.thorough
def test_a_memory_over_the_cap_is_kept_while_another_thread_sleeps(
    tmp_path: Path,
) -> None:
    clock = HeldClock()
    with Memory(tmp_path / "memory.db", clock=clock, wm_max=5) as memory:
        memory.remember_many([Remember(f"number {number}") for number in range(5)])
        asleep = threading.Thread(
            target=lambda: memory.sleep(force=True), name="asleep"
        )
        asleep.start()
        assert clock.held.wait(WAIT_S)
        assert memory.status().sleep.running

        over = memory.remember("one more", id="over")

        clock.released.set()
        asleep.join(WAIT_S)
        assert over.stored
        assert memory.get(id="over").memory is not None


def test_a_killed_daemon_keeps_what_it_acknowledged_and_retries_add_nothing(
    start: Start,
) -> None:
    first = start()
    acknowledged: set[str] = set()
    asked: set[str] = set()

    def remember(number: int) -> None:
        with Client(first.socket) as client:
            for turn in range(10_000):
                asked.add(id := f"{number}-{turn:05}")
                try:
                    client.remember(f"client {number} says {turn}", id=id)
                except MnemosynedError:
                    return
                acknowledged.add(id)

    with ThreadPoolExecutor(8) as pool:
        clients = [pool.submit(remember, number) for number in range(8)]
        eventually(lambda: len(acknowledged) > 300, "300 memories are acknowledged")
        first.kill()
        for ended in clients:
            ended.result(WAIT_S)
    start("--socket", str(first.socket))
    survived = kept(first.database)
    with Client(first.socket) as client:
        for id in asked - acknowledged:
            number, turn = id.split("-")
            client.remember(f"client {number} says {int(turn)}", id=id)

    assert len(survived) == len(set(survived))
    assert acknowledged <= set(survived) <= asked
    assert asked - acknowledged, "the kill came while clients were asking"
    assert kept(first.database) == sorted(asked)
