"""Streams over a connection: live events, put together from bytes, and exports that come and go in parts."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing, contextmanager
from http.client import HTTPConnection, HTTPException, HTTPResponse
from urllib.parse import urlencode

import msgspec

from mnemosyned.client.address import Address
from mnemosyned.client.connection import (
    HEAD_BYTES_MAX,
    LONG_TIMEOUT_S,
    NoAnswer,
    error_of,
    refusal_of,
    unreachable,
)
from mnemosyned.errors import MnemosynedError, UnknownVerb
from mnemosyned.memory.exchange import Restored
from mnemosyned.verbs.exchange import EXPORT_PATH, RESTORE_PATH, Export
from mnemosyned.verbs.upkeep import Event, EventKind, decode_event

SILENCE_S = 60.0
"""The daemon sends a heartbeat every 15 s; a stream that is silent for longer is lost."""
EVENT_LINE_BYTES_MAX = 1 << 20
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
        if len(rest) > EVENT_LINE_BYTES_MAX:
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


EXPORT_LINE_BYTES_MAX = 64 << 20


class _Transfer(HTTPConnection):
    """HTTP over a connection of ours, which was checked."""

    def __init__(self, address: Address) -> None:
        super().__init__("localhost", timeout=LONG_TIMEOUT_S)
        self._address = address

    def connect(self) -> None:
        self.sock = self._address.connect(LONG_TIMEOUT_S)
        self.sock.settimeout(LONG_TIMEOUT_S)


class Transfers:
    """Carries exports from a daemon and back to one."""

    def __init__(self, address: Address) -> None:
        self._connection = _Transfer(address)
        self._address = address
        lines = address.headers.decode().splitlines()
        self._headers = dict(line.split(": ", 1) for line in lines)

    @contextmanager
    def export(self, request: Export) -> Iterator[Iterator[bytes]]:
        """Give the lines of an export while the block runs. Raises what the daemon raised."""
        query = urlencode(msgspec.to_builtins(request), doseq=True)
        with closing(self._connection):
            yield _lines(self._response("GET", f"{EXPORT_PATH}?{query}"))

    def restore(self, lines: bytes) -> Restored:
        """Have the daemon store lines of an export. Raises what the daemon raised."""
        response = self._response("POST", RESTORE_PATH, lines)
        return msgspec.json.decode(response.read(), type=Restored)

    def close(self) -> None:
        """Close the connection."""
        self._connection.close()

    def _response(
        self, method: str, path: str, body: bytes | None = None
    ) -> HTTPResponse:
        try:
            self._connection.request(method, path, body, self._headers)
            response = self._connection.getresponse()
        except (OSError, HTTPException) as error:
            self._connection.close()
            failure = error if isinstance(error, OSError) else OSError(str(error))
            raise unreachable(failure, self._address) from error
        if response.status != 200:
            raise self._refusal(response)
        return response

    def _refusal(self, response: HTTPResponse) -> MnemosynedError:
        error = refusal_of(response.status, response.read(), self._address)
        if isinstance(error, UnknownVerb) and not self._address.file:
            return UnknownVerb(
                f"{self._address} hands out no exports and takes none, as it serves no owners; run "
                "the command on its machine"
            )
        return error


def _lines(response: HTTPResponse) -> Iterator[bytes]:
    """Yield the lines; a connection that ends early is an export without a footer."""
    try:
        while line := response.readline(EXPORT_LINE_BYTES_MAX):
            yield line
    except (HTTPException, OSError):
        return
