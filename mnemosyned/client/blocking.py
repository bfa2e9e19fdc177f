"""`Client`: every verb as a blocking method."""

from __future__ import annotations

from collections.abc import Iterator

from mnemosyned.client.connection import Connection
from mnemosyned.client.events import (
    LAST,
    SILENCE_S,
    EventReader,
    request_for,
)
from mnemosyned.client.messages import RECEIVED_BYTES, unreachable
from mnemosyned.verbs.events import Event
from mnemosyned.verbs.facade import Verbs


class Client(Connection, Verbs):
    """Speaks to a running daemon; safe to use from several threads.

    `Client()` uses the daemon's socket; `Client(url="http://127.0.0.1:7464", token=…)` its TCP port.

    A request on a lost connection is repeated if that cannot do its work twice: reads, `remember`,
    whose memories get their id here, and `compact`, which finds what it stored before.
    """

    def events(self, *, after: int | None = None) -> Iterator[Event]:
        """Yield what happens in the daemon, as it happens, until it stops.

        `after` is the id of an event: those that followed it and are still kept come first. Raises
        `DaemonUnreachable` where the connection is lost, and `DaemonBusy` for too many readers.
        """
        goes_on = True
        while goes_on:  # a stream has a time limit; the next one takes over
            reader = EventReader()
            for event in self._stream(reader, after):
                goes_on = event.kind not in LAST
                yield event
            after = reader.last_id or after

    def _stream(self, reader: EventReader, after: int | None) -> Iterator[Event]:
        """Yield the events of one connection, to its end."""
        try:
            with self._connect(self._timeout_s) as connection:
                connection.settimeout(SILENCE_S)
                connection.sendall(request_for(after, self._address.headers))
                while not reader.ended:
                    yield from reader.feed(connection.recv(RECEIVED_BYTES))
        except OSError as error:
            raise unreachable(error, self._address) from error
