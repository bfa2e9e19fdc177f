"""The first process of several: what cannot be started is tried again, what ended holds nobody up."""

import queue
import socket
import threading
from types import SimpleNamespace

import pytest

from mnemosyned.daemon import processes
from mnemosyned.daemon.processes import EVENT, MESSAGES_MAX, FirstProcess, Link

WAIT_S = 60.0


def test_a_process_that_cannot_be_started_is_tried_again(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    tries: queue.Queue[object] = queue.Queue()

    def fail(*_: object, **__: object) -> None:
        tries.put(None)
        raise OSError("no memory")

    monkeypatch.setattr("subprocess.Popen", fail)
    monkeypatch.setattr(processes, "PAUSE_MAX_S", 0.0)
    monkeypatch.setattr(processes, "READY_S", 0.0)
    group = FirstProcess(2, ())
    group.start("127.0.0.1:0")
    try:
        for _ in range(2):
            tries.get(timeout=WAIT_S)
    finally:
        group.close(0)


def test_the_end_of_a_process_that_read_nothing_is_no_wait() -> None:
    ours, theirs = socket.socketpair()
    link = Link(ours)
    for _ in range(MESSAGES_MAX + 10):  # of which the kernel takes some
        link.send((EVENT, 1, 0, b"x" * 10_000))
    closing = threading.Thread(target=link.close, daemon=True)
    closing.start()
    closing.join(WAIT_S)
    is_closed = not closing.is_alive()
    theirs.close()

    assert is_closed


def test_a_daemon_that_stood_still_ends_no_process(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    killed: list[int] = []
    moments = iter((0.0, 10.0, 500.0, 510.0))
    clock = SimpleNamespace(monotonic=lambda: next(moments))
    monkeypatch.setattr(processes, "time", clock)
    group = FirstProcess(2, ())
    process = SimpleNamespace(kill=lambda: killed.append(1))
    monkeypatch.setattr(group, "_running", {1: process})
    monkeypatch.setattr(group, "_answered", {1: 0.0})

    for _ in range(3):
        group.check(None)
        assert killed == []

    group.check(None)
    assert killed == [1]
