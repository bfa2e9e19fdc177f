"""Live events of a real daemon, read over its socket."""

from __future__ import annotations

import asyncio
import os
import signal
import threading
from contextlib import aclosing, closing
from queue import Queue

import pytest
from e2e.daemons import WAIT_S, Daemon, UnixConnection, eventually

from mnemosyned import AsyncClient, DaemonUnreachable, Event, EventKind

GAUGE = "mnemosyned_streams "
pytestmark = pytest.mark.e2e


def listening(daemon: Daemon) -> Queue[Event | None]:
    """The events of a daemon as another thread reads them; None at their end."""
    events: Queue[Event | None] = Queue()

    def read() -> None:
        with daemon.client() as client:
            for event in client.events():
                events.put(event)
        events.put(None)

    threading.Thread(target=read, daemon=True).start()
    eventually(lambda: streams(daemon) == 1, "a stream is being sent")
    return events


def streams(daemon: Daemon) -> int:
    """Number of streams that the daemon is sending."""
    with closing(UnixConnection(daemon.socket)) as connection:
        connection.request("GET", "/metrics")
        page = connection.getresponse().read().decode()
    (line,) = [each for each in page.splitlines() if each.startswith(GAUGE)]
    return int(line.removeprefix(GAUGE))


def test_a_client_sees_what_others_do_until_the_daemon_stops(daemon: Daemon) -> None:
    events = listening(daemon)

    for number in range(3):
        daemon.post("remember", content=f"Tea at {number}.", session="tea")
    daemon.post("sleep", force=True)
    daemon.stop()

    kinds = []
    while event := events.get(timeout=WAIT_S):
        kinds.append(event.kind)
        if event.kind is EventKind.CYCLE_ENDED and event.trigger == "explicit":
            assert (event.count, event.episodes) == (3, 1)
    told = [kind for kind in kinds if kind is not EventKind.CYCLE_PROGRESS]
    assert told[:5] == ["remembered"] * 3 + ["cycle_begun", "cycle_ended"]
    assert EventKind.STOPPING in told


def test_a_coroutine_reads_events_and_leaves_no_stream_behind(daemon: Daemon) -> None:
    async def first() -> Event:
        async with (
            AsyncClient(daemon.socket) as client,
            aclosing(client.events()) as events,
        ):
            asyncio.get_running_loop().call_later(
                0.2, lambda: daemon.post("remember", content="Tea.")
            )
            async for event in events:
                return event
        raise AssertionError("no event came")

    event = asyncio.run(first())

    assert event.memories[0].text == "Tea."
    eventually(lambda: streams(daemon) == 0, "the stream has ended")


@pytest.mark.thorough
def test_a_lost_daemon_ends_the_events_with_an_error(daemon: Daemon) -> None:
    pid: int = daemon.post("status").body["pid"]
    with daemon.client() as client:
        threading.Timer(0.3, lambda: os.kill(pid, signal.SIGKILL)).start()

        with pytest.raises(DaemonUnreachable):
            for _ in client.events():
                pass
