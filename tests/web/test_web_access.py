"""Who may see the pages."""

from __future__ import annotations

import os
import socket
import struct
from collections.abc import Iterator
from contextlib import closing, nullcontext
from pathlib import Path

import pytest
from support.cases import each_case

from mnemosyned.errors import ForeignOrigin, Unauthorized
from mnemosyned.http_messages import HttpRequest
from mnemosyned.web import access as subject
from mnemosyned.web.access import (
    KEY_S,
    SESSIONS_MAX,
    UNKNOWN_USER,
    WebAccess,
    refused_tcp_user,
)

PORT = 7470
HERE = f"http://127.0.0.1:{PORT}"


@pytest.fixture
def access() -> WebAccess:
    return WebAccess(PORT)


def new_key(access: WebAccess) -> str:
    return access.new_address().removeprefix(f"{HERE}/enter?key=")


def cookie(access: WebAccess, value: str) -> dict[str, str]:
    return {"cookie": f"other=1; {access.cookie_name}={value}"}


def test_a_key_is_good_for_a_minute() -> None:
    now = [100.0]
    access = WebAccess(PORT, now=lambda: now[0])
    for seconds, is_good in ((KEY_S - 1, True), (KEY_S + 1, False)):
        key = new_key(access)
        now[0] += seconds
        if is_good:
            access.redeem_key(key)
        else:
            with pytest.raises(Unauthorized):
                access.redeem_key(key)


def test_only_the_newest_key_and_sessions_count(access: WebAccess) -> None:
    former, _ = new_key(access), new_key(access)
    for key in (former, "", "guessed"):
        with pytest.raises(Unauthorized, match="mnem web"):
            access.redeem_key(key)

    sessions = [access.redeem_key(new_key(access)) for _ in range(SESSIONS_MAX + 1)]

    found = [access.find_session(cookie(access, each.cookie)) for each in sessions]
    assert found == [None, *sessions[1:]]
    assert {each.form_token for each in sessions}.isdisjoint(
        each.cookie for each in sessions
    )


@each_case(
    "given",
    [
        "",
        "mnemosyned-7471={}",
        "mnemosyned-7470=",
        "mnemosyned-7470={}x",
        "mnemosyned-7470=ÿ",
        "=;;= ;\\",
    ],
)
def test_other_cookies_let_nobody_in(given: str) -> None:
    access = WebAccess(PORT)
    session = access.redeem_key(new_key(access))

    headers = {"cookie": given.format(session.cookie)}

    assert access.find_session(headers) is None


@each_case(
    "method, headers, allowed",
    [
        ("GET", {}, True),
        ("GET", {"sec-fetch-site": "none"}, True),
        ("GET", {"sec-fetch-site": "same-origin", "origin": HERE}, True),
        ("POST", {"origin": f"http://localhost:{PORT}"}, True),
        ("POST", {"sec-fetch-site": "same-origin"}, True),
        ("GET", {"sec-fetch-site": "cross-site"}, False),
        ("GET", {"sec-fetch-site": "same-site"}, False),
        ("GET", {"sec-fetch-site": ""}, False),
        ("GET", {"origin": "null"}, False),
        ("GET", {"origin": "https://evil.example"}, False),
        ("GET", {"origin": "http://127.0.0.1:7471"}, False),
        ("POST", {}, False),
        ("POST", {"sec-fetch-site": "none"}, False),
        ("POST", {"origin": "null", "sec-fetch-site": "same-origin"}, False),
        ("POST", {"origin": f"https://127.0.0.1:{PORT}"}, False),
        ("POST", {"origin": HERE, "sec-fetch-site": "same-site"}, False),
    ],
)
def test_the_pages_own_requests_may_come_and_no_others(
    method: str, headers: dict[str, str], *, allowed: bool
) -> None:
    request = HttpRequest(method, "/", "", b"", headers)
    refused = pytest.raises(ForeignOrigin, match="another page")
    with nullcontext() if allowed else refused:
        WebAccess(PORT).check_origin(request)


def test_the_port_of_http_may_be_left_out_as_browsers_do() -> None:
    access = WebAccess(80)

    assert access.address == "http://127.0.0.1"
    assert access.hosts == {
        f"{name}{end}" for name in ("127.0.0.1", "localhost") for end in ("", ":80")
    }
    for origin in ("http://localhost", "http://127.0.0.1:80"):
        access.check_origin(HttpRequest("POST", "/", "", b"", {"origin": origin}))
    with pytest.raises(ForeignOrigin):
        access.check_origin(HttpRequest("GET", "/", "", b"", {"origin": "http://a:80"}))


@pytest.fixture
def connected() -> Iterator[tuple[socket.socket, socket.socket]]:
    """Both ends of a connection on loopback: the server's, then the client's."""
    with (
        socket.create_server(("127.0.0.1", 0)) as listener,
        closing(socket.create_connection(listener.getsockname())) as client,
    ):
        accepted, _ = listener.accept()
        with accepted:
            yield accepted, client


@pytest.mark.parametrize("resets", [False, True])
def test_a_client_that_hung_up_has_no_user(
    connected: tuple[socket.socket, socket.socket], *, resets: bool
) -> None:
    accepted, client = connected
    linger = struct.pack("ii", resets, 0)
    client.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, linger)
    client.close()

    assert refused_tcp_user(accepted) == UNKNOWN_USER


@pytest.mark.parametrize("prefix", ["", "0000000000000000FFFF0000"])
@pytest.mark.parametrize("uid", [0, os.geteuid(), 54_321])
def test_other_users_of_this_machine_may_not_connect(
    connected: tuple[socket.socket, socket.socket],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    prefix: str,
    uid: int,
) -> None:
    accepted, client = connected
    ends = [
        f"{prefix}0100007F:{one.getsockname()[1]:04X}" for one in (client, accepted)
    ]
    line = "   {}: {} {} {} 00000000:00000000 00:00000000 00000000 {} 0 9 1 0 20 4 30 10 -1"
    table = tmp_path / "tcp"
    lines = [
        "  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt uid",
        line.format(0, ends[0], ends[1], "06", os.geteuid()),  # closed, without a user
        line.format(1, ends[1], ends[0], "01", os.geteuid()),  # our own end
        line.format(2, ends[0], ends[1], "01", uid),
    ]
    table.write_text("\n".join(lines) + "\n")
    monkeypatch.setattr(subject, "_TABLES", (table,))

    allowed = uid in (0, os.geteuid())
    assert refused_tcp_user(accepted) == (None if allowed else uid)


def test_without_the_table_the_key_alone_protects(
    connected: tuple[socket.socket, socket.socket],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(subject, "_TABLES", (tmp_path / "none",))

    assert refused_tcp_user(connected[0]) is None
