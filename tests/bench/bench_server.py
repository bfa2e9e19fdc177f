"""Our HTTP server next to uvicorn: the same trivial answer over a Unix socket.

`make bench-server` installs uvicorn in build. Rounds of both alternate, so that load meets both.
"""

from __future__ import annotations

import argparse
import os
import socket
import statistics
import subprocess
import sys
import tempfile
import time
from contextlib import ExitStack
from pathlib import Path

ROUNDS = 20
REQUESTS = 200
START_LIMIT_S = 20.0
REQUEST = (
    b"POST /echo HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
    b"Content-Length: 13\r\n\r\n" + b'{"a": "tea"}\n'
)
LOADED = """
import sys, time
import mnemosyned.assembly.build  # what the daemon loads in any case
begun = time.perf_counter()
"""
OURS = (
    LOADED
    + """
from mnemosyned.daemon.http.listening import listen_on_socket
from mnemosyned.daemon.http.server import EventLoop, make_handler
from mnemosyned.daemon.metrics import ServerActivity
print(time.perf_counter() - begun, flush=True)
from http import HTTPStatus
from pathlib import Path
from mnemosyned.config.settings import LimitsConfig
from mnemosyned.http_messages import Resource, Response
echo = Resource(lambda request: Response(HTTPStatus.OK, bytes(request.body)), ("POST",))
activity = ServerActivity()
with listen_on_socket(Path(sys.argv[1])) as listener, EventLoop(
    [listener],
    answer=make_handler({"/echo": echo}, activity), activity=activity,
    limits=LimitsConfig(threads=16, body_bytes_max=1 << 20, connections_max=200),
):
    time.sleep(3600)
"""
)
UVICORN = (
    LOADED
    + """
import asyncio, uvicorn
path, http, loop, threads = sys.argv[1:]
async def app(scope, receive, send):
    body = (await receive())["body"]
    if threads == "threads":  # as verbs wait for SQLite
        body = await asyncio.get_running_loop().run_in_executor(None, bytes, body)
    await send({"type": "http.response.start", "status": 200, "headers": [
        (b"content-type", b"application/json"), (b"content-length", b"%d" % len(body))]})
    await send({"type": "http.response.body", "body": body})
config = uvicorn.Config(
    app, uds=path, http=http, loop=loop, lifespan="off", log_level="error"
)
config.load()
print(time.perf_counter() - begun, flush=True)
uvicorn.Server(config).run()
"""
)


class Server:
    """One server in a process of its own."""

    def __init__(self, stack: ExitStack, program: str, *options: str) -> None:
        folder = stack.enter_context(tempfile.TemporaryDirectory(prefix="mn-"))
        path = Path(folder) / "s"
        self._process = stack.enter_context(
            subprocess.Popen(
                [sys.executable, "-c", program, str(path), *options],
                stdout=subprocess.PIPE,
                text=True,
            )
        )
        stack.callback(self._process.kill)
        assert self._process.stdout
        self.import_s = float(self._process.stdout.readline())
        self._connection = stack.enter_context(_connected(path))
        self.times_s: list[float] = []

    def round(self) -> None:
        """Send some requests and keep how long each took."""
        for _ in range(REQUESTS):
            begun = time.perf_counter()
            self._connection.sendall(REQUEST)
            received = self._connection.recv(65_536)
            while not received.endswith(b'{"a": "tea"}\n'):
                received += self._connection.recv(65_536)
            self.times_s.append(time.perf_counter() - begun)

    @property
    def resident_mb(self) -> float:
        """Its resident memory."""
        pages = Path(f"/proc/{self._process.pid}/statm").read_text().split()[1]
        return int(pages) * os.sysconf("SC_PAGE_SIZE") / 1e6


def _connected(path: Path) -> socket.socket:
    deadline = time.monotonic() + START_LIMIT_S
    while True:
        connection = socket.socket(socket.AF_UNIX)
        try:
            connection.connect(str(path))
        except OSError:
            connection.close()
            if time.monotonic() > deadline:
                raise
            time.sleep(0.05)
        else:
            return connection


def main() -> None:
    """Print a line for each server."""
    argparse.ArgumentParser(description=__doc__).parse_args()
    with ExitStack() as stack:
        servers = {
            "ours": Server(stack, OURS),
            "uvicorn": Server(stack, UVICORN, "h11", "asyncio", "threads"),
            "uvicorn, on its loop": Server(stack, UVICORN, "h11", "asyncio", "loop"),
            "uvicorn, httptools, uvloop": Server(
                stack, UVICORN, "httptools", "uvloop", "threads"
            ),
        }
        for _ in range(ROUNDS):
            for server in servers.values():
                server.round()
        for name, server in servers.items():
            print(
                f"{name:30} p50 {statistics.median(server.times_s) * 1e6:5.0f} µs  "
                f"import {server.import_s * 1e3:4.0f} ms  "
                f"resident {server.resident_mb:3.0f} MB"
            )


if __name__ == "__main__":
    main()
