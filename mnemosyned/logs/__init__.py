"""The log: events, ids, sizes and durations; JSON unless on a terminal, never a memory's text."""

from __future__ import annotations

import io
import logging
import sqlite3
import sys
import traceback
from collections.abc import Sequence
from copy import copy
from typing import Any, Literal, TextIO

from mnemosyned.logs.without_rich import without_rich

with without_rich():
    import structlog
    from structlog.stdlib import (
        BoundLogger,
        ExtraAdder,
        ProcessorFormatter,
        add_log_level,
    )
    from structlog.typing import ExcInfo, Processor

from mnemosyned.domain.errors import DatabaseUnreachable, MemoryBusy, MnemosynedError
from mnemosyned.logs.writer import LineHandler

ROOT = "mnemosyned"
ERRORS_MAX = 10
"""Errors of a chain or a group that are shown."""
FRAMES_MAX = 50


def logger() -> BoundLogger:
    """The product's logger; silent below warnings until `configure_logs` gives it a form."""
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
    """Log an error with its traceback; a lost or busy database, no bug of ours, by its reason."""
    if isinstance(error, DatabaseUnreachable | MemoryBusy):
        logger().warning(event, reason=error.reason, **fields)
    else:
        logger().error(event, exc_info=error, **fields)


def configure_logs(*, level: str, form: Literal["auto", "json", "console"]) -> None:
    """Send all logs to standard error in one form."""
    on_terminal = (
        bool(sys.stderr) and sys.stderr.isatty()
        if form == "auto"
        else form == "console"
    )
    shared: list[Processor] = [
        add_log_level,
        ExtraAdder(),
        structlog.processors.TimeStamper(fmt="iso", utc=True),
    ]
    last: list[Processor] = [ProcessorFormatter.remove_processors_meta]
    if on_terminal:
        last.append(structlog.dev.ConsoleRenderer(exception_formatter=_print_errors))
    else:
        last.append(structlog.processors.ExceptionRenderer(_errors))
        last.append(structlog.processors.JSONRenderer(ensure_ascii=False))
    handler = _handler()
    handler.setFormatter(ProcessorFormatter(processors=last, foreign_pre_chain=shared))
    root = logging.getLogger()
    root.handlers[:] = [handler]
    root.setLevel(logging.WARNING)
    logging.setLogRecordFactory(_record)
    logging.getLogger(ROOT).setLevel(level.upper())


_TEMPLATE = logging.LogRecord(ROOT, logging.INFO, __file__, 0, "", None, None)


def _record(  # noqa: PLR0917 the form of `logging`
    name: str,
    level: int,
    pathname: str,
    lineno: int,
    message: object,
    arguments: Any,  # noqa: ANN401 whatever a call of `logging` has
    exc_info: Any,  # noqa: ANN401
    function: str | None = None,
    stack: str | None = None,
    **_: object,
) -> logging.LogRecord:
    """A record also where the clock is past 2262, which `time.time()` cannot tell."""
    try:
        return logging.LogRecord(
            name, level, pathname, lineno, message, arguments, exc_info, function, stack
        )
    except OverflowError:  # raised before the record holds anything
        record = copy(_TEMPLATE)
        record.name, record.levelno, record.levelname = (
            name,
            level,
            logging.getLevelName(level),
        )
        record.pathname, record.lineno, record.funcName = (
            pathname,
            lineno,
            function or "",
        )
        record.msg, record.args = str(message), arguments
        record.exc_info, record.stack_info = exc_info, stack
        return record


def _handler() -> logging.Handler:
    """The handler for standard error: the one in use, or a new one."""
    for handler in logging.getLogger().handlers:
        if isinstance(handler, LineHandler):
            return handler
    if not sys.stderr:  # closed before the start
        return logging.NullHandler()
    try:
        return LineHandler(sys.stderr.fileno())
    except io.UnsupportedOperation:  # no file of the system: a test, or a program's own
        return logging.StreamHandler(sys.stderr)


def _errors(exc_info: ExcInfo) -> list[dict[str, Any]]:
    """An error and what led to it, for JSON."""
    return [
        {
            "exc_type": type(error).__name__,
            "exc_value": _words(error),
            "frames": [
                {"filename": frame.filename, "lineno": frame.lineno, "name": frame.name}
                for frame in _frames(error)
            ],
        }
        for error in _chain(exc_info[1])
    ]


def _print_errors(out: TextIO, exc_info: ExcInfo) -> None:
    """Print an error after its causes, for a person."""
    for error in reversed(_chain(exc_info[1])):
        out.write("".join(traceback.format_list(_frames(error))))
        out.write(f"{type(error).__name__}: {_words(error)}\n")


def _chain(error: BaseException) -> Sequence[BaseException]:
    """The error, its causes and the members of groups."""
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


def _frames(error: BaseException) -> list[traceback.FrameSummary]:
    """The frames of an error, without local variables: they may hold memories."""
    return traceback.extract_tb(error.__traceback__)[-FRAMES_MAX:]


def _words(error: BaseException) -> str:
    """The message of an error of a kind that never quotes a memory.

    Parsers and models often quote what they could not read.
    """
    if isinstance(error, MnemosynedError | sqlite3.Error):
        return str(error)
    if isinstance(error, OSError):
        return error.strerror or ""
    return "(message left out: it may quote a memory)"
