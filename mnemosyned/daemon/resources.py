"""The one table of all that the daemon answers, by path: verbs, events, exports, hooks and `/mcp`."""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property, partial
from http import HTTPStatus
from typing import TYPE_CHECKING, Any
from urllib.parse import parse_qs

import msgspec

from mnemosyned import errors
from mnemosyned.agents.hooks.service import UNREADABLE, HookService, decode_call
from mnemosyned.assembly.build import OpenMemory
from mnemosyned.daemon.http.server import VERB_PREFIX
from mnemosyned.daemon.metrics import METRICS_PATH, Collector, metrics_route
from mnemosyned.http_messages import HttpRequest, Resource, Response, Route
from mnemosyned.memory.consolidation import Progress
from mnemosyned.memory.engine_ports import LOCAL_OWNER, Scope
from mnemosyned.service.events import EventBus, Subscription
from mnemosyned.service.service import Groups, MemoryService
from mnemosyned.verbs.exchange import EXPORT_PATH, RESTORE_PATH, Export, Import
from mnemosyned.verbs.facade import ALIASES, VERBS, Caller
from mnemosyned.verbs.memories import RememberMany
from mnemosyned.verbs.request import R, Request, V, parse, parse_text
from mnemosyned.verbs.upkeep import Event, EventKind, Undo, encode_event

if TYPE_CHECKING:
    from mnemosyned.service.audit import AuditLog

EVENTS_PATH = "/v1/events"
EVENT_STREAM = "text/event-stream"
HEADERS = (("Cache-Control", "no-store"),)
HEARTBEAT = b": \n\n"
HEARTBEAT_S = 15.0
"""Interval of comments while nothing happens, so that both sides know that the other still runs."""
POLL_S = 0.5
"""Seconds after which a client that left, or a stop of the daemon, is noticed."""
STREAM_S = 3_000.0
"""Time limit of one stream, below the server's; the client connects again."""
DROPPED = "events were lost, as they were not read in time; connect again"
LAST = (EventKind.DROPPED, EventKind.STOPPING)
"""Kinds of events that end a stream."""

Progresses = Callable[[], Progress | None]


def events_route(bus: EventBus, progress: Progresses) -> Route:
    """Return a handler that streams the events of `bus`, and changes of `progress`."""

    def events(request: HttpRequest) -> Response:
        """Return a response with a stream of events, beginning after the last event that the client saw."""
        after = _last_seen_id(request)
        if request.method == "HEAD":
            return Response(HTTPStatus.OK, content_type=EVENT_STREAM, headers=HEADERS)
        stream = _stream_events(bus, bus.subscribe(after), progress)
        next(stream)
        return Response(
            HTTPStatus.OK, content_type=EVENT_STREAM, headers=HEADERS, stream=stream
        )

    return events


def _last_seen_id(request: HttpRequest) -> int | None:
    """Return the number of the last event that the client has seen, or None. Raises `InvalidRequest`."""
    asked = parse_qs(request.query).get("after", [""])[-1]
    last = asked or request.headers.get("last-event-id", "")
    if not last:
        return None
    if not (last.isascii() and last.isdigit()) or int(last[:20]) >= 2**63:
        raise errors.InvalidRequest(
            f"after: {last[:40]!r} is not an event's id", field="after"
        )
    return int(last)


def _stream_events(
    bus: EventBus, subscription: Subscription, progress: Progresses
) -> Iterator[bytes]:
    """Yield an empty chunk, a comment, then a client's events and the cycle's progress.

    Ends after a final event or `STREAM_S` seconds, and then ends the subscription, as does closing the
    iterator. An empty chunk or a comment comes at least every `POLL_S` seconds, so that both sides notice a
    broken connection.
    """
    last: Progress | None = None
    try:
        yield b""
        yield HEARTBEAT
        ends = time.monotonic() + STREAM_S
        beats = time.monotonic() + HEARTBEAT_S
        while time.monotonic() < ends:
            events = subscription.take(POLL_S)
            present = progress()
            if present is not None and present != last:
                # No event of the bus: each reader looks at its own pace.
                counts = {"done": present.done, "total": present.total}
                events.append(bus.new_event(EventKind.CYCLE_PROGRESS, **counts))
            last = present
            if subscription.dropped:
                events.append(bus.new_event(EventKind.DROPPED, message=DROPPED))
            chunk = b"".join(map(encode_server_event, events))
            now = time.monotonic()
            if not chunk and now >= beats:
                chunk = HEARTBEAT
            if chunk:
                beats = now + HEARTBEAT_S
            yield chunk
            if any(event.kind in LAST for event in events):
                return
    finally:
        bus.unsubscribe(subscription)


def encode_server_event(event: Event) -> bytes:
    """Return an event as bytes in the format of server-sent events."""
    numbered = b"id: %d\n" % event.id if event.id else b""
    data = encode_event(event)
    return b"%sevent: %s\ndata: %s\n\n" % (numbered, event.kind.value.encode(), data)


def require_scope(
    scope: Scope, scopes: Collection[Scope] | None, action: str, *, group: str = ""
) -> None:
    """Raise `ScopeMissing` for `action` unless `scopes` contain `scope`; None allows every scope.

    `group` names the memory in the message, if it is a group's.
    """
    if scopes is None or scope in scopes:
        return
    allowed = " and ".join(each for each in Scope if each in scopes) or "nothing here"
    allowing = (
        f"in {group}, token and membership allow" if group else "this token allows"
    )
    raise errors.ScopeMissing(f"{allowing} {allowed}; {action} needs the scope {scope}")


class ScopedCaller(Caller):
    """Caller of verbs that allows only the scopes of a token."""

    def __init__(
        self, caller: Caller, scopes: Collection[Scope], *, group: str = ""
    ) -> None:
        """Pass requests on to `caller` if `scopes` allow them; `group` is the memory's, if any."""
        self._caller = caller
        self._scopes = scopes
        self._group = group

    def call(self, request: Request[R], /) -> R:
        """Carry out a request and return its result. Raises `ScopeMissing` and the request's errors."""
        self.check(request)
        return self._caller.call(request)

    def check(self, request: Request[Any]) -> None:
        """Raise `ScopeMissing` if the token's scopes do not allow a request."""
        verb, needed = request.verb_name(), Scope.READ
        only_lists = isinstance(request, Undo) and request.list
        if request.writes and not only_lists:
            needed = Scope.FORGET if request.deletes else Scope.WRITE
        require_scope(needed, self._scopes, verb, group=self._group)
        # A dry run shows memories; one of `remember_many` shows what the caller sent.
        if request.is_preview and not isinstance(request, RememberMany):
            action = f"a preview ({verb} with dry_run)"
            require_scope(Scope.READ, self._scopes, action, group=self._group)


HOOKS_PATH = "/hooks"
WANTED_HEADER = "Mnemosyne-Transcript"
"""Header with the byte from which a hook on another machine must read its transcript; see `HookOutcome`."""


@dataclass(frozen=True)
class MemoryRoutes:
    """Handlers of the requests for one memory, whose verbs `caller` calls.

    `scopes` are a token's; None allows everything. Hooks are given lines of `groups`, too. `group`
    is the memory's name, if it is that of a group.
    """

    service: MemoryService
    hooks: HookService | None
    caller: Caller
    scopes: Collection[Scope] | None = None
    groups: Groups = field(default_factory=dict)
    group: str = ""

    def resources(self) -> dict[str, Resource]:
        """Return the resources by URL path; if `scopes` is None, transfers are for the Unix socket alone."""
        service, cycle = self.service, self.service.sleeper.cycle
        local_only = self.scopes is None
        verbs = {name: VERBS[ALIASES.get(name, name)] for name in (*VERBS, *ALIASES)}
        found = {
            VERB_PREFIX + name: Resource(
                partial(self._call, verb),
                methods=("POST",) if verb.writes else ("GET", "POST"),
                local_only=verb.local_only,
            )
            for name, verb in verbs.items()
        }
        found |= {
            EXPORT_PATH: Resource(self._export, local_only=local_only),
            RESTORE_PATH: Resource(
                self._restore, methods=("POST",), local_only=local_only
            ),
            EVENTS_PATH: Resource(events_route(service.events, lambda: cycle.progress)),
            "/mcp": Resource(self._answer_mcp, methods=("POST",)),
        }
        if self.hooks:
            hook = partial(self._handle_hook, self.hooks)
            found[HOOKS_PATH] = Resource(hook, methods=("POST",))
        return found

    def _call(self, verb: type[Request[Any]], request: HttpRequest) -> Response:
        """Call the verb with the HTTP request's fields, and respond with its result as JSON."""
        result = self.caller.call(parse_call(verb, request))
        return Response(HTTPStatus.OK, msgspec.json.encode(result))

    def _export(self, request: HttpRequest) -> Response:
        """Return a response that streams the export with the options in the request's query."""
        stream = self.service.export(parse_text(Export, _query_fields(request)))
        return Response(HTTPStatus.OK, content_type="application/jsonl", stream=stream)

    def _restore(self, request: HttpRequest) -> Response:
        """Import the lines of an export in the request's body; respond with the counts as JSON."""
        require_scope(Scope.WRITE, self.scopes, "import", group=self.group)
        import_id = parse_text(Import, _query_fields(request)).import_id
        restored = self.service.restore_lines(request.body, import_id)
        return Response(HTTPStatus.OK, msgspec.json.encode(restored))

    def _answer_mcp(self, request: HttpRequest) -> Response:
        """Answer a request of the Model Context Protocol; the first one loads the handler."""
        return self._mcp_route(request)

    @cached_property
    def _mcp_route(self) -> Route:
        """The handler of the Model Context Protocol; without the scope `write` it saves no agents' sessions."""
        # Loaded here: a start does not wait for it, and without agents nobody does.
        from mnemosyned.agents.mcp.identity import AgentSessions  # noqa: PLC0415
        from mnemosyned.agents.mcp.server import mcp_route  # noqa: PLC0415 the same

        may_write = self.scopes is None or Scope.WRITE in self.scopes
        agents = self.service.store.agents
        return mcp_route(self.caller, AgentSessions(agents, may_write=may_write))

    def _handle_hook(self, hooks: HookService, request: HttpRequest) -> Response:
        """Handle a hook's call and return the answer as JSON. Raises `MalformedJson` and `ScopeMissing`."""
        require_scope(Scope.WRITE, self.scopes, "a hook", group=self.group)
        try:
            envelope = decode_call(request.body)
        except UNREADABLE as error:
            raise errors.MalformedJson(
                f"a hook's call cannot be read: {error}"
            ) from error
        answer, wanted = hooks.handle_call(
            envelope,
            is_remote=not request.local,
            waited_s=time.monotonic() - request.received_at,
            may_tell=self.scopes is None or Scope.READ in self.scopes,
            groups=self.groups,
        )
        headers = () if wanted is None else ((WANTED_HEADER, wanted),)
        return Response(HTTPStatus.OK, msgspec.json.encode(answer), headers=headers)


LOGGED_PATHS = {
    EXPORT_PATH: "export",
    RESTORE_PATH: "import",
    EVENTS_PATH: "events",
    HOOKS_PATH: "hook",
}
"""Names in the audit log for requests that are no verbs."""


def audit_resources(
    table: Mapping[str, Resource],
    audit: AuditLog,
    *,
    paths: Mapping[str, str] = LOGGED_PATHS,
    owner: int = 0,
) -> dict[str, Resource]:
    """Return the resources; each request for a path in `paths` now also writes a line to the audit log.

    `paths` has the verb of the line for each path. The sender is `owner`, over the Unix socket, or the
    `REQUESTER` if `owner` is 0.
    """
    # Loaded here: most daemons keep no log.
    from mnemosyned.service.audit import REQUESTER, Requester  # noqa: PLC0415

    def note(path: str, request: HttpRequest) -> Response:
        """Answer a request, and write the audit line before any stream begins."""
        if owner:
            REQUESTER.set(Requester(owner, via="socket"))
        audit.check()
        try:
            response = table[path].route(request)
        except errors.MnemosynedError as error:
            audit.note(paths[path], outcome=error.code)
            raise
        try:
            lines = request.body.count(b"\n") if path == RESTORE_PATH else 0
            audit.note(paths[path], count=lines)
        except errors.StorageFailed:
            response.close()
            raise
        return response

    logged = paths.keys() & table.keys()
    return {
        **table,
        **{path: replace(table[path], route=partial(note, path)) for path in logged},
    }


def parse_call(verb: type[V], request: HttpRequest) -> V:
    """Return the request for a verb, read from a JSON body (POST) or the query (GET).

    Raises the parsers' errors, and `InvalidRequest` for fields in the wrong place.
    """
    if request.method == "POST":
        if request.query:  # a `?dry_run=true` beside a body would be ignored
            raise errors.InvalidRequest(
                "a POST request takes its fields from a JSON body; move those of the query there"
            )
        return parse(verb, request.body or b"{}")
    if request.body:  # its filters would be ignored
        raise errors.InvalidRequest(
            "a GET request takes its fields from the query; move those of the body there, or use POST"
        )
    return parse_text(verb, _query_fields(request))


def _query_fields(request: HttpRequest) -> dict[str, str | list[str]]:
    """Return {name: value} of a query string; a repeated field as a list. Raises `InvalidText`."""
    try:
        query = parse_qs(request.query, keep_blank_values=True, errors="strict")
    except UnicodeDecodeError as error:
        raise errors.InvalidText("the query is not UTF-8; encode it first") from error
    return {k: v[0] if len(v) == 1 else v for k, v in query.items()}


HTML = "text/html; charset=utf-8"
PAGE_HEADERS = (
    ("Content-Security-Policy", "default-src 'none'; style-src 'unsafe-inline'"),
    ("X-Content-Type-Options", "nosniff"),
)


def resources(
    memory: OpenMemory, collectors: Sequence[Collector]
) -> dict[str, Resource]:
    """Return all handlers for clients of the Unix socket; `collectors` are for `/metrics`."""
    caller: Caller = memory.service
    if audit := memory.shared.audit:
        caller = audit.wrap(caller, owner=LOCAL_OWNER)
    found = {
        **MemoryRoutes(memory.service, memory.hooks, caller).resources(),
        **documentation_resources(),
        METRICS_PATH: Resource(metrics_route(collectors)),
    }
    return audit_resources(found, audit, owner=LOCAL_OWNER) if audit else found


def documentation_resources(*, serves_owners: bool = False) -> dict[str, Resource]:
    """Return the handlers of `/openapi.json` and `/docs`, with owners' verbs if served."""

    def show_page(request: HttpRequest) -> Response:
        """Return the API's description: as OpenAPI in JSON, or for `/docs` as a page of HTML."""
        # Loaded here: a start need not wait for it.
        from mnemosyned.daemon.openapi import docs_page, openapi  # noqa: PLC0415

        if request.path == "/openapi.json":
            described = openapi(serves_owners=serves_owners)
            return Response(HTTPStatus.OK, msgspec.json.encode(described))
        body = docs_page(serves_owners=serves_owners).encode()
        return Response(HTTPStatus.OK, body, content_type=HTML, headers=PAGE_HEADERS)

    return dict.fromkeys(("/openapi.json", "/docs"), Resource(show_page))
