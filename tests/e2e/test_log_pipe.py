"""Standard error is a pipe that nobody reads: the daemon goes on."""

from __future__ import annotations

import json
import os
import subprocess
import time
from contextlib import closing
from pathlib import Path

import pytest
from e2e.daemons import (
    WAIT_S,
    UnixConnection,
    environment,
    eventually,
    listens,
    short_room,
)
from e2e.programs import BIN, start

pytestmark = pytest.mark.e2e

PIPE_BYTES = 65_536
REQUESTS = 700
"""At level debug each logs a line of 120 bytes: more than a pipe takes."""


def test_a_pipe_nobody_reads_does_not_stop_the_daemon(tmp_path: Path) -> None:
    ours, theirs = os.pipe()
    with (
        short_room() as room,
        os.fdopen(ours, "rb") as pipe,
        os.fdopen(theirs, "wb") as stderr,
    ):
        address = room / "s"
        process = start(
            [str(BIN / "mnemosyned"), "--socket", str(address)],
            environment(tmp_path, MNEMOSYNE_LOG_LEVEL="debug"),
            stdin=subprocess.DEVNULL,
            stdout=stderr,
            stderr=stderr,
        )
        stderr.close()
        try:
            eventually(lambda: listens(address), "it listens")
            begun = time.monotonic()
            statuses = asked(address, REQUESTS)
            took_s = time.monotonic() - begun
            text = b""
            while text.count(b'"request"') < REQUESTS:
                text += os.read(pipe.fileno(), PIPE_BYTES)
            process.terminate()
            code = process.wait(WAIT_S)
        finally:
            process.kill()
            process.wait(WAIT_S)

    lines = [json.loads(line) for line in text.splitlines()]
    assert statuses == {200}
    assert took_s < WAIT_S
    assert len(text) > PIPE_BYTES
    assert [line["timestamp"] for line in lines] == sorted(
        line["timestamp"] for line in lines
    )
    assert code == 0


def asked(address: Path, count: int) -> set[int]:
    with closing(UnixConnection(address)) as connection:
        statuses = set()
        for _ in range(count):
            connection.request("GET", "/v1/log?limit=1")
            response = connection.getresponse()
            response.read()
            statuses.add(response.status)
        return statuses
