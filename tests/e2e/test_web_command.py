"""`mnem web` as a process: on the socket and over TCP, for this user alone, until it is stopped."""

from __future__ import annotations

import os
import re
import signal
import socket
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from http.client import HTTPConnection
from pathlib import Path

import pytest
from e2e.daemons import WAIT_S, Daemon, environment, eventually, running, short_room
from e2e.doors import door_of
from e2e.programs import BIN, Process, start

from mnemosyned import Client

pytestmark = pytest.mark.e2e


@contextmanager
def web(home: Path, *words: str, **settings: str) -> Iterator[tuple[Process, str]]:
    """A running `mnem web`, and the address that it printed."""
    out, errors = home / "web.out", home / "web.err"
    with out.open("wb") as stdout, errors.open("wb") as stderr:
        process = start(
            [str(BIN / "mnem"), *words, "web", "--no-browser"],
            environment(home, **settings),
            stdin=subprocess.DEVNULL,
            stdout=stdout,
            stderr=stderr,
        )
        try:
            eventually(lambda: b"\n" in out.read_bytes(), "the address is printed")
            yield process, out.read_text().strip()
        finally:
            process.kill()
            process.wait(WAIT_S)


class Browser:
    """It opens an address, and then pages with the cookie that it got."""

    def __init__(self, address: str) -> None:
        found = re.fullmatch(r"http://127\.0\.0\.1:(\d+)(/.*)", address)
        assert found
        self.port = int(found[1])
        self._cookie = ""
        status, headers, _ = self.ask(found[2])
        assert status == 303
        self._cookie = headers["Set-Cookie"].partition(";")[0]

    def ask(self, path: str, *, form: str = "") -> tuple[int, dict[str, str], str]:
        connection = HTTPConnection("127.0.0.1", self.port, timeout=WAIT_S)
        headers = {"Cookie": self._cookie, "Sec-Fetch-Site": "same-origin"}
        if form:
            headers["Content-Type"] = "application/x-www-form-urlencoded"
        try:
            connection.request("POST" if form else "GET", path, form or None, headers)
            response = connection.getresponse()
            return response.status, dict(response.headers), response.read().decode()
        finally:
            connection.close()

    def token(self) -> str:
        found = re.search(r'name="token" value="([^"]+)"', self.ask("/briefing")[2])
        assert found
        return found[1]


def test_the_pages_show_the_memory_until_ctrl_c(daemon: Daemon, tmp_path: Path) -> None:
    daemon.post("remember", content="We deploy on Tuesdays.", id="tue")
    with web(tmp_path, "--socket", str(daemon.socket)) as (process, address):
        browser = Browser(address)

        assert "We deploy on Tuesdays." in browser.ask("/")[2]
        assert browser.ask("/memory?id=tue")[0] == 200
        process.send_signal(signal.SIGINT)
        assert process.wait(WAIT_S) == 0

    with pytest.raises(ConnectionRefusedError):
        socket.create_connection(("127.0.0.1", browser.port), timeout=WAIT_S)


@pytest.mark.thorough
def test_a_daemon_that_comes_back_is_shown_again(tmp_path: Path) -> None:
    home = tmp_path / "d"
    home.mkdir()
    with short_room() as room:
        place = ("--socket", str(room / "s"))
        with running(home, *place) as daemon:
            with Client(room / "s") as client:
                client.remember("It stays.", id="stays")
            with web(tmp_path, *place) as (_, address):
                browser = Browser(address)
                daemon.stop()
                status, _, page = browser.ask("/")
                assert status == 503
                assert "mnem start" in page
                with running(home, *place):
                    assert "It stays." in browser.ask("/memory?id=stays")[2]


@pytest.mark.thorough
def test_a_memory_over_tcp_is_shown_with_its_token(tmp_path: Path) -> None:
    home = tmp_path / "d"
    home.mkdir()
    with running(home, MNEMOSYNE_LISTEN="127.0.0.1:0") as daemon:
        door = door_of(daemon)
        daemon.post("remember", content="Over TCP.", id="far")
        settings = {
            "MNEMOSYNE_URL": f"http://127.0.0.1:{door.port}",
            "MNEMOSYNE_TOKEN": door.token,
        }
        with web(tmp_path, **settings) as (_, address):
            browser = Browser(address)
            assert "Over TCP." in browser.ask("/memory?id=far")[2]

            daemon.post("learn", content="Always answer in British English.")
            form = f"token={browser.token()}&id=far"
            assert browser.ask("/pin", form=form)[0] == 303
            assert daemon.post("get", id="far").body["memory"]["pinned"]
            assert door.token not in browser.ask("/")[2]


@pytest.mark.thorough
@pytest.mark.skipif(os.geteuid() != 0, reason="plays another user, which needs root")
def test_another_user_gets_nothing(daemon: Daemon, tmp_path: Path) -> None:
    with web(tmp_path, "--socket", str(daemon.socket)) as (_, address):
        program = (
            "import os, sys, urllib.request; os.setuid(65534); "
            "urllib.request.urlopen(sys.argv[1], timeout=9)"
        )
        thief = subprocess.run(
            ["python3", "-c", program, address],
            capture_output=True,
            check=False,
            text=True,
        )
        assert thief.returncode != 0
        assert "Error" in thief.stderr

        assert Browser(address).ask("/")[0] == 200  # the key was not used up
