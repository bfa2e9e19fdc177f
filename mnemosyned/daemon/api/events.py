"""`GET /v1/events`: live events as server-sent events."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from http import HTTPStatus
from urllib.parse import parse_qs

from mnemosyned.domain.errors import InvalidRequest
from mnemosyned.domain.sleep.cycles import Progress
from mnemosyned.http_messages import HttpRequest, Response, Route
from mnemosyned.service.events import EventBus, Subscription
from mnemosyned.verbs.streams.events import Event, EventKind, encode_event

EVENTS_PATH = "/v1/events"
EVENT_STREAM = "text/event-stream"
HEADERS = (("Cache-Control", "no-store"),)
HEARTBEAT_S = 15.0
"""Interval of comments while nothing happens, so that both sides know the other is there."""
POLL_S = 0.5
"""How soon a client that left, or a stop of the daemon, is noticed."""
STREAM_S = 3_000.0
"""Time limit of one stream, below the server's; the client connects again."""
ID_MAX = 2**63
DROPPED = "events were lost, as they were not read in time; connect again"
LAST = (EventKind.DROPPED, EventKind.STOPPING)
"""Kinds of events that end a stream."""

Progresses = Callable[[], Progress | None]


def events_route(bus: EventBus, progress: Progresses) -> Route:
    """The route of live events; `progress` tells how far a running cycle is."""

    def events(request: HttpRequest) -> Response:
        after = _after(request)
        if request.method == "HEAD":
            return Response(HTTPStatus.OK, content_type=EVENT_STREAM, headers=HEADERS)
        stream = EventStream(bus, bus.subscribe(after), progress)
        return Response(
            HTTPStatus.OK, content_type=EVENT_STREAM, headers=HEADERS, stream=stream
        )

    return events


def _after(request: HttpRequest) -> int | None:
    """The id that the client saw last. Raises `InvalidRequest`."""
    asked = parse_qs(request.query).get("after", [""])[-1]
    last = asked or request.headers.get("last-event-id", "")
    if not last:
        return None
    if not (last.isascii() and last.isdigit()) or int(last[:20]) >= ID_MAX:
        raise InvalidRequest(
            f"after: {last[:40]!r} is not an event's id", field="after"
        )
    return int(last)


class EventStream:
    """The events of one reader as they are sent; the reader is forgotten when it is closed."""

    def __init__(
        self, bus: EventBus, subscription: Subscription, progress: Progresses
    ) -> None:
        self._bus = bus
        self._subscription = subscription
        self._chunks = _chunks(bus, subscription, progress)

    def __iter__(self) -> Iterator[bytes]:
        return self

    def __next__(self) -> bytes:
        return next(self._chunks)

    def close(self) -> None:
        """Stop reading events."""
        self._bus.unsubscribe(self._subscription)


def _chunks(
    bus: EventBus, subscription: Subscription, progress: Progresses
) -> Iterator[bytes]:
    """Yield events as they come, and an empty chunk now and then."""
    ends = time.monotonic() + STREAM_S
    beats = 0.0
    last: Progress | None = None
    while time.monotonic() < ends:
        events = subscription.take(POLL_S)
        present = progress()
        if present is not None and present != last:
            # No event of the bus: each reader looks at its own pace.
            events.append(
                bus.event(
                    EventKind.CYCLE_PROGRESS, done=present.done, total=present.total
                )
            )
        last = present
        if subscription.dropped:
            events.append(bus.event(EventKind.DROPPED, message=DROPPED))
        chunk = b"".join(map(written, events))
        now = time.monotonic()
        if not chunk and now >= beats:
            chunk = b": \n\n"
        if chunk:
            beats = now + HEARTBEAT_S
        yield chunk
        if any(event.kind in LAST for event in events):
            return


def written(event: Event) -> bytes:
    """An event as it is sent."""
    numbered = b"id: %d\n" % event.id if event.id else b""
    data = encode_event(event)
    return b"%sevent: %s\ndata: %s\n\n" % (numbered, event.kind.value.encode(), data)
