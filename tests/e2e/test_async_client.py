"""`AsyncClient` next to a daemon that restarts, hangs up, or is slower than its callers."""

from __future__ import annotations

import asyncio
import gc
import random
import socket
import threading
from collections.abc import Coroutine, Iterator
from pathlib import Path
from typing import TypeVar

import pytest
from e2e.conftest import Start
from e2e.daemons import WAIT_S, Daemon, kept, short_room
from e2e.scripted_daemon import answer, read_request, reset_unread, saying, scripted

from mnemosyned import (
    AsyncClient,
    ContentTooLarge,
    DaemonUnreachable,
    IdTaken,
    InvalidTime,
    NotFound,
    Remember,
)

pytestmark = [pytest.mark.e2e, pytest.mark.thorough]

R = TypeVar("R")
WHOLE = answer()
HALF = WHOLE[:-4]


def run(coroutine: Coroutine[None, None, R]) -> R:
    """The result of a coroutine, in an event loop of its own."""

    async def limited() -> R:
        return await asyncio.wait_for(coroutine, WAIT_S)

    return asyncio.run(limited())


@pytest.fixture
def room() -> Iterator[Path]:
    with short_room() as room:
        yield room


def test_what_is_remembered_is_recalled(daemon: Daemon) -> None:
    async def talk() -> None:
        async with AsyncClient(daemon.socket) as client:
            kept = await client.remember("The bike is blue.", session="bikes")
            recalled = await client.recall("bike", limit=3)
            many = await client.remember_many([Remember("Tea."), Remember("Milk.")])

            assert [hit.id for hit in recalled] == [kept.id]
            assert len(many) == 2
            assert (await client.status()).tiers["working"].count == 3  # type: ignore[index]

    run(talk())


def test_errors_are_those_of_the_domain(daemon: Daemon) -> None:
    async def talk() -> None:
        async with AsyncClient(daemon.socket) as client:
            await client.remember("tea", id="tea")
            with pytest.raises(NotFound):
                await client.get("nobody")
            with pytest.raises(IdTaken) as taken:
                await client.remember("coffee", id="tea")
            with pytest.raises(InvalidTime, match="try yesterday, 7d or 2026-03-09"):
                await client.recall("tea", since="soon")
            with pytest.raises(TypeError, match=r"recall\(\): only the first field"):
                await client.recall("tea", 3)  # type: ignore[call-arg]
            assert taken.value.field == "id"

    run(talk())


def test_a_hundred_calls_at_once_share_a_few_connections_and_no_thread(
    daemon: Daemon,
) -> None:
    before = threading.active_count()

    async def remember(client: AsyncClient, number: int) -> None:
        id = f"{number:03}"
        assert (await client.remember(f"number {number}", id=id)).stored
        found = (await client.get(id)).memory
        assert found
        assert found.content == f"number {number}"

    async def talk() -> None:
        async with AsyncClient(daemon.socket) as client:
            await asyncio.gather(*(remember(client, number) for number in range(100)))
            assert threading.active_count() == before

    run(talk())

    assert kept(daemon.database) == [f"{number:03}" for number in range(100)]


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


def test_a_cancelled_call_leaves_no_half_read_connection(room: Path) -> None:
    both = threading.Event()

    def half(connection: socket.socket) -> None:
        read_request(connection)
        connection.sendall(HALF)
        both.wait(WAIT_S)

    async def talk() -> None:
        async with AsyncClient(room / "s", connections=1) as client:
            slow = asyncio.create_task(client.log())
            await asyncio.sleep(0.05)
            slow.cancel()
            with pytest.raises(asyncio.CancelledError):
                await slow
            both.set()
            assert (await client.log(limit=2)).rows == []

    with scripted(room / "s", half, saying(WHOLE)):
        run(talk())
    gc.collect()  # a socket nobody closed is a warning, and so a failure, here


def test_calls_cancelled_at_any_moment_never_mix_up_answers(daemon: Daemon) -> None:
    moments = random.Random(7)

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
            for number in range(300):
                found = (await client.get(f"{number}")).memory
                assert found
                assert found.content == f"number {number}"
        return cancelled

    cancelled = run(talk())

    assert any(cancelled)
    gc.collect()


def test_a_client_outlives_a_restart_of_the_daemon(start: Start) -> None:
    first = start()

    async def talk() -> None:
        async with AsyncClient(first.socket) as client:
            await client.remember("before", id="before")
            await asyncio.to_thread(first.stop)
            with pytest.raises(DaemonUnreachable, match="mnem start"):
                await client.status()
            await asyncio.to_thread(start, "--socket", str(first.socket))
            await client.remember("after", id="after")
            for id in ("before", "after"):
                assert (await client.get(id)).memory

    run(talk())


def test_one_client_serves_one_event_loop_after_the_other(daemon: Daemon) -> None:
    client = AsyncClient(daemon.socket, connections=1)

    async def two_at_once() -> None:
        await asyncio.gather(client.status(), client.status())

    for _ in range(3):
        run(two_at_once())
    run(client.close())


def test_an_idle_connection_that_was_closed_is_replaced(room: Path) -> None:
    async def talk() -> None:
        async with AsyncClient(room / "s") as client:
            for _ in range(3):
                assert (await client.log()).rows == []

    with scripted(room / "s", *[saying(WHOLE)] * 3):
        run(talk())


def test_a_request_that_was_not_read_is_sent_again(room: Path) -> None:
    pinned = answer({"id": "tea", "pinned": True, "memories": 1})

    async def talk() -> None:
        async with AsyncClient(room / "s") as client:
            assert (await client.pin("tea")).pinned

    with scripted(room / "s", reset_unread, reset_unread, saying(pinned)):
        run(talk())


def test_a_write_whose_answer_was_lost_is_not_sent_again(room: Path) -> None:
    async def talk() -> None:
        async with AsyncClient(room / "s") as client:
            with pytest.raises(DaemonUnreachable, match="hung up"):
                await client.pin("tea")

    with scripted(room / "s", saying(b"")):
        run(talk())


def test_a_body_that_is_refused_tells_the_reason(start: Start) -> None:
    daemon = start(MNEMOSYNE_LIMITS_BODY_BYTES_MAX="99999")

    async def talk() -> None:
        async with AsyncClient(daemon.socket) as client:
            with pytest.raises(ContentTooLarge, match=r"limits\.body_bytes_max"):
                await client.remember("x" * 20_000_000)

    run(talk())


def test_without_a_daemon_it_says_how_to_start_one(room: Path) -> None:
    dead = socket.socket(socket.AF_UNIX)
    dead.bind(str(room / "dead"))
    dead.close()

    async def talk(path: Path) -> None:
        async with AsyncClient(path) as client:
            await client.status()

    for path in (room / "none", room / "dead"):
        with pytest.raises(DaemonUnreachable, match="mnem start"):
            run(talk(path))


@pytest.mark.parametrize("backlog", [1, 0])
def test_a_daemon_that_stays_silent_is_given_up(room: Path, backlog: int) -> None:
    async def talk() -> None:
        async with AsyncClient(room / "s", timeout_s=0.2) as client:
            with pytest.raises(DaemonUnreachable, match="in time"):
                await client.status()

    with (
        socket.socket(socket.AF_UNIX) as silent,
        socket.socket(socket.AF_UNIX) as waiting,
    ):
        silent.bind(str(room / "s"))
        silent.listen(backlog)
        if not backlog:
            waiting.connect(str(room / "s"))  # the only place in the queue
        run(talk())


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


@pytest.mark.parametrize(
    "nonsense",
    [
        b"HTTP/1.1 200 OK\r\n\r\n",
        b"SSH-2.0-OpenSSH_9.6\r\n\r\n",
        b"x" * 70_000,
        HALF,
    ],
)
def test_what_is_no_answer_is_refused(room: Path, nonsense: bytes) -> None:
    async def talk() -> None:
        async with AsyncClient(room / "s") as client:
            await client.status()

    with (
        scripted(room / "s", saying(nonsense)),
        pytest.raises(DaemonUnreachable, match="hung up"),
    ):
        run(talk())


def test_a_limit_below_one_is_refused() -> None:
    with pytest.raises(ValueError, match="at least 1"):
        AsyncClient(connections=0)
