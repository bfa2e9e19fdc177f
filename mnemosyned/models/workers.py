"""Child processes that answer requests over pipes, in order: start, limits, end."""

from __future__ import annotations

import math
import os
import queue
import select
import struct
import subprocess
import sys
import threading
import time
from contextlib import suppress
from typing import IO, Generic, TypeVar

import msgspec

FRAME_BYTES_MAX = 1 << 30
_LENGTH = struct.Struct(">I")
TICK_S = 0.2
"""Interval at which time limits are checked."""
STOP_S = 5.0
PIPE_BYTES = 1 << 20
"""Pipe size for the requests in flight, so that writing does not block; the default of 64 KiB holds
ten groups of memories."""

R = TypeVar("R")


def write_frame(stream: IO[bytes], payload: bytes) -> None:
    """Write a payload to a stream, after its length, and flush."""
    stream.write(_LENGTH.pack(len(payload)) + payload)
    stream.flush()


def read_frame(stream: IO[bytes]) -> bytes | None:
    """Return the next payload of a stream, or None at its end or for an oversized payload."""
    head = stream.read(_LENGTH.size)
    if len(head) < _LENGTH.size:
        return None
    (length,) = _LENGTH.unpack(head)
    payload = stream.read(length) if length <= FRAME_BYTES_MAX else b""
    return payload if len(payload) == length else None


class WorkerProcess(Generic[R]):
    """A child process with no state to save, from its start to its end.

    A thread starts the process and lives as long, because the system may end a child with the thread that
    started it. The thread also reads the replies, enforces the limit and reaps the process.
    """

    def __init__(
        self, module: str, *arguments: str, replies: msgspec.msgpack.Decoder[R]
    ) -> None:
        """Start a module of this program with these arguments. Raises `OSError`."""
        self.ending = ""
        """Why the process has ended or is to end; empty while it runs."""
        # -P: the folder that the daemon was started in offers no modules.
        self._command = [sys.executable, "-P", "-m", module, *arguments]
        self._decoder = replies
        self._limit = (math.inf, "")
        self._guard = threading.Lock()
        self._replies: queue.SimpleQueue[R | None] = queue.SimpleQueue()
        self._process: subprocess.Popen[bytes]
        self._started: queue.SimpleQueue[OSError | None] = queue.SimpleQueue()
        self._thread = threading.Thread(
            target=self._run_process, name="worker", daemon=True
        )
        self._thread.start()
        if error := self._started.get():
            raise error

    @property
    def pid(self) -> int:
        """Process id of the child process."""
        return self._process.pid

    def limit(self, seconds: float, why: str) -> bool:
        """Have the process killed in `seconds`, in place of any other limit; return False if it has ended.

        `why` is the reason for the log.
        """
        with self._guard:
            if self.ending or self._process.poll() is not None:
                return False
            self._limit = time.monotonic() + seconds, why
            return True

    def send(self, request: msgspec.Struct) -> bool:
        """Send a request; return False if the process has ended. Raises `OverflowError` for a huge number."""
        frame = msgspec.msgpack.encode(request)
        try:
            if self._process.stdin:
                write_frame(self._process.stdin, frame)
        except (OSError, ValueError):  # ValueError: the pipe is closed already
            return False
        return True

    def take_reply(self, wait_s: float | None = None) -> R | None:
        """Wait for the next reply and return it; None if the process has ended.

        Raises `queue.Empty` if neither happens within `wait_s` seconds; None means no limit.
        """
        return self._replies.get(wait_s != 0, wait_s)

    def end(self, why: str) -> None:
        """Kill the process; `why` is the reason for the log."""
        with self._guard:
            self.ending = self.ending or why
        self._process.kill()

    def join(self) -> None:
        """Wait, at most `STOP_S` seconds, until the process has ended."""
        self._thread.join(STOP_S)

    def note_end(self) -> None:
        """Do nothing at the end of the process; subclasses may override this."""

    def _run_process(self) -> None:
        """Start the process, queue its replies until it ends, and clean up; run in a thread."""
        try:
            # A traceback, or what a library prints, may quote a memory: it goes nowhere. Threads
            # that wait by spinning would take each other's time.
            process = subprocess.Popen(  # noqa: S603 our own module, no words of a user
                self._command,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.DEVNULL,
                pipesize=PIPE_BYTES,
                env={**os.environ, "OMP_WAIT_POLICY": "passive"},
            )
        except OSError as error:
            self._started.put(error)
            return
        self._process = process
        self._started.put(None)
        try:
            self._collect_replies(process)
        finally:
            # Before it is reaped, so that `limit` takes no process that is gone for a running one.
            with self._guard:
                self.ending = self.ending or "died"
            process.kill()
            process.wait()
            self._replies.put(None)
            for pipe in (process.stdin, process.stdout):
                with suppress(OSError):  # what was not sent is not worth an error
                    if pipe:
                        pipe.close()
            self.note_end()

    def _collect_replies(self, process: subprocess.Popen[bytes]) -> None:
        """Queue the replies of the process until it ends; kill it after the time limit."""
        if process.stdout is None:
            return
        ready = select.poll()
        ready.register(process.stdout, select.POLLIN)
        while True:
            if not ready.poll(TICK_S * 1000):
                with self._guard:
                    until, why = self._limit
                    is_over = not self.ending and time.monotonic() >= until
                    if is_over:
                        self.ending = why
                if is_over:
                    process.kill()
            elif (frame := read_frame(process.stdout)) is None:
                return
            else:
                self._replies.put(self._decoder.decode(frame))
