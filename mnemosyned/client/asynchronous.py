"""`AsyncClient`: every verb as a coroutine, on non-blocking sockets of the running loop, plain or with TLS."""

from __future__ import annotations

import asyncio
import contextlib
import os
import socket
import ssl
from collections.abc import AsyncGenerator, Callable
from functools import partial
from typing import Self
from weakref import WeakKeyDictionary

from mnemosyned.client import http
from mnemosyned.client.address import Address, IdleConnections, address_of
from mnemosyned.client.connection import (
    ATTEMPTS,
    TIMEOUT_S,
    PreparedCall,
    check_timeout,
    make_call,
    result_of,
    unreachable_error,
)
from mnemosyned.client.remote import RemoteDaemon
from mnemosyned.client.streams import SILENCE_S, EventReader, events_request
from mnemosyned.verbs.facade import AsyncVerbs
from mnemosyned.verbs.request import R, Request, T
from mnemosyned.verbs.upkeep import Event

BACKLOG_POLL_S = 0.01
"""Wait before the next attempt to connect where the daemon's backlog is full."""


async def connect(address: Address, timeout_s: float) -> socket.socket:
    """Return a new non-blocking connection to a daemon, with TLS if the address asks for it.

    `timeout_s` limits only a connection with TLS; the caller has to limit others. Raises `OSError`,
    and `ForeignDaemon` if an untrusted user listens.
    """
    loop = asyncio.get_running_loop()
    remote = address if isinstance(address, RemoteDaemon) else None
    if remote and (remote.tls or (remote.saved and remote.saved.is_renewal_due)):
        opening = loop.run_in_executor(None, address.connect, timeout_s)
        try:
            connection = await asyncio.shield(opening)
        except asyncio.CancelledError:
            opening.add_done_callback(_close_opened)
            raise
        connection.settimeout(0)
        return connection
    connection = address.open()
    with http.ClosedOnFailure(connection):
        connection.settimeout(0)
        if remote:
            await loop.sock_connect(connection, address.target)
        else:
            while True:  # within the call's timeout
                with contextlib.suppress(BlockingIOError):
                    connection.connect(address.target)
                    break
                await asyncio.sleep(BACKLOG_POLL_S)
        address.check(connection)
    return connection


def _close_opened(opening: asyncio.Future[socket.socket]) -> None:
    """Close the connection that `opening` made for a cancelled call, if it succeeded."""
    if opening.exception() is None:
        opening.result().close()


async def send(connection: socket.socket, data: bytes) -> None:
    """Send all bytes over a non-blocking socket, plain or with TLS. Raises `OSError`."""
    left = memoryview(data)
    while left:
        sent = await _try_until_done(
            connection, partial(connection.send, left), writable=True
        )
        left = left[sent:]


async def receive(connection: socket.socket) -> bytes:
    """Return what a non-blocking socket has received, or `b""` at its end. Raises `OSError`."""
    step = partial(connection.recv, http.RECEIVED_BYTES)
    return await _try_until_done(connection, step, writable=False)


async def _try_until_done(
    connection: socket.socket, step: Callable[[], T], *, writable: bool
) -> T:
    """Return the result of `step`, tried again without a time limit whenever the socket is ready.

    `writable` says that the step writes; TLS may have to read first, or write before it reads.
    """
    while True:
        try:
            return step()
        except BlockingIOError:
            await _wait_until_ready(connection, writable=writable)
        except (ssl.SSLWantReadError, ssl.SSLWantWriteError) as error:
            wants_to_write = isinstance(error, ssl.SSLWantWriteError)
            await _wait_until_ready(connection, writable=wants_to_write)


async def _wait_until_ready(connection: socket.socket, *, writable: bool) -> None:
    """Wait until a socket can be written to, or read from."""
    loop, ready, file = asyncio.get_running_loop(), asyncio.Event(), connection.fileno()
    add, remove = loop.add_reader, loop.remove_reader
    if writable:
        add, remove = loop.add_writer, loop.remove_writer
    add(file, ready.set)
    try:
        await ready.wait()
    finally:
        remove(file)


class AsyncClient(AsyncVerbs):
    """Speaks to a running daemon from asyncio, over its socket or TCP.

    Up to `connections` calls run at once; further calls wait for a free connection, and the wait
    counts toward their timeout. A cancelled call closes its connection; the daemon may have done
    its work. A request whose connection was lost, or that reached a limit of its owner, is sent
    again as `Client` does it. One client serves any number of event loops.
    """

    def __init__(
        self,
        socket: str | os.PathLike[str] | None = None,
        *,
        url: str | None = None,
        token: str | None = None,
        ca: str | os.PathLike[str] | None = None,
        owner: str | None = None,
        timeout_s: float = TIMEOUT_S,
        connections: int = 16,
    ) -> None:
        """Make a client of the socket, of a URL with a token, or of the address in the environment.

        `ca` is the PEM file of the authority that signed the certificate of an https:// URL, `owner`
        whose memory is asked there: a group's, or one's own without its groups. At most `connections`
        connections are in use at once in each event loop. Raises `ValueError` for arguments that do
        not belong together, and for a time limit that is none.
        """
        if connections < 1:
            raise ValueError("connections must be at least 1")
        self._address = address_of(socket, url, token, ca, owner)
        self._timeout_s = check_timeout(timeout_s)
        self._connections = connections
        self._idle = IdleConnections()
        self._turns: WeakKeyDictionary[asyncio.AbstractEventLoop, asyncio.Semaphore] = (
            WeakKeyDictionary()
        )

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    async def close(self) -> None:
        """Close the connections that no call uses."""
        self._idle.close()

    async def call(self, request: Request[R]) -> R:
        """Send a request and return its result. Raises the daemon's error, or `DaemonUnreachable`."""
        call = make_call(
            request, timeout_s=self._timeout_s, headers=self._address.headers
        )
        # Each loop has its own limit on connections.
        loop, limit = asyncio.get_running_loop(), asyncio.Semaphore(self._connections)
        turn = self._turns.setdefault(loop, limit)
        try:
            async with asyncio.timeout(call.timeout_s), turn:
                ends = loop.time() + call.timeout_s
                answer = await self._send_call(call)
                while (pause_s := answer.limited_s) and loop.time() + pause_s < ends:
                    await asyncio.sleep(pause_s)
                    answer = await self._send_call(call)
        except OSError as error:
            raise unreachable_error(error, self._address) from error
        return result_of(request, answer, self._address)

    async def events(self, *, after: int | None = None) -> AsyncGenerator[Event, None]:
        """Yield the daemon's events as they happen, until the daemon stops.

        `after` is the id of an event: later events that are still kept come first. Raises
        `DaemonUnreachable` if the connection is lost, and `DaemonBusy` for too many readers.
        """
        ended = False
        while not ended:  # a stream has a time limit; the next takes over
            reader = EventReader(self._address)
            try:
                opened = await connect(self._address, self._timeout_s)
                with contextlib.closing(opened) as connection:
                    await send(connection, events_request(after, self._address.headers))
                    while not reader.is_at_end:
                        async with asyncio.timeout(SILENCE_S):
                            data = await receive(connection)
                        for event in reader.feed(data):
                            yield event
            except OSError as error:
                raise unreachable_error(error, self._address) from error
            after = reader.last_id or after
            ended = reader.ended_for_good

    async def _send_call(self, call: PreparedCall) -> http.HttpResponse:
        """Send a call, first over an idle connection if repeatable, and return the response.

        A request that was not read is sent again, `ATTEMPTS` times at most. Raises `OSError`.
        """
        if call.repeatable and (idle := self._idle.take()):
            with contextlib.suppress(ConnectionError):
                return await self._exchange_over(idle, call.data)
        for _ in range(ATTEMPTS - 1):
            with contextlib.suppress(http.Unread):
                opened = await connect(self._address, call.timeout_s)
                return await self._exchange_over(opened, call.data)
        opened = await connect(self._address, call.timeout_s)
        return await self._exchange_over(opened, call.data)

    async def _exchange_over(
        self, connection: socket.socket, data: bytes
    ) -> http.HttpResponse:
        """Send a request, keep or close the connection, and return the response. Raises `Unread`, `OSError`."""
        sent = False
        response = http.HttpResponse()
        try:
            with contextlib.suppress(BrokenPipeError, ConnectionResetError):
                await send(connection, data)
                sent = True
            while not response.is_complete:
                response.feed(await receive(connection), sent=sent)
        except ConnectionResetError as error:
            connection.close()
            proves_unread = self._address.reset_is_unread
            raise response.connection_error(sent=sent and not proves_unread) from error
        except BaseException:  # a cancelled call, too, must not leave half an answer
            connection.close()
            raise
        if response.stays_open:
            self._idle.put(connection)
        else:
            connection.close()
        return response
