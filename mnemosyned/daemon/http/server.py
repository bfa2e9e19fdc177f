"""The HTTP server: an event loop, which never blocks on a client, and threads that answer.

Only this loop waits for clients, so that a slow one costs a descriptor and never a thread. Every
state of a connection has a deadline, and all bodies, and all answers nobody reads, have a budget.
"""

from __future__ import annotations

import dataclasses
import errno
import os
import select
import socket
import threading
import time
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from http import HTTPStatus
from typing import Self

from mnemosyned import errors
from mnemosyned.config.settings import LimitsConfig
from mnemosyned.daemon import metrics
from mnemosyned.daemon.http import listening, protocol
from mnemosyned.daemon.http.workers import (
    WAITING_MAX,
    BodyBudget,
    ClientConnection,
    ConnectionState,
    OwnerOf,
    Workers,
)
from mnemosyned.http_messages import HttpRequest, Resource, Response, Route
from mnemosyned.logs import log_failure, logger
from mnemosyned.memory.engine_ports import LOCAL_NAME

HEALTH_PATHS = ("/health", "/v1/health")
"""Paths that the loop itself answers: they show that the socket answers, however busy the threads are."""
HEALTHY = Response(HTTPStatus.OK, b"{}")
PAUSE_S = 0.05
LOGGED_EVERY_S = 60.0
DRAIN_S = 5.0
SWEEP_S = 0.5
FULL_SWEEP_S = PAUSE_S
"""The interval while no client can be accepted."""
IDLE_SWEEP_S = 10.0
TURN_MAX_S = 30.0
"""Seconds without a turn after which the event loop is taken to be stuck."""

DEADLINES_S = {
    ConnectionState.IDLE: 120.0,
    ConnectionState.HEAD: 10.0,
    ConnectionState.BODY: 30.0,
    ConnectionState.QUEUED: 30.0,
}
"""Time limit of each state."""
WRITING_S = 300.0
WRITING_STALL_S = 30.0
GRACE_S = {
    ConnectionState.IDLE: 0.05,
    ConnectionState.HEAD: 0.1,
    ConnectionState.BODY: 1.0,
    ConnectionState.WRITING: 1.0,
}
"""Seconds in each state after which a client counts as stalled, so that it may lose its place to others."""
BYTES_PER_S = 20 << 20
"""Minimum speed of a client after that time; local sockets are far faster."""

OUTPUT_BYTES_MAX = 128 << 20
"""Maximum bytes of all responses that clients have not read yet."""

log = logger()


class EventLoop:
    """HTTP server of some listeners, with a limited number of threads and connections."""

    def __init__(
        self,
        listeners: Sequence[listening.Listener],
        *,
        answer: Route,
        limits: LimitsConfig,
        activity: metrics.ServerActivity,
        owner_of: OwnerOf | None = None,
        probe: metrics.HealthProbe | None = None,
    ) -> None:
        """Take the function `answer`, which returns the response to a request.

        `owner_of` returns a request's owner, if there are several; `probe` answers `/livez`, `/readyz`.
        """
        self._probe = probe
        self._probed: deque[ClientConnection] = deque()
        """Connections that wait for a check of the database."""
        self._turned = time.monotonic()
        """When the last turn of the loop began, by the monotonic clock."""
        self._activity = activity
        self._connections_max = listening.allow_connections(limits.connections_max)
        activity.connections_max = self._connections_max
        self._body_bytes_max = limits.body_bytes_max
        self._connections: dict[int, ClientConnection] = {}
        self._budget = BodyBudget(body_bytes_max=limits.body_bytes_max)
        self._answered: deque[ClientConnection] = deque()
        self._epoll = select.epoll()
        self._wake_fd = os.eventfd(0, os.EFD_NONBLOCK | os.EFD_CLOEXEC)
        self._stop_at: float | None = None
        self._draining = False
        self._busy = 0
        """Connections that are not idle."""
        self._swept = 0.0
        self._listeners = {each.sock.fileno(): each for each in listeners}
        self._accept_at = 0.0
        """When a pause in accepting clients ends, by the monotonic clock."""
        self._accept_logged_at: dict[str, float] = {}
        """When an event of accepting clients was last logged, by its name."""
        self.is_full = False
        """Whether new clients wait in the backlog, as no connection can be closed for them."""
        self._workers = Workers(
            answer,
            threads=limits.threads,
            on_answered=self._queue_answered,
            activity=activity,
            owner_of=owner_of,
        )
        self._thread = threading.Thread(
            target=self._serve_clients, name="http", daemon=True
        )

    def __enter__(self) -> Self:
        """Start the worker threads, and the thread of the event loop, which serves the clients."""
        for fd in (*self._listeners, self._wake_fd):
            self._epoll.register(fd, select.EPOLLIN)
        self._workers.start()
        self._thread.start()
        return self

    def is_running(self) -> bool:
        """Return whether the event loop serves clients: it was not stopped and has not failed."""
        return self._thread.is_alive()

    def is_working(self) -> bool:
        """Return True if the event loop runs without delay, and the worker threads answer requests."""
        is_late = time.monotonic() - self._turned > TURN_MAX_S
        return self.is_running() and not is_late and self._workers.are_working()

    def drain(self) -> None:
        """Close each connection after the next response, so that clients connect to another daemon."""
        self._workers.is_draining = True

    def __exit__(self, *_: object) -> None:
        """Accept no more clients, give running requests `DRAIN_S` seconds, and hang up."""
        deadline = time.monotonic() + DRAIN_S
        self._stop_at = deadline
        self._workers.drain()
        self._wake_up()
        self._thread.join(DRAIN_S + 1)
        self._workers.stop(deadline)

    def _queue_answered(self, connection: ClientConnection) -> None:
        """Give a connection back to the event loop; called by the worker thread that answered."""
        self._answered.append(connection)
        self._wake_up()

    def _wake_up(self) -> None:
        """Make the event loop return from its wait for events; called in any thread."""
        os.eventfd_write(self._wake_fd, 1)

    # ---------------------------------------------------------------- loop

    def _serve_clients(self) -> None:
        """Handle events, answers and deadlines until stopped; then close all connections."""
        try:
            while not self._drain_connections():
                self._turned = time.monotonic()
                timeout_s = SWEEP_S if self._busy else IDLE_SWEEP_S
                if self.is_full or self._draining:
                    timeout_s = FULL_SWEEP_S
                for fd, _ in self._epoll.poll(timeout_s):
                    self._handle_event(fd)
                for _ in range(len(self._probed)):
                    self._run_step(self._answer_probed, self._probed.popleft())
                while self._answered:
                    self._run_step(
                        self._continue_after_answer, self._answered.popleft()
                    )
                if self._budget.freed:
                    self._resume_queued()
                self._sweep_connections()
        except Exception:
            log.exception("server_failed")
            raise
        finally:
            for connection in list(self._connections.values()):
                self._close_connection(connection)
            self._epoll.close()

    def _drain_connections(self) -> bool:
        """When stopping, close listeners and connections without an answer; return True if the loop may end."""
        if self._stop_at is None:
            return False
        if not self._draining:
            self._draining = True
            for fd, listener in self._listeners.items():
                self._epoll.unregister(fd)
                listener.sock.close()
            self._listeners.clear()
        for connection in list(self._connections.values()):
            if connection.state not in (
                ConnectionState.WORKING,
                ConnectionState.WRITING,
            ):
                self._close_connection(connection)
        return not self._connections or time.monotonic() > self._stop_at

    def _handle_event(self, fd: int) -> None:
        """Handle an epoll event: a wake-up, a new client, or input or output of a connection."""
        connection = self._connections.get(fd)
        if fd == self._wake_fd:
            os.eventfd_read(fd)
        elif connection is None:
            if listener := self._listeners.get(fd):
                self._accept_clients(listener)
        elif connection.state is ConnectionState.WRITING:
            self._run_step(self._write_output, connection)
        elif connection.state in (
            ConnectionState.IDLE,
            ConnectionState.HEAD,
            ConnectionState.BODY,
        ):
            self._run_step(self._read_input, connection)

    def _run_step(
        self, step: Callable[[ClientConnection], None], connection: ClientConnection
    ) -> None:
        """Call `step` with a connection; if that fails, log the error and close the connection."""
        try:
            step(connection)
        except Exception:
            log.exception("connection_failed")
            if connection.state is not ConnectionState.CLOSED:
                self._close_connection(connection)

    # -------------------------------------------------------------- accept

    def _accept_clients(self, listener: listening.Listener) -> None:
        """Accept waiting clients, but close those of other users; pause if no connection can make room."""
        for accepted in range(64):
            if len(self._connections) >= self._connections_max:
                if accepted:  # whether one more waits is not known; epoll tells
                    return
                if not self._make_room():
                    self._pause_accepting(time.monotonic())
                    return
            try:
                sock, peer = listener.sock.accept()
            except BlockingIOError:
                return
            except ConnectionAbortedError:
                continue
            except OSError as error:
                if self._may_log("accept_failed"):
                    reason = errno.errorcode.get(error.errno or 0, str(error.errno))
                    log.error("accept_failed", reason=reason)  # noqa: TRY400 of the system
                self._make_room()
                self._pause_accepting(time.monotonic() + PAUSE_S)
                return
            try:
                find_refused = listener.refused_user
                if listener.access.local:
                    find_refused = listening.refused_user_id
                else:
                    sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
                if find_refused and (uid := find_refused(sock)) is not None:
                    if self._may_log("peer_refused"):
                        log.warning("peer_refused", uid=uid)
                    sock.close()
                    continue
                sock.settimeout(0)
                self._add_connection(
                    sock, listener, "" if listener.access.local else peer[0]
                )
            except Exception:  # one client must not end the loop for all
                if self._may_log("client_failed"):
                    log.exception("client_failed")
                sock.close()

    def _may_log(self, event: str) -> bool:
        """Return True, and note the time, if `event` was not logged in the last `LOGGED_EVERY_S` seconds."""
        now = time.monotonic()
        is_due = (
            now - self._accept_logged_at.get(event, -LOGGED_EVERY_S) >= LOGGED_EVERY_S
        )
        if is_due:
            self._accept_logged_at[event] = now
        return is_due

    def _pause_accepting(self, until: float) -> None:
        """Accept no clients before `until` and before there is room; meanwhile the kernel queues them."""
        self._accept_at = until
        self.is_full = True
        self._watch_listeners(0)

    def _watch_listeners(self, event: int) -> None:
        """Set the event, such as EPOLLIN, for which epoll watches the listeners; 0 for none."""
        for fd in self._listeners:
            self._epoll.modify(fd, event)

    def _make_room(self) -> bool:
        """Close the connection that is idle longest, or else a stalled one; return False if none was closed."""
        return any(self._drop_stalled(state) for state in GRACE_S)

    def _add_connection(
        self, sock: socket.socket, listener: listening.Listener, address: str
    ) -> None:
        """Begin to serve an accepted client at `address`, by the rules of its listener."""
        http_protocol = protocol.HttpProtocol(
            body_bytes_max=self._body_bytes_max,
            access=listener.access,
            address=address,
        )
        tls = listener.certificate.channel() if listener.certificate else None
        connection = ClientConnection(
            sock, http_protocol, now=time.monotonic(), tls=tls
        )
        self._epoll.register(connection.fd, select.EPOLLIN | select.EPOLLONESHOT)
        self._connections[connection.fd] = connection
        self._activity.connections[connection.local] += 1

    def _drop_stalled(self, state: ConnectionState, *, reserved: bool = False) -> bool:
        """Close the connection that is in a state longest, if beyond the grace time; return False if none is.

        With `reserved`, consider only connections with memory reserved for a body. Clients over TCP are
        closed first, as other users can connect there.
        """
        now = time.monotonic()
        for connection in sorted(
            self._connections_in(state), key=lambda each: (each.local, each.since)
        ):
            if reserved and not connection.reserved:
                continue
            overdue = now - connection.since > connection.grace_s
            if overdue and not (
                state is ConnectionState.IDLE and connection.has_input()
            ):
                self._close_overdue(connection)
                return True
        return False

    def _connections_in(self, state: ConnectionState) -> list[ClientConnection]:
        """Return the connections that are in a state."""
        return [each for each in self._connections.values() if each.state is state]

    # ---------------------------------------------------------------- read

    def _read_input(self, connection: ClientConnection) -> None:
        """Receive bytes of a connection, and start the next request if it is complete."""
        data = connection.receive()
        if data is None:
            self._watch_once(connection, select.EPOLLIN)
        elif not data:
            self._close_connection(connection)
        else:
            connection.progress = time.monotonic()
            connection.protocol.feed(data)
            self._start_request(connection)

    def _start_request(self, connection: ClientConnection) -> None:
        """Hand a connection's next request to a worker, answer a probe, refuse, or wait for bytes or memory."""
        http_protocol = connection.protocol
        try:
            request = http_protocol.next_request()
        except protocol.RequestRefused as refused:
            self._refuse_request(connection, refused.response)
            return
        if request:
            self._set_state(connection, ConnectionState.WORKING)
            path = request.path if request.method in ("GET", "HEAD") else ""
            if path in HEALTH_PATHS:
                self._respond(connection, HEALTHY)
            elif self._probe and path == metrics.READY_PATH:
                self._probed.append(connection)
            elif self._probe and path in metrics.PROBE_PATHS:
                self._respond(connection, self._probe.live())
            elif not self._workers.put(connection, request):
                busy = errors.DaemonBusy(
                    f"{WAITING_MAX} requests of this memory wait for their turn, as many as may; "
                    "send this again when some are answered"
                )
                self._activity.refused[HTTPStatus.SERVICE_UNAVAILABLE] += 1
                self._respond(connection, protocol.error_response(busy))
        elif self._budget.reserve(connection):
            state = ConnectionState.IDLE
            if http_protocol.has_input:
                in_body = http_protocol.in_body
                state = ConnectionState.BODY if in_body else ConnectionState.HEAD
            self._set_state(connection, state)
            connection.invite_body()
            self._watch_once(connection, select.EPOLLIN)
        else:
            self._set_state(connection, ConnectionState.QUEUED)

    def _answer_probed(self, connection: ClientConnection) -> None:
        """Answer a request for `/readyz` if its check of the database is done or takes too long."""
        assert self._probe  # noqa: S101 for mypy
        response = self._probe.ready(connection.since, self._wake_up)
        if response is None:
            self._probed.append(connection)
        else:
            self._respond(connection, response)

    def _respond(self, connection: ClientConnection, response: Response) -> None:
        """Answer a request in the event loop itself, and go on with the connection."""
        connection.respond(response)
        self._answered.append(connection)

    def _set_state(self, connection: ClientConnection, state: ConnectionState) -> None:
        """Set a connection's state, the time of the change, and the grace time before it counts as stalled."""
        if connection.state is not state:
            self._busy += (state is not ConnectionState.IDLE) - (
                connection.state is not ConnectionState.IDLE
            )
            connection.state = state
            connection.since = time.monotonic()
            size = connection.protocol.body_bytes + connection.output_bytes
            connection.grace_s = GRACE_S.get(state, 0.0) + size / BYTES_PER_S

    def _watch_once(self, connection: ClientConnection, event: int) -> None:
        """Make epoll report the next event of this kind, such as EPOLLIN, on a connection, once."""
        self._epoll.modify(connection.fd, event | select.EPOLLONESHOT)

    # -------------------------------------------------------------- bodies

    def _resume_queued(self) -> None:
        """Resume requests that wait for memory, smallest body first, as far as memory is free.

        If memory is too scarce for all, close the connection of a slow sender with reserved memory.
        """
        self._budget.freed = False
        queued = sorted(
            self._connections_in(ConnectionState.QUEUED), key=self._budget.missing_bytes
        )
        for connection in queued:
            if not self._budget.reserve(connection):
                # A slow sender that holds room gives way; the next turn of the loop looks again.
                self._drop_stalled(ConnectionState.BODY, reserved=True)
                return
            self._run_step(self._start_request, connection)

    # --------------------------------------------------------------- write

    def _continue_after_answer(self, connection: ClientConnection) -> None:
        """Release a connection's memory; send the rest of the response, start the next request, or close."""
        self._budget.release(connection)
        connection.progress = time.monotonic()
        if connection.broken:
            self._close_connection(connection)
        elif connection.output_bytes:
            self._set_state(connection, ConnectionState.WRITING)
            self._watch_once(connection, select.EPOLLOUT)
            self._limit_output()
        elif connection.protocol.reusable:
            self._set_state(connection, ConnectionState.IDLE)
            self._start_request(connection)
        else:
            self._close_connection(connection)

    def _write_output(self, connection: ClientConnection) -> None:
        """Send more of a response; once all is sent, start the next request or close the connection."""
        if connection.send():
            connection.progress = time.monotonic()
        if connection.broken or not connection.output_bytes:
            self._continue_after_answer(connection)
        else:
            self._watch_once(connection, select.EPOLLOUT)

    def _limit_output(self) -> None:
        """Close stalled connections until unsent responses take at most `OUTPUT_BYTES_MAX`."""
        while (
            sum(
                each.output_bytes
                for each in self._connections_in(ConnectionState.WRITING)
            )
            > OUTPUT_BYTES_MAX
        ):
            if not self._drop_stalled(ConnectionState.WRITING):
                return

    # ----------------------------------------------------------------- end

    def _sweep_connections(self) -> None:
        """Close overdue connections, limit unsent output, resume waiting requests and accept clients again.

        If a socket's file was deleted, listen on a new one.

        Does nothing within `FULL_SWEEP_S` seconds of the last sweep.
        """
        now = time.monotonic()
        if now - self._swept < FULL_SWEEP_S:
            return
        self._swept = now
        for fd, listener in list(self._listeners.items()):
            if listener.renew and (renewed := listener.renew()):
                self._epoll.unregister(fd)
                listener.sock.close()
                del self._listeners[fd]
                self._epoll.register(renewed, select.EPOLLIN)
                self._listeners[renewed.fileno()] = dataclasses.replace(
                    listener, sock=renewed
                )
        for connection in list(self._connections.values()):
            limit_s = DEADLINES_S.get(connection.state)
            if connection.state is ConnectionState.WRITING:
                stalled = now - connection.progress > WRITING_STALL_S
                if stalled or now - connection.since > WRITING_S:
                    self._close_overdue(connection)
            elif limit_s is not None and now - connection.since > limit_s:
                self._close_overdue(connection)
        self._resume_queued()
        self._limit_output()
        is_pausing = self.is_full and self._listeners and now >= self._accept_at
        if is_pausing and (
            len(self._connections) < self._connections_max or self._make_room()
        ):
            self.is_full = False
            self._watch_listeners(select.EPOLLIN)

    def _close_overdue(self, connection: ClientConnection) -> None:
        """Close a connection that took too long, sending an error if its request is incomplete."""
        if connection.state is ConnectionState.QUEUED:
            busy = errors.DaemonBusy(
                "too many large requests at once; send this again in a moment"
            )
            self._refuse_request(connection, protocol.error_response(busy))
        elif connection.state in (ConnectionState.HEAD, ConnectionState.BODY):
            slow = errors.MalformedRequest(
                "the request did not arrive completely in time; send it again"
            )
            self._refuse_request(
                connection, protocol.error_response(slow, HTTPStatus.REQUEST_TIMEOUT)
            )
        else:
            self._close_connection(connection)

    def _refuse_request(self, connection: ClientConnection, response: Response) -> None:
        """Send an error response, as far as possible without waiting, and close the connection."""
        self._activity.refused[response.status] += 1
        connection.respond(response, last=True)
        self._close_connection(connection)

    def _close_connection(self, connection: ClientConnection) -> None:
        """Close a connection and give the memory reserved for its body back."""
        self._budget.release(connection)
        self._busy -= connection.state is not ConnectionState.IDLE
        del self._connections[connection.fd]
        self._activity.connections[connection.local] -= 1
        connection.close()  # which takes it out of epoll, too


VERB_PREFIX = "/v1/"

ResourcesOf = Callable[[HttpRequest], Mapping[str, Resource]]
"""Function that returns the resources, by path, for a request's sender. Raises `RequestRefused`."""


def make_handler(
    resources: Mapping[str, Resource],
    activity: metrics.ServerActivity,
    *,
    tcp_resources: ResourcesOf | None = None,
) -> Route:
    """Return a function that answers, counts and times a request by the resource at its path.

    `tcp_resources`, if given, returns the resources for a request over TCP.
    """
    health = Resource(lambda _: HEALTHY)  # asked by other methods than GET alone
    probes = dict.fromkeys((*HEALTH_PATHS, *metrics.PROBE_PATHS), health)
    table = {**probes, **resources}

    def answer(request: HttpRequest) -> Response:
        """Return the response to a request, or to its error; count it, log unexpected errors."""
        started = time.monotonic()
        found: Mapping[str, Resource] = table
        try:
            if tcp_resources and not request.local and request.path not in probes:
                found = tcp_resources(request)
            elif (owner := request.headers.get(protocol.OWNER_KEY)) not in (
                None,
                LOCAL_NAME,
            ):
                raise protocol.unknown_owner(str(owner))  # noqa: TRY301 it is answered below
            response = _call_resource(found, request)
        except protocol.RequestRefused as refused:
            response = refused.response
        except errors.MnemosynedError as error:
            activity.errors[error.code] += 1
            # An error of the caller's is not logged.
            is_ours = error.kind is errors.Kind.INTERNAL
            if is_ours or isinstance(error, errors.StorageFailed):
                log_failure("request_failed", error, path=request.path, code=error.code)
            response = protocol.error_response(error)
        except Exception:
            log.exception("request_failed", path=request.path)
            unexpected = errors.MnemosynedError(
                "unexpected; the daemon's log has the traceback"
            )
            response = protocol.error_response(unexpected)
        duration_s = time.monotonic() - started
        path = request.path if request.path in found else metrics.OTHER
        label = path.removeprefix(VERB_PREFIX)
        activity.requests.observe(duration_s, label, str(response.status.value))
        if activity.trace:
            activity.trace(request, label, response.status, duration_s)
        log.debug(
            "request",
            path=request.path,
            status=response.status.value,
            duration_ms=round(duration_s * 1000, 2),
        )
        return response

    return answer


def _call_resource(table: Mapping[str, Resource], request: HttpRequest) -> Response:
    """Return the response of the path's resource, or to OPTIONS or a wrong method. Raises `UnknownVerb`."""
    resource = table.get(request.path)
    if resource is None or (resource.local_only and not request.local):
        usable = (name for name in table if request.local or not table[name].local_only)
        raise errors.UnknownVerb(
            f"there is no {request.path}; the paths are {', '.join(usable)}"
        )
    if request.method in resource.methods:
        return resource.route(request)
    if request.method == "HEAD" and "GET" in resource.methods:
        return resource.route(dataclasses.replace(request, method="GET"))
    head = ("HEAD",) if "GET" in resource.methods else ()
    allow = (("Allow", ", ".join((*resource.methods, *head, "OPTIONS"))),)
    if request.method == "OPTIONS":
        return Response(HTTPStatus.NO_CONTENT, content_type="", headers=allow)
    takes = " or ".join(resource.methods)
    error = errors.MethodNotAllowed(
        f"{request.path} takes {takes}, not {request.method}"
    )
    return protocol.error_response(error, headers=allow)
