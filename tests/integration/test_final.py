"""The consolidation before the end: who writes it, and that a model stops in time."""

from __future__ import annotations

import threading
import time
from collections.abc import Sequence

import pytest
from support.fakes import FakeClock, FakeSummarizer, remember_batch, trio
from support.settings import settings_in_force

from mnemosyned.memory.engine_ports import Summarizer, Summary
from mnemosyned.memory.values import MemoryRecord, SummarizerState, SummarizerStatus
from mnemosyned.sleep import sleeper as final
from mnemosyned.sleep.cycle import SleepCycle
from mnemosyned.sleep.lease import SummarizerLease
from mnemosyned.sleep.sleeper import RULES_S, final_consolidation
from mnemosyned.storage.sqlite.store import SqliteStore

DEADLINE_S = RULES_S + 240.0


class Writing(FakeSummarizer):
    """Stands for a model that writes until it is interrupted, where it is told to hang."""

    def __init__(self, *, hangs: bool) -> None:
        super().__init__()
        self.stopped = threading.Event()
        self.asked = 0
        self._hangs = hangs

    def status(self) -> SummarizerStatus:
        state = (
            SummarizerState.FALLBACK if self.stopped.is_set() else SummarizerState.MODEL
        )
        return SummarizerStatus(name=self.name, reason="", state=state)

    def summarize(self, memories: Sequence[MemoryRecord]) -> Summary:
        self.asked += not self.stopped.is_set()
        if self._hangs:
            assert self.stopped.wait(30)
        return super().summarize(memories)

    def rule_based(self) -> Summarizer:
        return FakeSummarizer()

    def interrupt(self) -> None:
        self.stopped.set()

    def resume(self) -> None:
        self.stopped.clear()


def cycle_with(store: SqliteStore, clock: FakeClock, model: Writing) -> SleepCycle:
    for at in range(3):
        remember_batch(store, *trio(f"run {at} ", session=f"s{at}"))
    return SleepCycle(
        store=store,
        lease=SummarizerLease(model),
        clock=clock,
        settings=settings_in_force(),
    )


@pytest.mark.parametrize(
    ("deadline_s", "asked"), [(1.0, 0), (RULES_S, 0), (RULES_S + 1, 0), (DEADLINE_S, 3)]
)
def test_a_model_is_asked_only_with_time_to_spare(
    store: SqliteStore, clock: FakeClock, deadline_s: float, asked: int
) -> None:
    model = Writing(hangs=False)
    cycle = cycle_with(store, clock, model)

    report = final_consolidation(cycle, deadline_s=deadline_s, keep_going=lambda: True)

    assert (report.evicted, model.asked) == (9, asked)


def test_a_model_that_writes_for_too_long_is_ended_and_rules_do_the_rest(
    store: SqliteStore, clock: FakeClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    model = Writing(hangs=True)
    cycle = cycle_with(store, clock, model)
    monkeypatch.setattr(final, "RULES_S", DEADLINE_S - 1.0)
    monkeypatch.setattr(final, "MARGIN", 0)

    began = time.monotonic()
    report = final_consolidation(cycle, deadline_s=DEADLINE_S, keep_going=lambda: True)

    assert (report.evicted, model.asked) == (9, 1)
    assert 0.5 < time.monotonic() - began < 10


def test_a_second_signal_ends_a_model_that_writes(
    store: SqliteStore, clock: FakeClock
) -> None:
    model = Writing(hangs=True)
    cycle = cycle_with(store, clock, model)

    began = time.monotonic()
    report = final_consolidation(
        cycle, deadline_s=DEADLINE_S, keep_going=lambda: not model.asked
    )

    assert (report.evicted, model.asked) == (3, 1)
    assert time.monotonic() - began < 10
