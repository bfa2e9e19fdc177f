"""The server of the pages: a loopback port, open while the pages are in use."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from mnemosyned.config.settings import LimitsConfig
from mnemosyned.daemon.http.listening import Listener, bind_tcp
from mnemosyned.daemon.http.protocol import Access
from mnemosyned.daemon.http.server import EventLoop
from mnemosyned.daemon.metrics import ServerActivity
from mnemosyned.verbs.facade import Caller
from mnemosyned.web.access import LOOPBACK, WebAccess, refused_tcp_user
from mnemosyned.web.application import HEADERS, WebApplication
from mnemosyned.web.memory_pages import MEMORY_ROUTES
from mnemosyned.web.upkeep_pages import UPKEEP_ROUTES

LIMITS = LimitsConfig(body_bytes_max=4 << 20, threads=4, connections_max=48)
ROUTES = {**MEMORY_ROUTES, **UPKEEP_ROUTES}


@contextmanager
def serve_pages(caller: Caller, *, port: int = 0) -> Iterator[WebAccess]:
    """Return a context manager that serves the pages on a loopback port.

    It gives the access to them. The pages ask `caller`, from several threads. Port 0 is a free one.
    Only this user can connect. Raises `InvalidRequest` for a port in use.
    """
    with bind_tcp(
        LOOPBACK,
        port,
        named=f"port {port}",
        advice="leave out --port for a free one",
        field="port",
    ) as listener:
        access = WebAccess(listener.getsockname()[1])
        application = WebApplication(caller, access, ROUTES)
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
        loop.start()
        try:
            yield access
        finally:
            loop.stop()
