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

from mnemosyned.client import http
from mnemosyned.client.address import Address, IdleConnections, address_of
from mnemosyned.errors import ConfigInvalid, ForeignDaemon, InvalidRequest, RemoteFault
from mnemosyned.socket_path import working_directory

TYPE_CHECKING = False
"""Type checkers take it for true; `typing`, which has it too, takes 10 ms to load."""

if TYPE_CHECKING:
    from mnemosyned.client.remote import RemoteDaemon


ACCEPTED, UNAUTHORIZED, NOT_FOUND = 202, 401, 404
ATTEMPTS = 4
"""Maximum attempts to send a message if the daemon closes the connection before reading it."""
RESTART_S = 10.0
"""Seconds to wait for a daemon that answered before; after a vain wait, calls fail at once."""
RETRY_S = 0.05
LIMITED_MAX_S = 20.0
"""Maximum pause before a message that its owner's limits delay is sent again: agents wait a minute."""
HUNG_UP = (
    "the daemon hung up before it answered; look whether it was done, then try again"
)


REFUSED = "it is wrong, has expired or was revoked; ask who runs the daemon for another"


class DaemonLost(Exception):
    """No daemon answers; the message says why."""


def read_messages(
    connection: socket.socket, response: http.HttpResponse
) -> Iterator[bytes]:
    """Yield each protocol message in the daemon's answer as it arrives, as JSON.

    Raises `DaemonLost` if the connection breaks, or the answer contains no message.
    """
    parts = http.receive_parts(connection, response)
    try:
        if response.headers.get("content-type", "").startswith("text/event-stream"):
            blocks = http.EventBlocks(bytes_max=LINE_BYTES_MAX)
            for part in parts:
                yield from blocks.feed(part)
            return
        body = b"".join(parts)
    except http.NoAnswer as error:
        raise DaemonLost("the daemon hung up within its answer") from error
    if body.startswith((b'{"jsonrpc"', b"[")):
        yield body
    elif response.status == NOT_FOUND:
        raise DaemonLost("the daemon that runs is older than this program; restart it")
    elif response.status != ACCEPTED or body:
        words = body[:500].decode("utf-8", "replace")
        raise DaemonLost(f"the daemon answered {response.status}: {words}")


class PumpedDaemon:
    """The daemon; safe to use from several threads."""

    def __init__(self, address: Address | None, fault: str = "") -> None:
        """Take an address, or None and the fault with which every message is answered."""
        self._address = address
        self._fault = fault
        self.idle = IdleConnections()
        self._was_met = False
        self._projects: dict[str, str] = {}
        """Keys of projects on this machine, by directory."""

    def require_consent(self, origin: dict[str, str]) -> None:
        """Raise `DaemonLost` if this machine's settings keep the folder of `origin` from a server."""
        if self._address is None or self._address.file:
            return
        # Loaded here: a daemon on this machine needs nothing of it.
        from mnemosyned.agents.hooks import withheld  # noqa: PLC0415

        try:
            settings = withheld.own_settings()
            for folder in filter(
                None, (origin["claude_directory"], origin["directory"])
            ):
                if withheld.is_excluded(settings, [folder]):
                    raise DaemonLost(
                        f"{folder} is in hooks.exclude of this machine's settings, so nothing of it is "
                        f"sent to {self._address}"
                    )
        except ConfigInvalid as error:
            raise DaemonLost(error.message) from error

    def describe_origin(self, origin: dict[str, str]) -> dict[str, str]:
        """Return the facts in `origin`; for a daemon behind a URL, add the project found on this machine."""
        if self._address is None or self._address.file:
            return origin
        directory = origin["claude_directory"] or origin["directory"]
        if directory not in self._projects:
            # Loaded here: a daemon on this machine finds the project itself.
            from mnemosyned.importers.projects import project_of  # noqa: PLC0415

            project = project_of(directory, override=origin["project"])
            self._projects[directory] = project.key
        return {**origin, "project": self._projects[directory]}

    def post(
        self,
        headers: dict[str, str],
        body: bytes,
        *,
        on_connection: Callable[[socket.socket], None],
    ) -> tuple[socket.socket, http.HttpResponse]:
        """Post a message to `/mcp`; return the connection and the response, its head received.

        `on_connection` is called with each connection before it is used. A message that the daemon
        did not read is sent again, and after a pause a message refused for a rate limit. Raises `DaemonLost`.
        """
        address = self._address
        if address is None:
            raise DaemonLost(self._fault)
        fields = "".join(f"{name}: {value}\r\n" for name, value in headers.items())
        further = (
            "Content-Type: application/json\r\n"
            "Accept: application/json, text/event-stream\r\n"
            f"{fields}Content-Length: {len(body)}\r\n\r\n"
        ).encode("latin-1")
        limited_until = time.monotonic() + LIMITED_MAX_S
        unread = 0
        while unread < ATTEMPTS:  # a message that was read ends at `limited_until`
            connection = self.idle.take() or self._connect(address)
            with http.ClosedOnFailure(connection):
                on_connection(connection)
            request = b"POST /mcp HTTP/1.1\r\n" + address.headers + further + body
            try:
                response = http.send_request(
                    connection, request, reset_is_unread=address.reset_is_unread
                )
            except http.Unread:
                connection.close()
                unread += 1
                continue
            except OSError as error:
                connection.close()
                is_cut = isinstance(error, http.NoAnswer)
                raise DaemonLost(HUNG_UP if is_cut else str(error)) from error
            if response.status == UNAUTHORIZED:
                connection.close()
                raise DaemonLost(address.refusal_message(REFUSED))
            self._was_met = True
            pause_s = response.limited_s
            if pause_s is None or time.monotonic() + pause_s > limited_until:
                return connection, response
            connection.close()
            time.sleep(pause_s)
        raise DaemonLost(f"the daemon on {address} hangs up on every message")

    def _connect(self, address: Address) -> socket.socket:
        """Return a new connection to the daemon. Raises `DaemonLost`.

        A daemon that answered before may restart: connecting is tried for `RESTART_S` seconds.
        """
        deadline = time.monotonic() + RESTART_S * self._was_met
        while True:  # ends at the deadline
            try:
                connection = address.connect(10.0)
            except ForeignDaemon as error:
                raise DaemonLost(error.message) from error
            except OSError as error:
                is_foreign = isinstance(error, RemoteFault) and error.is_foreign
                if is_foreign or time.monotonic() >= deadline:
                    self._was_met = False
                    reason = error.strerror or error
                    lost = (
                        f"no daemon answers on {address} ({reason}). {address.remedy}"
                    )
                    words = error.words if isinstance(error, RemoteFault) else lost
                    raise DaemonLost(words) from error
            else:
                connection.settimeout(None)
                return connection
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


class PumpedCall:
    """A message that is being answered."""

    def __init__(self, line: bytes) -> None:
        self.line = line
        self.is_cancelled = False
        self._connection: socket.socket | None = None
        self._changing = threading.Lock()

    def hold(self, connection: socket.socket | None) -> None:
        """Set the connection that `cancel` shuts down, None for none. Raises `DaemonLost` if cancelled."""
        with self._changing:
            if self.is_cancelled and connection:
                raise DaemonLost("the call was cancelled")
            self._connection = connection

    def cancel(self) -> None:
        """Mark the call as cancelled, and shut its connection down, so that the daemon notices."""
        self.is_cancelled = True
        with self._changing:
            if self._connection:
                with suppress(
                    OSError
                ):  # TLS's own takes apart what the reader reads with
                    socket.socket.shutdown(self._connection, socket.SHUT_RDWR)


class McpPump:
    """Carries the lines of one client to the daemon and the answers back."""

    def __init__(self, daemon: PumpedDaemon, origin: dict[str, str]) -> None:
        self._daemon = daemon
        self._origin = origin
        self._client = ""
        self._wants_roots = False
        self._output = threading.Lock()
        self._places = threading.Semaphore(IN_FLIGHT_MAX)
        self._calls: dict[PumpedCall, threading.Thread] = {}

    def run(self) -> None:
        """Handle each line of standard input, until it ends or the parent process has ended.

        At the end of input, running calls have `DRAIN_S` seconds to end.
        """
        for line in read_lines(0, parent=os.getppid()):
            if line is None:
                self._write_line(TOO_LONG)
            elif line.strip():
                self._handle_line(line)
        deadline = time.monotonic() + DRAIN_S
        for thread in list(self._calls.values()):
            thread.join(max(0.0, deadline - time.monotonic()))

    def _handle_line(self, line: bytes) -> None:
        """Send one message to the daemon in a thread, waiting while `IN_FLIGHT_MAX` calls run.

        A cancellation and the client's roots are handled here, without the daemon.
        """
        if ROOTS_ID in line and b'"method"' not in line:
            self._origin["directory"] = first_root(line) or self._origin["directory"]
            return
        if b'"notifications/cancelled"' in line:
            id = _read_message_member(line, "params", "requestId")
            for call in list(self._calls):
                if id is not None and _read_message_member(call.line, "id") == id:
                    call.cancel()
            return
        if self._wants_roots and any(word in line for word in TELLS_ROOTS):
            self._write_line(ASK_ROOTS)
        self._places.acquire()
        call = PumpedCall(line)
        thread = threading.Thread(target=self._answer_call, args=(call,), daemon=True)
        self._calls[call] = thread
        thread.start()

    def _answer_call(self, call: PumpedCall) -> None:
        """Write the daemon's answer to a call, or our own if the daemon is lost; nothing if cancelled."""
        try:
            self._daemon.require_consent(self._origin)
            connection, response = self._daemon.post(
                self._make_request_headers(), call.line, on_connection=call.hold
            )
            with http.ClosedOnFailure(connection):
                self._save_headers(response.headers)
                for message in read_messages(connection, response):
                    if not call.is_cancelled:
                        self._write_line(message)
            call.hold(None)
            if response.stays_open and not call.is_cancelled:
                self._daemon.idle.put(connection)
            else:
                connection.close()
        except (DaemonLost, OSError, ValueError) as error:
            if not call.is_cancelled:
                self._answer_alone(call.line, str(error))
        finally:
            del self._calls[call]
            self._places.release()

    def _make_request_headers(self) -> dict[str, str]:
        """Return the request headers with the client's name and origin."""
        return {
            "Mnemosyne-Origin": query_string(
                self._daemon.describe_origin(self._origin)
            ),
            "Mnemosyne-Client": self._client,
        }

    def _save_headers(self, headers: dict[str, str]) -> None:
        """Save the client's name, and whether the daemon wants its roots, from an answer's headers."""
        self._client = headers.get("mnemosyne-client", self._client)
        if headers.get("mnemosyne-wants") == "roots":
            self._wants_roots = True

    def _answer_alone(self, line: bytes, reason: str) -> None:
        """Write an answer without the daemon: the usual lists, or for a call an error with the `reason`."""
        try:
            # Loaded here: it takes longer to load than all else, and only this needs it.
            from mnemosyned.agents.mcp.server import answer_alone  # noqa: PLC0415

            message, headers = answer_alone(line, self._make_request_headers(), reason)
        except Exception as error:  # noqa: BLE001 a client waits for an answer, whatever it is
            self._write_line(make_error_response(line, f"{reason}; {error!r}"))
            return
        self._save_headers(headers)
        self._write_line(message)

    def _write_line(self, message: bytes) -> None:
        """Write a message, unless empty, and a line break; exit if nobody reads."""
        if not message:
            return
        data = memoryview(message.rstrip(b"\r\n") + b"\n")
        with self._output:
            try:
                while data:  # ends with the message
                    data = data[os.write(1, data) :]
            except OSError:
                os._exit(0)  # nobody reads


def read_lines(
    descriptor: int, *, parent: int, bytes_max: int = LINE_BYTES_MAX
) -> Iterator[bytes | None]:
    """Yield each line of a descriptor, or None for one longer than `bytes_max`.

    Ends with the input. Exits the process if its parent is no longer the process `parent`.
    """
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


def read_origin() -> dict[str, str]:
    """Return facts about this process, by name, from which the daemon identifies client and project."""
    day = "{}-{:02}-{:02}".format(*time.localtime())
    return {
        "directory": working_directory(),
        "life": f"{day}-{os.urandom(6).hex()}",
        "project": os.environ.get("MNEMOSYNE_PROJECT", ""),
        "claude_session": os.environ.get("CLAUDE_CODE_SESSION_ID", ""),
        "claude_directory": os.environ.get("CLAUDE_PROJECT_DIR", ""),
    }


def query_string(words: dict[str, str]) -> str:
    """Return names and values as an encoded URL query, without `urllib`, which loads slowly."""
    plain = b"-./_~"
    encoded = {
        name: "".join(
            chr(byte)
            if byte in plain or (chr(byte).isalnum() and byte < 128)
            else f"%{byte:02X}"
            for byte in os.fsencode(value)
        )
        for name, value in words.items()
    }
    return "&".join(f"{name}={value}" for name, value in encoded.items())


def first_root(line: bytes) -> str:
    """Return the path of the first `file://` root in an answer to `roots/list`, or ""."""
    roots = _read_message_member(line, "result", "roots")
    uris = [root.get("uri") for root in roots] if isinstance(roots, list) else []
    for uri in uris:
        if isinstance(uri, str) and uri.startswith("file://"):
            # Loaded here: few clients have roots and no working directory.
            from urllib.parse import unquote, urlsplit  # noqa: PLC0415

            return unquote(urlsplit(uri).path)
    return ""


def make_error_response(line: bytes, reason: str) -> bytes:
    """Return the JSON-RPC error response to a request; empty if the request has no valid id."""
    # Loaded here: most messages are passed on unread.
    import json  # noqa: PLC0415

    id = _read_message_member(line, "id")
    if not isinstance(id, str | int):
        return b""
    error = {"code": -32603, "message": reason}
    return json.dumps({"jsonrpc": "2.0", "id": id, "error": error}).encode()


def _read_message_member(line: bytes, *names: str) -> object:
    """Return the value in a JSON message at a path of keys; None if there is none."""
    # Loaded here: most messages are passed on unread.
    import json  # noqa: PLC0415

    try:
        value = json.loads(line)
        for name in names:
            value = value[name]
    except (ValueError, TypeError, KeyError, RecursionError):
        return None
    return value


def run(socket: str | None = None, remote: RemoteDaemon | None = None) -> None:
    """Serve one MCP client on standard input and output, then exit the process.

    The daemon is at `socket` or `remote`, or else at the address in the environment or of a saved login.
    """
    try:
        address: Address | None = None
        fault = ""
        try:
            folder = os.environ.get("CLAUDE_PROJECT_DIR")
            address = remote.load_authorities() if remote else None
            address = address or address_of(socket, folder=folder)
        except (ValueError, InvalidRequest) as error:
            fault = str(error)
        McpPump(PumpedDaemon(address, fault), read_origin()).run()
    except KeyboardInterrupt:
        os._exit(130)
    os._exit(0)  # a call that still runs is nobody's
