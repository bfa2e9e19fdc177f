"""The server of the pages: a loopback port, open while the pages are in use."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from mnemosyned.config.settings import LimitsConfig
from mnemosyned.daemon.http.listening import Listener, bind_tcp
from mnemosyned.daemon.http.protocol import Access
from mnemosyned.daemon.http.server import EventLoop
from mnemosyned.daemon.metrics import ServerActivity
from mnemosyned.errors import MnemosynedError
from mnemosyned.verbs.facade import Caller
from mnemosyned.verbs.upkeep import Event
from mnemosyned.web.access import LOOPBACK, WebAccess, refused_tcp_user
from mnemosyned.web.application import HEADERS, WebApplication
from mnemosyned.web.knowledge_pages import KNOWLEDGE_ROUTES
from mnemosyned.web.machine_pages import MACHINE_ROUTES
from mnemosyned.web.memory_pages import MEMORY_ROUTES
from mnemosyned.web.upkeep_pages import UPKEEP_ROUTES

LIMITS = LimitsConfig(body_bytes_max=4 << 20, threads=16, connections_max=48)
"""Half as many streams as threads can be open."""
POLL_S = 0.5
"""How soon a stream notices that its browser left, or that its session ended."""
PAUSE_S = 0.2
"""Changes of so long a time are one event for a page."""
ROUTES = {
    **MEMORY_ROUTES,
    **KNOWLEDGE_ROUTES,
    **UPKEEP_ROUTES,
    **MACHINE_ROUTES,
}


class ChangeFeed:
    """Tells open pages that something changed, by one stream of the daemon's events for all."""

    def __init__(self, events: Callable[[], Iterator[Event]]) -> None:
        """Read what `events` returns: an iterator of the events from its call on."""
        self._events = events
        self._changed = threading.Condition()
        self._last = (0, "")
        """Number and kind of the last change."""
        self._is_reading = False
        self._pages = 0

    def listen(self, is_allowed: Callable[[], bool]) -> Iterator[bytes]:
        """Return an iterator of server-sent events, each with the kind of the last change alone.

        It ends with the daemon's stream, or once `is_allowed` returns False. Raises its refusal.
        """
        with self._changed:
            if not self._is_reading:
                events = self._events()
                threading.Thread(
                    target=self._read, args=(events,), name="changes", daemon=True
                ).start()
                self._is_reading = True
            return self._chunks(self._last, is_allowed)

    def _read(self, events: Iterator[Event]) -> None:
        """Wake the pages at each event, until the events end or no page is open."""
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
        """Yield a comment, then events for changes after `seen`, and empty chunks between them."""
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
    caller: Caller,
    *,
    port: int = 0,
    events: Callable[[], Iterator[Event]] | None = None,
) -> Iterator[WebAccess]:
    """Serve the pages on a loopback port, for this user, in a block; yield the access to them.

    The pages ask `caller` from several threads. Raises `InvalidRequest` for a port in use.
    """
    with bind_tcp(
        LOOPBACK,
        port,
        named=f"port {port}",
        advice="leave out --port for a free one",
        field="port",
    ) as listener:
        access = WebAccess(listener.getsockname()[1])
        listen = ChangeFeed(events).listen if events else None
        application = WebApplication(caller, access, ROUTES, listen=listen)
        rules = Access(
            local=False, address=access.address, hosts=access.hosts, headers=HEADERS
        )
        loop = EventLoop(
            [Listener(listener, rules, refused_user=refused_tcp_user)],
            answer=application.answer,
            limits=LIMITS,
            activity=ServerActivity(),
        )
        access.is_served = loop.is_running
        with loop:
            yield access
