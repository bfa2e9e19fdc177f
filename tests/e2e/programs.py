"""Starts `mnem` and `mnemosyned`: forked from a template that has loaded them, or anew.

Both are processes of their own. E2E_ANEW=1 starts all anew. E2E_ANEW=once starts each command anew once,
and the daemon in each test module, and forks them from then on, as `make test-e2e` does.
"""

from __future__ import annotations

import atexit
import fcntl
import json
import os
import select
import signal
import socket
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from contextlib import suppress
from functools import cache
from pathlib import Path
from typing import IO

from mnemosyned.cli.registry import COMMANDS

BIN = Path(sys.executable).parent
START_S = 60.0
ANEW = os.environ.get("E2E_ANEW", "")
_STARTED = Path(__file__).parents[2] / "build" / "started-anew"
"""The run of pytest, whose workers share the file, and what it has started anew: lines of text."""


class Forked:
    """A program the template has forked, with the words of `subprocess.Popen`."""

    def __init__(self, told: int) -> None:
        self.returncode: int | None = None
        self._told = os.fdopen(told, "rb", buffering=0)
        line = self._line(START_S)
        if not line:
            self._told.close()
            raise subprocess.SubprocessError("the template forked nothing")
        self.pid = int(line)

    def _line(self, timeout_s: float | None) -> bytes | None:
        """The keeper's next line; None when it does not come in time."""
        if not select.select([self._told], [], [], timeout_s)[0]:
            return None
        return self._told.readline()

    def poll(self) -> int | None:
        """Its exit code, minus the signal that ended it, or None while it runs."""
        if self.returncode is None and (line := self._line(0)) is not None:
            self._ended(line)
        return self.returncode

    def wait(self, timeout: float) -> int:
        """Its exit code. Raises `subprocess.TimeoutExpired`."""
        if self.returncode is None:
            line = self._line(timeout)
            if line is None:
                raise subprocess.TimeoutExpired(f"process {self.pid}", timeout)
            self._ended(line)
        assert self.returncode is not None
        return self.returncode

    def _ended(self, line: bytes) -> None:
        self._told.close()
        self.returncode = int(line)

    def send_signal(self, number: signal.Signals) -> None:
        if self.poll() is None:
            with suppress(ProcessLookupError):  # it ended in between
                os.kill(self.pid, number)

    def terminate(self) -> None:
        self.send_signal(signal.SIGTERM)

    def kill(self) -> None:
        self.send_signal(signal.SIGKILL)


Process = subprocess.Popen[bytes] | Forked


def start(
    words: Sequence[str | bytes],
    env: Mapping[str, str],
    *,
    stdin: IO[bytes] | int,
    stdout: IO[bytes] | int,
    stderr: IO[bytes] | int,
    anew: bool = False,
    directory: Path | None = None,
    at_terminal: bool = False,
) -> Process:
    """Start the program that the first of the words names by its path; `stdin` may be its terminal."""
    if anew or _is_new(words) or Path(os.fsdecode(words[0])).parent != BIN:
        return subprocess.Popen(
            [*(("setsid", "--ctty") if at_terminal else ()), *words],
            env=env, stdin=stdin, stdout=stdout, stderr=stderr, cwd=directory,
        )  # fmt: skip
    order = {
        "words": [os.fsdecode(word) for word in words],
        "environment": dict(env),
        "directory": str(directory or Path.cwd()),
        "at_terminal": at_terminal,
    }
    with tempfile.TemporaryFile() as file, open(os.devnull, "rb") as nothing:  # noqa: PTH123
        file.write(json.dumps(order).encode())
        file.flush()
        given = nothing if stdin == subprocess.DEVNULL else stdin
        ours, theirs = os.pipe()
        files = [
            each if isinstance(each, int) else each.fileno()
            for each in (file, given, stdout, stderr, theirs)
        ]
        try:
            socket.send_fds(_template(), [b"."], files)
        finally:
            os.close(theirs)
    return Forked(ours)


def _is_new(words: Sequence[str | bytes]) -> bool:
    """Whether E2E_ANEW has this command started anew."""
    if ANEW != "once":
        return ANEW == "1"
    module = os.environ.get("PYTEST_CURRENT_TEST", "").partition("::")[0]
    program, *rest = map(os.fsdecode, words)
    command = next((word for word in rest if word in COMMANDS), "")
    kind = f"{program} {command or module}"
    run = os.environ.get("PYTEST_XDIST_TESTRUNUID", str(os.getpid()))
    _STARTED.parent.mkdir(exist_ok=True)
    with _STARTED.open("a+", encoding="utf-8") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        file.seek(0)
        lines = file.read().splitlines()
        if lines[:1] != [run]:
            file.truncate(0)
            file.write(f"{run}\n")
        elif kind in lines:
            return False
        file.write(f"{kind}\n")
        return True


@cache
def _template() -> socket.socket:
    """Socket for orders; the template starts with the first and ends with this process."""
    ours, theirs = socket.socketpair()
    with theirs:
        process = subprocess.Popen(
            [
                sys.executable,
                "-P",
                Path(__file__).with_name("template.py"),
                str(theirs.fileno()),
            ],
            pass_fds=[theirs.fileno()],
        )

    def end() -> None:
        ours.close()
        process.wait(START_S)

    atexit.register(end)
    return ours
