"""`mnem web`: open the pages of the memory in a browser, and serve them until nobody looks."""

from __future__ import annotations

import os
import select
import threading
import time
import webbrowser
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress

import click

from mnemosyned.cli.calls import connect_to_daemon
from mnemosyned.cli.output.terminal import count_of, say
from mnemosyned.client.connection import Connection
from mnemosyned.config.settings import LimitsConfig
from mnemosyned.daemon.http import listening, protocol, server
from mnemosyned.daemon.metrics import ServerActivity
from mnemosyned.errors import MnemosynedError
from mnemosyned.logs import configure_logs
from mnemosyned.verbs import facade, upkeep
from mnemosyned.web import memory_pages, upkeep_pages
from mnemosyned.web.access import LOOPBACK, WebAccess, refused_tcp_user
from mnemosyned.web.application import HEADERS, WebApplication

LIMITS = LimitsConfig(body_bytes_max=4 << 20, threads=16, connections_max=48)
"""Half as many streams as threads can be open."""
POLL_S = 0.5
"""How soon a stream notices that its browser left, or that its session ended."""
PAUSE_S = 0.2
"""Seconds in which several changes become one event for a page."""
ROUTES = {**memory_pages.MEMORY_ROUTES, **upkeep_pages.UPKEEP_ROUTES}


class ChangeFeed:
    """Tells open pages that something changed, by one stream of the daemon's events for all."""

    def __init__(self, events: Callable[[], Iterator[upkeep.Event]]) -> None:
        """Read what `events` returns: an iterator of the events from its call on."""
        self._events = events
        self._changed = threading.Condition()
        self._last = (0, "")
        """Number and kind of the last change."""
        self._is_reading = False
        self._pages = 0

    def listen(self, is_allowed: Callable[[], bool]) -> Iterator[bytes]:
        """Return a stream of server-sent events with the kinds of changes; start the reading thread if needed.

        The stream ends with the daemon's, or once `is_allowed` returns False. Raises the daemon's error.
        """
        with self._changed:
            if not self._is_reading:
                events = self._events()
                threading.Thread(
                    target=self._read, args=(events,), name="changes", daemon=True
                ).start()
                self._is_reading = True
            return self._chunks(self._last, is_allowed)

    def _read(self, events: Iterator[upkeep.Event]) -> None:
        """Wake the pages' streams at each event of the daemon, until its events end or no page is open."""
        try:
            for event in events:
                with self._changed:
                    if not self._pages:
                        return
                    self._last = (self._last[0] + 1, event.kind.value)
                    self._changed.notify_all()
        except MnemosynedError:
            pass  # a page that asks again is told why
        finally:
            with self._changed:
                self._is_reading = False
                self._changed.notify_all()

    def _chunks(
        self, seen: tuple[int, str], is_allowed: Callable[[], bool]
    ) -> Iterator[bytes]:
        """Yield a comment, then an event for changes after `seen`, or an empty chunk while nothing changes."""
        with self._changed:
            self._pages += 1
        try:
            yield b": \n\n"
            while is_allowed():
                with self._changed:
                    if self._last == seen and self._is_reading:
                        self._changed.wait(POLL_S)
                    former, seen = seen, self._last
                if former == seen and not self._is_reading:
                    return
                yield b"" if former == seen else b"data: %s\n\n" % seen[1].encode()
                time.sleep(0 if former == seen else PAUSE_S)
        finally:
            with self._changed:
                self._pages -= 1


@contextmanager
def serve_pages(
    caller: facade.Caller,
    *,
    port: int = 0,
    events: Callable[[], Iterator[upkeep.Event]] | None = None,
) -> Iterator[WebAccess]:
    """Serve the pages on a loopback port, for this user, in a block; yield the pages' `WebAccess`.

    Several threads call `caller`. Raises `InvalidRequest` for a port in use.
    """
    with listening.bind_tcp(
        LOOPBACK,
        port,
        named=f"port {port}",
        advice="leave out --port for a free one",
        field="port",
    ) as listener:
        access = WebAccess(listener.getsockname()[1])
        listen = ChangeFeed(events).listen if events else None
        application = WebApplication(caller, access, ROUTES, listen=listen)
        rules = protocol.Access(
            local=False, address=access.address, hosts=access.hosts, headers=HEADERS
        )
        loop = server.EventLoop(
            [listening.Listener(listener, rules, refused_user=refused_tcp_user)],
            answer=application.answer,
            limits=LIMITS,
            activity=ServerActivity(),
        )
        access.is_served = loop.is_running
        with loop:
            yield access


STDIN, LINE_BYTES = 0, 4096
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
    type=click.IntRange(0, 65_535),
    default=0,
    help="The port on 127.0.0.1; default: a free one.",
)
@click.option(
    "--minutes",
    type=click.IntRange(1, 24 * 60),
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
    configure_logs(level="warning", form="console")
    with connect_to_daemon(context) as client:
        client.call(upkeep.Status())  # before a port is open
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
                reason = _wait_for_end(access, client, minutes)
            say(reason or "closed", err=True)


def _wait_for_end(access: WebAccess, client: Connection, minutes: int) -> str:
    """Wait until nobody has used the pages for `minutes`, or the daemon has stopped; return the reason.

    Enter prints a new address meanwhile. Raises `MnemosynedError` if the pages' server failed.
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
