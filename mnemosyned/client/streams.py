"""Streams over a connection: live events, and exports that come and go in parts."""

from __future__ import annotations

import hashlib
import socket
import time
from collections.abc import Iterable, Iterator
from contextlib import closing, contextmanager, suppress
from urllib.parse import urlencode

import msgspec

from mnemosyned.client import connection, http
from mnemosyned.client.address import Address
from mnemosyned.errors import LimitReached, MnemosynedError, UnknownVerb
from mnemosyned.memory.exchange import RestoreReport
from mnemosyned.verbs import exchange, upkeep
from mnemosyned.verbs.request import decoder_of

SILENCE_S = 60.0
"""The daemon sends a heartbeat every 15 s; a stream that is silent for longer is lost."""
LAST = (upkeep.EventKind.DROPPED, upkeep.EventKind.STOPPING)
"""Kinds of events after which a stream ends for good."""
EXPORT_LINE_BYTES_MAX = 64 << 20


def events_request(after: int | None, headers: bytes) -> bytes:
    """Return the HTTP request for events after the id `after`, or for new ones alone."""
    query = b"" if after is None else b"?after=%d" % after
    return b"GET /v1/events%s HTTP/1.1\r\n%sAccept: text/event-stream\r\n\r\n" % (
        query,
        headers,
    )


class EventReader:
    """Decodes the events of a stream from received bytes; `address` is named in errors."""

    def __init__(self, address: Address) -> None:
        self._address = address
        self.ended_for_good = False
        """True if an event said that the daemon stops or drops the reader; others may follow it."""
        self.last_id: int | None = None
        self._response = http.HttpResponse()
        self._blocks = http.EventBlocks(bytes_max=1 << 20)

    @property
    def is_open(self) -> bool:
        """Whether the daemon has accepted the reader, so that no later event is missed."""
        return self._response.status == 200

    @property
    def is_at_end(self) -> bool:
        """Whether the response is complete, so that the stream was not cut off."""
        return self._response.is_complete

    def feed(self, data: bytes) -> Iterator[upkeep.Event]:
        """Add received bytes, and yield each event that is complete; skip unknown kinds.

        Raises the daemon's refusal, and `NoAnswer` for empty `data`, the end of the connection.
        """
        if not data:
            raise http.NoAnswer("the stream of events was cut off")
        response = self._response
        response.feed(data)
        if not response.status:
            return
        if response.status != 200:
            if response.is_complete:
                raise connection.refusal_of(response, response.body, self._address)
            return
        for block in self._blocks.feed(response.take_body()):
            try:
                event = upkeep.decode_event(block)
            except ValueError:
                continue  # of a kind that this client does not know
            self.last_id = event.id or self.last_id
            self.ended_for_good |= event.kind in LAST
            yield event


class Transfers:
    """A connection that exports memories from a daemon, or restores exported ones."""

    def __init__(self, address: Address) -> None:
        self._address = address
        self._connection: socket.socket | None = None

    @contextmanager
    def export(self, request: exchange.Export) -> Iterator[Iterator[bytes]]:
        """Start an export, and yield an iterator of its lines, to be read in the block.

        Raises the daemon's error; the iterator raises `MnemosynedError` if the export is not whole.
        """
        query = urlencode(msgspec.to_builtins(request), doseq=True)
        with closing(self):
            _, parts = self._send_request("GET", f"{exchange.EXPORT_PATH}?{query}")
            yield read_export(parts)

    def restore(self, lines: bytes, import_id: str | None = None) -> RestoreReport:
        """Send lines of an export to be stored, and return the daemon's report.

        `import_id` names the import for `undo`. If a limit of the owner refuses the lines, send them
        again after a pause, for up to an hour. Raises the daemon's error.
        """
        ends = time.monotonic() + connection.LONG_TIMEOUT_S
        while True:  # ends with the time limit
            try:
                query = f"?{urlencode({'import_id': import_id})}" if import_id else ""
                path = f"{exchange.RESTORE_PATH}{query}"
                response, parts = self._send_request("POST", path, lines)
                break
            except LimitReached as error:
                if time.monotonic() + (error.retry_after_s or 1) > ends:
                    raise
                time.sleep(error.retry_after_s or 1)
        try:
            restored = decoder_of(RestoreReport).decode(b"".join(parts))
        except OSError as error:
            self.close()
            raise connection.unreachable_error(error, self._address) from error
        if not response.stays_open:
            self.close()
        return restored

    def close(self) -> None:
        """Close the connection."""
        if self._connection:
            self._connection.close()
            self._connection = None

    def _send_request(
        self, method: str, path: str, body: bytes = b""
    ) -> tuple[http.HttpResponse, Iterator[bytes]]:
        """Send a request; return the response and the parts of its body. Raises the daemon's error."""
        fields = self._address.headers.decode()
        head = (
            f"{method} {path} HTTP/1.1\r\n{fields}Content-Length: {len(body)}\r\n\r\n"
        )
        try:
            if self._connection is None:
                self._connection = self._address.connect(connection.LONG_TIMEOUT_S)
                self._connection.settimeout(connection.LONG_TIMEOUT_S)
            response = http.send_request(self._connection, head.encode() + body)
            parts = http.receive_parts(self._connection, response)
            if response.status == 200:
                return response, parts
            error = connection.refusal_of(response, b"".join(parts), self._address)
        except OSError as fault:
            self.close()
            raise connection.unreachable_error(fault, self._address) from fault
        if not response.stays_open:
            self.close()
        if isinstance(error, UnknownVerb) and not self._address.file:
            raise UnknownVerb(
                f"{self._address} hands out no exports and takes none, as it serves no owners; run "
                "the command on its machine"
            )
        raise error


def read_export(parts: Iterable[bytes]) -> Iterator[bytes]:
    """Yield the lines of an export, with line breaks, from the parts of a response body.

    After the last line, raises `MnemosynedError` if the export is not whole or was changed.
    """
    pending, searched = bytearray(), 0
    last, digest = b"", hashlib.sha256()
    with suppress(OSError):  # its footer is missing then
        for part in parts:
            pending += part
            begin = 0
            while (end := pending.find(b"\n", max(begin, searched))) >= 0:
                digest.update(last)
                last = bytes(pending[begin : end + 1])
                yield last
                begin = end + 1
            del pending[:begin]
            searched = len(pending)
            if searched > EXPORT_LINE_BYTES_MAX:
                break
    kind = exchange.parse_line_kind(last).record if last and not pending else ""
    if kind == exchange.CUT_OFF:
        reason = decoder_of(exchange.CutOff).decode(last).reason
        raise MnemosynedError(f"the daemon ended the export early: {reason}; try again")
    if kind != exchange.FOOTER:
        raise MnemosynedError(
            "the export ended before its last line; see the daemon's log, then try again"
        )
    if decoder_of(exchange.Footer).decode(last).sha256 != digest.hexdigest():
        raise MnemosynedError("the export did not arrive as it was sent; try again")
