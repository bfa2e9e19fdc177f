"""The first requests of a process, all at once, under threads that switch fifty times as often.

FIRST_LIVES is how many lives each test lives through; `make test-fault` takes few.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import msgspec
import pytest
from e2e.daemons import WAIT_S, Daemon, environment, eventually, listens, short_room
from e2e.first_requests import FIRST, SWITCH_S
from e2e.wire import answer, connected, post

from mnemosyned import Memory
from mnemosyned.verbs.facade import VERBS

pytestmark = [pytest.mark.e2e, pytest.mark.fault]

LIVES = int(os.environ.get("FIRST_LIVES", "40"))
DAEMON_LIVES = int(os.environ.get("FIRST_LIVES", "4"))
"""A start of a real process takes a third of a second."""
CLIENTS = [8, 32]
LIFE_S = 30.0
SCRIPT = Path(__file__).with_name("first_requests.py")
PROGRAM = (
    f"import sys; sys.setswitchinterval({SWITCH_S})\n"
    "from mnemosyned.daemon import main as daemon\n"
    f"daemon.SWITCH_S = {SWITCH_S}\n"
    "daemon.main()"
)
NAMES = {verb: name for name, verb in VERBS.items()}


@pytest.mark.parametrize("clients", CLIENTS)
def test_a_shared_client_survives_its_first_calls(daemon: Daemon, clients: int) -> None:
    assert lived("client", daemon.socket, clients) == "died 0, failed 0"


@pytest.mark.parametrize("clients", CLIENTS)
def test_a_memory_survives_its_first_calls(tmp_path: Path, clients: int) -> None:
    Memory(tmp_path / "memory.db").close()

    assert lived("memory", tmp_path, clients) == "died 0, failed 0"


@pytest.mark.parametrize("clients", CLIENTS)
def test_a_daemon_survives_its_first_requests(tmp_path: Path, clients: int) -> None:
    first = [FIRST[number % len(FIRST)] for number in range(clients)]
    requests = [post(NAMES[type(each)], **msgspec.to_builtins(each)) for each in first]
    answered = 0

    for _ in range(DAEMON_LIVES):
        with life(tmp_path) as (process, address), ExitStack() as stack:
            connections = [stack.enter_context(connected(address)) for _ in requests]
            for connection, request in zip(connections, requests, strict=True):
                connection.sendall(request)
            answered += sum(answer(connection)[0] == 200 for connection in connections)
            assert process.poll() is None, f"it ended with {process.returncode}"

    assert answered == DAEMON_LIVES * clients


def lived(kind: str, place: Path, clients: int) -> str:
    """How the lives of forks of one process ended."""
    words = (SCRIPT, kind, place, clients, LIVES)
    command = [sys.executable, "-P", *map(str, words)]
    run = subprocess.run(
        command, capture_output=True, check=True, text=True, timeout=LIFE_S * LIVES
    )
    return run.stdout.strip() + re.sub(r"(?s)(.{500}).*", r"\1", run.stderr)


@contextmanager
def life(home: Path) -> Iterator[tuple[subprocess.Popen[bytes], Path]]:
    """A real daemon, started anew, from when it listens until it is killed."""
    with short_room() as room, (home / "log").open("ab") as log:
        address = room / "s"
        options = ["--database", str(home / "memory.db"), "--socket", str(address)]
        process = subprocess.Popen(
            [sys.executable, "-P", "-c", PROGRAM, *options],
            env=environment(home),
            stdout=log,
            stderr=log,
        )
        try:
            eventually(
                lambda: listens(address) or process.poll() is not None, "it listens"
            )
            yield process, address
        finally:
            process.kill()
            process.wait(WAIT_S)
