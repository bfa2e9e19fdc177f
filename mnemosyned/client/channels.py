"""Connections of asyncio to a daemon: plain ones, and those with TLS."""

from __future__ import annotations

import asyncio
import contextlib
import socket
import ssl
from typing import TYPE_CHECKING, Protocol, TypeVar

from mnemosyned.client.address import Address, LocalAddress, TlsAddress

if TYPE_CHECKING:
    from collections.abc import Callable

    from mnemosyned.remote.daemon import RemoteDaemon

T = TypeVar("T")

BACKLOG_POLL_S = 0.01
"""Wait before the next attempt to connect where the daemon's backlog is full."""
RECORD_BYTES = 64 * 1024
"""Bytes that are sealed, or read sealed, at a time."""


class Channel(Protocol):
    """A connection that carries bytes for the running loop, and may be kept for another."""

    async def send(self, data: bytes) -> None:
        """Send all. Raises `OSError`."""
        ...

    async def receive(self, count: int) -> bytes:
        """Receive up to a number of bytes; none at the end. Raises `OSError`."""
        ...

    def fileno(self) -> int:
        """The descriptor of its socket."""
        ...

    def close(self) -> None:
        """Hang up."""
        ...


class PlainChannel:
    """A connection on this machine."""

    def __init__(self, connection: socket.socket) -> None:
        self._socket = connection
        self.fileno = connection.fileno
        self.close = connection.close

    async def send(self, data: bytes) -> None:
        await asyncio.get_running_loop().sock_sendall(self._socket, data)

    async def receive(self, count: int) -> bytes:
        return await asyncio.get_running_loop().sock_recv(self._socket, count)


class TlsChannel:
    """A connection with TLS over a plain socket, as asyncio's sockets carry no TLS."""

    def __init__(
        self, connection: socket.socket, context: ssl.SSLContext, host: str
    ) -> None:

        self._plain = PlainChannel(connection)
        self._incoming, self._outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
        self._tls = context.wrap_bio(
            self._incoming, self._outgoing, server_hostname=host
        )
        self._wants_read = ssl.SSLWantReadError
        self._cut_off = ssl.SSLEOFError
        self._failures = ssl.SSLError
        self.fileno = connection.fileno
        self.close = connection.close

    async def handshake(self) -> None:
        """Begin TLS. Raises `OSError`."""
        await self._driven(self._tls.do_handshake)

    async def send(self, data: bytes) -> None:
        view = memoryview(data)
        for begin in range(0, len(view), RECORD_BYTES):
            try:
                self._tls.write(view[begin : begin + RECORD_BYTES])
            except self._failures as error:
                raise ConnectionResetError(str(error)) from error
            await self._flush()

    async def receive(self, count: int) -> bytes:
        try:
            return await self._driven(lambda: self._tls.read(count))
        except self._cut_off:  # as of a plain connection that ends
            return b""
        except self._failures as error:
            raise ConnectionAbortedError(str(error)) from error

    def pending(self) -> int:
        """Bytes that have come and were not received yet."""
        return self._tls.pending() + self._incoming.pending

    async def _driven(self, step: Callable[[], T]) -> T:
        """The result of a step, with the bytes that it waits for."""
        while True:  # ends with the connection, or the caller's limit
            try:
                result = step()
            except self._wants_read:
                await self._flush()
                data = await self._plain.receive(RECORD_BYTES)
                if data:
                    self._incoming.write(data)
                elif self._incoming.eof:
                    raise ConnectionResetError("the connection ended") from None
                else:
                    self._incoming.write_eof()
            else:
                await self._flush()
                return result

    async def _flush(self) -> None:
        """Send what is sealed; where that fails, nothing of it is sent again: the answer tells why."""
        while data := self._outgoing.read(RECORD_BYTES):
            try:
                await self._plain.send(data)
            except OSError:
                self._outgoing.read()
                raise


async def open_channel(address: Address) -> Channel:
    """Connect to a daemon. Raises `OSError` and `ForeignDaemon`."""
    if isinstance(address, TlsAddress):
        return await _open_tls(address.remote, address.context)
    connection = address.open()
    try:
        connection.settimeout(0)
        await _connect(connection, address)
        address.check(connection)
    except BaseException:
        connection.close()
        raise
    return PlainChannel(connection)


async def _connect(connection: socket.socket, address: LocalAddress) -> None:
    """Connect, as soon as there is room in the daemon's backlog.

    A Unix socket with a full backlog is no connection in progress that asyncio could wait for.
    """
    if connection.family != socket.AF_UNIX:
        await asyncio.get_running_loop().sock_connect(connection, address.target)
        return
    while True:  # within the call's timeout
        with contextlib.suppress(BlockingIOError):
            connection.connect(address.target)
            return
        await asyncio.sleep(BACKLOG_POLL_S)


async def _open_tls(remote: RemoteDaemon, context: ssl.SSLContext) -> Channel:
    """Connect with TLS. Raises `RemoteFault`."""
    from mnemosyned.remote import connecting  # noqa: PLC0415 loaded with the context

    connection = await _connected(remote)
    channel = TlsChannel(connection, context, remote.host)
    try:
        async with asyncio.timeout(connecting.HANDSHAKE_S):
            await channel.handshake()
    except OSError as error:
        connection.close()
        raise connecting.handshake_fault(remote, error) from error
    except BaseException:
        connection.close()
        raise
    return channel


async def _connected(remote: RemoteDaemon) -> socket.socket:
    """Connect to the first address that answers; each gets its share of the time."""
    from mnemosyned.remote import connecting  # noqa: PLC0415 the same

    loop = asyncio.get_running_loop()
    deadline = loop.time() + connecting.CONNECT_S
    try:
        addresses = await loop.getaddrinfo(
            remote.host, remote.port, type=socket.SOCK_STREAM
        )
    except (OSError, UnicodeError) as error:
        raise connecting.unknown_host(remote, error) from error
    tried = connecting.targets(addresses)
    failure: OSError = OSError("the host has no address")
    for position, (family, place) in enumerate(tried):
        connection = connecting.tcp_socket(family)
        share = (deadline - loop.time()) / (len(tried) - position)
        try:
            connection.settimeout(0)
            async with asyncio.timeout(share):
                await loop.sock_connect(connection, place)
        except OSError as error:
            connection.close()
            failure = error
        except BaseException:
            connection.close()
            raise
        else:
            return connection
    raise connecting.connect_fault(remote, failure) from failure
