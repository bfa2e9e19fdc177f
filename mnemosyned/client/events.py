"""Live events as a client reads them: the stream of `GET /v1/events`, put together from bytes."""

from __future__ import annotations

from collections.abc import Iterator

from mnemosyned.client.messages import HEAD_BYTES_MAX, NoAnswer, error_of
from mnemosyned.verbs.streams.events import Event, EventKind, decode_event

SILENCE_S = 60.0
"""The daemon sends a heartbeat every 15 s; a stream that is silent for longer is lost."""
LINE_BYTES_MAX = 1 << 20
LAST = (EventKind.DROPPED, EventKind.STOPPING)
"""Kinds of events after which a stream ends for good."""
_BLANK = b"\r\n\r\n"


def request_for(after: int | None, headers: bytes) -> bytes:
    """The request for a stream, from after an event on."""
    query = b"" if after is None else b"?after=%d" % after
    return b"GET /v1/events%s HTTP/1.1\r\n%sAccept: text/event-stream\r\n\r\n" % (
        query,
        headers,
    )


class EventReader:
    """Events put together from what a socket brings."""

    def __init__(self) -> None:
        self.ended = False
        """Whether the stream came to its end, and was not cut off."""
        self.ended_for_good = False
        """Whether an event said that the daemon stops or drops the reader; others may follow it."""
        self.last_id: int | None = None
        self._data = bytearray()
        self._in_body = False
        self._text = bytearray()
        """What of the body is no whole event yet."""

    def feed(self, data: bytes) -> Iterator[Event]:
        """Add what has come, and yield the events that are whole now.

        Raises `NoAnswer` at the end of the connection, and what the daemon refused the stream with.
        """
        if not data:
            raise NoAnswer("the stream of events was cut off")
        self._data += data
        if not self._in_body and not self._read_head():
            return
        self._read_chunks()
        *whole, rest = bytes(self._text).split(b"\n\n")
        self._text = bytearray(rest)
        if len(rest) > LINE_BYTES_MAX:
            raise NoAnswer("an event of the stream does not end")
        for block in whole:
            if event := _event(block):
                self.last_id = event.id or self.last_id
                self.ended_for_good |= event.kind in LAST
                yield event

    def _read_head(self) -> bool:
        end = self._data.find(_BLANK, 0, HEAD_BYTES_MAX)
        if end < 0:
            if len(self._data) >= HEAD_BYTES_MAX:
                raise NoAnswer("the head of the answer does not end")
            return False
        head = bytes(self._data[:end])
        first = head.split(b"\r\n", 1)[0].split(b" ")
        if len(first) < 2 or not first[1].isdigit():
            raise NoAnswer(f"this is no answer of a daemon: {head[:100]!r}")
        if first[1] != b"200":
            raise error_of(int(first[1]), bytes(self._data[end + len(_BLANK) :]))
        del self._data[: end + len(_BLANK)]
        self._in_body = True
        return True

    def _read_chunks(self) -> None:
        """Move whole chunks to the text."""
        while (end := self._data.find(b"\r\n")) >= 0:
            try:
                size = int(self._data[:end], 16)
            except ValueError as error:
                raise NoAnswer("the stream of events is garbled") from error
            stop = end + 2 + size
            if len(self._data) < stop + 2:
                return
            self._text += self._data[end + 2 : stop]
            del self._data[: stop + 2]
            if not size:
                self.ended = True
                return


def _event(block: bytes) -> Event | None:
    """The event of a block; None for a heartbeat, and for a kind that this client does not know."""
    for line in block.split(b"\n"):
        if line.startswith(b"data:"):
            try:
                return decode_event(line[5:])
            except ValueError:
                return None
    return None
