"""`Client` and `AsyncClient` over TCP, with the token."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from e2e.daemons import Daemon, running

from mnemosyned import (
    AsyncClient,
    Client,
    ContentTooLarge,
    DaemonUnreachable,
    Unauthorized,
)

pytestmark = pytest.mark.e2e

Remember = Callable[[str, str, str], bool]
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
def daemon(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Daemon]:
    with running(
        tmp_path_factory.mktemp("tcp"),
        MNEMOSYNE_LISTEN="127.0.0.1:0",
        MNEMOSYNE_LIMITS_BODY_BYTES_MAX="99999",
    ) as daemon:
        yield daemon


@pytest.fixture(scope="module")
def port(daemon: Daemon) -> int:
    (line,) = daemon.events("listening")
    return int(line["address"].rpartition(":")[2])


@pytest.fixture(scope="module")
def token(daemon: Daemon) -> str:
    (line,) = daemon.events("listening")
    return Path(line["token_file"]).read_text().strip()


@CLIENTS
@pytest.mark.parametrize("host", ["127.0.0.1", "localhost", "LOCALHOST"])
def test_with_the_token_it_remembers(
    remember: Remember, host: str, port: int, token: str
) -> None:
    assert remember(f"http://{host}:{port}/", token, "the bike is blue")


@CLIENTS
def test_with_a_wrong_token_it_is_refused(remember: Remember, port: int) -> None:
    with pytest.raises(Unauthorized):
        remember(f"http://127.0.0.1:{port}", "x" * 43, "the bike is blue")


@CLIENTS
def test_a_body_that_is_refused_tells_the_reason(
    remember: Remember, port: int, token: str
) -> None:
    with pytest.raises(ContentTooLarge):
        remember(f"http://127.0.0.1:{port}", token, "x" * 20_000_000)


@CLIENTS
def test_where_nobody_listens_it_says_so(remember: Remember, token: str) -> None:
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
