"""The HTTP server: an event loop that reads requests, hands them to threads, and never blocks on a client.

Only this loop waits for clients, so that a slow one costs a descriptor and never a thread. Every
state of a connection has a deadline, and all bodies, and all answers nobody reads, have a budget.
"""

from __future__ import annotations

import dataclasses
import os
import select
import socket
import threading
import time
from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from http import HTTPStatus
from typing import Protocol

from mnemosyned.daemon.http.connection import BodyBudget, Connection, State
from mnemosyned.daemon.http.listening import (
    PAUSE_S,
    Acceptor,
    Listener,
    connections_allowed,
)
from mnemosyned.daemon.http.protocol import HttpProtocol, RequestRefused, refusal
from mnemosyned.daemon.http.workers import WAITING_MAX, OwnerOf, Workers
from mnemosyned.daemon.prometheus import OTHER, ServerActivity
from mnemosyned.errors import (
    DaemonBusy,
    Kind,
    MalformedRequest,
    MethodNotAllowed,
    MnemosynedError,
    StorageFailed,
    UnknownVerb,
)
from mnemosyned.http_messages import HttpRequest, Resource, Response, Route
from mnemosyned.logs import log_failure, logger

HEALTH_PATHS = ("/health", "/v1/health")
"""Answered by the loop itself: whether the socket still answers, however busy the threads are."""
HEALTHY = Response(HTTPStatus.OK, b"{}")
DRAIN_S = 5.0
SWEEP_S = 0.5
FULL_SWEEP_S = PAUSE_S
"""The interval while no client can be accepted."""
IDLE_SWEEP_S = 10.0

DEADLINES_S = {
    State.IDLE: 120.0,
    State.HEAD: 10.0,
    State.BODY: 30.0,
    State.QUEUED: 30.0,
}
"""Time limit of each state."""
WRITING_S = 300.0
WRITING_STALL_S = 30.0
GRACE_S = {State.IDLE: 0.05, State.HEAD: 0.1, State.BODY: 1.0, State.WRITING: 1.0}
"""A client that takes longer gives way where others need its place or its memory."""
BYTES_PER_S = 20 << 20
"""Least speed of a client beyond that grace; local sockets are far faster."""

OUTPUT_BYTES_MAX = 128 << 20
"""All answers that their clients have not read yet."""

log = logger()


class EventLoop:
    """Serves its listeners with a bounded number of threads and connections."""

    def __init__(
        self,
        listeners: Sequence[Listener],
        *,
        answer: Route,
        threads: int,
        body_bytes_max: int,
        connections_max: int,
        activity: ServerActivity,
        owner_of: OwnerOf | None = None,
    ) -> None:
        self._activity = activity
        activity.connections_max = connections_max
        self._body_bytes_max = body_bytes_max
        self._connections: dict[int, Connection] = {}
        self._budget = BodyBudget(body_bytes_max=body_bytes_max)
        self._answered: deque[Connection] = deque()
        self._epoll = select.epoll()
        self._wake_fd = os.eventfd(0, os.EFD_NONBLOCK | os.EFD_CLOEXEC)
        self._stop_at: float | None = None
        self._draining = False
        self._busy = 0
        """Connections that are not idle."""
        self._swept = 0.0
        self._acceptor = Acceptor(
            listeners,
            epoll=self._epoll,
            full=lambda: len(self._connections) >= connections_max,
            make_room=self._make_room,
            admit=self._admit,
        )
        self._workers = Workers(
            answer,
            threads=threads,
            done=self._done,
            activity=activity,
            owner_of=owner_of,
        )
        self._thread = threading.Thread(target=self._run, name="http", daemon=True)

    @property
    def full(self) -> bool:
        """Whether new clients wait in the backlog, as no connection can give way."""
        return not self._acceptor.accepting

    def start(self) -> None:
        """Begin to serve."""
        self._acceptor.start()
        self._epoll.register(self._wake_fd, select.EPOLLIN)
        self._workers.start()
        self._thread.start()

    def stop(self) -> None:
        """Accept no more, let running requests finish for `DRAIN_S`, and hang up."""
        deadline = time.monotonic() + DRAIN_S
        self._stop_at = deadline
        self._workers.drain()
        self._wake()
        self._thread.join(DRAIN_S + 1)
        self._workers.stop(deadline)

    def _done(self, connection: Connection) -> None:
        """Take a connection back from its thread."""
        self._answered.append(connection)
        self._wake()

    def _wake(self) -> None:
        os.eventfd_write(self._wake_fd, 1)

    # ---------------------------------------------------------------- loop

    def _run(self) -> None:
        try:
            while not self._finished():
                for fd, _ in self._epoll.poll(self._timeout_s()):
                    self._handle(fd)
                while self._answered:
                    self._guarded(self._take_back, self._answered.popleft())
                if self._budget.freed:
                    self._admit_queued()
                self._sweep()
        except Exception:
            log.exception("server_failed")
            raise
        finally:
            for connection in list(self._connections.values()):
                self._close(connection)
            self._epoll.close()

    def _timeout_s(self) -> float:
        if self.full or self._draining:
            return FULL_SWEEP_S
        return SWEEP_S if self._busy else IDLE_SWEEP_S

    def _finished(self) -> bool:
        if self._stop_at is None:
            return False
        if not self._draining:
            self._draining = True
            self._acceptor.close()
        for connection in list(self._connections.values()):
            if connection.state not in (State.WORKING, State.WRITING):
                self._close(connection)
        return not self._connections or time.monotonic() > self._stop_at

    def _handle(self, fd: int) -> None:
        if fd == self._wake_fd:
            os.eventfd_read(fd)
        elif connection := self._connections.get(fd):
            self._guarded(self._serve, connection)
        else:
            self._acceptor.accept(fd)

    def _guarded(
        self, step: Callable[[Connection], None], connection: Connection
    ) -> None:
        """Take a step for one connection; an error in it ends that one alone."""
        try:
            step(connection)
        except Exception:
            log.exception("connection_failed")
            if connection.state is not State.CLOSED:
                self._close(connection)

    def _serve(self, connection: Connection) -> None:
        if connection.state is State.WRITING:
            self._write(connection)
        elif connection.state in (State.IDLE, State.HEAD, State.BODY):
            self._read(connection)

    # -------------------------------------------------------------- accept

    def _admit(self, sock: socket.socket, listener: Listener) -> None:
        protocol = HttpProtocol(
            body_bytes_max=self._body_bytes_max, access=listener.access
        )
        tls = listener.certificate.channel() if listener.certificate else None
        connection = Connection(sock, protocol, now=time.monotonic(), tls=tls)
        self._connections[connection.fd] = connection
        self._activity.connections[connection.local] += 1
        self._epoll.register(connection.fd, select.EPOLLIN | select.EPOLLONESHOT)

    def _make_room(self) -> bool:
        """Hang up on the client that has been idle longest, or else on one that stalls."""
        return any(self._drop_stalled(state) for state in GRACE_S)

    def _drop_stalled(self, state: State, *, reserved: bool = False) -> bool:
        """Hang up on the client that has been longest in a state, and longer than it may.

        Clients over TCP give way first: other users can connect there.
        """
        now = time.monotonic()
        for connection in sorted(self._in(state), key=_gives_way):
            if reserved and not connection.reserved:
                continue
            overdue = now - connection.since > connection.grace_s
            if overdue and not (state is State.IDLE and connection.has_input()):
                self._give_up(connection)
                return True
        return False

    def _in(self, state: State) -> list[Connection]:
        return [each for each in self._connections.values() if each.state is state]

    # ---------------------------------------------------------------- read

    def _read(self, connection: Connection) -> None:
        data = connection.receive()
        if data is None:
            self._await(connection, select.EPOLLIN)
        elif not data:
            self._close(connection)
        else:
            connection.progress = time.monotonic()
            connection.protocol.feed(data)
            self._advance(connection)

    def _advance(self, connection: Connection) -> None:
        """Hand the next whole request to a thread, or wait for the rest of it."""
        protocol = connection.protocol
        try:
            request = protocol.next()
        except RequestRefused as refused:
            self._refuse(connection, refused.response)
            return
        if request:
            self._begin(connection, State.WORKING)
            if request.path in HEALTH_PATHS and request.method in ("GET", "HEAD"):
                connection.respond(HEALTHY)
                self._answered.append(connection)
            elif not self._workers.put(connection, request):
                busy = DaemonBusy(
                    f"{WAITING_MAX} requests of this memory wait for their turn, as many as may; "
                    "send this again when some are answered"
                )
                self._activity.refuse(HTTPStatus.SERVICE_UNAVAILABLE)
                connection.respond(refusal(busy))
                self._answered.append(connection)
        elif self._budget.reserve(connection):
            if protocol.in_body:
                self._begin(connection, State.BODY)
            else:
                self._begin(connection, State.HEAD if protocol.started else State.IDLE)
            connection.invite_body()
            self._await(connection, select.EPOLLIN)
        else:
            self._begin(connection, State.QUEUED)

    def _begin(self, connection: Connection, state: State) -> None:
        if connection.state is not state:
            self._busy += (state is not State.IDLE) - (
                connection.state is not State.IDLE
            )
            connection.state = state
            connection.since = time.monotonic()
            size = connection.protocol.body_bytes + connection.output_bytes
            connection.grace_s = GRACE_S.get(state, 0.0) + size / BYTES_PER_S

    def _await(self, connection: Connection, event: int) -> None:
        self._epoll.modify(connection.fd, event | select.EPOLLONESHOT)

    # -------------------------------------------------------------- bodies

    def _admit_queued(self) -> None:
        """Read on where there is room again, the smallest body first."""
        self._budget.freed = False
        queued = sorted(self._in(State.QUEUED), key=self._budget.wanted)
        for connection in queued:
            if not self._budget.reserve(connection):
                # A slow sender that holds room gives way; the next turn of the loop looks again.
                self._drop_stalled(State.BODY, reserved=True)
                return
            self._guarded(self._advance, connection)

    # --------------------------------------------------------------- write

    def _take_back(self, connection: Connection) -> None:
        """Go on after an answer."""
        self._budget.release(connection)
        connection.progress = time.monotonic()
        if connection.broken:
            self._close(connection)
        elif connection.output_bytes:
            self._begin(connection, State.WRITING)
            self._await(connection, select.EPOLLOUT)
            self._limit_output()
        elif connection.protocol.reusable:
            self._begin(connection, State.IDLE)
            self._advance(connection)
        else:
            self._close(connection)

    def _write(self, connection: Connection) -> None:
        if connection.send():
            connection.progress = time.monotonic()
        if connection.broken or not connection.output_bytes:
            self._take_back(connection)
        else:
            self._await(connection, select.EPOLLOUT)

    def _limit_output(self) -> None:
        while (
            sum(each.output_bytes for each in self._in(State.WRITING))
            > OUTPUT_BYTES_MAX
        ):
            if not self._drop_stalled(State.WRITING):
                return

    # ----------------------------------------------------------------- end

    def _sweep(self) -> None:
        """Give up what has passed its deadline, at most every `FULL_SWEEP_S`."""
        now = time.monotonic()
        if now - self._swept < FULL_SWEEP_S:
            return
        self._swept = now
        for connection in list(self._connections.values()):
            limit_s = DEADLINES_S.get(connection.state)
            if connection.state is State.WRITING:
                stalled = now - connection.progress > WRITING_STALL_S
                if stalled or now - connection.since > WRITING_S:
                    self._give_up(connection)
            elif limit_s is not None and now - connection.since > limit_s:
                self._give_up(connection)
        self._admit_queued()
        self._limit_output()
        self._acceptor.resume(now)

    def _give_up(self, connection: Connection) -> None:
        """Hang up, with a word to a client that was sending."""
        if connection.state is State.QUEUED:
            busy = DaemonBusy(
                "too many large requests at once; send this again in a moment"
            )
            self._refuse(connection, refusal(busy))
        elif connection.state in (State.HEAD, State.BODY):
            slow = MalformedRequest(
                "the request did not arrive completely in time; send it again"
            )
            self._refuse(connection, refusal(slow, HTTPStatus.REQUEST_TIMEOUT))
        else:
            self._close(connection)

    def _refuse(self, connection: Connection, response: Response) -> None:
        """Answer what cannot be read on, as far as the client takes it at once, and hang up."""
        self._activity.refuse(response.status)
        connection.respond(response, last=True)
        self._close(connection)

    def _close(self, connection: Connection) -> None:
        self._budget.release(connection)
        self._busy -= connection.state is not State.IDLE
        del self._connections[connection.fd]
        self._activity.connections[connection.local] -= 1
        connection.close()  # which takes it out of epoll, too


def _gives_way(connection: Connection) -> tuple[bool, float]:
    return connection.local, connection.since


VERB_PREFIX = "/v1/"

ResourcesOf = Callable[[HttpRequest], Mapping[str, Resource]]
"""The resources, by path, of whoever sent a request. Raises `RequestRefused` for who has none."""


class ServerLimits(Protocol):
    """The limits of a server, as the settings have them."""

    @property
    def threads(self) -> int:
        """Requests that are answered at once."""
        ...

    @property
    def body_bytes_max(self) -> int:
        """The size of one request."""
        ...

    @property
    def connections_max(self) -> int:
        """Clients that are connected at once."""
        ...


@contextmanager
def serving(
    resources: Mapping[str, Resource],
    listeners: Sequence[Listener],
    *,
    limits: ServerLimits,
    activity: ServerActivity | None = None,
    remote: ResourcesOf | None = None,
    owner_of: OwnerOf | None = None,
) -> Iterator[EventLoop]:
    """Answer requests in the background while the block runs; let running ones finish.

    `remote` has the resources of requests over TCP where they are others than those of the socket,
    and `owner_of` tells whose a request is, so that no owner takes all threads.
    """
    activity = activity or ServerActivity()
    loop = EventLoop(
        listeners,
        answer=answering(resources, activity, remote=remote),
        threads=limits.threads,
        body_bytes_max=limits.body_bytes_max,
        connections_max=connections_allowed(limits.connections_max),
        activity=activity,
        owner_of=owner_of,
    )
    loop.start()
    try:
        yield loop
    finally:
        loop.stop()


def answering(
    resources: Mapping[str, Resource],
    activity: ServerActivity,
    *,
    remote: ResourcesOf | None = None,
) -> Route:
    """The function that answers a request, whatever becomes of it."""
    health = Resource(lambda _: HEALTHY)
    table = {**dict.fromkeys(HEALTH_PATHS, health), **resources}
    labels = {path: path.removeprefix(VERB_PREFIX) for path in table}

    def resources_of(request: HttpRequest) -> Mapping[str, Resource]:
        return table if remote is None or request.local else remote(request)

    def answer(request: HttpRequest) -> Response:
        started = time.monotonic()
        try:
            response = _answer(resources_of(request), request)
        except RequestRefused as refused:
            response = refused.response
        except MnemosynedError as error:
            _log_failure(request, error)
            response = refusal(error)
        except Exception:
            log.exception("request_failed", path=request.path)
            unexpected = MnemosynedError(
                "unexpected; the daemon's log has the traceback"
            )
            response = refusal(unexpected)
        duration_s = time.monotonic() - started
        label = labels.get(request.path, OTHER)
        activity.requests.observe(duration_s, label, str(response.status.value))
        log.debug(
            "request",
            path=request.path,
            status=response.status.value,
            duration_ms=round(duration_s * 1000, 2),
        )
        return response

    return answer


def _log_failure(request: HttpRequest, error: MnemosynedError) -> None:
    """Log an error that is not the caller's."""
    if error.kind is Kind.INTERNAL or isinstance(error, StorageFailed):
        log_failure("request_failed", error, path=request.path, code=error.code)


def _answer(table: Mapping[str, Resource], request: HttpRequest) -> Response:
    """Hand a request to its resource, if that takes its method."""
    resource = table.get(request.path)
    if resource is None or (resource.local_only and not request.local):
        paths = ", ".join(path for path in table if not table[path].local_only)
        raise UnknownVerb(f"there is no {request.path}; the paths are {paths}")
    if request.method in resource.methods:
        return resource.route(request)
    if request.method == "HEAD" and "GET" in resource.methods:
        return resource.route(dataclasses.replace(request, method="GET"))
    return _other_method(resource, request)


def _other_method(resource: Resource, request: HttpRequest) -> Response:
    """Say which methods a resource takes."""
    head = ("HEAD",) if "GET" in resource.methods else ()
    allow = (("Allow", ", ".join((*resource.methods, *head, "OPTIONS"))),)
    if request.method == "OPTIONS":
        return Response(HTTPStatus.NO_CONTENT, content_type="", headers=allow)
    takes = " or ".join(resource.methods)
    error = MethodNotAllowed(f"{request.path} takes {takes}, not {request.method}")
    return refusal(error, headers=allow)
