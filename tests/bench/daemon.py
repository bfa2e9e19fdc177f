"""Starts the real daemon for a bench, or opens its database without one."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from mnemosyned import Client, Memory

BIN = Path(sys.executable).parent
READY_TIMEOUT_S = 60.0
STOP_TIMEOUT_S = 120.0
LOG_TAIL_CHARS = 2_000

TTL_HOURS = 168.0
WM_MAX = 2_000_000
QUIET = {
    "MNEMOSYNE_AUTO_SLEEP": "false",
    "MNEMOSYNE_WM_MAX": str(WM_MAX),
    "MNEMOSYNE_SLEEP_TTL_HOURS": str(TTL_HOURS),
}
"""It sleeps only when told to, and by the TTL of a week that `bench.corpus` reckons with."""


def embedded(database: Path) -> Memory:
    """The same memory without a daemon; the caller closes it."""
    settings: dict[str, Any] = {"wm_max": WM_MAX, "sleep.ttl_hours": TTL_HOURS}
    return Memory(database, **settings)


class EndedEarly(RuntimeError):
    """The daemon ended, or stayed silent, where it should have served."""


@dataclass(frozen=True, slots=True)
class Daemon:
    """A running daemon."""

    database: Path
    socket: Path
    pid: int
    ready_s: float
    """From the start of the process to its READY=1."""
    ready_cpu_s: float
    """What it computed for that, which a busy machine does not change much."""

    def client(self) -> Client:
        """Open a client on its socket; the caller closes it."""
        return Client(str(self.socket))


@contextmanager
def running(
    database: Path | str, env: Mapping[str, str] | None = None
) -> Iterator[Daemon]:
    """A daemon over this database, until the block is left."""
    with tempfile.TemporaryDirectory(prefix="bench-") as room:
        address = Path(room, "mnemosyned.sock")
        log = Path(room, "log")
        started = time.perf_counter()
        with log.open("wb") as output, notifications(Path(room, "notify")) as inbox:
            process = spawn(
                database, address, {**QUIET, **(env or {})}, inbox, output.fileno()
            )
            try:
                wait_ready(process, inbox)
                ready_s = time.perf_counter() - started
                cpu_s = cpu_seconds(process.pid)
                yield Daemon(Path(database), address, process.pid, ready_s, cpu_s)
                expect_running(process)
            except Exception as error:
                error.add_note(f"the daemon's log ends with:\n{tail(log)}")
                raise
            finally:
                stop(process)


@contextmanager
def notifications(path: Path) -> Iterator[socket.socket]:
    """A systemd-like notification socket."""
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as inbox:
        inbox.bind(str(path))
        yield inbox


def spawn(
    database: Path | str,
    address: Path,
    env: Mapping[str, str],
    inbox: socket.socket,
    output: int,
) -> subprocess.Popen[bytes]:
    command = [
        str(BIN / "mnemosyned"),
        "--database",
        str(database),
        "--socket",
        str(address),
    ]
    notify = {"NOTIFY_SOCKET": str(inbox.getsockname())}
    return subprocess.Popen(
        command, env={**os.environ, **env, **notify}, stdout=output, stderr=output
    )


def wait_ready(process: subprocess.Popen[bytes], inbox: socket.socket) -> None:
    """Return at READY=1; raise when the process ends first or takes too long."""
    inbox.settimeout(0.2)
    deadline = time.monotonic() + READY_TIMEOUT_S
    while time.monotonic() < deadline:
        try:
            if b"READY=1" in inbox.recv(4096).splitlines():
                return
        except TimeoutError:
            if process.poll() is not None:
                break
    raise EndedEarly("the daemon did not become ready")


def cpu_seconds(pid: int) -> float:
    """What a process has computed so far, in user and system mode (proc(5), fields 14 and 15)."""
    fields = (
        Path(f"/proc/{pid}/stat").read_text(encoding="utf-8").rpartition(")")[2].split()
    )
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def resident_mb(pid: int) -> tuple[float, float]:
    """What a process holds in memory, in megabytes: all of it (RSS), and what is its own (PSS)."""
    lines = (
        Path(f"/proc/{pid}/smaps_rollup").read_text(encoding="utf-8").splitlines()[1:]
    )
    kilobytes = {line.split(":")[0]: int(line.split()[1]) for line in lines}
    return kilobytes["Rss"] / 1000, kilobytes["Pss"] / 1000


def expect_running(process: subprocess.Popen[bytes]) -> None:
    if process.poll() is not None:
        raise EndedEarly(f"the daemon ended by itself with status {process.returncode}")


def tail(log: Path) -> str:
    return log.read_text(encoding="utf-8", errors="replace")[-LOG_TAIL_CHARS:]


def stop(process: subprocess.Popen[bytes]) -> None:
    """Ask it to stop; kill it when it does not."""
    process.send_signal(signal.SIGTERM)
    try:
        process.wait(STOP_TIMEOUT_S)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()
        raise
