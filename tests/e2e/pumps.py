"""`mnem mcp` as an agent starts it: a process that is spoken to line by line."""

from __future__ import annotations

import itertools
import json
import os
import select
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from e2e.daemons import WAIT_S, environment
from e2e.programs import BIN

Json = Any
LATEST_LEGACY = "2025-11-25"


class Pump:
    """A client at the other end of `mnem mcp`."""

    def __init__(self, process: subprocess.Popen[bytes]) -> None:
        self.process = process
        self._ids = itertools.count(1)
        self._unread = b""

    def send(self, message: Json) -> None:
        line = message if isinstance(message, bytes) else json.dumps(message).encode()
        assert self.process.stdin
        self.process.stdin.write(line + b"\n")
        self.process.stdin.flush()

    def read(self, *, timeout_s: float = WAIT_S) -> Json:
        """The next message; None at the end, or when none comes in time."""
        output = self.process.stdout
        assert output
        while b"\n" not in self._unread:
            if not select.select([output], [], [], timeout_s)[0]:
                return None
            data = os.read(output.fileno(), 1 << 16)
            if not data:
                return None
            self._unread += data
        line, _, self._unread = self._unread.partition(b"\n")
        return json.loads(line)

    def request(self, method: str, **params: Json) -> int:
        id = next(self._ids)
        self.send({"jsonrpc": "2.0", "id": id, "method": method, "params": params})
        return id

    def ask(self, method: str, **params: Json) -> Json:
        id = self.request(method, **params)
        answer = self.read()
        assert answer["id"] == id, answer
        return answer

    def notify(self, method: str, **params: Json) -> None:
        self.send({"jsonrpc": "2.0", "method": method, "params": params})

    def initialize(self, name: str = "test", **capabilities: Json) -> Json:
        """Shake hands; return the result."""
        result = self.ask(
            "initialize",
            protocolVersion=LATEST_LEGACY,
            capabilities=capabilities,
            clientInfo={"name": name, "version": "1"},
        )["result"]
        self.notify("notifications/initialized")
        return result

    def call(self, tool: str, **arguments: Json) -> Json:
        return self.ask("tools/call", name=tool, arguments=arguments)["result"]

    def end(self) -> int:
        """Close its input and return its exit code."""
        assert self.process.stdin
        self.process.stdin.close()
        return self.process.wait(WAIT_S)


def spawn_pump(
    home: Path,
    socket: Path | None = None,
    *words: str,
    directory: Path | None = None,
    **settings: Json,
) -> subprocess.Popen[bytes]:
    """Start `mnem mcp`; without a socket it finds its daemon by itself."""
    named = {"MNEMOSYNE_SOCKET": str(socket)} if socket else {}
    return subprocess.Popen(
        [BIN / "mnem", *words, "mcp"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        cwd=directory or home,
        env=environment(home, **named, **settings),
    )


@contextmanager
def pumping(
    home: Path, socket: Path | None = None, *words: str, **options: Json
) -> Iterator[Pump]:
    """A pump that ends with the block, having said nothing to standard error."""
    with spawn_pump(home, socket, *words, **options) as process:
        try:
            yield Pump(process)
        finally:
            process.kill()
            process.wait(WAIT_S)
        assert process.stderr
        assert process.stderr.read() == b""


def modules_loaded(name: str) -> set[str]:
    """The modules in memory once one is imported by a new interpreter."""
    script = f"import sys, {name}; print(*sys.modules)"
    run = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, check=True, text=True
    )
    return set(run.stdout.split())


def is_running(pid: int) -> bool:
    try:
        os.kill(pid, 0)
        return ") Z " not in Path(f"/proc/{pid}/stat").read_text()
    except (ProcessLookupError, FileNotFoundError):
        return False
