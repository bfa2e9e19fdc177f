"""One line at a terminal: how much is done, how fast, and the time left."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from mnemosyned.terminal import counted, show_progress, span

SHOWN_EVERY_S = 0.2
RATE_AFTER_S = 1.0
"""Seconds after which a rate means something."""

Advance = Callable[[int, int], object]
"""Called with the amount done since the last call, and the things done in all."""


class ProgressLine:
    """The line of one task."""

    def __init__(self, label: str, noun: str, total: int) -> None:
        """Show progress out of a total amount, such as bytes; 0 where it is unknown."""
        self._label = label
        self._noun = noun
        self._total = total
        self._done = 0
        self._things = 0
        self._skipped = 0
        """The amount that was done in no time, by an earlier run."""
        self._began = time.monotonic()
        self._shown = 0.0

    def advance(self, amount: int, things: int) -> None:
        """Note what was done, and show it now and then."""
        self._done += amount
        self._things = things
        if not things:
            self._skipped = self._done
        now = time.monotonic()
        if now - self._shown >= SHOWN_EVERY_S:
            self._shown = now
            show_progress(self.text(now - self._began))

    def text(self, elapsed_s: float) -> str:
        """Return the line after so many seconds."""
        parts = [self._label]
        if self._total:
            parts.append(f"{min(100, 100 * self._done // self._total)} %")
        parts.append(counted(self._things, self._noun))
        if elapsed_s >= RATE_AFTER_S:
            parts.append(f"{self._things / elapsed_s:,.0f}/s")
            parts += self._left(elapsed_s)
        return " · ".join(parts)

    def _left(self, elapsed_s: float) -> list[str]:
        worked = self._done - self._skipped
        remaining = self._total - self._done
        if worked <= 0 or remaining <= 0:
            return []
        return [f"{span(remaining * elapsed_s / worked)} left"]

    def close(self) -> None:
        """Take the line away."""
        if self._shown:
            show_progress("")


@contextmanager
def progress_line(label: str, noun: str, total: int) -> Iterator[Advance]:
    """Give what advances the line; nothing is shown where standard error is no terminal."""
    if not sys.stderr.isatty():
        yield lambda _amount, _things: None
        return
    line = ProgressLine(label, noun, total)
    try:
        yield line.advance
    finally:
        line.close()
