"""`Client` and `AsyncClient` over https: what they keep, stream and send again."""

from __future__ import annotations

import asyncio
import json
import socket
import threading
import time
from contextlib import closing, suppress
from pathlib import Path

import pytest
from e2e.authorities import Authority, Certificate
from e2e.daemons import WAIT_S, kept, running
from e2e.doors import TOKEN, Door, door_of
from e2e.scripted_daemon import answer, read_request
from e2e.tls_servers import relaying, reset, serving
from support.openssl import HAVE_OPENSSL

from mnemosyned import AsyncClient, Client, DaemonUnreachable, MnemosynedError
from mnemosyned.verbs.exchange import Export

pytestmark = [pytest.mark.e2e, HAVE_OPENSSL]


def test_calls_share_connections(
    door: Door, certificate: Certificate, authority: Authority
) -> None:
    with relaying(door.daemon.socket, certificate) as relay:
        with Client(url=relay.url, token=TOKEN, ca=authority.file) as client:
            for number in range(20):
                client.remember("a bell", id=f"shared-{number}")
        assert len(relay.connections) == 1

        async def remember_all() -> None:
            async with AsyncClient(
                url=relay.url, token=TOKEN, ca=authority.file, connections=4
            ) as client:
                for _ in range(5):
                    await asyncio.gather(
                        *(client.remember("x", id=f"at-once-{n}") for n in range(20))
                    )

        asyncio.run(remember_all())
        assert len(relay.connections) <= 1 + 4 * 5


def test_a_hundred_calls_at_once_are_answered(door: Door) -> None:
    texts = [f"{number} " + "word " * 10_000 for number in range(100)]

    async def remember_all() -> list[str]:
        async with door.async_client() as client:
            await asyncio.gather(
                *(client.remember(text, id=f"h-{n}") for n, text in enumerate(texts))
            )
            found = [await client.get(f"h-{number}") for number in range(100)]
            return [got.memory.content for got in found if got.memory]

    assert asyncio.run(remember_all()) == texts


def test_events_come_over_tls(door: Door) -> None:
    def talk() -> None:
        time.sleep(0.3)
        with door.client() as client:
            client.remember("Ada drinks Assam")

    threading.Thread(target=talk).start()
    with door.client() as client:
        assert next(iter(client.events())).memories[0].text == "Ada drinks Assam"

    async def listen() -> str:
        threading.Thread(target=talk).start()
        async with door.async_client() as client:
            async for event in client.events():
                return event.memories[0].text
        return ""

    assert asyncio.run(listen()) == "Ada drinks Assam"


def test_an_export_and_its_import_come_over_tls(
    certificate: Certificate, authority: Authority, tmp_path: Path
) -> None:
    with (
        running(tmp_path / "a") as first,
        running(tmp_path / "b") as second,
        relaying(first.socket, certificate) as source,
        relaying(second.socket, certificate) as target,
        Client(url=source.url, token=TOKEN, ca=authority.file) as client,
        Client(url=target.url, token=TOKEN, ca=authority.file) as other,
    ):
        for number in range(50):
            client.remember(f"bell {number}", id=f"bell-{number}")
        with (
            closing(client.transfers()) as transfers,
            transfers.export(Export()) as lines,
        ):
            exported = list(lines)
        with closing(other.transfers()) as transfers:
            transfers.restore(b"".join(exported[1:-1]))

        assert json.loads(exported[-1])["counts"]["memory"] == 50
        assert kept(second.database) == kept(first.database)


# -------------------------------------------------------------- what is sent again


@pytest.mark.parametrize("verb", ["remember", "undo"])
@pytest.mark.parametrize("kind", ["blocking", "async"])
def test_after_a_reset_on_the_way_nothing_is_done_twice(
    kind: str, verb: str, authority: Authority, certificate: Certificate
) -> None:
    requests: list[bytes] = []

    def serve(tls: socket.socket) -> None:
        requests.append(read_request(tls))
        reset(tls)

    def ask(url: str) -> None:
        with Client(url=url, token=TOKEN, ca=authority.file) as client:
            client.remember("x") if verb == "remember" else client.undo("01")

    async def ask_async(url: str) -> None:
        async with AsyncClient(url=url, token=TOKEN, ca=authority.file) as client:
            await (client.remember("x") if verb == "remember" else client.undo("01"))

    with (
        serving(serve, certificate) as server,
        pytest.raises(DaemonUnreachable, match="hung up"),
    ):
        ask(server.url) if kind == "blocking" else asyncio.run(ask_async(server.url))
    assert len(requests) == 1


@pytest.mark.parametrize("kind", ["blocking", "async"])
def test_a_read_on_a_connection_that_was_lost_is_asked_again(
    kind: str, authority: Authority, certificate: Certificate
) -> None:
    served: list[int] = []

    def serve(tls: socket.socket) -> None:
        served.append(1)
        read_request(tls)
        tls.sendall(answer())
        if len(served) == 1:  # the second request meets its end
            read_request(tls)
            reset(tls)

    with serving(serve, certificate) as server:
        if kind == "blocking":
            with Client(url=server.url, token=TOKEN, ca=authority.file) as client:
                assert [client.log().rows, client.log().rows] == [[], []]
        else:

            async def ask() -> list[object]:
                async with AsyncClient(
                    url=server.url, token=TOKEN, ca=authority.file
                ) as client:
                    return [(await client.log()).rows, (await client.log()).rows]

            assert asyncio.run(ask()) == [[], []]
    assert len(served) == 2


def test_a_daemon_killed_amid_calls_keeps_what_it_acknowledged(
    certificate: Certificate, authority: Authority, tmp_path: Path
) -> None:
    settings = certificate.settings
    acknowledged: list[str] = []
    failures: list[MnemosynedError] = []
    with running(tmp_path, **settings) as daemon:
        door = door_of(daemon, authority)
        client = door.client()

        def write(writer: int) -> None:
            for number in range(10_000):
                id = f"{writer}-{number}"
                try:
                    client.remember(f"bell {id}", id=id)
                except MnemosynedError as error:
                    failures.append(error)
                    return
                acknowledged.append(id)

        writers = [threading.Thread(target=write, args=(n,)) for n in range(4)]
        for writer in writers:
            writer.start()
        while len(acknowledged) < 50:
            time.sleep(0.005)
        daemon.kill()
        for writer in writers:
            writer.join(WAIT_S)
            assert not writer.is_alive()

    assert {type(error) for error in failures} == {DaemonUnreachable}
    settings["MNEMOSYNE_LISTEN"] = f"127.0.0.1:{door.port}"
    with running(tmp_path, **settings) as daemon:
        stored = kept(daemon.database)
        assert len(set(stored)) == len(stored)
        assert set(acknowledged) <= set(stored)
        with client:
            assert client.remember("bell again", id="again").stored


def test_a_cancelled_call_leaves_no_half_answer(door: Door) -> None:
    async def cancelled_and_asked() -> int:
        async with door.async_client() as client:
            await client.remember("x" * 50_000, id="long")
            for delay in (0.0, 0.0005, 0.001, 0.002):
                with suppress(TimeoutError):
                    async with asyncio.timeout(delay):
                        await client.get("long")
            found = (await client.get("long")).memory
            return len(found.content) if found else 0

    assert asyncio.run(cancelled_and_asked()) == 50_000
