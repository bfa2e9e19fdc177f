"""The executable `mnem-hook` as tools start it, and daemons that answer badly."""

from __future__ import annotations

import json
import os
import socket
import subprocess
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from e2e.daemons import environment
from e2e.programs import BIN

HOOK_WAIT_S = 60.0
Json = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Ran:
    code: int
    out: bytes
    err: bytes
    seconds: float

    @property
    def answer(self) -> Json:
        """The one object it printed; anything else fails."""
        assert (self.code, self.err) == (0, b"")
        assert self.out.endswith(b"\n")
        printed = json.loads(self.out)
        assert isinstance(printed, dict)
        return printed


@dataclass(frozen=True, slots=True)
class Machine:
    """A user's home directory with a socket, where hooks are started."""

    home: Path
    socket: Path
    wait_s: str | None = "5"
    """How long a hook waits for the daemon; None for what is usual, which machines of tests may miss."""

    @property
    def spool(self) -> Path:
        return self.home / ".local" / "state" / "mnemosyned" / "spool"

    @property
    def waiting(self) -> list[Path]:
        if not self.spool.is_dir():
            return []
        return [path for path in self.spool.iterdir() if path.name[0] != "."]

    def environment(self, **variables: str | None) -> dict[str, str]:
        usual = {
            "MNEMOSYNE_SOCKET": str(self.socket),
            "MNEMOSYNE_HOOK_WAIT_S": self.wait_s,
        }
        return environment(self.home, **(usual | variables))

    def hook(self, payload: Json | bytes, **variables: str | None) -> Ran:
        given = payload if isinstance(payload, bytes) else json.dumps(payload).encode()
        return self.run(
            lambda process: process.communicate(given, HOOK_WAIT_S), variables=variables
        )

    def run(
        self,
        talk: Callable[[subprocess.Popen[bytes]], tuple[bytes, bytes]],
        *,
        stdin: int = subprocess.PIPE,
        variables: Mapping[str, str | None] | None = None,
    ) -> Ran:
        started = time.monotonic()
        with subprocess.Popen(
            [BIN / "mnem-hook"],
            stdin=stdin,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            env=self.environment(**(variables or {})),
        ) as process:
            out, err = talk(process)
            return Ran(process.wait(HOOK_WAIT_S), out, err, time.monotonic() - started)


def prompt(text: str, *, session: str = "s1", cwd: str = "/w/shop") -> Json:
    """A prompt in a tool without a transcript."""
    return {
        "hook_event_name": "UserPromptSubmit",
        "session_id": session,
        "cwd": cwd,
        "prompt": text,
        "turn_id": "t",
        "transcript_path": None,
    }


@contextmanager
def bad_daemon(path: Path, behave: Callable[[socket.socket], None]) -> Iterator[None]:
    """A listener on the daemon's socket that does this with each connection."""
    path.unlink(missing_ok=True)
    stopping = threading.Event()

    def serve() -> None:
        while not stopping.is_set():
            with suppress(OSError):
                connection, _ = listener.accept()
                with connection:
                    behave(connection)

    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(str(path))
        listener.listen(64)
        listener.settimeout(0.05)
        thread = threading.Thread(target=serve)
        thread.start()
        try:
            yield
        finally:
            stopping.set()
            thread.join(HOOK_WAIT_S)
    path.unlink(missing_ok=True)


def hang(connection: socket.socket) -> None:
    """Take the request and never answer."""
    with suppress(OSError):
        connection.settimeout(1)
        while connection.recv(1 << 16):
            pass


def hang_up(_: socket.socket) -> None:
    """Close the connection at once."""


def die_half_way(connection: socket.socket) -> None:
    """Answer with the beginning of an answer."""
    with suppress(OSError):
        connection.recv(1 << 16)
        connection.sendall(b'HTTP/1.1 200 OK\r\nContent-Length: 99\r\n\r\n{"hook')


def answer_with(status: int, body: bytes = b"{}") -> Callable[[socket.socket], None]:
    head = f"HTTP/1.1 {status} X\r\nContent-Length: {len(body)}\r\nConnection: close\r\n\r\n"

    def behave(connection: socket.socket) -> None:
        with suppress(OSError):
            connection.recv(1 << 16)
            connection.sendall(head.encode() + body)

    return behave


def open_descriptors(pid: int) -> int:
    return len(os.listdir(f"/proc/{pid}/fd"))  # noqa: PTH208
