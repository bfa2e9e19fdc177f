"""The port of the pages: who reaches it, what it takes, and when it closes."""

from __future__ import annotations

import socket
import struct
from collections.abc import Iterator
from contextlib import suppress

import pytest
from click.testing import CliRunner
from web.visitor import WAIT_S, enter, fetched

from mnemosyned import Memory
from mnemosyned.cli.main import mnem
from mnemosyned.daemon.http.server import EventLoop, log
from mnemosyned.errors import DaemonUnreachable, InvalidRequest, MnemosynedError
from mnemosyned.web import server as web_server
from mnemosyned.web.access import WebAccess
from mnemosyned.web.application import EVENTS, HEADERS, STATIC
from mnemosyned.web.server import (
    LIMITS,
    ROUTES,
    SILENT_CHECKS_MAX,
    _wait,
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
        assert b"Working memory is empty" in first.read()
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
    ["evil.example", "evil.example:{}", "127.0.0.1:1", "127.0.0.1", "127.0.0.2:{}", ""],
)
def test_a_name_that_leads_here_gets_nothing(served: WebAccess, host: str) -> None:
    for path in ("/", "/page.css", "/enter?key=x"):
        with fetched(served, path, {"Host": host.format(served.port)}) as refused:
            assert refused.status == 403
            assert refused.headers["Content-Type"] == "application/json"


def test_no_page_answers_a_name_that_was_made_to_lead_here(served: WebAccess) -> None:
    headers = {"Host": f"evil.example:{served.port}", **enter(served)}

    for route in (*ROUTES, f"GET {EVENTS}", *(f"GET {path}" for path in STATIC)):
        method, path = route.split()
        with fetched(served, path, headers, method=method) as refused:
            assert refused.status == 403, route


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

    assert "1 minute" in _wait(asked, asked, 1)  # type: ignore[arg-type]


@pytest.mark.filterwarnings("ignore::pytest.PytestUnhandledThreadExceptionWarning")
def test_a_failed_server_ends_with_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(_: EventLoop) -> None:
        raise RuntimeError

    asked = Asked(unused_s=0.0, is_up=True)
    with Memory(":memory:") as memory, serve_pages(memory) as running:
        assert running.is_served()
        monkeypatch.setattr(EventLoop, "_check_deadlines", fail)
        with suppress(OSError), fetched(running, "/page.css"):
            pass
        asked.is_served = running.is_served
        monkeypatch.setattr(web_server, "BEAT_S", 0.01)
        with pytest.raises(MnemosynedError, match="opens them again"):
            _wait(asked, asked, 1)  # type: ignore[arg-type]


def test_it_ends_when_the_daemon_has_stopped(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(web_server, "BEAT_S", 0.0)
    monkeypatch.setattr(web_server, "CHECK_S", 0.0)
    asked = Asked(unused_s=0.0, is_up=False)

    assert "the daemon has stopped" in _wait(asked, asked, 1)  # type: ignore[arg-type]
    assert asked.checks == SILENT_CHECKS_MAX
