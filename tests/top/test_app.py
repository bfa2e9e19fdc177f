"""The live view on a real daemon: its panels, its keys, and what it does while none answers."""

from __future__ import annotations

import asyncio
import os
import pty
import re
import select
import subprocess
import sys
import termios
import time
from collections.abc import Callable, Coroutine, Iterator
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from textual.pilot import Pilot
from textual.widgets import OptionList, Static

from mnemosyned import Client
from mnemosyned.cli.commands.top_app import StateRead, Top
from mnemosyned.client.connection import Connection
from mnemosyned.errors import DaemonUnreachable, NotFound

pytestmark = pytest.mark.top

MNEMOSYNED = Path(sys.executable).with_name("mnemosyned")
WAIT_S = 60.0
PAUSE_S = 0.1
COLOR = re.compile("\x1b\\[(?:[0-9;]*;)?(?:3[0-8]|4[0-8]|9[0-7]|10[0-7])(?:;[0-9;]*)?m")
SMALL = (80, 24)
TEXTS = ("Anna sold the amber hammock.", "The build of Nalor failed.", "Tea at nine.")
Script = Callable[..., Coroutine[Any, Any, None]]


class Daemon:
    """A daemon that can be stopped and started again on the same socket."""

    def __init__(self, room: Path) -> None:
        self.socket = str(room / "s")
        self._command = [
            str(MNEMOSYNED),
            "--database",
            str(room / "memory.db"),
            "--socket",
            self.socket,
        ]
        self.start()

    def start(self) -> None:
        self._process = subprocess.Popen(self._command, stderr=subprocess.DEVNULL)
        deadline = time.monotonic() + WAIT_S
        while time.monotonic() < deadline:
            try:
                with Client(self.socket) as client:
                    client.status()
            except DaemonUnreachable:
                time.sleep(PAUSE_S)
            else:
                return
        raise TimeoutError("the daemon did not start")

    def stop(self) -> None:
        self._process.terminate()
        self._process.wait(WAIT_S)


@pytest.fixture
def daemon(tmp_path: Path) -> Iterator[Daemon]:
    started = Daemon(tmp_path)
    with Client(started.socket) as client:
        days_ago = datetime.now(UTC) - timedelta(days=2)
        for number, text in enumerate(TEXTS):
            moment = days_ago + timedelta(minutes=number)
            client.remember(text, source="shell", created_at=moment)
    yield started
    started.stop()


def shown(pilot: Pilot[None], id: str) -> str:
    """What a panel of the main screen says."""
    panel = pilot.app.screen_stack[0].query_one(f"#{id}", Static)
    return str(panel.content)


async def until(pilot: Pilot[None], claim: Callable[[], bool]) -> None:
    deadline = time.monotonic() + WAIT_S
    while not claim():
        assert time.monotonic() < deadline, str(pilot.app.export_screenshot())
        await pilot.pause(PAUSE_S)


async def until_shown(pilot: Pilot[None], id: str, words: str) -> None:
    await until(pilot, lambda: words in shown(pilot, id))


async def until_open(pilot: Pilot[None], id: str) -> None:
    """Wait until the screen with this widget is on top and takes keys, which may be after its key."""
    await until(
        pilot, lambda: bool(pilot.app.screen.query(f"#{id}") and pilot.app.focused)
    )


async def until_text(pilot: Pilot[None], words: str) -> None:
    """Wait until the record that was opened has these words."""
    await until_open(pilot, "text")
    text = pilot.app.screen.query_one("#text", Static)
    await until(pilot, lambda: words in str(text.content))


def on_a_terminal(socket: str, variables: dict[str, str]) -> tuple[str, int]:
    """What `mnem top` writes to a terminal until `q`, and its exit code."""
    environment = {**os.environ, "TERM": "xterm-256color", **variables}
    controller, terminal = pty.openpty()
    termios.tcsetwinsize(terminal, (SMALL[1], SMALL[0]))
    process = subprocess.Popen(
        [str(MNEMOSYNED.with_name("mnem")), "--socket", socket, "top"],
        stdin=terminal,
        stdout=terminal,
        stderr=terminal,
        env=environment,
    )
    os.close(terminal)
    written, deadline = b"", time.monotonic() + WAIT_S
    while b"healthy" not in written and time.monotonic() < deadline:
        if select.select([controller], [], [], PAUSE_S)[0]:
            written += os.read(controller, 65_536)
    os.write(controller, b"q")
    while process.poll() is None and time.monotonic() < deadline:
        if select.select([controller], [], [], PAUSE_S)[0]:
            with suppress(OSError):  # the other end is closed
                written += os.read(controller, 65_536)
    os.close(controller)
    return written.decode(errors="replace"), process.wait(WAIT_S)


def plays(script: Script) -> Callable[[Daemon], None]:
    """Return the test that runs a script of keys once the daemon's state is on the screen.

    The script is given the daemon if it has a parameter of that name.
    """

    def test(daemon: Daemon) -> None:
        given = {"daemon": daemon} if "daemon" in script.__annotations__ else {}

        async def run() -> None:
            top = Top(Connection(daemon.socket), Connection(daemon.socket))
            async with top.run_test(size=SMALL) as pilot:
                await until(pilot, lambda: bool(shown(pilot, "tiers")))
                await script(pilot, **given)

        asyncio.run(run())

    return test


@plays
async def test_the_state_is_shown_in_80_columns_and_24_rows(pilot: Pilot[None]) -> None:
    latest = pilot.app.query_one("#latest", OptionList)
    assert "healthy" in shown(pilot, "heading")
    assert shown(pilot, "tiers").startswith("working           3 of 10,000")
    assert "remember" in shown(pilot, "activity")
    assert shown(pilot, "problems") == "no problems"
    assert latest.option_count == len(TEXTS)
    assert latest.size.height >= 3
    assert latest.region.bottom < SMALL[1]


@plays
async def test_a_memory_is_opened_and_left(pilot: Pilot[None]) -> None:
    await pilot.press("enter")
    await until_text(pilot, "Tea at nine.")
    await pilot.press("escape")
    await until_open(pilot, "latest")


@plays
async def test_words_are_searched_and_a_hit_is_opened(pilot: Pilot[None]) -> None:
    await pilot.press("slash")
    await until_open(pilot, "question")
    await pilot.press(*"sp hammock", "enter")
    hits = pilot.app.screen.query_one("#hits", OptionList)
    await until(pilot, lambda: hits.option_count == 1)
    await pilot.press("enter")
    await until_text(pilot, TEXTS[0])


@plays
async def test_s_sleeps_and_the_cycle_is_listed(pilot: Pilot[None]) -> None:
    assert "no cycle yet" in shown(pilot, "sleep")
    await pilot.press("s")
    await until_shown(pilot, "sleep", "explicit 3 memories")


@plays
async def test_events_are_shown_at_once(pilot: Pilot[None], daemon: Daemon) -> None:
    with Client(daemon.socket) as client:

        def remembered() -> bool:
            client.remember("another one", session="hall")
            return "remembered 1 memory  hall" in shown(pilot, "events")

        await until(pilot, remembered)
        with pytest.raises(NotFound):
            client.get("no-such-memory")
    await until_shown(pilot, "events", "get refused")


@plays
async def test_p_pauses_automatic_sleep_and_resumes_it(
    pilot: Pilot[None], daemon: Daemon
) -> None:
    for words, is_paused in (("paused", True), ("next cycle", False)):
        await pilot.press("p")
        await until_shown(pilot, "sleep", words)
        with Client(daemon.socket) as client:
            assert (client.status().sleep.paused_until is not None) is is_paused


@plays
async def test_a_restart_is_survived(pilot: Pilot[None], daemon: Daemon) -> None:
    daemon.stop()
    await until_shown(pilot, "heading", "no daemon")
    await pilot.press("enter", "escape", "question_mark", "escape", "s", "p")
    await asyncio.to_thread(daemon.start)
    await until_shown(pilot, "heading", "healthy")


@plays
async def test_q_quits_while_a_search_is_open_by_escape(pilot: Pilot[None]) -> None:
    await pilot.press("slash")
    await until_open(pilot, "question")
    await pilot.press("q")
    assert pilot.app.is_running
    await pilot.press("escape")
    await until_open(pilot, "latest")
    await pilot.press("q")
    await until(pilot, lambda: not pilot.app.is_running)


def test_a_state_that_arrives_after_q_is_dropped(daemon: Daemon) -> None:
    top = Top(Connection(daemon.socket), Connection(daemon.socket))

    async def play() -> None:
        async with top.run_test(size=SMALL) as pilot:
            await pilot.press("q")
        top.on_state_read(StateRead(None, "gone"))

    asyncio.run(play())


@pytest.mark.parametrize(
    ("variable", "colored"), [("NO_COLOR", False), ("OTHER", True)]
)
def test_no_color_is_obeyed(daemon: Daemon, variable: str, *, colored: bool) -> None:
    screen, code = on_a_terminal(daemon.socket, {variable: "1"})

    assert "healthy" in screen
    assert bool(COLOR.search(screen)) is colored
    assert code == 0


def test_nothing_of_it_is_loaded_by_the_daemon() -> None:
    program = "import sys, mnemosyned.daemon.main; print('rich' in sys.modules)"
    loaded = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True
    )

    assert loaded.stdout == "False\n"
