"""A server that answers in OpenAI's form, well or badly; also a program, to be killed."""

from __future__ import annotations

import json
import os
import re
import socket
import ssl
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from itertools import count
from pathlib import Path
from typing import Any

PATH = "/v1/chat/completions"
_MEMORY = re.compile(r"<memory[^>]*>\n(.*?)\n</memory>", re.DOTALL)


class QuietHandler(BaseHTTPRequestHandler):
    """A handler of requests that logs nothing."""

    def reply(self, status: int, body: bytes, **headers: str) -> None:
        """Send a whole answer."""
        self.send_response(status)
        for name, value in headers.items():
            self.send_header(name.replace("_", "-"), value)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: object) -> None:
        """Say nothing."""


@contextmanager
def in_thread(server: ThreadingHTTPServer) -> Iterator[None]:
    """Serve in a thread until the end of the block."""
    thread = threading.Thread(target=server.serve_forever, args=(0.02,))
    thread.start()
    try:
        yield
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


class Exchange(QuietHandler):
    """One request, with the ways a behavior can answer it."""

    protocol_version = "HTTP/1.1"
    server: Server

    def do_POST(self) -> None:
        length = int(self.headers.get("Content-Length") or 0)
        self.request_body: dict[str, Any] = json.loads(self.rfile.read(length))
        with self.server.counting:
            self.server.seen.append(
                Seen(self.path, dict(self.headers), self.request_body)
            )
            behave = self.server.script[
                min(len(self.server.seen), len(self.server.script)) - 1
            ]
        with suppress(OSError):
            behave(self)


Behavior = Callable[[Exchange], None]


@dataclass(frozen=True, slots=True)
class Seen:
    """One request as it came."""

    path: str
    headers: Mapping[str, str]
    body: dict[str, Any]


@dataclass(frozen=True, slots=True)
class Endpoint:
    """A server under way."""

    port: int
    seen: list[Seen] = field(default_factory=list)

    @property
    def url(self) -> str:
        """The value for `llm.endpoint`."""
        return f"http://127.0.0.1:{self.port}/v1"


class Server(ThreadingHTTPServer):
    """Behaves by its script, one entry for each request, the last for all that follow."""

    daemon_threads = True
    block_on_close = False

    def __init__(self, script: Sequence[Behavior], *, port: int = 0) -> None:
        super().__init__(("127.0.0.1", port), Exchange)
        self.script = script
        self.seen: list[Seen] = []
        self.counting = threading.Lock()

    def handle_error(self, request: object, client_address: object) -> None:
        """A client that hangs up is what many tests are about."""


@contextmanager
def serving(*script: Behavior, certificate: Path | None = None) -> Iterator[Endpoint]:
    """A server in this process."""
    server = Server(script)
    if certificate:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(certificate)
        server.socket = context.wrap_socket(
            server.socket, server_side=True, do_handshake_on_connect=False
        )
    with in_thread(server):
        yield Endpoint(server.server_address[1], server.seen)


@contextmanager
def process(*options: str) -> Iterator[tuple[Endpoint, subprocess.Popen[str]]]:
    """A server in a process of its own, which a test may kill."""
    command = [sys.executable, __file__, *options]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as running:
        assert running.stdout
        try:
            yield Endpoint(int(running.stdout.readline())), running
        finally:
            running.kill()


_PORTS = count(10_000 + os.getpid() % 220 * 100)


def unused_port() -> int:
    """A port on which nobody listens, below those that the system gives to whoever asks for any."""
    while True:
        port = next(_PORTS)
        with suppress(OSError), socket.create_server(("127.0.0.1", port)):
            return port


# ---------------------------------------------------------------- behaviors


def answer(text: str | None, **thoughts: str) -> bytes:
    """An answer in OpenAI's form."""
    message = {"role": "assistant", "content": text, **thoughts}
    choice = {"index": 0, "message": message}
    return json.dumps({"object": "chat.completion", "choices": [choice]}).encode()


def says(text: str | None) -> Behavior:
    return lambda exchange: exchange.reply(200, answer(text))


def gives(status: int, body: bytes = b"", **headers: str) -> Behavior:
    return lambda exchange: exchange.reply(status, body, **headers)


def waits(seconds: float, then: Behavior) -> Behavior:
    def behave(exchange: Exchange) -> None:
        time.sleep(seconds)
        then(exchange)

    return behave


def drips(exchange: Exchange) -> None:
    """A byte now and then, and never an end."""
    exchange.send_response(200)
    exchange.send_header("Content-Length", "100000")
    exchange.end_headers()
    while True:
        exchange.wfile.write(b" ")
        exchange.wfile.flush()
        time.sleep(0.02)


def hangs_up(exchange: Exchange) -> None:
    """The connection breaks before a word."""
    exchange.connection.shutdown(socket.SHUT_RDWR)


def breaks_off(exchange: Exchange) -> None:
    """The connection breaks in the middle of the answer."""
    whole = answer("half of")
    exchange.send_response(200)
    exchange.send_header("Content-Length", str(len(whole)))
    exchange.end_headers()
    exchange.wfile.write(whole[:20])
    exchange.wfile.flush()
    exchange.connection.shutdown(socket.SHUT_RDWR)


def quotes(exchange: Exchange) -> None:
    """A summary that nothing can be said against: the first memory, as it stands."""
    asked = exchange.request_body["messages"][-1]["content"]
    found = _MEMORY.search(asked)
    exchange.reply(200, answer(found[1] if found else "Nothing was said."))


def begins(exchange: Exchange) -> None:
    """A summary of little use that is true all the same: the first fifth of what was said."""
    asked = exchange.request_body["messages"][-1]["content"]
    found = _MEMORY.findall(asked)
    most = sum(map(len, found)) // 5
    said: list[str] = []
    for text in found:
        if said and sum(map(len, said)) + len(text) > most:
            break
        said.append(text)
    exchange.reply(200, answer("\n".join(said)))


PROGRAMS: Mapping[str, Behavior] = {
    "quotes": quotes,
    "begins": begins,
    "nothing": says("They talked about things and had a good time."),
}


def main(words: Sequence[str]) -> None:
    """Serve until killed: print the port, then behave as `--say` names, after `--wait` seconds."""
    named = dict(zip(words[::2], words[1::2], strict=True))
    behave = PROGRAMS[named.get("--say", "quotes")]
    server = Server(
        [waits(float(named.get("--wait", "0")), behave)],
        port=int(named.get("--port", "0")),
    )
    print(server.server_address[1], flush=True)
    server.serve_forever()


if __name__ == "__main__":
    main(sys.argv[1:])
