"""HTTP over the daemon's listeners: each path's resource, and what becomes of its errors."""

from __future__ import annotations

import dataclasses
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from http import HTTPStatus
from typing import Protocol

from mnemosyned.daemon.server.acceptor import Listener
from mnemosyned.daemon.server.activity import OTHER, ServerActivity
from mnemosyned.daemon.server.listener import connections_allowed
from mnemosyned.daemon.server.loop import HEALTH_PATHS, HEALTHY, EventLoop
from mnemosyned.daemon.server.refusals import RequestRefused, refusal
from mnemosyned.daemon.server.workers import OwnerOf
from mnemosyned.domain.errors import (
    Kind,
    MethodNotAllowed,
    MnemosynedError,
    StorageFailed,
    UnknownVerb,
)
from mnemosyned.http_messages import HttpRequest, Resource, Response, Route
from mnemosyned.logs import log_failure, logger

VERB_PREFIX = "/v1/"

ResourcesOf = Callable[[HttpRequest], Mapping[str, Resource]]
"""The resources, by path, of whoever sent a request. Raises `RequestRefused` for who has none."""

log = logger()


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
