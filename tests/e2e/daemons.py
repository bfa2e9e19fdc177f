"""Real processes for the end-to-end tests: the daemon, what it tells systemd, and `mnem`."""

from __future__ import annotations

import json
import os
import shutil
import signal
import socket
import sqlite3
import subprocess
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass
from datetime import datetime
from http.client import HTTPConnection
from pathlib import Path
from typing import Any

from e2e.programs import BIN, Process, start

from mnemosyned import Client

Json = Any
"""Any value of JSON."""

WAIT_S = 60.0
"""The most any wait takes before its test fails."""
POLL_S = 0.005
POLL_MAX_S = 0.05
"""Each look takes time of a processor, also of what it looks at: the later, the rarer."""
CLEARED = (
    "MNEMOSYNE_",
    "XDG_",
    "NOTIFY_SOCKET",
    "WATCHDOG_",
    "PYTHONDONTWRITEBYTECODE",
    # where the tools that `mnem setup` knows keep their files
    "CLAUDE",
    "CLINE_",
    "CODEX_",
    "COPILOT_",
    "OPENCODE_",
)


def environment(home: Path, **settings: str | None) -> dict[str, str]:
    """The environment of a machine on which nothing is configured but these; None takes one out."""
    bare = {
        name: value
        for name, value in os.environ.items()
        if not name.startswith(CLEARED)
    }
    usual = {
        "HOME": str(home),
        "MNEMOSYNE_AUTO_SLEEP": "false",
        "MNEMOSYNE_EMBEDDING_ENCODER": "none",  # each home would convert its file
        "PAGER": "cat",  # less would wait for a key
    }
    wanted = bare | usual | settings
    return {name: value for name, value in wanted.items() if value is not None}


def eventually(
    claim: Callable[[], object], what: str, *, timeout_s: float = WAIT_S
) -> None:
    """Return once the claim holds; fail when it does not within the time that was waited.

    Only the pauses count: a machine that stood still meanwhile gave the daemon no time, either.
    """
    waited_s, pause_s = 0.0, POLL_S
    while not claim():
        assert waited_s < timeout_s, f"not within {timeout_s:g} s: {what}"
        time.sleep(pause_s)
        waited_s += pause_s
        pause_s = min(POLL_MAX_S, 1.5 * pause_s)


def listens(address: Path) -> bool:
    """Whether a daemon takes connections there: its socket exists a moment before."""
    with socket.socket(socket.AF_UNIX) as probe:
        return probe.connect_ex(str(address)) == 0


@contextmanager
def short_room() -> Iterator[Path]:
    """A directory whose path leaves room for a Unix socket's 107 bytes."""
    room = Path(tempfile.mkdtemp(prefix="mn-"))
    try:
        yield room
    finally:
        shutil.rmtree(room, ignore_errors=True)


class Notices:
    """The service manager's side of sd_notify: keeps all it is told, in order."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.received: list[str] = []
        self._inbox = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        self._inbox.bind(str(path))
        self._closed = False
        self._listener = threading.Thread(target=self._listen)
        self._listener.start()

    def _listen(self) -> None:
        while not self._closed:
            self.received.extend(self._inbox.recv(4096).decode().splitlines())

    def wait(self, state: str, *, timeout_s: float = WAIT_S) -> None:
        eventually(
            lambda: state in self.received, f"{state} was told", timeout_s=timeout_s
        )

    def close(self) -> None:
        self._closed = True
        with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as last:
            last.sendto(b"", str(self.path))
        self._listener.join(WAIT_S)
        self._inbox.close()


@dataclass(frozen=True, slots=True)
class Answer:
    status: int
    body: Any

    @property
    def error(self) -> tuple[str, str | None]:
        return self.body["error"]["code"], self.body["error"]["field"]


class UnixConnection(HTTPConnection):
    """HTTP over a Unix socket, and nothing of the product in it."""

    def __init__(self, path: Path) -> None:
        super().__init__("localhost", timeout=WAIT_S)
        self._path = path

    def connect(self) -> None:
        self.sock = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self.sock.settimeout(self.timeout)
        self.sock.connect(str(self._path))


@dataclass(frozen=True, slots=True, kw_only=True)
class Daemon:
    database: Path
    socket: Path
    home: Path
    process: Process
    notices: Notices
    log: Path

    def client(self) -> Client:
        return Client(self.socket)

    def request(self, method: str, path: str, body: bytes | None = None) -> Answer:
        with closing(UnixConnection(self.socket)) as connection:
            # It hangs up on a body it will not take; the answer can be read all the same.
            with suppress(BrokenPipeError, ConnectionResetError):
                connection.request(method, path, body)
            response = connection.getresponse()
            return Answer(response.status, json.loads(response.read()))

    def post(self, verb: str, **fields: object) -> Answer:
        return self.request("POST", f"/v1/{verb}", json.dumps(fields).encode())

    def events(self, name: str | None = None) -> list[dict[str, Any]]:
        """Lines logged so far, parsed as JSON."""
        lines = [json.loads(line) for line in self.log.read_text().splitlines()]
        return [line for line in lines if name in (None, line["event"])]

    def seconds_between(self, begin: str, end: str) -> float:
        """From an event to the first of another kind after it, by its own log."""
        begun = datetime.fromisoformat(self.events(begin)[0]["timestamp"])
        ends = (datetime.fromisoformat(line["timestamp"]) for line in self.events(end))
        return min((one - begun).total_seconds() for one in ends if one >= begun)

    def mnem(
        self, *words: str | bytes, stdin: bytes = b"", anew: bool = False
    ) -> subprocess.CompletedProcess[bytes]:
        words = ("--socket", str(self.socket), *words)
        return mnem(*words, home=self.home, stdin=stdin, anew=anew)

    def wait(self) -> int:
        return self.process.wait(WAIT_S)

    def stop(self, number: signal.Signals = signal.SIGTERM) -> int:
        self.process.send_signal(number)
        return self.wait()

    def kill(self) -> None:
        self.process.kill()
        self.wait()


def mnem(
    *words: str | bytes,
    home: Path,
    stdin: bytes = b"",
    anew: bool = False,
    **settings: str | None,
) -> subprocess.CompletedProcess[bytes]:
    command = [str(BIN / "mnem"), *words]
    env = environment(home, **settings)
    with (
        tempfile.TemporaryFile() as given,
        tempfile.TemporaryFile() as out,
        tempfile.TemporaryFile() as said,
    ):
        given.write(stdin)
        given.seek(0)
        process = start(command, env, stdin=given, stdout=out, stderr=said, anew=anew)
        try:
            code = process.wait(WAIT_S)
        finally:
            process.kill()
            process.wait(WAIT_S)
        out.seek(0)
        said.seek(0)
        return subprocess.CompletedProcess(command, code, out.read(), said.read())


def spawn(
    *options: str,
    home: Path,
    log: Path,
    programs: Path = BIN,
    anew: bool = False,
    **settings: str | None,
) -> Process:
    """Start `mnemosyned`; its log goes to the file."""
    command = [str(programs / "mnemosyned"), *options]
    env = environment(home, **settings)
    with log.open("wb") as output:
        return start(
            command, env, stdin=subprocess.DEVNULL, stdout=output, stderr=output, anew=anew
        )  # fmt: skip


@contextmanager
def spawned(
    *options: str, home: Path, log: Path, **settings: Json
) -> Iterator[Process]:
    """A started `mnemosyned`, killed in the end if it still runs; its log goes to the file."""
    process = spawn(*options, home=home, log=log, **settings)
    try:
        yield process
    finally:
        process.kill()
        process.wait(WAIT_S)


def refused(*options: str, home: Path, **settings: Json) -> tuple[int, str]:
    """The exit code and all output of a daemon that ends by itself."""
    log = home / "refused.log"
    with spawned(*options, home=home, log=log, **settings) as process:
        return process.wait(WAIT_S), log.read_text()


def is_ready(log: Path) -> bool:
    return b'"ready"' in log.read_bytes()


@contextmanager
def running(
    home: Path, *options: str, database: Path | None = None, **settings: Json
) -> Iterator[Daemon]:
    """A daemon that has said READY=1, killed in the end if it still runs."""
    database = database or home / "memory.db"
    with short_room() as room, closing(Notices(room / "notify")) as notices:
        address, log = room / "d.sock", room / "log"
        options = ("--database", str(database), "--socket", str(address), *options)
        settings = {"NOTIFY_SOCKET": str(notices.path)} | settings
        with spawned(*options, home=home, log=log, **settings) as process:
            _wait_ready(process, notices, log)
            yield Daemon(
                database=database,
                socket=address,
                home=home,
                process=process,
                notices=notices,
                log=log,
            )


def _wait_ready(process: Process, notices: Notices, log: Path) -> None:
    eventually(
        lambda: "READY=1" in notices.received or process.poll() is not None,
        "READY=1 or an end",
    )
    assert process.poll() is None, f"the daemon ended early:\n{log.read_text()}"


def rows(database: Path, sql: str, *values: object) -> list[tuple[Any, ...]]:
    """Rows that a statement finds in the file, read by SQLite without the product."""
    with closing(
        sqlite3.connect(f"{database.as_uri()}?mode=ro", uri=True)
    ) as connection:
        return connection.execute(sql, values).fetchall()


def kept(database: Path) -> list[str]:
    """The ids of everything remembered, in either home, with its repetitions."""
    both = "SELECT id FROM working_memory UNION ALL SELECT id FROM archive ORDER BY id"
    return [id for (id,) in rows(database, both)]


def episodes(daemon: Daemon) -> int:
    """How many episodes there are."""
    query = "SELECT count(*) FROM episodic_memory WHERE level = 0"
    count: int = rows(daemon.database, query)[0][0]
    return count
