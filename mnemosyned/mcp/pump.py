"""`mnem mcp`: carries a client's lines to the daemon and its answers back, and ends with the client.

It is started once for each window of an agent, so it loads a few small modules of the standard
library and nothing of the memory, which is in the daemon.
"""

from __future__ import annotations

import os
import select
import threading
import time
from collections.abc import Iterator

from mnemosyned.mcp.pump_http import (
    Answer,
    Connection,
    Daemon,
    DaemonLost,
    SocketWay,
    Way,
)
from mnemosyned.socket_path import socket_path

TYPE_CHECKING = False
"""Type checkers take it for true; `typing`, which has it too, takes 10 ms to load."""

if TYPE_CHECKING:
    from mnemosyned.remote.daemon import RemoteDaemon

URL_VARIABLE = "MNEMOSYNE_URL"

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
            from mnemosyned.mcp.alone import answer_alone  # noqa: PLC0415

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


def _way(socket: str | None, remote: RemoteDaemon | None) -> Way:
    if remote is None and (socket or not os.environ.get(URL_VARIABLE)):
        return SocketWay(socket_path(socket))
    # Loaded here: a daemon on this machine needs nothing of it.
    from mnemosyned.mcp.pump_remote import remote_way  # noqa: PLC0415

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
