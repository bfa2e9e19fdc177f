"""The bus of live events: bounded, never in a writer's way, and discreet."""

import pytest
from support.fakes import FakeClock
from support.services import Lab

from mnemosyned import DaemonBusy, InvalidRequest
from mnemosyned.daemon.resources import events_route
from mnemosyned.errors import MnemosynedError
from mnemosyned.http_messages import HttpRequest
from mnemosyned.service import events
from mnemosyned.service.events import EventBus, Subscription
from mnemosyned.verbs.memories import Remember
from mnemosyned.verbs.upkeep import Event, EventKind

CELLAR = "The cellar's password is thyme77."


@pytest.fixture
def bus(clock: FakeClock, monkeypatch: pytest.MonkeyPatch) -> EventBus:
    for name, value in (("SUBSCRIBERS_MAX", 2), ("WAITING_MAX", 3), ("KEPT_MAX", 4)):
        monkeypatch.setattr(events, name, value)
    return EventBus(clock=clock)


def taken(subscription: Subscription) -> list[Event]:
    return subscription.take(0)


def test_each_reader_gets_every_event_in_order(bus: EventBus) -> None:
    first, second = bus.subscribe(), bus.subscribe()

    bus.publish(EventKind.CHANGED, verb="pin")
    bus.publish(EventKind.CHANGED, verb="unpin")

    assert [event.verb for event in taken(first)] == ["pin", "unpin"]
    assert [event.id for event in taken(second)] == [1, 2]
    assert taken(first) == []


def test_a_reader_that_falls_behind_is_dropped_and_others_go_on(bus: EventBus) -> None:
    slow, quick = bus.subscribe(), bus.subscribe()

    for _ in range(4):
        bus.publish(EventKind.CHANGED)
        assert len(taken(quick)) == 1

    assert slow.dropped
    assert slow.size == 3
    assert not quick.dropped
    bus.publish(EventKind.CHANGED)
    assert slow.size == 3
    assert len(taken(quick)) == 1


def test_a_further_reader_is_refused_until_one_leaves(bus: EventBus) -> None:
    first, _ = bus.subscribe(), bus.subscribe()
    with pytest.raises(DaemonBusy, match="2 readers"):
        bus.subscribe()

    bus.unsubscribe(first)

    assert taken(bus.subscribe()) == []


def test_nothing_is_kept_while_nobody_reads(bus: EventBus) -> None:
    bus.publish(EventKind.CHANGED)

    assert not bus.listening
    assert taken(bus.subscribe(after=0)) == []


def test_a_reader_that_comes_back_gets_what_it_missed(bus: EventBus) -> None:
    reader = bus.subscribe()
    bus.publish(EventKind.CHANGED, verb="pin")
    bus.unsubscribe(reader)
    for number in "012":
        bus.publish(EventKind.CHANGED, verb=number)

    again = bus.subscribe(after=1)

    assert [event.verb for event in taken(again)] == [*"012"]


def test_new_memories_are_told_with_their_secrets_masked(lab: Lab) -> None:
    reader = lab.service.events.subscribe()

    lab.remember(CELLAR, session="kitchen", source="cook")
    lab.remember_many([Remember(f"note {n}") for n in range(30)])

    one, many = taken(reader)
    (memory,) = one.memories
    assert (one.kind, one.count, memory.session) == (EventKind.REMEMBERED, 1, "kitchen")
    assert "thyme77" not in memory.text
    assert memory.id
    assert (many.count, len(many.memories)) == (30, events.MEMORIES_MAX)


def test_a_question_is_told_without_its_words(lab: Lab) -> None:
    lab.remember("Ada drinks Assam", session="tea")
    reader = lab.service.events.subscribe()

    lab.recall("what does Ada drink?", session="tea")
    lab.context("what does Ada drink?", session="tea")

    for event in taken(reader):
        told = (event.kind, event.count, event.session)
        assert told == (EventKind.RECALLED, 1, "tea")
        assert "Ada" not in str(event)
    assert event.id == 2


def test_what_forgets_changes_or_fails_is_told(lab: Lab) -> None:
    lab.remember("Ada drinks Assam", id="tea")
    reader = lab.service.events.subscribe()

    lab.pin("tea")
    lab.get("tea")
    lab.forget("tea", dry_run=True)
    lab.forget("tea")
    with pytest.raises(MnemosynedError):
        lab.get("tea")

    changed, forgotten, refused = taken(reader)
    assert (changed.kind, changed.verb) == (EventKind.CHANGED, "pin")
    assert changed.ids == ["tea"]
    assert (forgotten.kind, forgotten.count) == (EventKind.FORGOTTEN, 1)
    assert (refused.kind, refused.verb) == (EventKind.REFUSED, "get")
    assert refused.code == "not_found"


@pytest.mark.parametrize("after", ["-1", "x", "²", "9" * 30])
def test_an_id_that_no_event_has_is_refused(bus: EventBus, after: str) -> None:
    route = events_route(bus, lambda: None)

    with pytest.raises(InvalidRequest, match="not an event's id"):
        route(HttpRequest("GET", "/v1/events", f"after={after}", b""))


def test_a_stream_that_is_closed_leaves_its_place(bus: EventBus) -> None:
    route = events_route(bus, lambda: None)
    request = HttpRequest("GET", "/v1/events", "", b"")

    for _ in range(5):
        stream = route(request).stream
        assert stream is not None
        stream.close()  # type: ignore[attr-defined]
