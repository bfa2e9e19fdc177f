"""The log: events, ids, sizes and durations; JSON unless on a terminal, never a memory's text.

Lines go to standard error in order; a reader that stalls delays no caller. structlog loads rich
where it finds it, for tracebacks with local variables, which are never shown here: that would
take a tenth of a second of each start, and some megabytes.
"""

from __future__ import annotations

import io
import logging
import os
import select
import signal
import sqlite3
import sys
import threading
import traceback
from collections import deque
from collections.abc import Sequence
from copy import copy
from typing import Any, Literal, TextIO

from mnemosyned.errors import (
    DatabaseReplaced,
    DatabaseUnreachable,
    Kind,
    MemoryBusy,
    MnemosynedError,
)

try:
    sys.modules.setdefault("rich", None)  # type: ignore[arg-type]  # not to be found: see above
    import structlog
    from structlog.stdlib import (
        BoundLogger,
        ExtraAdder,
        ProcessorFormatter,
        add_log_level,
    )
    from structlog.typing import ExcInfo, Processor
finally:
    if sys.modules["rich"] is None:
        del sys.modules["rich"]

ROOT = "mnemosyned"
ERRORS_MAX = 10
"""Maximum errors shown of a chain or a group."""
FRAMES_MAX = 50
QUEUE_BYTES_MAX = 1 << 20
WAIT_S = 0.1
"""Seconds that a caller waits for its line to be written, so that a crash right after loses no line."""
FLUSH_S = 1.0


class LineHandler(logging.Handler):
    """Writes formatted records to a file descriptor in a thread of its own.

    `write` returns once its line is written. While nobody reads the pipe, callers do not wait, and lines beyond
    `QUEUE_BYTES_MAX` are dropped and counted; a record with their number takes their place.
    """

    def __init__(self, descriptor: int) -> None:
        """Start the thread that writes lines to `descriptor`."""
        super().__init__()
        self._descriptor = descriptor
        self._changed = threading.Condition()
        self._lines: deque[bytes] = deque()
        self._bytes = 0
        self._queued = 0
        self._written = 0
        self._dropped = 0
        self._stalled = False
        thread = threading.Thread(target=self._write_lines, name="log", daemon=True)
        # The thread inherits the mask: signals are for the main thread, which waits for them.
        mask = signal.pthread_sigmask(signal.SIG_BLOCK, signal.valid_signals())
        try:
            thread.start()
        finally:
            signal.pthread_sigmask(signal.SIG_SETMASK, mask)

    def emit(self, record: logging.LogRecord) -> None:
        """Format a record and write its line; errors go to `logging.Handler.handleError`."""
        try:
            self.write(self.format(record))
        except Exception:  # noqa: BLE001 what logging does with an error of a handler
            self.handleError(record)

    def write(self, line: str) -> None:
        """Queue a line, or count it as dropped if the queue is full; wait up to `WAIT_S` until written."""
        data = line.encode("utf-8", "backslashreplace") + b"\n"
        with self._changed:
            if self._bytes + len(data) > QUEUE_BYTES_MAX:
                self._dropped += 1
                return
            self._report_dropped()
            self._add_line(data)
            if not self._stalled:
                self._stalled = not self._wait_written(WAIT_S)

    def flush(self) -> None:
        """Wait, at most `FLUSH_S` seconds, until all lines are written (called by `logging`)."""
        with self._changed:
            self._report_dropped()
            self._wait_written(FLUSH_S)

    def _report_dropped(self) -> None:
        """If lines were dropped since the last report, queue a line with their number."""
        if not self._dropped:
            return
        record = logging.LogRecord(
            "mnemosyned", logging.WARNING, __file__, 0, "log_lines_dropped", None, None
        )
        record.count, self._dropped = self._dropped, 0
        self._add_line(self.format(record).encode() + b"\n")

    def _add_line(self, data: bytes) -> None:
        """Queue a line, encoded and with its end, and wake the writing thread."""
        self._lines.append(data)
        self._bytes += len(data)
        self._queued += 1
        self._changed.notify_all()

    def _wait_written(self, timeout_s: float) -> bool:
        """Wait until all lines queued so far are written; return False after `timeout_s`."""
        number = self._queued
        return self._changed.wait_for(lambda: self._written >= number, timeout_s)

    def _write_lines(self) -> None:
        """Write queued lines to the output forever, as the body of the writing thread."""
        while True:  # the thread ends with the process
            with self._changed:
                self._changed.wait_for(lambda: self._lines)
                data = self._lines.popleft()
            self._write_bytes(data)
            with self._changed:
                self._bytes -= len(data)
                self._written += 1
                self._stalled = False
                self._changed.notify_all()

    def _write_bytes(self, data: bytes) -> None:
        """Write all bytes of a line to the output; drop them if its reader is gone."""
        left = memoryview(data)
        while left:
            try:
                left = left[os.write(self._descriptor, left) :]
            except BlockingIOError:  # another program made the pipe non-blocking
                select.select([], [self._descriptor], [])
            except OSError:
                return  # the reader is gone: there is nowhere to report it


def logger() -> BoundLogger:
    """Return this package's logger, which shows only warnings and errors before `configure_logs`."""
    bound: BoundLogger = structlog.wrap_logger(
        logging.getLogger(ROOT),
        processors=[
            structlog.stdlib.filter_by_level,
            structlog.stdlib.render_to_log_kwargs,
        ],
        wrapper_class=BoundLogger,
    )
    return bound


def log_failure(event: str, error: Exception, /, **fields: object) -> None:
    """Log an error with its traceback; a conflict or a busy, unreachable or replaced database as a warning."""
    if isinstance(error, DatabaseUnreachable | MemoryBusy):
        logger().warning(event, reason=error.reason, **fields)
    elif isinstance(error, DatabaseReplaced) or (
        isinstance(error, MnemosynedError) and error.kind is Kind.CONFLICT
    ):
        logger().warning(event, reason=error.message, **fields)
    else:
        logger().error(event, exc_info=error, **fields)


def configure_logs(*, level: str, form: Literal["auto", "json", "console"]) -> None:
    """Send all logs to standard error, as JSON or, for `form` "console", as text for people.

    "auto" is text on a terminal, else JSON. `level` is for this package's logs; of other libraries only
    warnings and errors are logged.
    """
    on_terminal = form == "console"
    if form == "auto":
        on_terminal = bool(sys.stderr) and sys.stderr.isatty()
    shared: list[Processor] = [
        add_log_level,
        ExtraAdder(),
        structlog.processors.TimeStamper(fmt="iso", utc=True),
    ]
    last: list[Processor] = [ProcessorFormatter.remove_processors_meta]
    if on_terminal:
        last.append(
            structlog.dev.ConsoleRenderer(exception_formatter=_print_error_chain)
        )
    else:
        last.append(structlog.processors.ExceptionRenderer(_describe_errors))
        last.append(structlog.processors.JSONRenderer(ensure_ascii=False))
    handler = _error_output_handler()
    handler.setFormatter(ProcessorFormatter(processors=last, foreign_pre_chain=shared))
    root = logging.getLogger()
    root.handlers[:] = [handler]
    root.setLevel(logging.WARNING)
    logging.setLogRecordFactory(_make_record)
    logging.getLogger(ROOT).setLevel(level.upper())


_TEMPLATE = logging.LogRecord(ROOT, logging.INFO, __file__, 0, "", None, None)


def _make_record(*values: Any, **named: Any) -> logging.LogRecord:  # noqa: ANN401
    """Return a log record, also when the clock is past 2262, where the usual factory fails."""
    try:
        return logging.LogRecord(*values, **named)
    except OverflowError:  # raised before the record holds anything
        name, level, path, line, message, arguments, exc_info, *rest = values
        function, stack, *_ = (*rest, None, None)
        record = copy(_TEMPLATE)
        record.name, record.levelno = name, level
        record.levelname = logging.getLevelName(level)
        record.pathname, record.lineno, record.funcName = path, line, function or ""
        record.msg, record.args = str(message), arguments
        record.exc_info, record.stack_info = exc_info, stack
        return record


def _error_output_handler() -> logging.Handler:
    """Return the handler for standard error: the installed one, or else a new one."""
    for handler in logging.getLogger().handlers:
        if isinstance(handler, LineHandler):
            return handler
    if not sys.stderr:  # closed before the start
        return logging.NullHandler()
    try:
        return LineHandler(sys.stderr.fileno())
    except io.UnsupportedOperation:  # no file of the system: a test, or a program's own
        return logging.StreamHandler(sys.stderr)


def _describe_errors(exc_info: ExcInfo) -> list[dict[str, Any]]:
    """Return type, message and stack frames of an error and each of its causes, for JSON."""
    return [
        {
            "exc_type": type(error).__name__,
            "exc_value": _safe_message(error),
            "frames": [
                {"filename": frame.filename, "lineno": frame.lineno, "name": frame.name}
                for frame in _safe_frames(error)
            ],
        }
        for error in _error_chain(exc_info[1])
    ]


def _print_error_chain(out: TextIO, exc_info: ExcInfo) -> None:
    """Print frames, type and message of an error to `out`, after the frames and messages of its causes."""
    for error in reversed(_error_chain(exc_info[1])):
        out.write("".join(traceback.format_list(_safe_frames(error))))
        out.write(f"{type(error).__name__}: {_safe_message(error)}\n")


def _error_chain(error: BaseException) -> Sequence[BaseException]:
    """Return an error, its causes and the members of error groups, at most `ERRORS_MAX`."""
    chain = [error]
    for link in chain:
        members = link.exceptions if isinstance(link, BaseExceptionGroup) else ()
        cause = link.__cause__ or (
            None if link.__suppress_context__ else link.__context__
        )
        chain.extend(
            found for found in (*members, cause) if found and found not in chain
        )
        if len(chain) >= ERRORS_MAX:
            break
    return chain[:ERRORS_MAX]


def _safe_frames(error: BaseException) -> list[traceback.FrameSummary]:
    """Return the last `FRAMES_MAX` stack frames of an error, without their local variables."""
    return traceback.extract_tb(error.__traceback__)[-FRAMES_MAX:]


def _safe_message(error: BaseException) -> str:
    """Return the message of an error, or a remark if it might quote a memory."""
    if isinstance(error, MnemosynedError):
        return str(error)
    if isinstance(error, sqlite3.Error):
        # Python's own errors quote a text that is not UTF-8.
        return str(error).partition(" with text ")[0]
    if isinstance(error, OSError):
        return error.strerror or ""
    return "(message left out: it may quote a memory)"
