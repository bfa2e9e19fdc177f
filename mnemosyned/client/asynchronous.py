"""`AsyncClient`: every verb as a coroutine, on non-blocking sockets of the running loop."""

from __future__ import annotations

import asyncio
import contextlib
import os
from collections.abc import AsyncGenerator
from typing import Self, TypeVar
from weakref import WeakKeyDictionary

from mnemosyned.client.address import IdleConnections, address_of
from mnemosyned.client.channels import Channel, open_channel
from mnemosyned.client.events import (
    SILENCE_S,
    EventReader,
    request_for,
)
from mnemosyned.client.messages import (
    ATTEMPTS,
    RECEIVED_BYTES,
    TIMEOUT_S,
    Answer,
    Call,
    Unread,
    make_call,
    ready,
    result_of,
    unreachable,
)
from mnemosyned.verbs.facade import AsyncVerbs
from mnemosyned.verbs.request import Request
from mnemosyned.verbs.streams.events import Event

R = TypeVar("R")

CONNECTIONS_MAX = 16


class AsyncClient(AsyncVerbs):
    """Speaks to a running daemon from asyncio, without threads; over its socket or TCP, as `Client`.

    Calls run at once over up to `connections` connections; further ones wait for their turn, which
    their timeout includes. A call that is cancelled closes its connection; the daemon may have done
    its work. A request on a lost connection is repeated as `Client` does it. One client serves any
    number of event loops.
    """

    def __init__(
        self,
        socket: str | os.PathLike[str] | None = None,
        *,
        url: str | None = None,
        token: str | None = None,
        ca: str | os.PathLike[str] | None = None,
        timeout_s: float = TIMEOUT_S,
        connections: int = CONNECTIONS_MAX,
    ) -> None:
        """Make a client as `Client` does, with up to `connections` connections in each loop."""
        if connections < 1:
            raise ValueError("connections must be at least 1")
        self._address = address_of(socket, url, token, ca)
        self._timeout_s = timeout_s
        self._connections = connections
        self._idle: IdleConnections[Channel] = IdleConnections()
        self._turns: WeakKeyDictionary[asyncio.AbstractEventLoop, asyncio.Semaphore] = (
            WeakKeyDictionary()
        )

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    async def close(self) -> None:
        """Close the idle connections."""
        self._idle.close()

    async def call(self, request: Request[R]) -> R:
        """Run one verb. Raises what the daemon raised, and `DaemonUnreachable`."""
        request = ready(request)
        call = make_call(
            request, timeout_s=self._timeout_s, headers=self._address.headers
        )
        try:
            async with asyncio.timeout(call.timeout_s), self._turn():
                answer = await self._answer(call)
        except OSError as error:
            raise unreachable(error, self._address) from error
        return result_of(request, answer, self._address)

    async def events(self, *, after: int | None = None) -> AsyncGenerator[Event, None]:
        """Yield what happens in the daemon, as `Client.events` does."""
        reader = EventReader()
        while (
            not reader.ended_for_good
        ):  # a stream has a time limit; the next takes over
            reader = EventReader()
            async with contextlib.aclosing(self._stream(reader, after)) as stream:
                async for event in stream:
                    yield event
            after = reader.last_id or after

    async def _stream(
        self, reader: EventReader, after: int | None
    ) -> AsyncGenerator[Event, None]:
        """Yield the events of one connection, to its end."""
        try:
            with contextlib.closing(await open_channel(self._address)) as channel:
                await channel.send(request_for(after, self._address.headers))
                while not reader.ended:
                    async with asyncio.timeout(SILENCE_S):
                        data = await channel.receive(RECEIVED_BYTES)
                    for event in reader.feed(data):
                        yield event
        except OSError as error:
            raise unreachable(error, self._address) from error

    def _turn(self) -> asyncio.Semaphore:
        """The running loop's limit on connections."""
        loop = asyncio.get_running_loop()
        return self._turns.setdefault(loop, asyncio.Semaphore(self._connections))

    async def _answer(self, call: Call) -> Answer:
        """Send a call over an idle connection, or over a new one where that fails."""
        if call.repeatable and (idle := self._idle.take()):
            with contextlib.suppress(ConnectionError):
                return await self._exchange(idle, call.data)
        for _ in range(ATTEMPTS - 1):
            with contextlib.suppress(Unread):
                return await self._exchange(
                    await open_channel(self._address), call.data
                )
        return await self._exchange(await open_channel(self._address), call.data)

    async def _exchange(self, channel: Channel, data: bytes) -> Answer:
        """One call and its answer; the connection is kept for the next, or closed."""
        try:
            answer = await _exchange(
                channel, data, reset_is_unread=self._address.reset_is_unread
            )
        except BaseException:  # a cancelled call, too, must not leave half an answer
            channel.close()
            raise
        if answer.stays_open:
            self._idle.put(channel)
        else:
            channel.close()
        return answer


async def _exchange(channel: Channel, data: bytes, *, reset_is_unread: bool) -> Answer:
    """Send a request and read its answer. Raises `Unread` where it may be sent again.

    Sockets and not streams: a stream that cannot send loses the daemon's reason, which has come.
    """
    sent = False
    with contextlib.suppress(BrokenPipeError, ConnectionResetError):
        await channel.send(data)
        sent = True
    answer = Answer()
    try:
        while not answer.feed(await channel.receive(RECEIVED_BYTES), sent=sent):
            pass
    except ConnectionResetError as error:
        raise answer.broken(sent=sent and not reset_is_unread) from error
    return answer
