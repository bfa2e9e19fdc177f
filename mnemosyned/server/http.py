"""The verbs over HTTP on a private Unix socket: POST /v1/VERB with a JSON object."""

from __future__ import annotations

import os
import socket
import stat
import struct
import threading
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from http import HTTPStatus
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs

import msgspec
from waitress.adjustments import Adjustments
from waitress.channel import HTTPChannel
from waitress.server import UnixWSGIServer
from waitress.task import ErrorTask, ThreadedTaskDispatcher
from waitress.wasyncore import close_all, dispatcher

from mnemosyned.domain.errors import (
    DatabaseInUse,
    InvalidRequest,
    Kind,
    MnemosynedError,
    StorageFailed,
    UnknownVerb,
)
from mnemosyned.logs import logger
from mnemosyned.requests import Request, parse, parse_text
from mnemosyned.service import MemoryService
from mnemosyned.verbs import ALIASES, VERBS

PREFIX = "/v1/"
DRAIN_S = 5.0
SOCKET_PATH_MAX = 107
"""The kernel's limit for a Unix socket's path, in bytes."""

STATUS_OF_KIND = {
    Kind.INVALID: HTTPStatus.BAD_REQUEST,
    Kind.NOT_FOUND: HTTPStatus.NOT_FOUND,
    Kind.CONFLICT: HTTPStatus.CONFLICT,
    Kind.UNAVAILABLE: HTTPStatus.SERVICE_UNAVAILABLE,
    Kind.INTERNAL: HTTPStatus.INTERNAL_SERVER_ERROR,
}
CODE_OF_STATUS = {400: "malformed_request", 413: "content_too_large", 431: "malformed_request"}

Environ = dict[str, Any]
Respond = Callable[[str, list[tuple[str, str]]], object]

log = logger()


def make_app(service: MemoryService) -> Callable[[Environ, Respond], Iterable[bytes]]:
    """The WSGI application over a service."""

    def app(environ: Environ, respond: Respond) -> Iterable[bytes]:
        started = time.monotonic()
        path = environ["PATH_INFO"]
        try:
            body = msgspec.json.encode(service.call(_request(environ)))
            status = HTTPStatus.OK
        except MnemosynedError as error:
            status = STATUS_OF_KIND[error.kind]
            body = error_body(error.code, error.message, error.field)
            if error.kind is Kind.INTERNAL or isinstance(error, StorageFailed):
                log.exception("request_failed", path=path, code=error.code)
        except Exception:
            log.exception("request_failed", path=path)
            status = HTTPStatus.INTERNAL_SERVER_ERROR
            body = error_body(
                MnemosynedError.code, "unexpected; the daemon's log has the traceback"
            )
        log.debug(
            "request",
            path=path,
            status=status.value,
            duration_ms=round((time.monotonic() - started) * 1000, 2),
        )
        respond(
            f"{status.value} {status.phrase}",
            [("Content-Type", "application/json"), ("Content-Length", str(len(body)))],
        )
        return [body]

    return app


def error_body(code: str, message: str, field: str | None = None) -> bytes:
    """How every failure looks on the wire."""
    return msgspec.json.encode({"error": {"code": code, "message": message, "field": field}})


def _request(environ: Environ) -> Request[Any]:
    path: str = environ["PATH_INFO"]
    name = path.removeprefix(PREFIX)
    verb = VERBS.get(ALIASES.get(name, name)) if path.startswith(PREFIX) else None
    if verb is None:
        routes = ", ".join(PREFIX + verb for verb in VERBS)
        raise UnknownVerb(f"there is no {path}; the verbs are {routes}")
    method = environ["REQUEST_METHOD"]
    if method == "POST":
        length = int(environ.get("CONTENT_LENGTH") or 0)
        return parse(verb, environ["wsgi.input"].read(length) or b"{}")
    if method == "GET" and not verb.writes:
        query = parse_qs(environ.get("QUERY_STRING", ""), keep_blank_values=True)
        return parse_text(verb, {k: v[0] if len(v) == 1 else v for k, v in query.items()})
    raise InvalidRequest(f"{path} takes POST with a JSON object, not {method}")


# -------------------------------------------------------------------- socket


def bind(path: Path) -> socket.socket:
    """A listening socket only its owner can reach; one left over by a crash is replaced.

    Raises `DatabaseInUse` where another daemon answers there.
    """
    if len(os.fsencode(path)) > SOCKET_PATH_MAX:
        raise InvalidRequest(
            f"the socket's path has over {SOCKET_PATH_MAX} bytes; choose a shorter one: {path}",
            field="socket",
        )
    try:
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    except OSError as error:
        raise InvalidRequest(
            f"no socket can be made in {path.parent}: {error.strerror}; choose another place",
            field="socket",
        ) from error
    listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM | socket.SOCK_CLOEXEC)
    try:
        _remove_stale(path)
        umask = os.umask(0o177)
        try:
            listener.bind(str(path))
        finally:
            os.umask(umask)
    except BaseException:
        listener.close()
        raise
    return listener


def _remove_stale(path: Path) -> None:
    try:
        mode = path.lstat().st_mode
    except FileNotFoundError:
        return
    if not stat.S_ISSOCK(mode):
        raise DatabaseInUse(f"{path} exists and is not a socket; choose another socket path")
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as probe:
        probe.settimeout(1)
        try:
            probe.connect(str(path))
        except (ConnectionRefusedError, FileNotFoundError):
            path.unlink(missing_ok=True)
            log.info("stale_socket_replaced", socket=str(path))
            return
    raise DatabaseInUse(f"another daemon listens on {path}; stop it or choose another socket")


class _JsonErrorTask(ErrorTask):  # type: ignore[misc]  # waitress is untyped
    """What the HTTP parser refuses is answered in the same form as everything else."""

    def execute(self) -> None:
        error = self.request.error
        message = f"this is no HTTP request the daemon takes: {error.body}"
        if error.code == HTTPStatus.REQUEST_ENTITY_TOO_LARGE:
            most = self.channel.adj.max_request_body_size
            message = f"the body exceeds {most:,} bytes; part it, or raise limits.body_bytes_max"
        body = error_body(CODE_OF_STATUS.get(error.code, "malformed_request"), message)
        self.status = f"{error.code} {error.reason}"
        self.response_headers.append(("Content-Type", "application/json"))
        self.set_close_on_finish()
        self.content_length = len(body)
        self.write(body)


class _Channel(HTTPChannel):  # type: ignore[misc]  # waitress is untyped
    error_task_class = _JsonErrorTask


class _Server(UnixWSGIServer):  # type: ignore[misc]  # waitress is untyped
    """Accepts only processes of its own user, and root."""

    channel_class = _Channel

    def accept(self) -> tuple[socket.socket, object] | None:
        accepted: tuple[socket.socket, object] | None = super().accept()
        if accepted is None:
            return None
        credentials = accepted[0].getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, 12)
        _, uid, _ = struct.unpack("3i", credentials)
        if uid not in (0, os.geteuid()):
            log.warning("peer_refused", uid=uid)
            accepted[0].close()
            return None
        return accepted


@contextmanager
def serving(
    service: MemoryService,
    listener: socket.socket,
    path: Path,
    *,
    threads: int,
    body_bytes_max: int,
    connections_max: int,
) -> Iterator[None]:
    """Answer requests in the background while the block runs; let running ones finish."""
    tasks = ThreadedTaskDispatcher()
    tasks.set_thread_count(threads)
    channels: dict[int, Any] = {}
    server = _Server(
        make_app(service),
        channels,
        _sock=listener,
        dispatcher=tasks,
        bind_socket=False,
        sockinfo=(socket.AF_UNIX, socket.SOCK_STREAM, 0, str(path)),
        adj=Adjustments(
            sockets=[],
            threads=threads,
            max_request_body_size=body_bytes_max,
            # What exceeds these would be spooled to a file in /tmp: memories stay in memory.
            inbuf_overflow=body_bytes_max + 1,
            outbuf_overflow=1 << 30,
            connection_limit=connections_max,
            backlog=min(1024, connections_max),
            asyncore_use_poll=True,
            ident=None,
            clear_untrusted_proxy_headers=False,
        ),
    )
    loop = threading.Thread(target=server.run, name="http")
    loop.start()
    try:
        yield
    finally:
        server.trigger.pull_trigger(lambda: dispatcher.close(server))  # accept no more
        tasks.shutdown(timeout=DRAIN_S)
        deadline = time.monotonic() + DRAIN_S
        while time.monotonic() < deadline and any(
            getattr(channel, "total_outbufs_len", 0) for channel in list(channels.values())
        ):
            time.sleep(0.01)
        server.trigger.pull_trigger(lambda: close_all(channels, ignore_all=True))
        loop.join(DRAIN_S)
        path.unlink(missing_ok=True)
