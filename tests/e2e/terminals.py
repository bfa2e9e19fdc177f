"""`mnem` as a program of its own, also at a terminal."""

from __future__ import annotations

import os
import pty
import select
import subprocess
import termios
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from e2e.daemons import WAIT_S, Daemon, environment
from e2e.programs import BIN, Process, start


def popen(address: Path, *words: str, home: Path) -> subprocess.Popen[bytes]:
    return subprocess.Popen(
        [str(BIN / "mnem"), "--socket", str(address), *words],
        cwd=home,
        env=environment(home),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )


def shell(
    daemon: Daemon, script: str, **settings: str
) -> subprocess.CompletedProcess[str]:
    """Run commands of a shell in a session of its own, as in a terminal."""
    path, place = f"{BIN}:{os.environ['PATH']}", str(daemon.socket)
    return subprocess.run(
        ["setsid", "--wait", "bash", "-c", script],
        env=environment(daemon.home, PATH=path, MNEMOSYNE_SOCKET=place, **settings),
        capture_output=True,
        text=True,
        timeout=WAIT_S,
        check=False,
    )


class Seen:
    """All that a terminal has shown once its program has ended."""

    def __init__(self, terminal: int) -> None:
        self._terminal = terminal
        self._read = b""

    def until(self, words: bytes) -> None:
        """Wait until the terminal shows these words."""
        deadline = time.monotonic() + WAIT_S
        while words not in self._read:
            left_s = deadline - time.monotonic()
            shows_more = select.select([self._terminal], [], [], max(0, left_s))[0]
            assert shows_more, f"{words!r} is not in {self._read!r}"
            self._read += os.read(self._terminal, 65536)

    def type(self, keys: bytes) -> None:
        os.write(self._terminal, keys)

    def __call__(self) -> bytes:
        shown, self._read = self._read, b""
        deadline = time.monotonic() + WAIT_S
        while (
            time.monotonic() < deadline
            and select.select([self._terminal], [], [], 0.1)[0]
        ):
            try:
                shown += os.read(self._terminal, 65536)
            except OSError:  # how Linux says that the other side is closed
                break
        return shown


@contextmanager
def on_terminal(
    daemon: Daemon,
    *words: str,
    output: int | None = None,
    lines: int = 0,
    **settings: str,
) -> Iterator[tuple[Process, Seen]]:
    """The shell client as a person at a terminal has it, whose keys also send signals.

    `output` takes its standard output, where that is not the terminal; `lines` is its height.
    """
    ours, theirs = pty.openpty()
    if lines:
        termios.tcsetwinsize(theirs, (lines, 80))
    process = start(
        [str(BIN / "mnem"), "--socket", str(daemon.socket), *words],
        environment(daemon.home, **{"TERM": "xterm", **settings}),
        directory=daemon.home,
        stdin=theirs,
        stdout=theirs if output is None else output,
        stderr=theirs,
        at_terminal=True,
    )
    os.close(theirs)
    try:
        yield process, Seen(ours)
    finally:
        process.kill()
        process.wait(WAIT_S)
        os.close(ours)
