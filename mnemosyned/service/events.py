"""Live events: a bounded bus that no reader can block, and the events of each request."""

from __future__ import annotations

import threading
import time
from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from mnemosyned.errors import DaemonBusy, MnemosynedError
from mnemosyned.memory import engine_ports, values
from mnemosyned.memory.clock import Clock
from mnemosyned.text.secrets.masking import mask_secrets
from mnemosyned.verbs import conversation, memories, retention
from mnemosyned.verbs.request import Request, names
from mnemosyned.verbs.upkeep import Event, EventKind, EventMemory, Sleep

if TYPE_CHECKING:
    from mnemosyned.daemon.processes import ProcessRelay

Fields = dict[str, Any]


SUBSCRIBERS_MAX = 8
WAITING_MAX = 1_000
"""Events that wait for one reader."""
KEPT_MAX, KEPT_S = 500, 120.0
"""Events kept for a reader that comes back, and for how long after the last reader left."""
MEMORIES_MAX = 20
"""New memories that one event shows."""
TEXT_CHARS_MAX = 500


class Subscription:
    """The events that wait for one reader."""

    def __init__(self, missed: Sequence[Event]) -> None:
        """Begin with `missed`, the events since the last one that a returning reader has."""
        self.dropped = False
        """Whether it was dropped, as it did not read in time."""
        self.is_over = False
        """Whether its reader has left."""
        self._waiting = deque(missed)
        self._ready = threading.Event()
        if missed:
            self._ready.set()

    @property
    def size(self) -> int:
        """The number of events that wait to be taken."""
        return len(self._waiting)

    def put(self, event: Event) -> None:
        """Add an event for the reader to take."""
        self._waiting.append(event)
        self._ready.set()

    def drop(self) -> None:
        """Mark the subscription as ended by the bus, and wake the reader."""
        self.dropped = True
        self._ready.set()

    def take(self, timeout_s: float) -> list[Event]:
        """Wait up to `timeout_s` seconds for events; return and remove all, or return an empty list."""
        self._ready.wait(timeout_s)
        self._ready.clear()
        return [self._waiting.popleft() for _ in range(len(self._waiting))]


@dataclass(eq=False, kw_only=True)
class EventBus:
    """Hands events to readers; costs nothing while there are none. Safe from any thread."""

    clock: Clock
    relay: ProcessRelay | None = None
    """Has readers of `owner` in other processes get the events, too."""
    owner: int = engine_ports.LOCAL_OWNER

    def __post_init__(self) -> None:
        self._lock = threading.RLock()
        self._subscriptions: list[Subscription] = []
        self._kept: deque[Event] | None = None  # most buses never have a reader
        self._kept_until = 0.0
        self._last_id = 0

    @property
    def listening(self) -> bool:
        """Whether a client reads events, or read them a moment ago and may come back."""
        if self._subscriptions:
            return True
        if self.relay:
            return self.relay.has_readers(self.owner)
        return self._kept_until > 0 and time.monotonic() < self._kept_until

    def publish(self, kind: EventKind, **fields: Any) -> None:  # noqa: ANN401
        """Send a new event to all readers, if there are any; drop readers that are too far behind."""
        if not self.listening:
            return
        if self.relay:
            self.relay.send(self.owner, self.new_event(kind, **fields))
            return
        with self._lock:
            self._last_id += 1
            self.deliver(self.new_event(kind, id=self._last_id, **fields))

    def deliver(self, event: Event) -> None:
        """Give a numbered event to this process's readers, or later to returning readers; drop slow readers."""
        with self._lock:
            if self._kept is None:
                self._kept = deque(maxlen=KEPT_MAX)
            self._kept.append(event)
            for subscription in list(self._subscriptions):
                if subscription.size < WAITING_MAX:
                    subscription.put(event)
                else:
                    self._subscriptions.remove(subscription)
                    subscription.drop()

    def drop_readers(self) -> None:
        """End all subscriptions and drop the kept events, because events were lost."""
        with self._lock:
            for subscription in self._subscriptions:
                subscription.drop()
            self._subscriptions.clear()
            self._kept = None

    def new_event(self, kind: EventKind, *, id: int = 0, **fields: Any) -> Event:  # noqa: ANN401
        """Return a new event of the present time; `id` is its number, or 0 without a number so far."""
        return Event(id=id, kind=kind, at=self.clock.now(), **fields)

    def subscribe(self, after: int | None = None) -> Subscription:
        """Return a subscription to new events, and with `after` to kept ones above it. Raises `DaemonBusy`."""
        if self.relay and not self.listening:
            with self._lock:
                self._kept = None
        if self.relay:  # before it is promised that nothing is missed from here on
            self.relay.count_readers(self.owner, 1)
        with self._lock:
            if len(self._subscriptions) < SUBSCRIBERS_MAX:
                if not self.listening:
                    self._kept = None
                kept = self._kept or () if after is not None else ()
                missed = [event for event in kept if event.id > (after or 0)]
                subscription = Subscription(missed)
                self._subscriptions.append(subscription)
                return subscription
        if self.relay:
            self.relay.count_readers(self.owner, -1)
        raise DaemonBusy(
            f"{SUBSCRIBERS_MAX} readers of events are connected already; end one of them"
        )

    def unsubscribe(self, subscription: Subscription) -> None:
        """End a subscription; keep later events for a while, in case the reader comes back."""
        if subscription.is_over:
            return
        subscription.is_over = True
        if self.relay:
            self.relay.count_readers(self.owner, -1)
        with self._lock:
            if subscription in self._subscriptions:
                self._subscriptions.remove(subscription)
            self._kept_until = time.monotonic() + KEPT_S

    def publish_answer(self, request: Request[Any], result: object) -> None:
        """Publish the event of a successful request; a preview, and most reads, publish none."""
        if request.is_preview:
            return
        if event := _describe_event(request, result):
            kind, fields = event
            self.publish(kind, **fields)

    def publish_refusal(self, request: Request[Any], error: MnemosynedError) -> None:
        """Publish that a request failed, with its error."""
        self.publish(
            EventKind.REFUSED,
            verb=request.verb_name(),
            code=error.code,
            message=mask_secrets(error.message),
        )


def _describe_event(
    request: Request[Any],
    result: Any,  # noqa: ANN401
) -> tuple[EventKind, Fields] | None:
    """Return (kind, fields) of the event for a request; None for `sleep`, and most requests that only read."""
    if isinstance(request, memories.Remember):
        return EventKind.REMEMBERED, _describe_new_memories([request], [result])
    if isinstance(request, memories.RememberMany):
        fields = _describe_new_memories(request.memories, result.memories)
        return EventKind.REMEMBERED, fields
    if isinstance(request, memories.Recall | conversation.Context):
        # Neither the words of the question nor its hits.
        found = result.hits if isinstance(request, memories.Recall) else result.recalled
        fields = {"count": len(found)}
        for name in ("session", "source"):
            if isinstance(value := getattr(request, name), str):
                fields[name] = value
        return EventKind.RECALLED, fields
    ids = list(names(getattr(request, "id", None)))
    named: Fields = {"verb": request.verb_name(), "ids": ids}
    if isinstance(request, retention.Forget):
        return EventKind.FORGOTTEN, {**named, "count": result.memories}
    if request.writes and not isinstance(request, Sleep):
        return EventKind.CHANGED, named
    return None


def _describe_new_memories(
    requests: Sequence[memories.Remember], answers: Sequence[values.Acknowledged]
) -> Fields:
    """Return an event's fields: the number of new memories, and the first of them in short."""
    stored = [
        (request, answer)
        for request, answer in zip(requests, answers, strict=True)
        if answer.stored
    ]
    shown = [
        EventMemory(
            id=answer.id,
            created_at=answer.created_at,
            text=mask_secrets(request.content)[:TEXT_CHARS_MAX],
            session=request.session,
            source=request.source,
            role=request.role,
        )
        for request, answer in stored[:MEMORIES_MAX]
    ]
    return {"count": len(stored), "memories": shown}
