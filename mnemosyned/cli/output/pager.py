"""A pager for answers that are longer than the screen: MNEM_PAGER, PAGER, or less."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from contextlib import suppress
from types import TracebackType
from typing import Self

from mnemosyned.cli.output.terminal import is_terminal, print_as_is

LESS = "FRX"
"""Options of less where the user sets none: end on one screen, show styles, leave the text."""


class Screen:
    """Standard output at a terminal: it waits until a screen is full, then starts the pager."""

    def __init__(self, pager: str) -> None:
        self._pager = pager
        self._waiting: list[str] = []
        self._lines = 0
        self._process: subprocess.Popen[str] | None = None
        self._is_over = False

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    @property
    def is_over(self) -> bool:
        """Whether the reader has left the pager."""
        return self._is_over

    def write(self, text: str) -> None:
        """Take a piece of text."""
        if self._process is not None:
            self._hand_over(text)
            return
        self._waiting.append(text)
        self._lines += text.count("\n")
        if self._lines >= shutil.get_terminal_size().lines:
            self._start()

    def close(self) -> None:
        """Print what fits the screen, or wait until the reader leaves the pager."""
        if self._process is None:
            self._print_waiting()
            return
        with suppress(OSError):
            if self._process.stdin:
                self._process.stdin.close()
        while True:  # ends with the pager: Ctrl-C is its own
            try:
                self._process.wait()
            except KeyboardInterrupt:
                continue
            return

    def _start(self) -> None:
        environment = {"LESS": LESS, "LV": "-c", **os.environ}
        try:
            self._process = subprocess.Popen(  # noqa: S602 a command line, as git reads it
                self._pager,
                shell=True,
                stdin=subprocess.PIPE,
                env=environment,
                encoding=sys.stdout.encoding,
                errors="replace",
            )
        except OSError:
            self._print_waiting()
            self._pager = ""
            return
        self._hand_over("".join(self._waiting))
        self._waiting = []

    def _hand_over(self, text: str) -> None:
        try:
            if self._process and self._process.stdin and not self._is_over:
                self._process.stdin.write(text)
                self._process.stdin.flush()
        except OSError:
            self._is_over = True

    def _print_waiting(self) -> None:
        print_as_is("".join(self._waiting))
        self._waiting, self._lines = [], 0


def chosen_pager() -> str:
    """Return the pager's command line; empty without a pager or a terminal."""
    if not is_terminal(sys.stdout):
        return ""
    for name in ("MNEM_PAGER", "PAGER"):
        if name in os.environ:
            words = os.environ[name].split()
            is_there = words and words[0] != "cat" and shutil.which(words[0])
            return os.environ[name] if is_there else ""
    if os.environ.get("TERM") == "dumb":
        return ""
    return next(filter(shutil.which, ("less", "more")), "")
