"""`Client`, `AsyncClient` and `Memory` beside a daemon that restarts, hangs up, or is slow; and over TCP."""

from __future__ import annotations

import asyncio
import gc
import os
import random
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Coroutine, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path
from types import SimpleNamespace
from typing import TypeVar

import pytest
from e2e.conftest import Start
from e2e.daemons import WAIT_S, Daemon, kept, running
from e2e.doors import CLIENTS, Connect, Door, door_of, remember
from e2e.scripted_daemon import answer, read_request, reset_unread, saying, scripted
from support.cases import each_case

from mnemosyned import AsyncClient, Client, ContentTooLarge, Memory, Remember
from mnemosyned.client import address
from mnemosyned.client.connection import prepare_request
from mnemosyned.errors import DaemonUnreachable, IdTaken, InvalidTime, NotFound

pytestmark = pytest.mark.e2e

R = TypeVar("R")
WHOLE = answer()
HALF = WHOLE[:-4]


@CLIENTS
def test_errors_are_those_of_the_domain(connect: Connect, daemon: Daemon) -> None:
    with connect(daemon.socket) as client:
        client.remember("tea", id="tea")

        with pytest.raises(NotFound) as unknown:
            client.get(id="nobody")
        with pytest.raises(IdTaken) as taken:
            client.remember("coffee", id="tea")
        with pytest.raises(InvalidTime, match="try yesterday, 7d or 2026-03-09"):
            client.recall("tea", since="soon")
        with pytest.raises(TypeError, match=r"recall\(\): only the first field"):
            client.recall("tea", 3)  # type: ignore[call-arg]

    assert (unknown.value.field, taken.value.field) == ("id", "id")


@CLIENTS
def test_a_client_outlives_a_daemons_restart(connect: Connect, start: Start) -> None:
    first = start()
    with connect(first.socket) as client:
        client.remember("before", id="before")
        first.stop()
        with pytest.raises(DaemonUnreachable, match="mnem start"):
            client.status()
        start("--socket", str(first.socket))
        client.remember("after", id="after")

        assert all(client.get(id=id).memory for id in ("before", "after"))


@CLIENTS
def test_a_client_says_how_to_start_a_daemon(connect: Connect, room: Path) -> None:
    dead = socket.socket(socket.AF_UNIX)
    dead.bind(str(room / "dead"))
    dead.close()

    for path in (room / "none", room / "dead"):
        with (
            connect(path) as client,
            pytest.raises(DaemonUnreachable, match="Start it with `mnem start`"),
        ):
            client.status()


PINNED = answer({"id": "tea", "pinned": True, "memories": 1})
NO_ANSWERS = [
    HALF,
    b"HTTP/1.1 200 OK\r\n\r\n",
    b"SSH-2.0-OpenSSH_9.6\r\n\r\n",
    b"x" * 70_000,
]


@CLIENTS
def test_a_request_that_was_not_read_is_sent_again(
    connect: Connect, room: Path
) -> None:
    daemons = (reset_unread, reset_unread, saying(PINNED), saying(WHOLE), saying(WHOLE))

    with scripted(room / "s", *daemons), connect(room / "s") as client:
        assert client.pin("tea").pinned
        assert [client.log().rows, client.log().rows] == [
            [],
            [],
        ]  # idle ones were closed


@CLIENTS
@pytest.mark.parametrize(
    ("verb", "parts"),
    [("pin", [b""]), *(("status", [nonsense]) for nonsense in NO_ANSWERS)],
    ids=["none", "half", "no length", "not HTTP", "endless"],
)
def test_a_request_without_an_answer_is_an_error_and_not_sent_again(
    connect: Connect, room: Path, verb: str, parts: list[bytes]
) -> None:
    with (
        scripted(room / "s", saying(*parts)),
        connect(room / "s") as client,
        pytest.raises(DaemonUnreachable, match="hung up"),
    ):
        client.pin("tea") if verb == "pin" else client.status()


@CLIENTS
def test_a_request_that_takes_effect_twice_uses_no_idle_connection(
    connect: Connect, room: Path
) -> None:
    later: list[bytes] = []

    def stay(connection: socket.socket) -> None:
        saying(WHOLE)(connection)
        connection.settimeout(0.3)
        with suppress(TimeoutError):
            later.append(read_request(connection))

    with scripted(room / "s", stay, saying(PINNED)), connect(room / "s") as client:
        client.log()
        assert client.pin("tea").pinned

    assert later == []


@pytest.mark.parametrize(("slept_s", "is_used"), [(30, True), (90, False)])
def test_a_connection_from_before_a_sleep_of_the_machine_is_not_used(
    monkeypatch: pytest.MonkeyPatch, slept_s: float, *, is_used: bool
) -> None:
    """Whoever is at its other end may have closed it, and nobody could say so."""
    pool, (ours, theirs) = address.IdleConnections(), socket.socketpair()
    with ours, theirs:
        pool.put(ours)
        woken = time.clock_gettime(time.CLOCK_BOOTTIME) + slept_s
        clock = SimpleNamespace(CLOCK_BOOTTIME=0, clock_gettime=lambda _: woken)
        monkeypatch.setattr(address, "time", clock)

        assert pool.take() is (ours if is_used else None)
        assert (ours.fileno() >= 0) is is_used


@CLIENTS
@pytest.mark.parametrize(
    "timeout_s", [0, -1, float("inf"), float("-inf"), float("nan"), 1e300]
)
def test_a_time_limit_that_is_none_is_refused_at_once(
    connect: Connect, timeout_s: float, room: Path
) -> None:
    with pytest.raises(ValueError, match="timeout_s must be a number of seconds"):
        connect(room / "s", timeout_s=timeout_s)


@CLIENTS
@pytest.mark.parametrize("backlog", [1, 0])
def test_a_silent_daemon_is_left(connect: Connect, room: Path, backlog: int) -> None:
    # To ask who listens takes a place in the queue.
    process = rf" \(process {os.getpid()}\)" if backlog else ""
    said = f"/s{process} did not answer in time"
    with (
        socket.socket(socket.AF_UNIX) as silent,
        socket.socket(socket.AF_UNIX) as waiting,
    ):
        silent.bind(str(room / "s"))
        silent.listen(backlog)
        if not backlog:
            waiting.connect(str(room / "s"))  # the only place in the queue

        with (
            connect(room / "s", timeout_s=0.2) as client,
            pytest.raises(DaemonUnreachable, match=said),
        ):
            client.status()


def test_more_threads_than_idle_connections_share_a_client(daemon: Daemon) -> None:
    together = threading.Barrier(40)

    def work(number: int) -> None:
        together.wait(WAIT_S)
        for turn in range(3):
            id = f"{number:02}-{turn}"
            assert client.remember(f"thread {number} says {turn}", id=id).stored
            found = client.get(id=id).memory
            assert found
            assert found.content == f"thread {number} says {turn}"

    with daemon.client() as client, ThreadPoolExecutor(40) as pool:
        list(pool.map(work, range(40)))
    gc.collect()  # a socket nobody closed is a warning, and so a failure, here

    assert len(kept(daemon.database)) == 120


FORKED = """
import os, sys
from mnemosyned import Client

def read(client, id):
    return all(client.get(id).memory.content == id for _ in range(200))

with Client(sys.argv[1], timeout_s=20) as client:
    for id in ("parent", "child"):
        client.remember(id, id=id)
    if child := os.fork():
        works = read(client, "parent")
        print(works, os.waitpid(child, 0)[1])
    else:
        os._exit(not read(client, "child"))
"""


def test_a_fork_does_not_read_the_answers_of_its_parent(daemon: Daemon) -> None:
    ran = subprocess.run(
        [sys.executable, "-c", FORKED, str(daemon.socket)],
        capture_output=True,
        text=True,
        timeout=WAIT_S,
        check=True,
    )

    assert (ran.stdout, ran.stderr) == ("True 0\n", "")


def test_memory_of_a_file_with_a_daemon_goes_through_the_daemon(daemon: Daemon) -> None:
    with Memory(daemon.database) as memory:
        memory.remember("said to the library", id="lib")

        assert memory.status().pid == daemon.process.pid
        assert (
            daemon.post("get", id="lib").body["memory"]["content"]
            == "said to the library"
        )


# ------------------------------------------------ many calls of one `AsyncClient` at once


def run(coroutine: Coroutine[None, None, R]) -> R:
    """The result of a coroutine, in an event loop of its own."""

    async def limited() -> R:
        return await asyncio.wait_for(coroutine, WAIT_S)

    return asyncio.run(limited())


@pytest.mark.thorough
def test_no_more_connections_than_allowed_are_open_at_once(room: Path) -> None:
    opened = 0
    highest = 0

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        nonlocal opened, highest
        opened += 1
        highest = max(highest, opened)
        try:
            while await reader.readuntil(b"\r\n\r\n"):
                await reader.readexactly(2)
                await asyncio.sleep(0.005)
                writer.write(WHOLE)
        except asyncio.IncompleteReadError:
            pass
        finally:
            opened -= 1
            writer.close()

    async def talk() -> None:
        server = await asyncio.start_unix_server(serve, room / "s")
        async with AsyncClient(room / "s", connections=3) as client:
            await asyncio.gather(*(client.log() for _ in range(30)))
        server.close()

    run(talk())

    assert highest == 3


@pytest.mark.thorough
def test_calls_cancelled_at_any_moment_never_mix_up_answers(daemon: Daemon) -> None:
    moments = random.Random(7)
    before = threading.active_count()

    async def impatient(client: AsyncClient, number: int) -> bool:
        try:
            async with asyncio.timeout(moments.random() * 0.02):
                found = (await client.get(f"{number}")).memory
        except TimeoutError:
            return True
        assert found
        assert found.content == f"number {number}"
        return False

    async def talk() -> list[bool]:
        memories = [Remember(f"number {n}", id=f"{n}") for n in range(300)]
        async with AsyncClient(daemon.socket, connections=4) as client:
            await client.remember_many(memories)
            cancelled = await asyncio.gather(
                *(impatient(client, number) for number in range(300))
            )
            assert threading.active_count() == before
            for number in range(300):
                found = (await client.get(f"{number}")).memory
                assert found
                assert found.content == f"number {number}"
        return cancelled

    cancelled = run(talk())

    assert any(cancelled)
    gc.collect()


@pytest.mark.thorough
def test_one_client_serves_one_event_loop_after_the_other(daemon: Daemon) -> None:
    client = AsyncClient(daemon.socket, connections=1)

    async def two_at_once() -> None:
        await asyncio.gather(client.status(), client.status())

    for _ in range(3):
        run(two_at_once())
    run(client.close())


@pytest.mark.thorough
def test_waiting_for_a_connection_counts_as_waiting(room: Path) -> None:
    async def talk() -> None:
        async with AsyncClient(room / "s", timeout_s=0.3, connections=1) as client:
            calls = [asyncio.create_task(client.status()) for _ in range(3)]
            for call in calls:
                with pytest.raises(DaemonUnreachable, match="in time"):
                    await call

    with socket.socket(socket.AF_UNIX) as silent:
        silent.bind(str(room / "s"))
        silent.listen()
        run(talk())


def test_a_memory_has_its_id_before_it_is_sent() -> None:
    sent = prepare_request(Remember("tea"))

    assert isinstance(sent, Remember)
    assert sent.id


def test_a_limit_below_one_is_refused() -> None:
    with pytest.raises(ValueError, match="at least 1"):
        AsyncClient(connections=0)


# ----------------------------------------------------------- over TCP, with the token


@pytest.fixture(scope="module")
def tcp(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Door]:
    with running(
        tmp_path_factory.mktemp("tcp"),
        MNEMOSYNE_LISTEN="127.0.0.1:0",
        MNEMOSYNE_LIMITS_BODY_BYTES_MAX="99999",
    ) as daemon:
        yield door_of(daemon)


@CLIENTS
@pytest.mark.parametrize("host", ["127.0.0.1", "localhost", "LOCALHOST"])
def test_with_the_token_it_remembers(connect: Connect, host: str, tcp: Door) -> None:
    url = f"http://{host}:{tcp.port}/"
    assert remember(connect, url, tcp.token, None)


@CLIENTS
def test_a_body_that_is_refused_tells_the_reason(connect: Connect, tcp: Door) -> None:
    url = f"http://127.0.0.1:{tcp.port}"
    with pytest.raises(ContentTooLarge, match=r"limits\.body_bytes_max"):
        remember(connect, url, tcp.token, None, "x" * 20_000_000)


@each_case(
    ("path", "url", "token"),
    [
        ("/run/s", "http://127.0.0.1:7464", "secret"),
        (None, "http://127.0.0.1:7464", None),
        (None, None, "secret"),
        (None, "http://127.0.0.1:7464", "two words"),
        (None, "http://127.0.0.1:7464", "line\r\nbreak"),
    ],
)
def test_arguments_that_do_not_belong_together_are_refused(
    path: str | None, url: str | None, token: str | None
) -> None:
    with pytest.raises(ValueError, match="token"):
        Client(path, url=url, token=token)
