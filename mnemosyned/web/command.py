"""`mnem web`: open the pages of the memory in a browser, and serve them until nobody looks."""

from __future__ import annotations

import os
import select
import time
import webbrowser
from contextlib import suppress
from typing import TYPE_CHECKING

import click

from mnemosyned.cli.calls import connect_to_daemon
from mnemosyned.cli.output.terminal import count_of, say
from mnemosyned.errors import MnemosynedError
from mnemosyned.logs import configure_logs
from mnemosyned.verbs.upkeep import Status

if TYPE_CHECKING:
    from mnemosyned.client.connection import Connection
    from mnemosyned.web.access import WebAccess

STDIN, LINE_BYTES = 0, 4096
PORT_MAX = 65_535
MINUTES_MAX = 24 * 60
BEAT_S = 2.0
CHECK_S = 20.0
"""Interval of the question whether the daemon is still there."""
SILENT_CHECKS_MAX = 3
HOW_TO_OPEN = """\
open it within a minute, in one browser; Enter prints another address, Ctrl-C ends it
from another machine: ssh -L {port}:127.0.0.1:{port} THIS-MACHINE, and open it there
it ends after {time} without use"""
DISPLAYS = ("DISPLAY", "WAYLAND_DISPLAY")


@click.command("web")
@click.option("--no-browser", is_flag=True, help="Print the address; open no browser.")
@click.option(
    "--port",
    type=click.IntRange(0, PORT_MAX),
    default=0,
    help="The port on 127.0.0.1; default: a free one.",
)
@click.option(
    "--minutes",
    type=click.IntRange(1, MINUTES_MAX),
    default=30,
    show_default=True,
    help="End after so many minutes in which nobody opened a page.",
)
@click.pass_context
def web(context: click.Context, *, no_browser: bool, port: int, minutes: int) -> None:
    """Open web pages on memories, sleep cycles, and the texts that agents get.

    The page is served on this machine, for you alone, while this command runs. The address lets one
    browser in, once, within a minute; Enter prints another. Ctrl-C ends it.
    """
    # Loaded here: its help page starts at once.
    from mnemosyned.web.server import serve_pages  # noqa: PLC0415

    configure_logs(level="warning", form="console")
    with connect_to_daemon(context) as client:
        client.call(Status())  # before a port is open
        with serve_pages(client, port=port, events=client.events) as access:
            address = access.new_address()
            say(address)
            unused = count_of(minutes, "minute")
            say(HOW_TO_OPEN.format(port=access.port, time=unused), err=True)
            is_here = "SSH_CONNECTION" not in os.environ
            if is_here and not no_browser and any(map(os.environ.get, DISPLAYS)):
                webbrowser.open(address)
            reason = ""
            with suppress(KeyboardInterrupt):
                reason = _wait(access, client, minutes)
            say(reason or "closed", err=True)


def _wait(access: WebAccess, client: Connection, minutes: int) -> str:
    """Wait until nobody used the pages for so many minutes; return why they end.

    They also end with the daemon. Enter prints a new address. Raises `MnemosynedError` if the pages'
    server failed.
    """
    checked_at, silent = time.monotonic(), 0
    while access.unused_s < minutes * 60:
        if not access.is_served():
            raise MnemosynedError("the pages' server failed; mnem web opens them again")
        watched: list[int] = []
        with suppress(OSError):  # no terminal
            # In the background, reading the terminal would stop this process.
            watched = [STDIN] * (os.tcgetpgrp(STDIN) == os.getpgrp())
        if select.select(watched, [], [], BEAT_S)[0]:
            os.read(STDIN, LINE_BYTES)
            say(access.new_address())
        if time.monotonic() - checked_at >= CHECK_S:
            checked_at = time.monotonic()
            silent += 1
            with suppress(MnemosynedError):
                client.page("/health")
                silent = 0
            if silent >= SILENT_CHECKS_MAX:
                return "the daemon has stopped; mnem start starts it, mnem web opens this again"
    return f"closed, as nobody used it for {count_of(minutes, 'minute')}; mnem web opens it again"
