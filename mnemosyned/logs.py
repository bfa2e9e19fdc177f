"""The log: events, ids, sizes and durations; JSON unless on a terminal, never a memory's text."""

from __future__ import annotations

import logging
import sys
from typing import Literal

import structlog
from structlog.stdlib import BoundLogger, ExtraAdder, ProcessorFormatter, add_log_level
from structlog.tracebacks import ExceptionDictTransformer
from structlog.typing import Processor

ROOT = "mnemosyned"


def logger() -> BoundLogger:
    """The product's logger; silent below warnings until `configure_logs` gives it a form."""
    bound: BoundLogger = structlog.wrap_logger(
        logging.getLogger(ROOT),
        processors=[structlog.stdlib.filter_by_level, structlog.stdlib.render_to_log_kwargs],
        wrapper_class=BoundLogger,
    )
    return bound


def configure_logs(*, level: str, form: Literal["auto", "json", "console"]) -> None:
    """Send all logs to standard error in one form."""
    on_terminal = sys.stderr.isatty() if form == "auto" else form == "console"
    shared: list[Processor] = [
        add_log_level,
        ExtraAdder(),
        structlog.processors.TimeStamper(fmt="iso", utc=True),
    ]
    last: list[Processor] = [ProcessorFormatter.remove_processors_meta]
    if on_terminal:
        last.append(
            structlog.dev.ConsoleRenderer(exception_formatter=structlog.dev.plain_traceback)
        )
    else:
        # Local variables hold memories: they stay out of the log.
        transform = ExceptionDictTransformer(show_locals=False)
        last.append(structlog.processors.ExceptionRenderer(transform))
        last.append(structlog.processors.JSONRenderer(ensure_ascii=False))
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(ProcessorFormatter(processors=last, foreign_pre_chain=shared))
    root = logging.getLogger()
    root.handlers[:] = [handler]
    root.setLevel(logging.WARNING)
    logging.getLogger(ROOT).setLevel(level.upper())
    logging.getLogger("waitress.queue").setLevel(logging.ERROR)  # it warns of every short wait
