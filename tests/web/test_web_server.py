"""The port of the pages: who reaches it, what it takes, what changes it tells, and when it closes."""

from __future__ import annotations

import socket
import struct
import threading
from collections.abc import Iterator
from contextlib import ExitStack, suppress
from http.client import HTTPResponse
from itertools import count

import pytest
from click.testing import CliRunner
from support.cases import thorough
from web.visitor import WAIT_S, end_events, enter, events_of, fetched

from mnemosyned import Memory
from mnemosyned.cli.main import mnem
from mnemosyned.daemon.http.server import EventLoop, log
from mnemosyned.errors import DaemonUnreachable, InvalidRequest, MnemosynedError
from mnemosyned.verbs.upkeep import Event, EventKind
from mnemosyned.web import server as web_server
from mnemosyned.web.access import SESSIONS_MAX, WebAccess
from mnemosyned.web.application import EVENTS, HEADERS, STATIC
from mnemosyned.web.server import (
    LIMITS,
    ROUTES,
    SILENT_CHECKS_MAX,
    ChangeFeed,
    _wait_for_end,
    serve_pages,
)


@pytest.fixture(scope="module")
def served() -> Iterator[WebAccess]:
    with Memory(":memory:") as memory, serve_pages(memory) as server:
        yield server


def test_the_address_opens_the_pages_once(served: WebAccess) -> None:
    path = served.new_address().removeprefix(served.address)

    with fetched(served, path) as entered:
        assert entered.status == 303
        cookie = {"Cookie": entered.headers["Set-Cookie"].partition(";")[0]}
    with fetched(served, "/", cookie) as first:
        assert first.status == 200
        assert b"Nothing is remembered yet" in first.read()
    with fetched(served, path) as again:
        assert again.status == 401
    assert served.unused_s < WAIT_S


def test_every_answer_has_the_headers_that_protect_it(served: WebAccess) -> None:
    cookie = enter(served)
    pages = ["/", "/nowhere", "/memory", "/enter?key=used", "/health", *STATIC]
    refused = [{"Host": "evil.example"}, {"X": "y" * 300_000}, {"X": " " * 100 + "y"}]

    asked = [(page, headers) for page in pages for headers in (cookie, {})]
    for page, headers in (*asked, *(("/", headers) for headers in refused)):
        with fetched(served, page, headers) as given:
            assert dict(HEADERS).items() <= dict(given.headers).items()
            assert given.status >= 400 or headers not in refused
    policy = dict(HEADERS)["Content-Security-Policy"]
    assert policy.startswith("default-src 'none'; script-src 'self'; style-src 'self';")
    assert "unsafe" not in policy


@pytest.mark.parametrize(
    "host",
    [
        *("evil.example", "127.0.0.1:1"),
        *thorough("evil.example:{}", "127.0.0.1", "127.0.0.2:{}", ""),
    ],
)
def test_a_name_that_leads_here_gets_nothing(served: WebAccess, host: str) -> None:
    headers = {"Host": host.format(served.port), **enter(served)}
    routes = [*ROUTES, f"GET {EVENTS}", *(f"GET {path}" for path in STATIC)]

    for route in routes:
        method, path = route.split()
        with fetched(served, path, headers, method=method) as refused:
            assert refused.status == 403, route
            assert refused.headers["Content-Type"] == "application/json"


def test_a_session_ends_with_the_pages_on_its_port() -> None:
    with Memory(":memory:") as memory:
        with serve_pages(memory) as former:
            cookie = enter(former)
            with fetched(former, "/", cookie) as shown:
                assert shown.status == 200
        with serve_pages(memory, port=former.port) as later:
            for path in ("/", "/events", "/memory?id=x"):
                with fetched(later, path, cookie) as refused:
                    assert refused.status == 401


@pytest.mark.parametrize(
    ("headers", "body", "status"),
    [
        ({"X": "y" * 300_000}, "", 431),
        ({"Content-Length": str(LIMITS.body_bytes_max + 1)}, "", 413),
        ({"Transfer-Encoding": "chunked", "Content-Length": "3"}, "abc", 400),
    ],
)
def test_a_request_has_limits(
    served: WebAccess, headers: dict[str, str], body: str, status: int
) -> None:
    with fetched(served, "/rate", headers, method="POST", body=body) as refused:
        assert refused.status == status


def test_only_loopback_listens_and_nothing_after_the_end() -> None:
    with Memory(":memory:") as memory:
        with serve_pages(memory) as running:
            port = running.port
            with pytest.raises(OSError, match="refused"):
                socket.create_connection(("127.0.0.2", port), timeout=WAIT_S)
        with pytest.raises(OSError, match="refused"):
            socket.create_connection(("127.0.0.1", port), timeout=WAIT_S)


def test_a_client_that_resets_ends_nothing(served: WebAccess) -> None:
    for _ in range(12):  # fewer than the backlog takes
        with socket.create_connection(("127.0.0.1", served.port)) as client:
            at_once = struct.pack("ii", 1, 0)
            client.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, at_once)

    with fetched(served, "/page.css") as page:
        assert page.status == 200


def test_an_unchecked_client_is_logged_once(monkeypatch: pytest.MonkeyPatch) -> None:
    logged: list[str] = []
    failing = [OSError("broken")] * 3
    monkeypatch.setattr(log, "exception", logged.append)

    def check(_: socket.socket) -> None:
        if failing:
            raise failing.pop()

    monkeypatch.setattr(web_server, "refused_tcp_user", check)
    with Memory(":memory:") as memory, serve_pages(memory) as running:
        while failing:
            with pytest.raises(OSError), fetched(running, "/page.css"):  # noqa: PT011 any
                pass
        with fetched(running, "/page.css") as page:
            assert page.status == 200

    assert logged == ["client_failed"]


def test_refused_clients_are_logged_once(monkeypatch: pytest.MonkeyPatch) -> None:
    logged: list[tuple[str, int]] = []
    monkeypatch.setattr(
        log, "warning", lambda event, *, uid: logged.append((event, uid))
    )
    monkeypatch.setattr(web_server, "refused_tcp_user", lambda _: 54_321)
    with Memory(":memory:") as memory, serve_pages(memory) as running:
        for _ in range(3):
            with pytest.raises(OSError), fetched(running, "/page.css"):  # noqa: PT011 any
                pass

    assert logged == [("peer_refused", 54_321)]


def test_a_port_in_use_is_named() -> None:
    with (
        socket.create_server(("127.0.0.1", 0)) as taken,
        Memory(":memory:") as memory,
        pytest.raises(InvalidRequest, match="leave out --port"),
        serve_pages(memory, port=taken.getsockname()[1]),
    ):
        pass


def test_without_a_daemon_no_port_is_opened() -> None:
    run = CliRunner().invoke(mnem, ["web", "--no-browser", "--socket", "/nowhere/s"])

    assert isinstance(run.exception, DaemonUnreachable)
    assert "http" not in run.output


class Asked:
    """A page server that nobody uses, and a daemon that answers or not."""

    def __init__(self, *, unused_s: float, is_up: bool) -> None:
        self.unused_s = unused_s
        self.checks = 0
        self._is_up = is_up
        self.is_served = lambda: True

    def page(self, path: str) -> str:
        assert path == "/health"
        self.checks += 1
        if not self._is_up:
            raise DaemonUnreachable("no daemon answers")
        return "{}"


def test_it_ends_when_nobody_used_it_for_so_long() -> None:
    asked = Asked(unused_s=61.0, is_up=True)

    assert "1 minute" in _wait_for_end(asked, asked, 1)  # type: ignore[arg-type]


@pytest.mark.filterwarnings("ignore::pytest.PytestUnhandledThreadExceptionWarning")
def test_a_failed_server_ends_with_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(_: EventLoop) -> None:
        raise RuntimeError

    asked = Asked(unused_s=0.0, is_up=True)
    with Memory(":memory:") as memory, serve_pages(memory) as running:
        assert running.is_served()
        monkeypatch.setattr(EventLoop, "_sweep_connections", fail)
        with suppress(OSError), fetched(running, "/page.css"):
            pass
        asked.is_served = running.is_served
        monkeypatch.setattr(web_server, "BEAT_S", 0.01)
        with pytest.raises(MnemosynedError, match="opens them again"):
            _wait_for_end(asked, asked, 1)  # type: ignore[arg-type]


def test_it_ends_when_the_daemon_has_stopped(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(web_server, "BEAT_S", 0.0)
    monkeypatch.setattr(web_server, "CHECK_S", 0.0)
    asked = Asked(unused_s=0.0, is_up=False)

    assert "the daemon has stopped" in _wait_for_end(asked, asked, 1)  # type: ignore[arg-type]
    assert asked.checks == SILENT_CHECKS_MAX


# What tells open pages that something changed: one stream of the daemon's, passed on to a few.


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
                    yield bus.new_event(EventKind.REMEMBERED)
        finally:
            left.set()

    stream = ChangeFeed(events).listen(lambda: True)
    assert next(stream) == OPENING
    stream.close()  # type: ignore[attr-defined]
    going.set()

    assert left.wait(WAIT_S)
