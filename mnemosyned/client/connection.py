"""A blocking connection to a daemon, which carries any request."""

from __future__ import annotations

import contextlib
import os
import socket
from typing import TYPE_CHECKING, Self, TypeVar

from mnemosyned.client.address import IdleConnections, address_of
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
    text_of,
    unreachable,
)
from mnemosyned.verbs.request import Request

if TYPE_CHECKING:
    from collections.abc import Iterator

    from mnemosyned.client.address import Address
    from mnemosyned.client.events import EventReader
    from mnemosyned.client.transfer import Transfers
    from mnemosyned.verbs.streams.events import Event

R = TypeVar("R")


class Connection:
    """Carries requests to a running daemon; safe to use from several threads.

    A request on a lost connection is repeated if that cannot do its work twice: reads, `remember`,
    whose memories get their id here, and `compact`, which finds what it stored before.
    """

    def __init__(
        self,
        socket: str | os.PathLike[str] | None = None,
        *,
        url: str | None = None,
        token: str | None = None,
        ca: str | os.PathLike[str] | None = None,
        timeout_s: float = TIMEOUT_S,
    ) -> None:
        """Make a client of the socket, of a URL with a token, or of what the environment names.

        `ca` is the PEM file of the authority that signed the certificate of an https:// URL; without
        it the authorities that this machine knows count. Raises `ValueError` for arguments that do
        not belong together.
        """
        self._use(address_of(socket, url, token, ca), timeout_s)

    @classmethod
    def to(cls, address: Address, *, timeout_s: float = TIMEOUT_S) -> Self:
        """Make a client of an address."""
        client = cls.__new__(cls)
        client._use(address, timeout_s)  # noqa: SLF001 it is this class
        return client

    def _use(self, address: Address, timeout_s: float) -> None:
        self._address = address
        self._timeout_s = timeout_s
        self._idle: IdleConnections[socket.socket] = IdleConnections()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    @property
    def identity(self) -> str:
        """A mark that tells this memory from those behind other URLs and tokens; not to be shown."""
        return self._address.identity

    def close(self) -> None:
        """Close the idle connections."""
        self._idle.close()

    def call(self, request: Request[R]) -> R:
        """Run one verb. Raises what the daemon raised, and `DaemonUnreachable`."""
        request = ready(request)
        call = make_call(
            request, timeout_s=self._timeout_s, headers=self._address.headers
        )
        try:
            answer = self._answer(call)
        except OSError as error:
            raise unreachable(error, self._address) from error
        return result_of(request, answer, self._address)

    def transfers(self) -> Transfers:
        """Return what carries exports; the caller closes it."""
        # Loaded here: other calls need no stream.
        from mnemosyned.client.transfer import Transfers  # noqa: PLC0415

        return Transfers(self._address)

    def events(self, *, after: int | None = None) -> Iterator[Event]:
        """Yield what happens in the daemon, as it happens, until it stops.

        `after` is the id of an event: those that followed it and are still kept come first. Raises
        `DaemonUnreachable` where the connection is lost, and `DaemonBusy` for too many readers.
        """
        # Loaded here: most programs only call.
        from mnemosyned.client.events import EventReader  # noqa: PLC0415

        reader = EventReader()
        while (
            not reader.ended_for_good
        ):  # a stream has a time limit; the next takes over
            reader = EventReader()
            yield from self._stream(reader, after)
            after = reader.last_id or after

    def _stream(self, reader: EventReader, after: int | None) -> Iterator[Event]:
        """Yield the events of one connection, to its end."""
        from mnemosyned.client.events import SILENCE_S, request_for  # noqa: PLC0415 the same

        try:
            with self._address.connect(self._timeout_s) as connection:
                connection.settimeout(SILENCE_S)
                connection.sendall(request_for(after, self._address.headers))
                while not reader.ended:
                    yield from reader.feed(connection.recv(RECEIVED_BYTES))
        except OSError as error:
            raise unreachable(error, self._address) from error

    def page(self, path: str) -> str:
        """The text of a page that is no verb, such as `/metrics`.

        Raises `DaemonUnreachable`, and `MnemosynedError` where there is no such page.
        """
        head = f"GET {path} HTTP/1.1\r\n".encode() + self._address.headers + b"\r\n"
        call = Call(data=head, timeout_s=self._timeout_s, repeatable=True)
        try:
            answer = self._answer(call)
        except OSError as error:
            raise unreachable(error, self._address) from error
        return text_of(answer, self._address)

    def _answer(self, call: Call) -> Answer:
        """Send a call over an idle connection, or over a new one where that fails."""
        if call.repeatable and (idle := self._idle.take()):
            with contextlib.suppress(ConnectionError):
                return self._exchange(idle, call)
        for _ in range(ATTEMPTS - 1):
            with contextlib.suppress(Unread):
                return self._exchange(self._address.connect(call.timeout_s), call)
        return self._exchange(self._address.connect(call.timeout_s), call)

    def _exchange(self, connection: socket.socket, call: Call) -> Answer:
        """One call and its answer; the connection is kept for the next, or closed."""
        try:
            connection.settimeout(call.timeout_s)
            answer = _exchange(
                connection, call.data, reset_is_unread=self._address.reset_is_unread
            )
        except BaseException:
            connection.close()
            raise
        if answer.stays_open:
            self._idle.put(connection)
        else:
            connection.close()
        return answer


def _exchange(
    connection: socket.socket, data: bytes, *, reset_is_unread: bool
) -> Answer:
    """Send a request and read its answer. Raises `Unread` where it may be sent again.

    A daemon that refuses a large body hangs up before its end; the reason can still be read. The
    kernel resets a connection that is closed before all that was sent to it was read.
    """
    sent = False
    with contextlib.suppress(BrokenPipeError, ConnectionResetError):
        connection.sendall(data)
        sent = True
    answer = Answer()
    try:
        while not answer.feed(connection.recv(RECEIVED_BYTES), sent=sent):
            pass
    except ConnectionResetError as error:
        raise answer.broken(sent=sent and not reset_is_unread) from error
    return answer
