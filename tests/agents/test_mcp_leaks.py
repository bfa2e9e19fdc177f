"""Windows of agents come and go: nothing of them stays, here or in the daemon."""

from __future__ import annotations

import json
import os
import signal
import statistics
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path
from typing import IO, cast

import pytest
from e2e.daemons import Daemon, environment, eventually, running
from e2e.programs import BIN, Process, start
from e2e.pumps import Pump, is_running, spawn_pump
from support.processes import child_pids

pytestmark = pytest.mark.agents

LIVES = 200
WARM_UP = 40
"""Lives before the first measurement: caches fill, and the protocol is loaded."""
MEMORY_GROWTH_MAX = 4 << 20
COLD_START_S = 0.15
IDLE_PYTHON_S = 0.025
"""What Python takes to start where nothing else runs: a machine at work is given more time."""

# A window that is killed: it starts the pump, waits for its answer, and never cleans up.
PARENT = """
import os, subprocess, sys, time
pump = subprocess.Popen(
    [sys.argv[1], "mcp"], stdin=subprocess.PIPE, stdout=subprocess.PIPE
)
pump.stdin.write(b'{"jsonrpc":"2.0","id":1,"method":"tools/list"}\\n')
pump.stdin.flush()
pump.stdout.readline()
print(pump.pid, flush=True)
time.sleep(60)
"""


def _descriptors(pid: int) -> int:
    return len(os.listdir(f"/proc/{pid}/fd"))  # noqa: PTH208 a count is all


def _resident(pid: int) -> int:
    pages = int(Path(f"/proc/{pid}/statm").read_text().split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE")


def _threads(pid: int) -> int:
    return len(os.listdir(f"/proc/{pid}/task"))  # noqa: PTH208 a count is all


@dataclass(frozen=True, slots=True)
class _Forked:
    """A pump that was forked, as its start is no matter here: it would take most of the time."""

    process: Process
    stdin: IO[bytes]
    stdout: IO[bytes]

    def wait(self, timeout_s: float) -> int:
        return self.process.wait(timeout_s)


def _live(home: Path, daemon: Daemon, number: int) -> int:
    """Start a pump, use it, end it in one of four ways; return its process."""
    if number % 20 == 19:
        return _live_with_parent(home, daemon)
    given, to_pump = os.pipe()
    from_pump, taken = os.pipe()
    with os.fdopen(to_pump, "wb") as stdin, os.fdopen(from_pump, "rb") as stdout:
        with os.fdopen(given, "rb") as theirs, os.fdopen(taken, "wb") as output:
            process = start(
                [str(BIN / "mnem"), "mcp"],
                environment(home, MNEMOSYNE_SOCKET=str(daemon.socket)),
                stdin=theirs,
                stdout=output,
                stderr=output,
                directory=home,
            )
        forked = _Forked(process, stdin, stdout)
        pump = Pump(cast("subprocess.Popen[bytes]", forked))
        pump.initialize("codex-mcp-client")
        pump.call("recall", query="lamp")
        if number % 3 == 0:
            assert pump.end() == 0
        elif number % 3 == 1:
            process.send_signal(signal.SIGTERM)
            process.wait(60)
    # Else its streams are closed together, as by an agent that was killed.
    process.wait(60)
    return process.pid


def _live_with_parent(home: Path, daemon: Daemon) -> int:
    parent = subprocess.Popen(
        [sys.executable, "-c", PARENT, BIN / "mnem"],
        stdout=subprocess.PIPE,
        cwd=home,
        env=environment(home, MNEMOSYNE_SOCKET=str(daemon.socket)),
    )
    assert parent.stdout
    pump = int(parent.stdout.readline())
    parent.kill()
    parent.wait()
    parent.stdout.close()
    return pump


def test_two_hundred_windows_leave_nothing_behind(tmp_path: Path) -> None:
    with running(tmp_path) as daemon:
        pid = daemon.process.pid
        for number in range(WARM_UP):
            _live(tmp_path, daemon, number)
        eventually(lambda: daemon.post("status").status == 200, "the daemon answers")
        descriptors, threads = _descriptors(pid), _threads(pid)
        resident = _resident(pid)
        pumps = [_live(tmp_path, daemon, number) for number in range(LIVES)]
        eventually(lambda: not any(map(is_running, pumps)), "every pump is gone")
        eventually(
            lambda: _descriptors(pid) <= descriptors, "its descriptors are as before"
        )
        eventually(lambda: _threads(pid) <= threads, "its threads are as before")
        grown = _resident(pid) - resident
        print(json.dumps({"lives": LIVES, "grown_kib": grown >> 10}))
        assert grown < MEMORY_GROWTH_MAX
        assert child_pids(pid) == set()


def _bare_start_s() -> float:
    """How long Python itself takes to start now."""
    began = time.perf_counter()
    subprocess.run([sys.executable, "-c", "pass"], check=True)
    return time.perf_counter() - began


def test_a_cold_start_is_answered_soon(tmp_path: Path) -> None:
    times, bare = [], []
    with running(tmp_path) as daemon:
        for _ in range(21):
            bare.append(_bare_start_s())
            began = time.perf_counter()
            with spawn_pump(tmp_path, daemon.socket) as process:
                pump = Pump(process)
                pump.initialize()
                times.append(time.perf_counter() - began)
                pump.end()
    median, bare_median = statistics.median(times[1:]), statistics.median(bare)
    figures = {"cold_start_s": median, "worst_s": max(times), "python_s": bare_median}
    print(json.dumps({name: round(value, 4) for name, value in figures.items()}))
    slowed = max(1.0, bare_median / IDLE_PYTHON_S)
    assert median < COLD_START_S * slowed
