"""Threads that answer requests, and send the responses that are made while they are sent."""

from __future__ import annotations

import queue
import select
import threading
import time
from collections.abc import Callable, Iterator
from math import inf

from mnemosyned.daemon.server.activity import ServerActivity
from mnemosyned.daemon.server.connection import Connection
from mnemosyned.daemon.server.refusals import refusal
from mnemosyned.domain.errors import DaemonBusy
from mnemosyned.http_messages import HttpRequest, Response, Route
from mnemosyned.logs import logger

STREAM_S = 3_600.0
"""Time limit of a stream."""
STREAM_STALL_S = 30.0
"""Time limit for a client to take some of a chunk."""
POLL_S = 0.5
STREAM_END_S = 1.0
"""Time for a stream to end by itself when the server stops, as one does that tells of the stop."""

log = logger()


class Workers:
    """A bounded number of threads, each with one request at a time.

    A stream keeps its thread, so half of them at most may have one.
    """

    def __init__(
        self,
        answer: Route,
        *,
        threads: int,
        done: Callable[[Connection], None],
        activity: ServerActivity,
    ) -> None:
        self._activity = activity
        self._answer = answer
        self._done = done
        self._tasks: queue.SimpleQueue[tuple[Connection, HttpRequest] | None] = (
            queue.SimpleQueue()
        )
        self._streams = threading.BoundedSemaphore(max(1, threads // 2))
        self._streams_end = inf
        """When streams are cut off, by the monotonic clock."""
        self._threads = [
            threading.Thread(target=self._work, name=f"http-{number}", daemon=True)
            for number in range(threads)
        ]

    def start(self) -> None:
        """Start the threads."""
        for thread in self._threads:
            thread.start()

    def put(self, connection: Connection, request: HttpRequest) -> None:
        """Have a request answered; the connection belongs to its thread until `done`."""
        self._tasks.put((connection, request))

    def drain(self) -> None:
        """End all streams that have not ended within `STREAM_END_S`, at their next chunk."""
        self._streams_end = time.monotonic() + STREAM_END_S

    def stop(self, deadline: float) -> None:
        """Let the threads end, until the deadline."""
        for _ in self._threads:
            self._tasks.put(None)
        for thread in self._threads:
            thread.join(max(0.0, deadline - time.monotonic()))

    def _work(self) -> None:
        while (task := self._tasks.get()) is not None:
            connection, request = task
            try:
                self._respond(connection, self._answer(request))
            except Exception:
                log.exception("connection_failed")
                connection.broken = True
            self._done(connection)

    def _respond(self, connection: Connection, response: Response) -> None:
        if response.stream is None:
            connection.respond(response)
            return
        try:
            if not self._streams.acquire(blocking=False):
                busy = DaemonBusy("too many streams at once; ask again in a moment")
                connection.respond(refusal(busy))
                return
            try:
                with self._activity.streaming():
                    self._stream(connection, response, response.stream)
            finally:
                self._streams.release()
        finally:
            if close := getattr(response.stream, "close", None):
                close()

    def _stream(
        self, connection: Connection, response: Response, stream: Iterator[bytes]
    ) -> None:
        """Send chunk after chunk, each once the client has taken the one before."""
        deadline = time.monotonic() + STREAM_S
        if connection.begin(response):
            goes_on = self._flushed(connection, deadline)
            while goes_on and (chunk := next(stream, None)) is not None:
                if chunk:
                    connection.send_chunk(chunk)
                goes_on = self._flushed(connection, deadline)
            if not goes_on:  # its end is missing, so that the client can tell
                connection.broken = True
                return
        connection.finish()

    def _flushed(self, connection: Connection, deadline: float) -> bool:
        """Wait until the client has taken all; False where the stream has to end instead."""
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
                return not connection.has_left()
            if now - progress > STREAM_STALL_S:
                return False
            ready.poll(POLL_S * 1_000)
        return False
