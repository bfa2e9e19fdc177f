"""Child processes that answer requests: what is known of one that has ended."""

from __future__ import annotations

import os
import signal

import msgspec
from support.processes import child_pids

from mnemosyned.models.workers import WorkerProcess

TIMES = 40
"""The process was once taken for a running one in a third of them."""


def test_a_process_that_is_gone_is_never_taken_for_a_running_one() -> None:
    for _ in range(TIMES):
        worker = WorkerProcess[None](
            "http.server", "0", replies=msgspec.msgpack.Decoder(type(None))
        )
        os.kill(worker.pid, signal.SIGKILL)
        while worker.pid in child_pids():
            pass

        assert not worker.limit(5, "idle")
        worker.join()
