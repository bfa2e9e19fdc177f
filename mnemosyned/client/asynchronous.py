"""`AsyncClient`: every verb as a coroutine, on non-blocking sockets of the running loop, plain or with TLS."""

from __future__ import annotations

import asyncio
import contextlib
import os
import socket
import ssl
from collections.abc import AsyncGenerator
from typing import TYPE_CHECKING, Protocol, Self, TypeVar
from weakref import WeakKeyDictionary

from mnemosyned.client import http, tls
from mnemosyned.client.address import (
    Address,
    IdleConnections,
    TcpAddress,
    TlsAddress,
    address_of,
)
from mnemosyned.client.connection import (
    ATTEMPTS,
    TIMEOUT_S,
    PreparedCall,
    make_call,
    prepare_request,
    result_of,
    unreachable,
)
from mnemosyned.client.streams import SILENCE_S, EventReader, events_request
from mnemosyned.verbs.facade import AsyncVerbs
from mnemosyned.verbs.request import Request
from mnemosyned.verbs.upkeep import Event

if TYPE_CHECKING:
    from collections.abc import Callable

    from mnemosyned.client.remote import RemoteDaemon


T = TypeVar("T")

BACKLOG_POLL_S = 0.01
"""Wait before the next attempt to connect where the daemon's backlog is full."""
RECORD_BYTES = 64 * 1024
"""Bytes that are sealed, or read sealed, at a time."""


class Channel(Protocol):
    """A connection that sends and receives bytes on the running event loop."""

    fileno: Callable[[], int]
    close: Callable[[], None]

    async def send(self, data: bytes) -> None:
        """Send all bytes. Raises `OSError`."""
        ...

    async def receive(self, count: int) -> bytes:
        """Return up to `count` received bytes, or `b""` at the end. Raises `OSError`."""
        ...


class PlainChannel:
    """A connection without TLS."""

    def __init__(self, connection: socket.socket) -> None:
        self._socket = connection
        self.fileno = connection.fileno
        self.close = connection.close

    async def send(self, data: bytes) -> None:
        """Send all bytes. Raises `OSError`."""
        await asyncio.get_running_loop().sock_sendall(self._socket, data)

    async def receive(self, count: int) -> bytes:
        """Return up to `count` received bytes, or `b""` at the end. Raises `OSError`."""
        return await asyncio.get_running_loop().sock_recv(self._socket, count)


class TlsChannel:
    """A connection with TLS over a plain socket, as asyncio's sockets carry no TLS."""

    def __init__(
        self, connection: socket.socket, context: ssl.SSLContext, host: str
    ) -> None:
        """Prepare TLS over a connected socket; the certificate must have the name `host`."""
        self._plain = PlainChannel(connection)
        self._incoming, self._outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
        self._tls = context.wrap_bio(
            self._incoming, self._outgoing, server_hostname=host
        )
        self.fileno = connection.fileno
        self.close = connection.close

    async def handshake(self) -> None:
        """Run the TLS handshake. Raises `OSError`."""
        await self._run_step(self._tls.do_handshake)

    async def send(self, data: bytes) -> None:
        """Encrypt and send all bytes. Raises `OSError`."""
        view = memoryview(data)
        for begin in range(0, len(view), RECORD_BYTES):
            try:
                self._tls.write(view[begin : begin + RECORD_BYTES])
            except ssl.SSLError as error:
                raise ConnectionResetError(str(error)) from error
            await self._send_encrypted()

    async def receive(self, count: int) -> bytes:
        """Return up to `count` decrypted bytes, or `b""` at the end. Raises `OSError`."""
        try:
            return await self._run_step(lambda: self._tls.read(count))
        except ssl.SSLEOFError:  # as of a plain connection that ends
            return b""
        except ssl.SSLError as error:
            raise ConnectionAbortedError(str(error)) from error

    def pending(self) -> int:
        """Return the number of bytes, encrypted ones too, that `receive` has not returned yet."""
        return self._tls.pending() + self._incoming.pending

    async def _run_step(self, step: Callable[[], T]) -> T:
        """Run a TLS operation until it has all the bytes that it needs. Raises `OSError`."""
        while True:  # ends with the connection, or the caller's limit
            try:
                result = step()
            except ssl.SSLWantReadError:
                await self._send_encrypted()
                data = await self._plain.receive(RECORD_BYTES)
                if data:
                    self._incoming.write(data)
                elif self._incoming.eof:
                    raise ConnectionResetError("the connection ended") from None
                else:
                    self._incoming.write_eof()
            else:
                await self._send_encrypted()
                return result

    async def _send_encrypted(self) -> None:
        """Send all encrypted bytes. Raises `OSError`.

        The unsent ones are then dropped, as the daemon's answer says why it hung up.
        """
        while data := self._outgoing.read(RECORD_BYTES):
            try:
                await self._plain.send(data)
            except OSError:
                self._outgoing.read()
                raise


async def open_channel(address: Address) -> Channel:
    """Return a new connection to a daemon, with TLS if the address asks for it.

    The caller limits the time. Raises `OSError`, and `ForeignDaemon` if an untrusted user listens.
    """
    remote = address.remote if isinstance(address, TcpAddress) else None
    if remote and remote.saved and remote.saved.is_renewal_due:
        await asyncio.to_thread(remote.renew_if_due)
    if isinstance(address, TlsAddress):
        connection = await _connect_remote(address.remote)
        channel = TlsChannel(connection, address.context, address.remote.host)
        try:
            with http.ClosedOnFailure(connection):
                async with asyncio.timeout(tls.HANDSHAKE_S):
                    await channel.handshake()
        except OSError as error:
            raise tls.handshake_fault(address.remote, error) from error
        return channel
    connection = address.open()
    with http.ClosedOnFailure(connection):
        connection.settimeout(0)
        if connection.family != socket.AF_UNIX:
            loop = asyncio.get_running_loop()
            await loop.sock_connect(connection, address.target)
        else:
            while True:  # within the call's timeout
                with contextlib.suppress(BlockingIOError):
                    connection.connect(address.target)
                    break
                await asyncio.sleep(BACKLOG_POLL_S)
        address.check(connection)
    return PlainChannel(connection)


async def _connect_remote(remote: RemoteDaemon) -> socket.socket:
    """Return a connection to the first address that answers, as `tls.connect` finds it.

    Raises `RemoteFault`.
    """
    loop = asyncio.get_running_loop()
    deadline = loop.time() + tls.CONNECT_S
    try:
        addresses = await loop.getaddrinfo(
            remote.host, remote.port, type=socket.SOCK_STREAM
        )
    except (OSError, UnicodeError) as error:
        raise tls.unknown_host_fault(remote, error) from error
    tried = tls.list_targets(addresses)
    failure: OSError = OSError("the host has no address")
    for position, (family, place) in enumerate(tried):
        connection = tls.tcp_socket(family)
        share = (deadline - loop.time()) / (len(tried) - position)
        try:
            with http.ClosedOnFailure(connection):
                connection.settimeout(0)
                async with asyncio.timeout(share):
                    await loop.sock_connect(connection, place)
                return connection
        except OSError as error:
            failure = error
    raise tls.connect_fault(remote, failure) from failure


R = TypeVar("R")

CONNECTIONS_MAX = 16


class AsyncClient(AsyncVerbs):
    """Speaks to a running daemon from asyncio, without threads, over its socket or TCP.

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
        connections: int = CONNECTIONS_MAX,
    ) -> None:
        """Make a client of the socket, of a URL with a token, or of the address in the environment.

        `ca` is the PEM file of the authority that signed the certificate of an https:// URL, `owner`
        whose memory is asked there: a group's, or one's own without its groups. At most `connections`
        connections are in use at once in each event loop. Raises `ValueError` for arguments that do
        not belong together.
        """
        if connections < 1:
            raise ValueError("connections must be at least 1")
        self._address = address_of(socket, url, token, ca, owner)
        self._timeout_s = timeout_s
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
        request = prepare_request(request)
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
            raise unreachable(error, self._address) from error
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
                with contextlib.closing(await open_channel(self._address)) as channel:
                    await channel.send(events_request(after, self._address.headers))
                    while not reader.is_at_end:
                        async with asyncio.timeout(SILENCE_S):
                            data = await channel.receive(http.RECEIVED_BYTES)
                        for event in reader.feed(data):
                            yield event
            except OSError as error:
                raise unreachable(error, self._address) from error
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
                return await self._exchange_over(
                    await open_channel(self._address), call.data
                )
        return await self._exchange_over(await open_channel(self._address), call.data)

    async def _exchange_over(self, channel: Channel, data: bytes) -> http.HttpResponse:
        """Send a request over a channel, keep or close it, and return the complete response.

        Raises `Unread` if the request can be sent again, and `OSError`.
        """
        sent = False
        response = http.HttpResponse()
        try:
            with contextlib.suppress(BrokenPipeError, ConnectionResetError):
                await channel.send(data)
                sent = True
            while not response.is_complete:
                response.feed(await channel.receive(http.RECEIVED_BYTES), sent=sent)
        except ConnectionResetError as error:
            channel.close()
            proves_unread = self._address.reset_is_unread
            raise response.connection_error(sent=sent and not proves_unread) from error
        except BaseException:  # a cancelled call, too, must not leave half an answer
            channel.close()
            raise
        if response.stays_open:
            self._idle.put(channel)
        else:
            channel.close()
        return response
