"""Log lines to standard error, in order; a reader that stalls delays no caller."""

from __future__ import annotations

import logging
import os
import select
import signal
import threading
from collections import deque
from collections.abc import Callable

QUEUE_BYTES_MAX = 1 << 20
WAIT_S = 0.1
"""Time a caller waits for its line to be written, so that a crash right after loses none."""
FLUSH_S = 1.0


class LineWriter:
    """Writes lines to a descriptor in a thread of its own.

    While lines go out, `write` returns once its line is out. While the pipe
    is not read, callers no longer wait, and beyond `queue_bytes_max` lines are dropped and counted;
    `dropped_line` makes the line that says how many, which is written where they are missing.
    """

    def __init__(
        self,
        descriptor: int,
        *,
        dropped_line: Callable[[int], str],
        queue_bytes_max: int = QUEUE_BYTES_MAX,
    ) -> None:
        self._descriptor = descriptor
        self._dropped_line = dropped_line
        self._most = queue_bytes_max
        self._changed = threading.Condition()
        self._lines: deque[bytes] = deque()
        self._bytes = 0
        self._queued = 0
        self._written = 0
        self._dropped = 0
        self._stalled = False
        thread = threading.Thread(target=self._run, name="log", daemon=True)
        # The thread inherits the mask: signals are for the main thread, which waits for them.
        mask = signal.pthread_sigmask(signal.SIG_BLOCK, signal.valid_signals())
        try:
            thread.start()
        finally:
            signal.pthread_sigmask(signal.SIG_SETMASK, mask)

    def write(self, line: str) -> None:
        """Write a line; see the class for how long that takes."""
        data = line.encode("utf-8", "backslashreplace") + b"\n"
        with self._changed:
            if self._bytes + len(data) > self._most:
                self._dropped += 1
                return
            if self._dropped:
                self._queue(self._dropped_line(self._dropped).encode() + b"\n")
                self._dropped = 0
            self._queue(data)
            if not self._stalled:
                self._stalled = not self._wait(WAIT_S)

    def flush(self) -> None:
        """Wait until all is written, for `FLUSH_S` at most."""
        with self._changed:
            if self._dropped:
                self._queue(self._dropped_line(self._dropped).encode() + b"\n")
                self._dropped = 0
            self._wait(FLUSH_S)

    def _queue(self, data: bytes) -> None:
        self._lines.append(data)
        self._bytes += len(data)
        self._queued += 1
        self._changed.notify_all()

    def _wait(self, timeout_s: float) -> bool:
        """Wait until what is queued now is written; False where that takes longer."""
        number = self._queued
        return self._changed.wait_for(lambda: self._written >= number, timeout_s)

    def _run(self) -> None:
        while True:  # the thread ends with the process
            with self._changed:
                self._changed.wait_for(lambda: self._lines)
                data = self._lines.popleft()
            self._put(data)
            with self._changed:
                self._bytes -= len(data)
                self._written += 1
                self._stalled = False
                self._changed.notify_all()

    def _put(self, data: bytes) -> None:
        left = memoryview(data)
        while left:
            try:
                left = left[os.write(self._descriptor, left) :]
            except BlockingIOError:  # another program made the pipe non-blocking
                select.select([], [self._descriptor], [])
            except OSError:
                return  # the reader is gone: there is nowhere to report it


class LineHandler(logging.Handler):
    """Sends formatted records to standard error through a `LineWriter`."""

    def __init__(self, descriptor: int) -> None:
        super().__init__()
        self._writer = LineWriter(descriptor, dropped_line=self._dropped_line)

    def emit(self, record: logging.LogRecord) -> None:
        """Write one record."""
        try:
            self._writer.write(self.format(record))
        except Exception:  # noqa: BLE001 what logging does with an error of a handler
            self.handleError(record)

    def flush(self) -> None:
        """Wait, a second at most, until all is written; `logging` does so at the end."""
        self._writer.flush()

    def _dropped_line(self, count: int) -> str:
        record = logging.LogRecord(
            "mnemosyned", logging.WARNING, __file__, 0, "log_lines_dropped", None, None
        )
        record.count = count
        return self.format(record)
