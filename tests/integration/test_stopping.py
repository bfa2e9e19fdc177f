"""A cycle that somebody stops: its present group is finished, and no other is begun."""

from __future__ import annotations

import threading
import time
from collections.abc import Sequence
from datetime import UTC, timedelta

import pytest
from support.fakes import (
    NOON,
    FakeClock,
    FakeSummarizer,
    remember_batch,
    trio,
    working_ids,
)

from mnemosyned.errors import InvalidRequest, SleepInProgress
from mnemosyned.memory.consolidation import CycleReport, CycleStatus, Trigger
from mnemosyned.memory.values import MemoryRecord
from mnemosyned.service.service import MemoryService
from mnemosyned.sleep.context import HOLD, CycleRequest, CycleStop, CycleStopper
from mnemosyned.sleep.cycle import SleepCycle
from mnemosyned.sleep.sleeper import BackgroundCycles
from mnemosyned.sleep.triggers import MachineState
from mnemosyned.storage.sqlite.store import SqliteStore
from mnemosyned.verbs.upkeep import Sleep, Status

WAIT_S = 10.0


def wait_until_asked(stop: CycleStop | CycleStopper) -> None:
    deadline = time.monotonic() + WAIT_S
    while not stop.is_requested and time.monotonic() < deadline:
        time.sleep(0.001)


def finish_when_asked(stop: CycleStop) -> None:
    """End a cycle without a report, as one does that fails."""
    wait_until_asked(stop)
    stop.finish()


class StoppingReader:
    """Somebody who stops the cycle as soon as the model has read its first group."""

    def __init__(self, service: MemoryService, cycle: SleepCycle) -> None:
        self.answers: list[CycleReport] = []
        self._service = service
        self._cycle = cycle
        self._thread = threading.Thread(target=self._stop)

    def __call__(self, _: Sequence[MemoryRecord]) -> None:
        if not self._thread.ident:
            self._thread.start()
            wait_until_asked(self._cycle.stopper)

    def _stop(self) -> None:
        self.answers.append(self._service.call(Sleep(stop=True)))

    def answer(self) -> CycleReport:
        self._thread.join(WAIT_S)
        (answer,) = self.answers
        return answer


def test_the_present_group_is_finished_and_no_other_begun(
    store: SqliteStore,
    service: MemoryService,
    cycle: SleepCycle,
    summarizer: FakeSummarizer,
) -> None:
    remember_batch(
        store, *trio("a", session="a", hours_ago=30), *trio("b", session="b")
    )
    reader = StoppingReader(service, cycle)
    summarizer.meanwhile = reader

    report = service.call(Sleep(force=True))

    assert report.status is CycleStatus.STOPPED
    assert (report.evicted, report.promoted, report.remaining) == (3, 1, 3)
    assert reader.answer() == report
    assert working_ids(store) == ["b0", "b1", "b2"]
    assert not cycle.lease.is_in_cycle


def test_the_next_cycle_takes_the_rest(
    store: SqliteStore,
    service: MemoryService,
    cycle: SleepCycle,
    summarizer: FakeSummarizer,
) -> None:
    remember_batch(store, *trio("a", session="a"), *trio("b", session="b"))
    summarizer.meanwhile = StoppingReader(service, cycle)
    service.call(Sleep(force=True))

    rest = service.call(Sleep(force=True))

    assert (rest.status, rest.evicted) == (CycleStatus.DONE, 3)


def test_without_a_cycle_there_is_nothing_to_stop(service: MemoryService) -> None:
    report = service.call(Sleep(stop=True))

    assert (report.status, report.cycle) == (CycleStatus.NOT_RUNNING, "")


def test_one_that_failed_says_so_to_who_stopped_it(
    service: MemoryService, cycle: SleepCycle
) -> None:
    stop = cycle.stopper.begin()
    failing = threading.Thread(target=finish_when_asked, args=(stop,))
    failing.start()

    report = service.call(Sleep(stop=True))

    failing.join(WAIT_S)
    assert report.status is CycleStatus.NOT_RUNNING
    assert "failed" in report.problem


def test_a_stop_takes_no_other_field(service: MemoryService) -> None:
    with pytest.raises(InvalidRequest, match="give nothing else"):
        service.call(Sleep(stop=True, force=True))


def test_a_pause_takes_no_other_field(service: MemoryService) -> None:
    with pytest.raises(InvalidRequest, match="runs no cycle") as refused:
        service.call(Sleep(pause_minutes=5, force=True))

    assert refused.value.field == "pause_minutes"


def test_a_pause_ends_by_itself_or_when_told(
    service: MemoryService, clock: FakeClock
) -> None:
    paused = service.call(Sleep(pause_minutes=60))
    during = service.call(Status()).sleep.paused_until
    clock.advance(hours=1)
    after = service.call(Status()).sleep.paused_until
    service.call(Sleep(pause_minutes=60))
    resumed = service.call(Sleep(pause_minutes=0))

    assert paused.status is CycleStatus.PAUSED
    assert during == paused.held_until == NOON + timedelta(hours=1)
    assert after is resumed.held_until is None
    assert service.call(Status()).sleep.paused_until is None


def test_a_stop_does_not_shorten_a_pause(clock: FakeClock) -> None:
    stopper = CycleStopper(clock)
    stopper.pause(timedelta(hours=2))
    stopper.begin()

    with pytest.raises(SleepInProgress):
        stopper.stop(timeout_s=0)

    assert stopper.held_until() == NOON + timedelta(hours=2)


def test_nothing_starts_in_the_background_for_a_while(
    store: SqliteStore,
    service: MemoryService,
    cycle: SleepCycle,
    summarizer: FakeSummarizer,
    clock: FakeClock,
) -> None:
    remember_batch(store, *trio("a", session="a"), *trio("b", session="b"))
    background = BackgroundCycles(
        store=store,
        cycle=cycle,
        zone=UTC,
        machine=lambda: MachineState(on_battery=False, load=0),
    )
    reader = StoppingReader(service, cycle)
    summarizer.meanwhile = reader
    cycle.run(CycleRequest(trigger=Trigger.SCHEDULE, force=True))
    reader.answer()

    assert background.sleep(Trigger.AGE) is None
    assert "stopped" in background.waits_for
    clock.advance(seconds=HOLD.total_seconds())
    assert background.sleep(Trigger.AGE) is not None
    assert background.waits_for == ""
