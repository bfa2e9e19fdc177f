"""`Client` and `Memory` beside a daemon that restarts, hangs up, or is killed; and over TCP."""

from __future__ import annotations

import asyncio
import gc
import socket
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime
from pathlib import Path

import pytest
from e2e.conftest import Start
from e2e.daemons import WAIT_S, Daemon, eventually, kept, running, short_room
from e2e.scripted_daemon import answer, saying, scripted

from mnemosyned import (
    AsyncClient,
    Client,
    ContentTooLarge,
    Memory,
    Remember,
    Unauthorized,
)
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


# `Client` and `AsyncClient` over TCP, with the token.


RememberOver = Callable[[str, str, str], bool]
"""Remember a text at a URL with a token, and tell whether it was stored."""


def remember_blocking(url: str, token: str, text: str) -> bool:
    with Client(url=url, token=token) as client:
        stored = client.remember(text).stored
        return stored and bool(client.recall(text[:20]))


def remember_async(url: str, token: str, text: str) -> bool:
    async def remember() -> bool:
        async with AsyncClient(url=url, token=token) as client:
            stored = (await client.remember(text)).stored
            return stored and bool(await client.recall(text[:20]))

    return asyncio.run(remember())


CLIENTS = pytest.mark.parametrize("remember", [remember_blocking, remember_async])


@pytest.fixture(scope="module")
def tcp_daemon(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Daemon]:
    with running(
        tmp_path_factory.mktemp("tcp"),
        MNEMOSYNE_LISTEN="127.0.0.1:0",
        MNEMOSYNE_LIMITS_BODY_BYTES_MAX="99999",
    ) as daemon:
        yield daemon


@pytest.fixture(scope="module")
def port(tcp_daemon: Daemon) -> int:
    (line,) = tcp_daemon.events("listening")
    return int(line["address"].rpartition(":")[2])


@pytest.fixture(scope="module")
def token(tcp_daemon: Daemon) -> str:
    (line,) = tcp_daemon.events("listening")
    return Path(line["token_file"]).read_text().strip()


@CLIENTS
@pytest.mark.parametrize("host", ["127.0.0.1", "localhost", "LOCALHOST"])
def test_with_the_token_it_remembers(
    remember: RememberOver, host: str, port: int, token: str
) -> None:
    assert remember(f"http://{host}:{port}/", token, "the bike is blue")


@CLIENTS
def test_with_a_wrong_token_it_is_refused(remember: RememberOver, port: int) -> None:
    with pytest.raises(Unauthorized):
        remember(f"http://127.0.0.1:{port}", "x" * 43, "the bike is blue")


@CLIENTS
def test_a_body_that_is_refused_tells_the_reason(
    remember: RememberOver, port: int, token: str
) -> None:
    with pytest.raises(ContentTooLarge):
        remember(f"http://127.0.0.1:{port}", token, "x" * 20_000_000)


@CLIENTS
def test_where_nobody_listens_it_says_so(remember: RememberOver, token: str) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        url = f"http://127.0.0.1:{taken.getsockname()[1]}"

        with pytest.raises(DaemonUnreachable, match=url):
            remember(url, token, "the bike is blue")


def test_a_hundred_calls_at_once_are_answered(port: int, token: str) -> None:
    url = f"http://127.0.0.1:{port}"

    async def remember_all() -> list[bool]:
        async with AsyncClient(url=url, token=token) as client:
            kept = await asyncio.gather(
                *(client.remember("x", id=f"{number}") for number in range(100))
            )
        return [memory.stored for memory in kept]

    assert asyncio.run(remember_all()) == [True] * 100


@pytest.mark.parametrize(
    "url",
    [
        "https://127.0.0.1:99999",
        "http://10.0.0.1:7464",
        "http://127.0.0.1.attacker.example:7464",
        "http://127.0.0.1:99999",
        "http://127.0.0.1",
        "http://127.0.0.1:7464/v1",
        "127.0.0.1:7464",
    ],
)
def test_only_a_port_of_this_machine_gets_the_token(url: str) -> None:
    for kind in (Client, AsyncClient):
        with pytest.raises(ValueError, match=r"http://127\.0\.0\.1:7464"):
            kind(url=url, token="secret")  # noqa: S106


@pytest.mark.parametrize(
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
