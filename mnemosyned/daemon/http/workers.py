"""One client's connection, threads that answer requests, and threads that send streamed responses."""

from __future__ import annotations

import queue
import select
import socket
import threading
import time
from collections import Counter, deque
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, nullcontext, suppress
from enum import Enum, auto
from math import inf
from typing import TYPE_CHECKING, NamedTuple

from mnemosyned import errors, fairness
from mnemosyned.daemon.http.protocol import HttpProtocol, error_response
from mnemosyned.daemon.metrics import ServerActivity
from mnemosyned.http_messages import HttpRequest, Response, Route
from mnemosyned.logs import logger
from mnemosyned.memory.engine_ports import PoolFigures

if TYPE_CHECKING:
    from mnemosyned.daemon.http.listening import ServerTlsChannel


RECEIVE_BYTES = 64 * 1024
"""Read at a time, so that a fast sender does not keep others waiting."""


class ConnectionState(Enum):
    """State of a connection, named for the event it waits for."""

    IDLE = auto()  # a request
    HEAD = auto()  # the rest of a request's head
    BODY = auto()  # the rest of its body
    QUEUED = auto()  # memory for its body
    WORKING = auto()  # a thread that answers it
    WRITING = auto()  # its client to read the answer
    CLOSED = auto()


class ClientConnection:
    """A client's connection, owned by the event loop, and while WORKING by a worker thread."""

    def __init__(
        self,
        sock: socket.socket,
        protocol: HttpProtocol,
        *,
        now: float,
        tls: ServerTlsChannel | None = None,
    ) -> None:
        """Take a socket accepted at the monotonic time `now`; `tls` encrypts its bytes."""
        self.sock = sock
        self.fd = sock.fileno()
        self.protocol = protocol
        self.local = protocol.local
        """Whether its client came over the Unix socket."""
        self.state = ConnectionState.IDLE
        self.since = now
        """Start of the state."""
        self.progress = now
        """Time of the last bytes."""
        self.grace_s = 0.05
        """Time it may stay in its state while others wait for a connection."""
        self.reserved = 0
        """Bytes it has reserved of the budget for bodies."""
        self.broken = False
        """Whether its client has hung up."""
        self._output: deque[memoryview] = deque()
        self._tls = tls

    @property
    def output_bytes(self) -> int:
        """Number of response bytes that the client has not taken yet."""
        return sum(len(part) for part in self._output)

    def receive(self) -> bytes | None:
        """Receive bytes, send TLS answers; return decrypted bytes, b"" at the end, None if more must come."""
        try:
            data = self.sock.recv(RECEIVE_BYTES)
        except BlockingIOError:
            return None
        except OSError:
            return b""
        if self._tls is None or not data:
            return data
        said = self._tls.open(data)
        if answer := self._tls.take_unsent():
            self._output.append(memoryview(answer))
            self.send()
        return said

    def has_input(self) -> bool:
        """Return True if bytes of the client wait to be received, or if it has hung up."""
        try:
            self.sock.recv(1, socket.MSG_PEEK)
        except BlockingIOError:
            return False
        except OSError:
            return True
        return True

    def respond(self, response: Response, *, last: bool = False) -> None:
        """Queue a response and send what the socket takes; with `last`, announce that the connection closes."""
        head, body = self.protocol.encode_response(response, last=last)
        if len(body) <= RECEIVE_BYTES:
            self._send_parts(head + body)
        else:
            self._send_parts(head, body)

    def begin_stream(self, response: Response) -> bool:
        """Send the head of a streamed response; return False if it may have no body (HEAD)."""
        self._send_parts(self.protocol.encode_head(response, []))
        return not self.protocol.bodiless

    def send_chunk(self, data: bytes | None) -> None:
        """Queue a chunk of a streamed response, or its end for None, and send what the socket takes."""
        if part := self.protocol.encode_chunk(data):
            self._send_parts(part)

    def has_hung_up(self) -> bool:
        """Return whether the client has closed its side of the connection."""
        poll = select.poll()
        poll.register(self.fd, select.POLLRDHUP)
        return bool(poll.poll(0))

    def invite_body(self) -> None:
        """Send `100 Continue` if the client waits for that before it sends the body."""
        if interim := self.protocol.continue_response():
            self._send_parts(interim)

    def _send_parts(self, *parts: bytes) -> None:
        """Queue bytes for the client, encrypted if it speaks TLS, and send what is possible."""
        try:
            for data in parts:
                sealed = self._tls.seal(data) if self._tls else data
                self._output.append(memoryview(sealed))
        except OSError:
            self.broken = True
        self.send()

    def send(self) -> bool:
        """Send queued bytes without waiting; return True if any went, drop them on an error."""
        moved = False
        while self._output:
            try:
                count = self.sock.send(self._output[0], socket.MSG_NOSIGNAL)
            except BlockingIOError:
                return moved
            except OSError:
                self.broken = True
                self._output.clear()
                return moved
            moved = True
            if count == len(self._output[0]):
                self._output.popleft()
            else:
                self._output[0] = self._output[0][count:]
        return moved

    def close(self) -> None:
        """Close the socket and drop unsent bytes."""
        self.state = ConnectionState.CLOSED
        self._output.clear()
        self.sock.close()


SMALL_BYTES = 64 * 1024
"""A body up to this size needs no budget."""
LARGEST = 4
"""Number of request bodies of the maximum size for which there is memory at once."""


class BodyBudget:
    """Memory budget for large request bodies: reserved before reading, released once answered."""

    def __init__(self, *, body_bytes_max: int) -> None:
        self._body_bytes_max = body_bytes_max
        self._free = LARGEST * body_bytes_max
        self.freed = False
        """Whether room was given back since the last call."""

    def missing_bytes(self, connection: ClientConnection) -> int:
        """Return the bytes to reserve for a request's body: 0 if small or reserved, the limit if in chunks."""
        size = connection.protocol.body_bytes
        if connection.reserved or size <= SMALL_BYTES:
            return 0
        # Of a body in chunks nobody knows how much is to come.
        return self._body_bytes_max if connection.protocol.in_chunks else size

    def reserve(self, connection: ClientConnection) -> bool:
        """Reserve memory for a request's body; return False if too little is free."""
        missing = self.missing_bytes(connection)
        if missing > self._free:
            return False
        self._free -= missing
        connection.reserved += missing
        return True

    def release(self, connection: ClientConnection) -> None:
        """Return a connection's reserved bytes to the budget."""
        self._free += connection.reserved
        self.freed = self.freed or connection.reserved > 0
        connection.reserved = 0


WAITING_MAX = 64
"""Maximum requests of one owner that wait for a thread, in a daemon with many owners."""
STREAMS_MAX = 64
"""Streams of all owners; each has a thread, which waits most of the time."""
STUCK_S = 600.0
"""Seconds without any answer, while requests wait, after which threads count as stuck."""
STREAM_S = 3_600.0
"""Time limit of a stream."""
STREAM_STALL_S = 30.0
"""Time limit for a client to take some of a chunk."""
POLL_S = 0.5
STREAM_END_S = 1.0
"""Seconds that a stream has to end by itself when the server stops."""

OwnerOf = Callable[[HttpRequest], int]
"""Returns the number of a request's owner."""

log = logger()


class QueuedRequest(NamedTuple):
    """A request that waits for a thread or is being answered, with connection and owner number."""

    owner: int
    connection: ClientConnection
    request: HttpRequest
    since: float
    """When it was queued, by the monotonic clock."""


class Workers:
    """Worker threads that answer requests, with one further thread for each streamed response.

    With many owners, each gets a share of the threads, smaller the more owners have requests; every
    owner's requests wait in a queue of their own, and the queues take turns.
    """

    def __init__(
        self,
        answer: Route,
        *,
        threads: int,
        on_answered: Callable[[ClientConnection], None],
        activity: ServerActivity,
        owner_of: OwnerOf | None = None,
    ) -> None:
        """Create threads that call `on_answered` with each connection that was answered.

        `owner_of` returns a request's owner number; None if all requests are of one owner.
        """
        self._activity = activity
        self._answer = answer
        self._on_answered = on_answered
        self._owner_of = owner_of
        self._turns = fairness.FairTurns()
        self._tasks: queue.SimpleQueue[QueuedRequest | None] = queue.SimpleQueue()
        """Requests that a thread is free for."""
        self._changing = threading.Lock()
        self._waiting: dict[int, deque[QueuedRequest]] = {}
        """By owner, in the order of their turns."""
        self._running: Counter[int] = Counter()
        self._streams: Counter[int] = Counter()
        self._stream_threads: set[threading.Thread] = set()
        self._owner_streams_max = max(1, threads // 2)
        self._streams_end = inf
        """When streams are cut off, by the monotonic clock."""
        self._waits = 0
        self._wait_s = 0.0
        activity.pools["threads"] = self.figures
        activity.streams_max = STREAMS_MAX if owner_of else self._owner_streams_max
        self.is_draining = False
        """Whether each connection ends with its next answer."""
        self._progressed = time.monotonic()
        """When a request was last answered, or none waited, by the monotonic clock."""
        self._threads = [
            threading.Thread(
                target=self._answer_requests, name=f"http-{number}", daemon=True
            )
            for number in range(threads)
        ]

    def start(self) -> None:
        """Start the worker threads."""
        for thread in self._threads:
            thread.start()

    def put(self, connection: ClientConnection, request: HttpRequest) -> bool:
        """Queue a request for a worker, which alone uses the connection until the answer.

        Returns False if there are several owners, and `WAITING_MAX` requests of the same owner wait.
        """
        owner = self._owner_of(request) if self._owner_of else 0
        with self._changing:
            if not self._waiting:
                self._progressed = time.monotonic()
            waiting = self._waiting.setdefault(owner, deque())
            if self._owner_of and len(waiting) >= WAITING_MAX:
                return False
            queued = QueuedRequest(owner, connection, request, time.monotonic())
            waiting.append(queued)
            self._assign_requests()
            self._waits += owner in self._waiting
        return True

    def figures(self) -> PoolFigures:
        """Return the numbers of threads, busy threads and waiting requests, and the total waiting time."""
        with self._changing:
            return PoolFigures(
                self._running.total(),
                len(self._threads),
                sum(map(len, self._waiting.values())),
                self._waits,
                self._wait_s,
            )

    def are_working(self) -> bool:
        """Return True if all threads are alive and, while requests wait, some request was answered lately."""
        with self._changing:
            is_full = self._running.total() >= len(self._threads)
            is_late = time.monotonic() - self._progressed > STUCK_S
            is_stuck = is_late and is_full and self._waiting
        return not is_stuck and all(thread.is_alive() for thread in self._threads)

    def drain(self) -> None:
        """Let streams run for `STREAM_END_S` more seconds, then cut them off; return at once."""
        self._streams_end = time.monotonic() + STREAM_END_S

    def stop(self, deadline: float) -> None:
        """Tell the worker threads to end; wait for them and for streams until the monotonic `deadline`."""
        for _ in self._threads:
            self._tasks.put(None)
        with self._changing:
            threads = [*self._threads, *self._stream_threads]
        for thread in threads:
            thread.join(max(0.0, deadline - time.monotonic()))

    def _assign_requests(self) -> None:
        """Give waiting requests to free threads in turn, each owner no more than its share."""
        part = free = len(self._threads)
        free -= self._running.total()
        if self._owner_of:
            active = len(self._running.keys() | self._waiting.keys())
            part = max(1, part // (active + 1))
        is_given = True
        while free > 0 and is_given:  # ends, as the free threads do
            is_given = False
            for owner, waiting in list(self._waiting.items()):
                if free <= 0 or self._running[owner] >= part:
                    continue
                task = waiting.popleft()
                self._wait_s += time.monotonic() - task.since
                self._tasks.put(task)
                self._running[owner] += 1
                free, is_given = free - 1, True
                del self._waiting[owner]
                if waiting:  # after the others now
                    self._waiting[owner] = waiting
        self._running += Counter()  # without those that have none

    def _answer_requests(self) -> None:
        """Answer the requests assigned to this worker thread until the workers stop."""
        while (task := self._tasks.get()) is not None:
            self._answer_request(task)
            del task  # else it stays in memory until the thread gets the next one

    def _answer_request(self, task: QueuedRequest) -> None:
        """Answer a request, or begin a stream, and assign the next requests."""
        try:
            with self._fair_turn(task.owner):
                response = self._answer(task.request)
            if response.stream is None:
                task.connection.respond(response, last=self.is_draining)
                is_answered = True
            else:
                is_answered = not self._begin_stream(task, response, response.stream)
        except Exception:
            log.exception("connection_failed")
            is_answered = task.connection.broken = True
        with self._changing:
            self._progressed = time.monotonic()
            self._running[task.owner] -= 1
            self._assign_requests()
        if is_answered:
            self._on_answered(task.connection)

    def _fair_turn(
        self, owner: int, *, is_awaited: bool = True
    ) -> AbstractContextManager[None]:
        """Return a context manager that counts its block's processor time for an owner.

        Set `is_awaited` if a client waits for the block: only then do other owners pause.
        """
        if self._owner_of is None:
            return nullcontext()
        return self._turns.working(owner, is_awaited=is_awaited)

    def _begin_stream(
        self, task: QueuedRequest, response: Response, stream: Iterator[bytes]
    ) -> bool:
        """Start a thread that sends a stream; return False, after an error response, for too many streams."""
        if self._owner_of:  # whose token is verified by now
            task = task._replace(owner=self._owner_of(task.request))
        with self._changing:
            is_last = self._streams[task.owner] >= self._owner_streams_max
            if not is_last and self._streams.total() < STREAMS_MAX:
                thread = threading.Thread(
                    target=self._send_stream,
                    args=(task, response, stream),
                    name="http-stream",
                    daemon=True,
                )
                with suppress(RuntimeError):  # if the system has no thread
                    thread.start()
                    self._streams[task.owner] += 1
                    self._stream_threads.add(thread)
                    return True
        response.close()
        busy = errors.DaemonBusy(
            f"this memory has {self._owner_streams_max} streams (live events, exports), as many "
            "as it may; end one of them"
            if is_last
            else "the daemon sends as many streams as it can; ask again in a moment"
        )
        task.connection.respond(error_response(busy))
        return False

    def _send_stream(
        self, task: QueuedRequest, response: Response, stream: Iterator[bytes]
    ) -> None:
        """Send a streamed response in a thread; then give the connection back to the loop."""
        try:
            # Most of the time a stream waits: nobody rests for it.
            with (
                self._activity.count_stream(),
                self._fair_turn(task.owner, is_awaited=False),
            ):
                self._send_chunks(task.connection, response, stream)
        except Exception:
            log.exception("connection_failed")
            task.connection.broken = True
        finally:
            response.close()
            with self._changing:
                self._streams[task.owner] -= 1
                self._streams += Counter()
                self._stream_threads.discard(threading.current_thread())
            self._on_answered(task.connection)

    def _send_chunks(
        self, connection: ClientConnection, response: Response, stream: Iterator[bytes]
    ) -> None:
        """Send the head, then each chunk once the client took the last; send no end if a stream is cut off."""
        deadline = time.monotonic() + STREAM_S
        if connection.begin_stream(response):
            goes_on = self._flush_output(connection, deadline)
            while goes_on and (chunk := next(stream, None)) is not None:
                if chunk:
                    connection.send_chunk(chunk)
                goes_on = self._flush_output(connection, deadline)
            if not goes_on:  # its end is missing, so that the client can tell
                connection.broken = True
                return
        connection.send_chunk(None)

    def _flush_output(self, connection: ClientConnection, deadline: float) -> bool:
        """Wait until all bytes were taken; return False if the client hangs up or time is up."""
        progress = time.monotonic()
        ready = select.poll()
        ready.register(connection.fd, select.POLLOUT)
        while not connection.broken:
            now = time.monotonic()
            if connection.send():
                progress = now
            if now > min(deadline, self._streams_end):
                return False
            if not connection.output_bytes:
                return not connection.has_hung_up()
            if now - progress > STREAM_STALL_S:
                return False
            ready.poll(POLL_S * 1_000)
        return False
