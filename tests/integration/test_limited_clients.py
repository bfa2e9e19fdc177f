"""Clients wait for a limit of their owner to be free, and send the same request again."""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import Callable
from contextlib import closing

import pytest
from support.endpoints import Behavior, gives, serving

from mnemosyned import AsyncClient, Client
from mnemosyned.agents.mcp.pump import (
    DaemonLost,
    PumpedCall,
    PumpedDaemon,
    read_messages,
)
from mnemosyned.client.address import address_of
from mnemosyned.client.remote import remote_daemon
from mnemosyned.client.streams import Transfers
from mnemosyned.errors import LimitReached

TOKEN = "mnt_2_" + "x" * 43
BODY = json.dumps(
    {"error": {"code": "limit_reached", "message": "used up", "field": None}}
).encode()
KEPT = json.dumps(
    {"id": "kept", "stored": True, "created_at": "2026-01-01T00:00:00Z"}
).encode()


def limited(seconds: str) -> Behavior:
    return gives(429, BODY, Retry_After=seconds)


def remember(url: str, *, timeout_s: float) -> str:
    with Client(url=url, token=TOKEN, timeout_s=timeout_s) as client:
        return client.remember("a").id


def remember_in_a_loop(url: str, *, timeout_s: float) -> str:
    async def remember() -> str:
        async with AsyncClient(url=url, token=TOKEN, timeout_s=timeout_s) as client:
            return (await client.remember("a")).id

    return asyncio.run(remember())


@pytest.fixture(autouse=True)
def pauses(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    pauses: list[float] = []

    async def pause(seconds: float) -> None:
        pauses.append(seconds)

    monkeypatch.setattr(time, "sleep", pauses.append)
    monkeypatch.setattr(asyncio, "sleep", pause)
    return pauses


@pytest.mark.parametrize("call", [remember, remember_in_a_loop])
def test_a_client_waits_and_sends_the_same_request_again(
    call: Callable[..., str], pauses: list[float]
) -> None:
    with serving(limited("3"), limited("2"), gives(200, KEPT)) as daemon:
        assert call(daemon.url.removesuffix("/v1"), timeout_s=9) == "kept"

    assert pauses == [3, 2]
    first, *others = [seen.body["id"] for seen in daemon.seen]
    assert first
    assert others == [first, first]


@pytest.mark.parametrize("call", [remember, remember_in_a_loop])
def test_a_client_says_how_long_a_wait_beyond_its_time_limit_is(
    call: Callable[..., str], pauses: list[float]
) -> None:
    with (
        serving(limited("10")) as daemon,
        pytest.raises(LimitReached, match="used up") as refused,
    ):
        call(daemon.url.removesuffix("/v1"), timeout_s=9)

    assert (refused.value.retry_after_s, pauses) == (10, [])


def test_an_import_waits(pauses: list[float]) -> None:
    report = b'{"stored": {"memory": 1}}'
    with serving(limited("600"), gives(200, report)) as daemon:
        address = address_of(None, daemon.url.removesuffix("/v1"), TOKEN, None)
        with closing(Transfers(address)) as transfers:
            transfers.restore(b"{}")

    assert (pauses, len(daemon.seen)) == ([600], 2)


def test_a_message_of_an_agent_waits_a_while(pauses: list[float]) -> None:
    answer = b'{"jsonrpc":"2.0","id":1,"result":{}}'
    waits = [limited(seconds) for seconds in "33211"]
    with serving(*waits, gives(200, answer), limited("30")) as daemon:
        url = daemon.url.removesuffix("/v1")
        sender = PumpedDaemon(remote_daemon(url, token=TOKEN))

        def send() -> list[bytes]:
            connection, response = sender.post({}, b"{}", on_connection=lambda _: None)
            with connection:
                return list(read_messages(connection, response))

        assert send() == [answer]
        assert pauses == [3, 3, 2, 1, 1]
        with pytest.raises(DaemonLost, match=r"429.*used up"):
            send()
        call = PumpedCall(b"{}")
        call.cancel()
        with pytest.raises(DaemonLost, match="cancelled"):
            sender.post({}, b"{}", on_connection=call.hold)
    assert len(daemon.seen) == len(pauses) + 2
