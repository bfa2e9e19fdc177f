"""`mnem mcp`: carries a client's lines to the daemon and its answers back, and ends with the client.

It is started once for each window of an agent, so it loads a few small modules of the standard
library and nothing of the memory, which is in the daemon.
"""

from __future__ import annotations

import os
import select
import socket
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import suppress

from mnemosyned.client.http import (
    EventBlocks,
    HttpResponse,
    NoAnswer,
    Unread,
    foreign_listener,
    receive_parts,
    send_request,
)
from mnemosyned.socket_path import URL_VARIABLE, socket_path

TYPE_CHECKING = False
"""Type checkers take it for true; `typing`, which has it too, takes 10 ms to load."""

if TYPE_CHECKING:
    from mnemosyned.client.remote import RemoteDaemon


ACCEPTED, UNAUTHORIZED, NOT_FOUND = 202, 401, 404
IDLE_MAX = 2
"""Idle connections kept: each counts against the daemon's limit."""
ATTEMPTS = 4
"""Attempts to send a message that the daemon hung up on before it had read it."""
RESTART_S = 10.0
"""Time for a daemon that was there before to come back; after a wait in vain calls fail at once."""
RETRY_S = 0.05
HUNG_UP = (
    "the daemon hung up before it answered; look whether it was done, then try again"
)


class DaemonLost(Exception):
    """No daemon answers; the message says why."""


class Answer:
    """One answer of the daemon, received while its messages are read."""

    def __init__(self, connection: Connection, response: HttpResponse) -> None:
        self._connection = connection
        self._response = response
        self.headers = response.headers

    @property
    def is_unauthorized(self) -> bool:
        """True if the daemon refused the token."""
        return self._response.status == UNAUTHORIZED

    @property
    def is_last(self) -> bool:
        """True if the daemon hangs up after this answer."""
        return not self._response.stays_open

    def messages(self) -> Iterator[bytes]:
        """Yield each message as it comes. Raises `DaemonLost` if they break off."""
        response = self._response
        parts = receive_parts(self._connection.socket, response)
        try:
            if self.headers.get("content-type", "").startswith("text/event-stream"):
                blocks = EventBlocks(bytes_max=LINE_BYTES_MAX)
                for part in parts:
                    yield from blocks.feed(part)
                return
            body = b"".join(parts)
        except NoAnswer as error:
            raise DaemonLost("the daemon hung up within its answer") from error
        if body.startswith((b'{"jsonrpc"', b"[")):
            yield body
        elif response.status == NOT_FOUND:
            raise DaemonLost(
                "the daemon that runs is older than this program; restart it"
            )
        elif response.status != ACCEPTED or body:
            words = body[:500].decode("utf-8", "replace")
            raise DaemonLost(f"the daemon answered {response.status}: {words}")


class Endpoint:
    """The way to a daemon; `str` shows it to people."""

    reset_is_unread = False
    """Whether a reset proves that the daemon had not read the message."""
    fields = ""
    """The fields that a head needs there."""

    def open(self) -> socket.socket:
        """Return a new connection.

        Raises `OSError`, and `DaemonLost` where it helps nobody to wait.
        """
        raise NotImplementedError

    def lost(self, error: OSError) -> str:
        """Say that no daemon answers."""
        raise NotImplementedError

    def refused(self) -> str:
        """Say that the daemon does not take this caller."""
        return f"the daemon on {self} refuses this caller"


class SocketEndpoint(Endpoint):
    """The way to a daemon's Unix socket."""

    reset_is_unread = True  # the kernel does it then, and nobody else is on the way
    fields = "Host: localhost\r\n"

    def __init__(self, path: str) -> None:
        self._path = path

    def __str__(self) -> str:
        return self._path

    def open(self) -> socket.socket:
        connection = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        try:
            connection.connect(self._path)
            uid = foreign_listener(connection, self._path)
        except BaseException:
            connection.close()
            raise
        if uid is not None:
            connection.close()
            raise DaemonLost(
                f"user {uid} listens on {self._path}, not you: nothing was sent"
            )
        return connection

    def lost(self, error: OSError) -> str:
        return (
            f"no daemon answers on {self._path} ({error.strerror or error}). "
            "Start it with `mnem start`"
        )


class Connection:
    """A connection to the daemon."""

    def __init__(self, way: Endpoint) -> None:
        self.socket = way.open()
        self._reset_is_unread = way.reset_is_unread

    @property
    def is_open(self) -> bool:
        """Whether the daemon has neither closed it nor sent unexpected bytes."""
        ready = select.poll()
        ready.register(self.socket, select.POLLIN)
        pending = getattr(self.socket, "pending", None)  # of TLS: what is read already
        return not ready.poll(0) and not (pending and pending())

    def post(self, request: bytes) -> Answer:
        """Send a message and receive the head of its answer. Raises `Unread` and `DaemonLost`."""
        try:
            response = send_request(
                self.socket, request, reset_is_unread=self._reset_is_unread
            )
        except NoAnswer as error:
            raise DaemonLost(HUNG_UP) from error
        return Answer(self, response)

    def cut(self) -> None:
        """Wake whoever reads; the daemon sees that nobody waits any more."""
        with suppress(OSError):  # that of TLS takes apart what the reader reads with
            socket.socket.shutdown(self.socket, socket.SHUT_RDWR)

    def close(self) -> None:
        """Hang up."""
        self.socket.close()


class Daemon:
    """The daemon; safe to use from several threads."""

    def __init__(self, way: Endpoint) -> None:
        self._way = way
        self._idle: list[Connection] = []
        self._was_met = False

    def post(
        self,
        headers: dict[str, str],
        body: bytes,
        *,
        began: Callable[[Connection], None],
    ) -> tuple[Connection, Answer]:
        """Post a message to `/mcp`; `began` is told by which connection. Raises `DaemonLost`."""
        fields = "".join(f"{name}: {value}\r\n" for name, value in headers.items())
        head = (
            f"POST /mcp HTTP/1.1\r\n{self._way.fields}Content-Type: application/json\r\n"
            "Accept: application/json, text/event-stream\r\n"
            f"{fields}Content-Length: {len(body)}\r\n\r\n"
        ).encode("latin-1")
        for _ in range(ATTEMPTS):
            connection = self._connection()
            began(connection)
            try:
                answer = connection.post(head + body)
            except Unread:
                connection.close()
                continue
            except (DaemonLost, OSError) as error:
                connection.close()
                raise DaemonLost(str(error)) from error
            if answer.is_unauthorized:
                connection.close()
                raise DaemonLost(self._way.refused())
            self._was_met = True
            return connection, answer
        raise DaemonLost(f"the daemon on {self._way} hangs up on every message")

    def give_back(self, connection: Connection) -> None:
        """Keep a connection for the next message, or close it."""
        if len(self._idle) < IDLE_MAX:
            self._idle.append(connection)
        else:
            connection.close()

    def _connection(self) -> Connection:
        while True:  # ends with the last idle one
            try:
                connection = self._idle.pop()
            except IndexError:
                return self._connected()
            if connection.is_open:
                return connection
            connection.close()

    def _connected(self) -> Connection:
        """A new connection; a daemon that was there before is given time to start again."""
        deadline = time.monotonic() + RESTART_S * self._was_met
        while True:  # ends at the deadline
            try:
                return Connection(self._way)
            except OSError as error:
                if time.monotonic() >= deadline:
                    self._was_met = False
                    raise DaemonLost(self._way.lost(error)) from error
            time.sleep(RETRY_S)


LINE_BYTES_MAX = 64 << 20
"""Bytes of a message; the daemon has a lower limit of its own."""
READ_BYTES = 1 << 16
IN_FLIGHT_MAX = 16
"""Messages answered at a time; the next one waits to be read."""
PARENT_CHECK_S = 2.0
DRAIN_S = 5.0
"""Time for running calls once the client has closed its side."""
ROOTS_ID = b'"mnemosyne-roots"'
ASK_ROOTS = b'{"jsonrpc":"2.0","id":' + ROOTS_ID + b',"method":"roots/list"}'
TELLS_ROOTS = (b'"notifications/initialized"', b'"notifications/roots/list_changed"')
TOO_LONG = (
    b'{"jsonrpc":"2.0","id":null,"error":{"code":-32600,'
    b'"message":"a message is longer than 64 MiB; split it"}}'
)


class Call:
    """A message that is being answered."""

    def __init__(self, line: bytes) -> None:
        self.line = line
        self.is_cancelled = False
        self._connection: Connection | None = None
        self._changing = threading.Lock()

    def hold(self, connection: Connection | None) -> None:
        """Take the connection that its answer comes by; None once it is another's."""
        with self._changing:
            self._connection = connection

    def cancel(self) -> None:
        """Answer no more, and let the daemon know."""
        self.is_cancelled = True
        with self._changing:
            if self._connection:
                self._connection.cut()


class Pump:
    """Lines in, lines out."""

    def __init__(self, daemon: Daemon, origin: dict[str, str]) -> None:
        self._daemon = daemon
        self._origin = origin
        self._client = ""
        self._wants_roots = False
        self._output = threading.Lock()
        self._places = threading.Semaphore(IN_FLIGHT_MAX)
        self._calls: dict[Call, threading.Thread] = {}

    def run(self) -> None:
        """Carry lines until standard input ends or the parent process is gone."""
        for line in lines(0, parent=os.getppid()):
            if line is None:
                self._write(TOO_LONG)
            elif line.strip():
                self._take(line)
        deadline = time.monotonic() + DRAIN_S
        for thread in list(self._calls.values()):
            thread.join(max(0.0, deadline - time.monotonic()))

    def _take(self, line: bytes) -> None:
        if ROOTS_ID in line and b'"method"' not in line:
            self._origin["directory"] = first_root(line) or self._origin["directory"]
            return
        if b'"notifications/cancelled"' in line:
            self._cancel(line)
            return
        if self._wants_roots and any(word in line for word in TELLS_ROOTS):
            self._write(ASK_ROOTS)
        self._places.acquire()
        call = Call(line)
        thread = threading.Thread(target=self._carry, args=(call,), daemon=True)
        self._calls[call] = thread
        thread.start()

    def _cancel(self, line: bytes) -> None:
        """Stop the call that a notification names; its answer is no longer wanted."""
        id = _member(line, "params", "requestId")
        for call in list(self._calls):
            if id is not None and _member(call.line, "id") == id:
                call.cancel()

    def _carry(self, call: Call) -> None:
        try:
            self._relay(call)
        except (DaemonLost, OSError, ValueError) as error:
            if not call.is_cancelled:
                self._answer_alone(call.line, str(error))
        finally:
            del self._calls[call]
            self._places.release()

    def _relay(self, call: Call) -> None:
        """Hand a message to the daemon, and pass its answer on. Raises `DaemonLost`."""
        connection, answer = self._daemon.post(
            self._headers(), call.line, began=call.hold
        )
        try:
            self._note(answer.headers)
            for message in answer.messages():
                if not call.is_cancelled:
                    self._write(message)
        except BaseException:
            connection.close()
            raise
        self._finish(connection, answer, call)

    def _finish(self, connection: Connection, answer: Answer, call: Call) -> None:
        call.hold(None)
        if answer.is_last or call.is_cancelled:
            connection.close()
        else:
            self._daemon.give_back(connection)

    def _headers(self) -> dict[str, str]:
        return {
            "Mnemosyne-Origin": query_string(self._origin),
            "Mnemosyne-Client": self._client,
        }

    def _note(self, headers: dict[str, str]) -> None:
        """Keep what the handshake told, for the messages after it."""
        self._client = headers.get("mnemosyne-client", self._client)
        if headers.get("mnemosyne-wants") == "roots":
            self._wants_roots = True

    def _answer_alone(self, line: bytes, reason: str) -> None:
        """Answer without the daemon: lists as ever, and what needs it with what to do."""
        try:
            # Loaded here: it takes longer to load than all else, and only this needs it.
            from mnemosyned.agents.mcp.server import answer_alone  # noqa: PLC0415

            message, headers = answer_alone(line, self._headers(), reason)
        except Exception as error:  # noqa: BLE001 a client waits for an answer, whatever it is
            self._write(failure(line, f"{reason}; {error!r}"))
            return
        self._note(headers)
        self._write(message)

    def _write(self, message: bytes) -> None:
        if not message:
            return
        data = memoryview(message.rstrip(b"\r\n") + b"\n")
        with self._output:
            try:
                while data:  # ends with the message
                    data = data[os.write(1, data) :]
            except OSError:
                os._exit(0)  # nobody reads


def lines(
    descriptor: int, *, parent: int, bytes_max: int = LINE_BYTES_MAX
) -> Iterator[bytes | None]:
    """Yield each line, None for one that is too long; end with the input, or with the parent."""
    poll = select.poll()
    poll.register(descriptor, select.POLLIN)
    buffer = bytearray()
    is_skipping = False
    while True:  # ends with the input, or with the parent
        if not poll.poll(PARENT_CHECK_S * 1000):
            if os.getppid() != parent:
                os._exit(0)
            continue
        data = os.read(descriptor, READ_BYTES)
        buffer += data
        if not data:
            break
        if b"\n" in data:
            *whole, rest = bytes(buffer).split(b"\n")
            yield from whole[is_skipping:]
            is_skipping, buffer = False, bytearray(rest)
        elif is_skipping:
            buffer.clear()
        elif len(buffer) > bytes_max:
            yield None
            is_skipping = True
            buffer.clear()
    if buffer and not is_skipping:
        yield bytes(buffer)


def origin_here() -> dict[str, str]:
    """Return the facts that this process knows of the client that started it."""
    try:
        directory = os.getcwd()  # noqa: PTH109 `pathlib` takes 10 ms to load
    except OSError:
        directory = ""
    day = "{}-{:02}-{:02}".format(*time.localtime())
    return {
        "directory": directory,
        "life": f"{day}-{os.urandom(6).hex()}",
        "project": os.environ.get("MNEMOSYNE_PROJECT", ""),
        "claude_session": os.environ.get("CLAUDE_CODE_SESSION_ID", ""),
        "claude_directory": os.environ.get("CLAUDE_PROJECT_DIR", ""),
    }


def query_string(words: dict[str, str]) -> str:
    """Words as a query string; `urllib` takes too long to load."""
    return "&".join(f"{name}={_quoted(value)}" for name, value in words.items())


def _quoted(value: str) -> str:
    plain = b"-./_~"
    return "".join(
        chr(byte)
        if byte in plain or (chr(byte).isalnum() and byte < 128)
        else f"%{byte:02X}"
        for byte in os.fsencode(value)
    )


def first_root(line: bytes) -> str:
    """The first directory in a client's answer to `roots/list`; empty where there is none."""
    roots = _member(line, "result", "roots")
    uris = [root.get("uri") for root in roots] if isinstance(roots, list) else []
    for uri in uris:
        if isinstance(uri, str) and uri.startswith("file://"):
            # Loaded here: few clients have roots and no working directory.
            from urllib.parse import unquote, urlsplit  # noqa: PLC0415

            return unquote(urlsplit(uri).path)
    return ""


def failure(line: bytes, reason: str) -> bytes:
    """An error of the protocol; nothing for a notification."""
    # Loaded here: most messages are passed on unread.
    import json  # noqa: PLC0415

    id = _member(line, "id")
    if not isinstance(id, str | int):
        return b""
    error = {"code": -32603, "message": reason}
    return json.dumps({"jsonrpc": "2.0", "id": id, "error": error}).encode()


def _member(line: bytes, *names: str) -> object:
    """A value inside a message; None where it has none."""
    # Loaded here: most messages are passed on unread.
    import json  # noqa: PLC0415

    try:
        value = json.loads(line)
        for name in names:
            value = value[name]
    except (ValueError, TypeError, KeyError, RecursionError):
        return None
    return value


def _way(socket: str | None, remote: RemoteDaemon | None) -> Endpoint:
    if remote is None and (socket or not os.environ.get(URL_VARIABLE)):
        return SocketEndpoint(socket_path(socket))
    # Loaded here: a daemon on this machine needs nothing of it.
    from mnemosyned.agents.mcp.pump_remote import (  # noqa: PLC0415
        remote_endpoint as remote_way,
    )

    return remote_way(remote)


def run(socket: str | None = None, remote: RemoteDaemon | None = None) -> None:
    """Serve one client, then end the process.

    The daemon is the one given, or the one that the environment names.
    """
    try:
        Pump(Daemon(_way(socket, remote)), origin_here()).run()
    except KeyboardInterrupt:
        os._exit(130)
    os._exit(0)  # a call that still runs is nobody's
