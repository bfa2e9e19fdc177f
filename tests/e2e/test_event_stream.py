"""Live events of a real daemon, read over its socket."""

from __future__ import annotations

import asyncio
import os
import signal
import socket
import threading
from contextlib import aclosing, closing
from datetime import UTC, datetime
from pathlib import Path
from queue import Queue

import pytest
from e2e.daemons import WAIT_S, Daemon, UnixConnection, eventually
from e2e.scripted_daemon import scripted

from mnemosyned import AsyncClient, Client, DaemonUnreachable, Event, EventKind
from mnemosyned.client.http import RECEIVED_BYTES
from mnemosyned.daemon.resources import encode_server_event
from mnemosyned.errors import LimitReached

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
    coming = listening(daemon)

    for number in range(3):
        daemon.post("remember", content=f"Tea at {number}.", session="tea")
    daemon.post("sleep", force=True)
    daemon.stop()

    events: list[Event] = []
    while event := coming.get(timeout=WAIT_S):
        if event.kind is not EventKind.CYCLE_PROGRESS:
            events.append(event)
    kinds = [event.kind for event in events]
    assert kinds[:5] == ["remembered"] * 3 + ["cycle_begun", "cycle_ended"]
    ended = events[4]
    assert (ended.trigger, ended.count, ended.episodes) == ("explicit", 3, 1)
    assert EventKind.STOPPING in kinds


def test_the_events_end_with_their_client(daemon: Daemon) -> None:
    ended = threading.Event()

    def read() -> None:
        assert list(client.events()) == []
        ended.set()

    with daemon.client() as client:
        threading.Thread(target=read, daemon=True).start()
        eventually(lambda: streams(daemon) == 1, "a stream is being sent")

        client.close()

        assert ended.wait(WAIT_S)
        client.remember("Tea.")


def test_events_before_the_first_read_are_kept(daemon: Daemon) -> None:
    with daemon.client() as client:
        events = client.events()
        daemon.post("remember", content="Tea.")

        assert next(events).memories[0].text == "Tea."


def chunk(*events: Event) -> bytes:
    data = b"".join(map(encode_server_event, events))
    return b"%x\r\n%s\r\n" % (len(data), data)


def stopping_amid_a_cycle(connection: socket.socket) -> None:
    """Send a stream in which the last cycle follows the event of the stop."""
    connection.recv(RECEIVED_BYTES)
    last = (EventKind.STOPPING, EventKind.CYCLE_BEGUN)
    events = [
        Event(id=id, kind=kind, at=datetime.now(UTC)) for id, kind in enumerate(last, 1)
    ]
    connection.sendall(
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"
        + chunk(*events)
        + chunk()
    )


def test_after_a_stop_no_other_stream_is_asked_for(room: Path) -> None:
    async def read() -> list[EventKind]:
        async with AsyncClient(room / "s") as client:
            return [event.kind async for event in client.events()]

    with scripted(room / "s", *[stopping_amid_a_cycle] * 2):
        with Client(room / "s") as client:
            kinds = [event.kind for event in client.events()]
        kinds_by_coroutine = asyncio.run(read())

    assert kinds == kinds_by_coroutine == [EventKind.STOPPING, EventKind.CYCLE_BEGUN]


def test_a_stream_refused_by_a_limit_says_when_to_try_again(room: Path) -> None:
    def refuse(connection: socket.socket) -> None:
        connection.recv(RECEIVED_BYTES)
        body = b'{"error":{"code":"limit_reached","message":"later"}}'
        head = b"HTTP/1.1 429 Later\r\nRetry-After: 7\r\nContent-Length: %d\r\n\r\n"
        connection.sendall(head % len(body) + body)

    with (
        scripted(room / "s", refuse),
        Client(room / "s") as client,
        pytest.raises(LimitReached) as refused,
    ):
        client.events()

    assert refused.value.retry_after_s == 7


@pytest.mark.thorough
def test_a_coroutine_reads_events_and_leaves_no_stream_behind(daemon: Daemon) -> None:
    def remember_once_read() -> None:
        eventually(lambda: streams(daemon) == 1, "a stream is being sent")
        daemon.post("remember", content="Tea.")

    async def first() -> Event:
        async with (
            AsyncClient(daemon.socket) as client,
            aclosing(client.events()) as events,
            asyncio.TaskGroup() as tasks,
        ):
            tasks.create_task(asyncio.to_thread(remember_once_read))
            return await anext(events)

    event = asyncio.run(first())

    assert event.memories[0].text == "Tea."
    eventually(lambda: streams(daemon) == 0, "the stream has ended")


@pytest.mark.thorough
def test_a_lost_daemon_ends_the_events_with_an_error(daemon: Daemon) -> None:
    pid: int = daemon.post("status").body["pid"]

    def kill_once_read() -> None:
        eventually(lambda: streams(daemon) == 1, "a stream is being sent")
        os.kill(pid, signal.SIGKILL)

    killing = threading.Thread(target=kill_once_read)
    with daemon.client() as client:
        killing.start()

        with pytest.raises(DaemonUnreachable, match="hung up"):
            next(client.events())
    killing.join(WAIT_S)
