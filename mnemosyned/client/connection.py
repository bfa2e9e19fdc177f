"""A blocking connection to a daemon, and calls, answers and errors as bytes."""

from __future__ import annotations

import contextlib
import os
import socket
import time
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, Self, cast
from weakref import WeakKeyDictionary

import msgspec

from mnemosyned import errors
from mnemosyned.client import http
from mnemosyned.client.address import Address, IdleConnections, address_of
from mnemosyned.ids import new_id
from mnemosyned.paths import SOCKET_PATH_BYTES_MAX, path_fault, shown_path
from mnemosyned.verbs.memories import Remember, RememberMany
from mnemosyned.verbs.request import R, Request, encode, parse_result

if TYPE_CHECKING:
    from mnemosyned.client.streams import Transfers
    from mnemosyned.verbs.upkeep import Event

TIMEOUT_S = 60.0
LONG_TIMEOUT_S = 3_600.0
TIMEOUT_MAX_S = 365 * 86_400
"""Longest wait: more than anybody needs, and short enough for a socket."""
ATTEMPTS = 5
"""Maximum attempts to send a request if the daemon closes the connection before reading it."""


def check_timeout(timeout_s: float) -> float:
    """Return the time limit unchanged. Raises `ValueError` unless it is above 0 and at most a year."""
    if not 0 < timeout_s <= TIMEOUT_MAX_S:
        raise ValueError(
            f"timeout_s must be a number of seconds above 0, at most {TIMEOUT_MAX_S:,} (a year); "
            f"it is {timeout_s}"
        )
    return timeout_s


class PreparedCall(msgspec.Struct, frozen=True):
    """A request as bytes, with its time limit."""

    data: bytes
    """Head and body."""
    timeout_s: float
    repeatable: bool
    """True if a second sending cannot do the work twice."""


def make_call(
    request: Request[Any], *, timeout_s: float, headers: bytes
) -> PreparedCall:
    """Return a request as HTTP bytes, with its time limit and whether it may be sent twice.

    A memory to store gets an id. `headers` are whole header lines. Raises `InvalidRequest` for values
    that have no JSON.
    """
    body = encode(prepare_request(request))
    head = (
        b"POST /v1/%s HTTP/1.1\r\n%sContent-Type: application/json\r\n"
        b"Content-Length: %d\r\n\r\n"
    )
    name = request.verb_name().encode()
    return PreparedCall(
        data=head % (name, headers, len(body)) + body,
        timeout_s=LONG_TIMEOUT_S if request.takes_long else timeout_s,
        repeatable=request.is_preview or not request.writes or request.repeatable,
    )


def prepare_request(request: Request[R]) -> Request[R]:
    """Return a request with an id in each memory to store, so that a repeat stores nothing twice."""
    if isinstance(request, Remember):
        id = new_id(datetime.now(UTC)) if request.id is None else request.id
        changes: dict[str, Any] = {"id": id}
    elif isinstance(request, RememberMany) and isinstance(request.memories, list):
        changes = {"memories": list(map(_with_id, request.memories))}
    else:
        return request
    return cast("Request[R]", msgspec.structs.replace(request, **changes))


def _with_id(memory: object) -> object:
    """Return a batch's memory, a `Remember` or a dictionary, with an id; another value unchanged."""
    if isinstance(memory, Remember):
        return prepare_request(memory)
    if isinstance(memory, dict):
        id = memory.get("id")
        return {**memory, "id": new_id(datetime.now(UTC)) if id is None else id}
    return memory


def result_of(request: Request[R], answer: http.HttpResponse, address: Address) -> R:
    """Return the result in `answer`, the daemon's response to a request. Raises the daemon's error."""
    if answer.status == 200:
        return parse_result(type(request), answer.body)
    raise refusal_of(answer, answer.body, address)


def refusal_of(
    answer: http.HttpResponse, body: bytes, address: Address
) -> errors.MnemosynedError:
    """Return the error in the JSON of a refusal; for any other `body`, an error that quotes it.

    An error about a token names the token's origin; an error about a limit has the pause to make.
    """
    try:
        found = msgspec.json.decode(body)["error"]
        kind = errors.error_classes_by_code().get(found["code"], errors.MnemosynedError)
        error = kind(found["message"], field=found.get("field"))
    except (msgspec.DecodeError, KeyError, TypeError):
        error = errors.MnemosynedError(
            f"the daemon answered {answer.status}: {body[:200]!r}"
        )
    if isinstance(error, errors.Unauthorized):
        error = errors.Unauthorized(address.refusal_message(error.message))
    error.retry_after_s = answer.limited_s or error.retry_after_s
    return error


def unreachable_error(error: OSError, address: Address) -> errors.MnemosynedError:
    """Return the error for a failed connection to an address, with advice on what to do next."""
    if isinstance(error, errors.RemoteFault):
        kind = errors.ForeignDaemon if error.is_foreign else errors.DaemonUnreachable
        return kind(error.words)
    if isinstance(error, http.SpeaksTls):
        return errors.DaemonUnreachable(
            f"the daemon on {address} speaks TLS: write https:// in place of http://"
        )
    if isinstance(error, FileNotFoundError | ConnectionRefusedError | PermissionError):
        return errors.DaemonUnreachable(
            f"no daemon answers on {address} ({error.strerror}). {address.remedy}"
        )
    if isinstance(error, TimeoutError | BlockingIOError):  # the backlog is full
        return errors.DaemonUnreachable(
            f"the daemon on {address}{address.listener} did not answer in time; "
            f"{address.explanation}"
        )
    file = address.file
    if file and (fault := path_fault(file, bytes_max=SOCKET_PATH_BYTES_MAX)):
        return errors.DaemonUnreachable(
            f"no daemon can answer on {shown_path(file)}: {fault}"
        )
    return errors.DaemonUnreachable(
        f"the daemon on {address} hung up ({error.strerror or error}); {address.explanation}, then try again"
    )


class Connection:
    """Carries requests to a running daemon, and sends lost ones again, as `Client` says.

    A request that reached a limit of its owner is sent again when it is free, within its time limit.
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
    ) -> None:
        """Make a client of the socket, of a URL with a token, or of the address in the environment.

        `ca` is the PEM file of the authority that signed the certificate of an https:// URL;
        without it the authorities that this machine knows apply. `owner` names whose memory is asked
        at a URL: a group's, or one's own without its groups. Raises `ValueError` for arguments
        that do not belong together, and for a time limit that is none.
        """
        self._set_up(address_of(socket, url, token, ca, owner), timeout_s)

    @classmethod
    def to(cls, address: Address, *, timeout_s: float = TIMEOUT_S) -> Self:
        """Return a client of the daemon at an address; `timeout_s` limits each call, in seconds."""
        client = cls.__new__(cls)
        client._set_up(address, timeout_s)  # noqa: SLF001 it is this class
        return client

    def _set_up(self, address: Address, timeout_s: float) -> None:
        """Store the daemon's address and the time limit of a call; connect nothing yet."""
        self._address = address
        self._timeout_s = check_timeout(timeout_s)
        self._idle = IdleConnections()
        self.on_pause: Callable[[errors.MnemosynedError], object] = lambda _: None
        """Called before a request waits for a limit, with the refusal."""
        self.memory_name = self._address.memory_name
        self._streams = WeakKeyDictionary[socket.socket, int]()
        """The connections of `events`, each with the process that opened it."""

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    @property
    def identity(self) -> str:
        """A secret text that names the daemon's memory: URL, token, owner; empty for a socket."""
        return self._address.identity

    def close(self) -> None:
        """Close the connections that no call uses, and end the iterators of `events` in other threads."""
        self._idle.close()
        for stream in list(self._streams):
            if self._streams.pop(stream, None) == os.getpid():  # not from before a fork
                with contextlib.suppress(OSError):
                    stream.shutdown(socket.SHUT_RDWR)

    def call(self, request: Request[R]) -> R:
        """Send a request and return its result. Raises the daemon's error, or `DaemonUnreachable`."""
        call = make_call(
            request, timeout_s=self._timeout_s, headers=self._address.headers
        )
        return result_of(request, self._send_call(call), self._address)

    def transfers(self) -> Transfers:
        """Return a connection for exports and restores; the caller closes it."""
        # Loaded here: other calls need no stream.
        from mnemosyned.client.streams import Transfers  # noqa: PLC0415

        return Transfers(self._address)

    def events(self, *, after: int | None = None) -> Iterator[Event]:
        """Return an iterator of the daemon's events from now on, until the daemon stops or the client closes.

        With `after`, the id of an event, later events that are still kept come first. A reader that is too slow
        is dropped; its last event says so. Raises `DaemonUnreachable` if the connection is lost, and
        `DaemonBusy` for too many readers; the iterator raises them too.
        """
        stream = self._read_streams(after)
        next(stream, None)  # nothing comes if the client is closed just now
        return (event for event in stream if event)

    def _read_streams(self, after: int | None) -> Iterator[Event | None]:
        """Yield events from one stream after another, and None first and whenever data has arrived."""
        # Loaded here: most programs only call.
        from mnemosyned.client.streams import SILENCE_S, EventReader, events_request  # noqa: PLC0415

        ended = False
        while not ended:  # a stream has a time limit; the next takes over
            reader = EventReader(self._address)
            try:
                with self._address.connect(self._timeout_s) as connection:
                    connection.settimeout(SILENCE_S)
                    connection.sendall(events_request(after, self._address.headers))
                    self._streams[connection] = os.getpid()
                    while not reader.is_at_end:
                        data = connection.recv(http.RECEIVED_BYTES)
                        if connection not in self._streams:  # as `close` was called
                            return
                        events = list(reader.feed(data))
                        if reader.is_open:
                            yield None
                        yield from events
            except OSError as error:
                raise unreachable_error(error, self._address) from error
            after = reader.last_id or after
            ended = reader.ended_for_good

    def page(self, path: str) -> str:
        """Return the text at a path. Raises `DaemonUnreachable`, and `MnemosynedError` if there is none."""
        head = f"GET {path} HTTP/1.1\r\n".encode() + self._address.headers + b"\r\n"
        call = PreparedCall(data=head, timeout_s=self._timeout_s, repeatable=True)
        answer = self._send_call(call)
        if answer.status != 200:
            raise refusal_of(answer, answer.body, self._address)
        return answer.body.decode()

    def _send_call(self, call: PreparedCall) -> http.HttpResponse:
        """Send a call, again after each pause for a limit; return the response. Raises `DaemonUnreachable`."""
        ends = time.monotonic() + call.timeout_s
        while True:  # ends with the time limit
            answer = self._send_once(call)
            pause_s = answer.limited_s
            if pause_s is None or time.monotonic() + pause_s > ends:
                return answer
            self.on_pause(refusal_of(answer, answer.body, self._address))
            time.sleep(pause_s)

    def _send_once(self, call: PreparedCall) -> http.HttpResponse:
        """Send a call, first over an idle connection if repeatable, and return the response.

        A request that was not read is sent again, `ATTEMPTS` times at most. Raises `DaemonUnreachable`.
        """
        try:
            if call.repeatable and (idle := self._idle.take()):
                with contextlib.suppress(ConnectionError):
                    return self._exchange_over(idle, call)
            for _ in range(ATTEMPTS - 1):
                with contextlib.suppress(http.Unread):
                    return self._exchange_over(
                        self._address.connect(call.timeout_s), call
                    )
            return self._exchange_over(self._address.connect(call.timeout_s), call)
        except OSError as error:
            raise unreachable_error(error, self._address) from error

    def _exchange_over(
        self, connection: socket.socket, call: PreparedCall
    ) -> http.HttpResponse:
        """Send a call over a connection, keep or close it, and return the whole response. Raises `OSError`."""
        with http.ClosedOnFailure(connection):
            connection.settimeout(call.timeout_s)
            answer = http.exchange(
                connection, call.data, reset_is_unread=self._address.reset_is_unread
            )
        if answer.stays_open:
            self._idle.put(connection)
        else:
            connection.close()
        return answer
