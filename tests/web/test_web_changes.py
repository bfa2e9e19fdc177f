"""What tells open pages that something changed: one stream of the daemon's, passed on to a few."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import ExitStack
from http.client import HTTPResponse
from itertools import count

import pytest
from web.visitor import WAIT_S, end_events, enter, events_of, fetched

from mnemosyned import Memory
from mnemosyned.errors import DaemonUnreachable
from mnemosyned.verbs.upkeep import Event, EventKind
from mnemosyned.web.access import SESSIONS_MAX, WebAccess
from mnemosyned.web.application import EVENTS
from mnemosyned.web.server import LIMITS, ChangeFeed, serve_pages

OPENING = b": \n\n"


class Source:
    def __init__(self, memory: Memory) -> None:
        self.memory = memory
        self.opened = 0
        self.is_refused = False

    def events(self) -> Iterator[Event]:
        if self.is_refused:
            raise DaemonUnreachable("no daemon answers")
        self.opened += 1
        return events_of(self.memory)


@pytest.fixture
def source() -> Iterator[Source]:
    with Memory(":memory:") as memory:
        yield Source(memory)
        end_events(memory)


@pytest.fixture
def server(source: Source) -> Iterator[WebAccess]:
    with serve_pages(source.memory, events=source.events) as running:
        yield running


def read_event(stream: HTTPResponse) -> bytes:
    """The next event or comment of a stream; empty at its end."""
    return stream.readline() + stream.readline()


def test_a_change_is_told_by_its_kind_alone(server: WebAccess, source: Source) -> None:
    with fetched(server, EVENTS, enter(server)) as stream:
        assert stream.headers["Content-Type"] == "text/event-stream"
        assert stream.headers["Cache-Control"] == "no-store"
        assert read_event(stream) == OPENING
        source.memory.remember("The deploy is on Tuesday.", session="work")
        assert read_event(stream) == b"data: remembered\n\n"
        source.memory.forget(session="work")
        assert read_event(stream) == b"data: forgotten\n\n"


def test_pages_share_the_daemons_one_stream(server: WebAccess, source: Source) -> None:
    cookie = enter(server)
    with ExitStack() as stack:
        streams = [
            stack.enter_context(fetched(server, EVENTS, cookie))
            for _ in range(LIMITS.threads // 2)
        ]
        for stream in streams:
            assert read_event(stream) == OPENING
        source.memory.remember("The deploy is on Tuesday.")
        for stream in streams:
            assert read_event(stream) == b"data: remembered\n\n"
        with fetched(server, EVENTS, cookie) as refused:
            assert refused.status == 503
        with fetched(server, "/search", cookie) as page:
            assert page.status == 200

    assert source.opened == 1


def test_a_stream_ends_with_its_session(server: WebAccess) -> None:
    cookie = enter(server)
    with fetched(server, EVENTS, cookie) as stream:
        assert read_event(stream) == OPENING
        for _ in range(SESSIONS_MAX):
            enter(server)
        assert read_event(stream) == b""
    with fetched(server, EVENTS, cookie) as refused:
        assert refused.status == 401


def test_a_stream_is_no_use_of_the_pages(
    server: WebAccess, source: Source, monkeypatch: pytest.MonkeyPatch
) -> None:
    cookie = enter(server)
    moments = count(step=60.0)
    monkeypatch.setattr(server, "_used_at", 0.0)
    monkeypatch.setattr(server, "_now", lambda: next(moments))
    with fetched(server, EVENTS, cookie) as stream:
        assert read_event(stream) == OPENING
        source.memory.remember("The deploy is on Tuesday.")
        assert read_event(stream)

    assert [server.unused_s, server.unused_s] == [0.0, 60.0]


def test_streams_end_with_the_daemons_stream(server: WebAccess, source: Source) -> None:
    cookie = enter(server)
    with fetched(server, EVENTS, cookie) as stream:
        assert read_event(stream) == OPENING
        end_events(source.memory)
        assert read_event(stream) == b"data: stopping\n\n"
        assert read_event(stream) == b""
    source.is_refused = True
    with fetched(server, EVENTS, cookie) as refused:
        assert refused.status == 503
    source.is_refused = False
    with fetched(server, EVENTS, cookie) as stream:
        assert read_event(stream) == OPENING
    assert source.opened == 2


def test_a_door_without_events_has_no_stream() -> None:
    with (
        Memory(":memory:") as memory,
        serve_pages(memory) as running,
        fetched(running, EVENTS, enter(running)) as refused,
    ):
        assert refused.status == 404


def test_the_daemons_stream_is_left_when_no_page_is_open() -> None:
    going, left = threading.Event(), threading.Event()

    def events() -> Iterator[Event]:
        try:
            assert going.wait(WAIT_S)
            with Memory(":memory:") as memory:
                bus = memory._caller.events  # type: ignore[attr-defined]  # noqa: SLF001 as a daemon does
                while True:
                    yield bus.event(EventKind.REMEMBERED)
        finally:
            left.set()

    stream = ChangeFeed(events).listen(lambda: True)
    assert next(stream) == OPENING
    stream.close()  # type: ignore[attr-defined]
    going.set()

    assert left.wait(WAIT_S)
