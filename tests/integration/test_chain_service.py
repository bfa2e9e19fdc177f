"""A cycle and a service whose model answers, hangs, or is gone."""

from __future__ import annotations

import threading
import time
from dataclasses import replace
from datetime import UTC

import pytest
from support.endpoints import drips, says, serving, unused_port
from support.fake_models import FakeModel, Primary
from support.fakes import FakeClock, memory, remember_batch, trio

from mnemosyned.memory.consolidation import CycleStatus, Trigger
from mnemosyned.memory.values import Episode
from mnemosyned.models.endpoint import EndpointModel
from mnemosyned.models.fallback import STOPPING, FallbackSummarizer
from mnemosyned.models.summarizer import ModelSummarizer
from mnemosyned.service.service import MemoryService
from mnemosyned.sleep.context import CycleRequest
from mnemosyned.sleep.cycle import SleepCycle
from mnemosyned.storage.sqlite.store import SqliteStore
from mnemosyned.summary.extract import ExtractiveSummarizer
from mnemosyned.verbs.retention import Forget


def with_endpoint(url: str, clock: FakeClock) -> tuple[FallbackSummarizer, Primary]:
    model = EndpointModel(endpoint=url, time_limit_s=20)
    primary = Primary(model=model)
    rules = ExtractiveSummarizer()
    return FallbackSummarizer(
        primary=primary, model=model, fallback=rules, clock=clock
    ), primary


@pytest.mark.thorough
def test_a_cycle_promotes_every_group_though_nobody_listens(
    store: SqliteStore, cycle: SleepCycle, clock: FakeClock
) -> None:
    remember_batch(store, *(one for name in "abcd" for one in trio(name, source=name)))
    chain, primary = with_endpoint(f"http://127.0.0.1:{unused_port()}/v1", clock)
    cycle.lease.replace(chain)

    report = cycle.run(CycleRequest(trigger=Trigger.EXPLICIT))

    assert (report.status, report.promoted, primary.calls) == (CycleStatus.DONE, 4, 1)
    entries = store.sleep.log(limit=9)
    assert {entry.summarizer for entry in entries} == {"aaak"}
    assert all(
        "connection refused" in (entry.fallback_reason or "") for entry in entries
    )


def test_a_summary_by_the_model_has_no_fallback_reason(
    store: SqliteStore, cycle: SleepCycle, clock: FakeClock
) -> None:
    remember_batch(store, *trio("a"))
    with serving(says("note a0")) as served:
        chain, _ = with_endpoint(served.url, clock)
        cycle.lease.replace(chain)
        cycle.run(CycleRequest(trigger=Trigger.EXPLICIT))

    (entry,) = store.sleep.log(limit=9)
    assert (entry.summarizer, entry.fallback_reason) == ("fake:model", None)


def test_the_log_names_who_wrote_each_summary_as_it_reads_now(
    store: SqliteStore, cycle: SleepCycle, clock: FakeClock, service: MemoryService
) -> None:
    short = trio("a", source="a")
    long = [
        memory(f"b{at}", f"note b{at}: all is well. " * 40, source="b")
        for at in range(3)
    ]
    remember_batch(
        store, *short, *(replace(one, created_at=short[0].created_at) for one in long)
    )
    remember_batch(store, memory("c", source="c", hours_ago=20))
    prose = "note b0: all is well."
    with serving(says(prose)) as served:
        model = EndpointModel(endpoint=served.url, time_limit_s=20)
        asked = ModelSummarizer(model=model, ratio=1 / 3, zone=UTC, max_tokens=256)
        cycle.lease.replace(
            FallbackSummarizer(
                primary=asked, model=model, fallback=ExtractiveSummarizer(), clock=clock
            )
        )
        cycle.run(CycleRequest(trigger=Trigger.EXPLICIT))
    wrote = {row.source: row.summarizer for row in store.sleep.log(limit=9)}
    service.call(Forget("b1"))

    assert wrote == {"a": "aaak", "b": model.name, "c": "verbatim"}
    rewritten = {row.source: row.summarizer for row in store.sleep.log(limit=9)}
    assert rewritten == {"a": "aaak", "b": "aaak", "c": "verbatim"}


def test_an_interrupted_cycle_ends_at_once_and_the_last_one_asks_no_model(
    store: SqliteStore, cycle: SleepCycle, clock: FakeClock
) -> None:
    remember_batch(store, *(one for name in "ab" for one in trio(name, source=name)))
    with serving(drips) as served:
        chain, primary = with_endpoint(served.url, clock)
        cycle.lease.replace(chain)
        running = threading.Thread(
            target=cycle.run, args=(CycleRequest(trigger=Trigger.EXPLICIT),)
        )
        running.start()
        while not served.seen:
            time.sleep(0.005)
        started = time.monotonic()
        cycle.lease.interrupt()
        report = cycle.run(
            CycleRequest(trigger=Trigger.SHUTDOWN, deadline_s=10, rules_only=True)
        )
        running.join()

    assert time.monotonic() - started < 1
    assert (report.promoted, primary.calls, len(served.seen)) == (1, 1, 1)
    assert {entry.fallback_reason for entry in store.sleep.log(limit=9)} == {STOPPING}


def test_forgetting_waits_for_no_model(
    store: SqliteStore, cycle: SleepCycle, service: MemoryService, clock: FakeClock
) -> None:
    remember_batch(store, *trio("a"))
    cycle.run(CycleRequest(trigger=Trigger.EXPLICIT))
    chain, primary = with_endpoint(f"http://127.0.0.1:{unused_port()}/v1", clock)
    cycle.lease.replace(chain)

    service.call(Forget("a1"))

    episode = store.memories.get(store.sleep.log(limit=1)[0].episode or "")
    assert isinstance(episode, Episode)
    assert episode.summarizer == "aaak"
    assert primary.calls == 0


def test_an_interrupt_reaches_a_model_that_new_settings_have_replaced(
    store: SqliteStore, cycle: SleepCycle, clock: FakeClock
) -> None:
    remember_batch(store, *trio("a"))
    with serving(drips) as served:
        chain, _ = with_endpoint(served.url, clock)
        cycle.lease.replace(chain)
        running = threading.Thread(
            target=cycle.run, args=(CycleRequest(trigger=Trigger.EXPLICIT),)
        )
        running.start()
        while not served.seen:
            time.sleep(0.005)
        cycle.lease.replace(ExtractiveSummarizer())
        started = time.monotonic()
        cycle.lease.interrupt()
        running.join()

    assert time.monotonic() - started < 1
    assert store.sleep.log(limit=1)[0].fallback_reason == STOPPING


def test_new_settings_end_the_former_model_with_its_cycle(
    store: SqliteStore, cycle: SleepCycle, clock: FakeClock
) -> None:
    model, primary, rules = FakeModel(), Primary(), ExtractiveSummarizer()
    cycle.lease.replace(
        FallbackSummarizer(primary=primary, model=model, fallback=rules, clock=clock)
    )
    remember_batch(store, *trio("a"))
    other, _ = with_endpoint("http://127.0.0.1:9/v1", clock)

    def exchange() -> None:
        cycle.lease.replace(other)
        assert not model.closed.is_set()

    primary.does = exchange
    cycle.run(CycleRequest(trigger=Trigger.EXPLICIT))

    assert model.closed.is_set()
    assert store.sleep.log(limit=1)[0].summarizer == "fake:model"
