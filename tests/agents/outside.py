"""Programs of others that speak the Model Context Protocol, and a relay that gives them the token."""

from __future__ import annotations

import os
import re
import socket
import subprocess
import sys
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path

from e2e.daemons import Daemon

BUILD = Path(__file__).parents[2] / "build"
SDK = BUILD / "mcp"
MODULES = BUILD / "mcp-npm" / "node_modules"
NODE = BUILD / "mcp-npm" / "bin" / "node"
INSPECTOR = MODULES / "@modelcontextprotocol/inspector/clients/cli/build/index.js"
CONFORMANCE = MODULES / "@modelcontextprotocol/conformance/dist/index.js"
PROGRAM_S = 120.0

if str(SDK) not in sys.path:  # behind our own packages, and only in the test's process
    sys.path.append(str(SDK))


def run_node(
    script: Path, *words: str | Path, home: Path, **settings: str
) -> subprocess.CompletedProcess[str]:
    """Run a program of Node with a home of its own."""
    environment = {"HOME": str(home), "PATH": os.environ["PATH"], **settings}
    return subprocess.run(
        [NODE, script, *words],
        capture_output=True,
        text=True,
        check=False,
        timeout=PROGRAM_S,
        cwd=home,
        env=environment,
    )


def tcp_port(daemon: Daemon) -> int:
    """The port on which a daemon with the setting `listen` answers."""
    (line,) = daemon.events("listening")
    return int(line["address"].rpartition(":")[2])


def token_of(daemon: Daemon) -> str:
    """The daemon's token for TCP."""
    return (daemon.home / ".local/state/mnemosyned/token").read_text().strip()


@contextmanager
def relay(daemon: Daemon) -> Iterator[str]:
    """The URL of a port that passes requests on to the daemon's, with the token added.

    The conformance suite cannot send one.
    """
    port, token = tcp_port(daemon), token_of(daemon)
    with socket.create_server(("127.0.0.1", 0)) as listener:
        own_port = listener.getsockname()[1]

        def accept() -> None:
            with suppress(OSError):  # the listener was closed
                while True:
                    client, _ = listener.accept()
                    threading.Thread(
                        target=_relay_one,
                        args=(client, port, own_port, token),
                        daemon=True,
                    ).start()

        threading.Thread(target=accept, daemon=True).start()
        try:
            yield f"http://127.0.0.1:{own_port}/mcp"
        finally:
            listener.shutdown(socket.SHUT_RDWR)


def _relay_one(client: socket.socket, port: int, own_port: int, token: str) -> None:
    with client, socket.create_connection(("127.0.0.1", port)) as daemon:
        back = threading.Thread(target=_copy, args=(daemon, client), daemon=True)
        back.start()
        with suppress(OSError), client.makefile("rb") as requests:
            while head := b"".join(iter(requests.readline, b"\r\n")):
                named = head.replace(b":%d" % own_port, b":%d" % port)
                authorization = f"Authorization: Bearer {token}\r\n\r\n".encode()
                length = re.search(rb"(?i)\r\ncontent-length: *(\d+)", head)
                body = requests.read(int(length[1])) if length else b""
                daemon.sendall(named + authorization + body)
                if b"\r\n" not in head:
                    break
        with suppress(OSError):
            daemon.shutdown(socket.SHUT_WR)
        back.join()


def _copy(source: socket.socket, target: socket.socket) -> None:
    with suppress(OSError):
        while data := source.recv(65536):
            target.sendall(data)
        target.shutdown(socket.SHUT_RDWR)


def pump_command(program: Path, daemon: Daemon) -> Sequence[str]:
    """The command line of `mnem mcp` for a daemon, for programs that clear the environment."""
    return (str(program), "--socket", str(daemon.socket), "mcp")
