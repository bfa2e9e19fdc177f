"""A clock past 2262, which Python's `time.time()` cannot tell: the daemon goes on answering."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from e2e.daemons import WAIT_S, environment, eventually, listens, short_room
from e2e.wire import answer, connected, post

pytestmark = pytest.mark.e2e

PROGRAM = """
import os, sys, time
clock, flag = time.time, sys.argv.pop()


def late():
    if os.path.exists(flag):
        raise OverflowError("timestamp too large to convert to C _PyTime_t")
    return clock()


time.time = late
from mnemosyned.daemon.main import main
main()
"""


@pytest.mark.thorough
def test_writes_and_cycles_are_answered_and_logged(tmp_path: Path) -> None:
    flag, log = tmp_path / "late", tmp_path / "log"
    with short_room() as room, log.open("wb") as output:
        process = subprocess.Popen(
            [sys.executable, "-P", "-c", PROGRAM, "--socket", room / "s", flag],
            env=environment(tmp_path, WATCHDOG_USEC="200000"),
            stderr=output,
        )
        try:
            eventually(lambda: listens(room / "s"), "it listens")
            flag.touch()
            with connected(room / "s") as connection:
                statuses = []
                for number in range(4):
                    connection.sendall(post("remember", content=f"number {number}"))
                    statuses.append(answer(connection)[0])
                connection.sendall(post("sleep", force=True))
                statuses.append(answer(connection)[0])
            process.terminate()
            code = process.wait(WAIT_S)
        finally:
            process.kill()
            process.wait(WAIT_S)

    assert statuses == [200] * 5
    assert code == 0
    assert b"cycle" in log.read_bytes()
    assert b"Traceback" not in log.read_bytes()
