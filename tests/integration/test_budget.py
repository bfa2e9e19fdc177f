"""A backlog is worked off in steps, within a cycle's time and tokens, and told while it goes."""

from __future__ import annotations

import threading
import time
from collections.abc import Sequence
from dataclasses import replace
from datetime import timedelta

import pytest
from support.engines import contents
from support.fakes import (
    FakeClock,
    FakeSummarizer,
    memory,
    pending,
    remember_batch,
    trio,
    working_ids,
)
from support.services import Lab
from support.settings import change, settings_in_force

from mnemosyned.cli.output.show import render
from mnemosyned.memory.consolidation import (
    Batch,
    CycleStatus,
    GroupLimits,
    Progress,
    Trigger,
    closed_batches,
    plan,
)
from mnemosyned.memory.engine_ports import Summarizer, Summary
from mnemosyned.memory.ports import Promotion
from mnemosyned.memory.values import (
    MemoryRecord,
    SummarizerState,
    SummarizerStatus,
    Tier,
)
from mnemosyned.sleep import context, sleeper as final
from mnemosyned.sleep.context import (
    REST_MAX_S,
    REST_TIMES,
    YIELD_MAX_S,
    CommitPacing,
    CycleRequest,
    ForegroundGate,
    SummarizerLease,
)
from mnemosyned.sleep.cycle import SleepCycle
from mnemosyned.sleep.sleeper import RULES_S, final_consolidation
from mnemosyned.storage.sqlite.store import SqliteStore


class Slow(FakeSummarizer):
    """A model that is in force, and lets a clock of the cycle's own run."""

    def status(self) -> SummarizerStatus:
        return SummarizerStatus(name=self.name, reason="", state=SummarizerState.MODEL)


def backlog(store: SqliteStore, groups: int) -> None:
    for at in range(groups):
        remember_batch(store, *trio(f"g{at:02}x", source=f"s{at}", hours_ago=100 - at))


# --------------------------------------------------------------------- steps


def test_a_backlog_of_many_steps_is_worked_off_in_one_cycle(lab: Lab) -> None:
    lab.cycle.plan_size = 7
    backlog(lab.store, 12)

    report = lab.cycle.run(CycleRequest(trigger=Trigger.EXPLICIT))

    assert (report.status, report.evicted, report.promoted) == (
        CycleStatus.DONE,
        36,
        12,
    )
    assert {group.items for group in report.groups if not group.level} == {3}
    assert lab.store.maintenance.totals()[Tier.ARCHIVE].count == 36


def test_steps_in_which_all_fails_come_to_an_end(lab: Lab) -> None:
    lab.cycle.plan_size = 7
    backlog(lab.store, 12)
    lab.summarizer.fail()

    report = lab.cycle.run(CycleRequest(trigger=Trigger.EXPLICIT))

    assert (report.failed, report.evicted, report.remaining) == (12, 0, 36)
    assert len(working_ids(lab.store)) == 36


def test_a_group_that_the_next_step_could_add_to_waits_for_it() -> None:
    limits = GroupLimits(pause=timedelta(hours=6))
    early = [pending(f"a{at}", hours=at) for at in range(3)]
    late = [pending(f"b{at}", hours=20 + at) for at in range(3)]
    batches = plan([*early, *late], limits=limits)

    def ids(found: list[Batch]) -> list[str]:
        return [id for batch in found for id in batch.ids]

    assert ids(closed_batches(batches, until=late[-1].created_at, limits=limits)) == [
        "a0",
        "a1",
        "a2",
    ]
    assert ids(
        closed_batches(batches[1:], until=late[-1].created_at, limits=limits)
    ) == [
        "b0",
        "b1",
        "b2",
    ]


# -------------------------------------------------------------------- budget


def test_a_cycle_ends_when_its_time_is_up_and_the_next_goes_on(lab: Lab) -> None:
    backlog(lab.store, 5)
    up = threading.Event()
    change(lab.settings, {"sleep.cycle_minutes": 0.05 / 60})
    lab.summarizer.meanwhile = lambda _: up.wait(0.03)

    first = lab.cycle.run(CycleRequest(trigger=Trigger.SCHEDULE))
    lab.summarizer.meanwhile = lambda _: None
    change(lab.settings, {"sleep.cycle_minutes": None})
    second = lab.cycle.run(CycleRequest(trigger=Trigger.SCHEDULE))

    assert first.status is CycleStatus.PARTIAL
    assert 0 < first.evicted < 15
    assert (first.remaining, first.rolled_up) == (15 - first.evicted, 0)
    assert (second.status, second.evicted) == (CycleStatus.DONE, 15 - first.evicted)


def test_a_model_reads_no_more_than_its_tokens(lab: Lab) -> None:
    model = Slow()
    lab.cycle.lease.replace(model)
    change(lab.settings, {"sleep.cycle_tokens": 250})
    for at in range(5):
        three = trio(f"g{at}x", source=f"s{at}", hours_ago=50 - at)
        remember_batch(
            lab.store, *[replace(one, content="word " * 80) for one in three]
        )

    report = lab.cycle.run(CycleRequest(trigger=Trigger.SCHEDULE))

    assert len(model.calls) == 1
    assert (report.evicted, report.remaining) == (3, 12)


def test_a_dry_run_ends_where_the_tokens_do(lab: Lab) -> None:
    lab.cycle.lease.replace(Slow())
    change(lab.settings, {"sleep.cycle_tokens": 600})
    for at in range(5):
        three = trio(f"g{at}x", source=f"s{at}", hours_ago=50 - at)
        remember_batch(
            lab.store, *[replace(one, content="word " * 80) for one in three]
        )

    planned = lab.sleep(dry_run=True)
    done = lab.sleep()

    assert [group.source for group in planned.groups] == [
        group.source for group in done.groups
    ]
    assert 0 < done.evicted < 15
    assert f"{15 - done.evicted} would wait for the next cycle" in render(planned)


def test_rules_have_no_budget_of_tokens(lab: Lab) -> None:
    change(lab.settings, {"sleep.cycle_tokens": 1})
    backlog(lab.store, 4)

    assert lab.cycle.run(CycleRequest(trigger=Trigger.SCHEDULE)).evicted == 12


# ------------------------------------------------------------------ progress


def test_status_tells_how_far_the_cycle_is(lab: Lab) -> None:
    backlog(lab.store, 3)
    seen: list[Progress | None] = []
    lab.summarizer.meanwhile = lambda _: seen.append(lab.status().sleep.progress)

    lab.sleep()

    assert seen[0] == Progress(0, 9)
    assert lab.status().sleep.progress is None


def test_a_dry_run_says_how_long_a_model_would_write(lab: Lab) -> None:
    backlog(lab.store, 2)
    by_rule = lab.sleep(dry_run=True).model_s
    model = Slow()
    lab.cycle.lease.replace(model)

    first = lab.sleep(dry_run=True).model_s
    lab.sleep()
    remember_batch(
        lab.store, *[memory(f"m{at}", "x" * 1_000, hours_ago=20) for at in range(3)]
    )
    paced = lab.sleep(dry_run=True).model_s
    pace = lab.store.sleep.chars_per_s("fake")

    assert by_rule is None
    assert first
    assert pace
    assert paced
    assert paced >= 3_000 / pace


# ------------------------------------------------------------------ throttle


def test_a_cycle_gives_way_while_somebody_waits_for_a_moment_at_most() -> None:
    gate = ForegroundGate()
    came: list[float] = []

    def wait() -> None:
        gate.yield_to_requests()
        came.append(1)

    waiter = threading.Thread(target=wait)
    with gate:
        assert gate.active
        waiter.start()
        waiter.join(YIELD_MAX_S * 40)

    assert came, "it goes on whatever the traffic"
    assert gate.quiet_s < 60


def test_a_cycle_pauses_after_each_step_only_while_requests_are_in_flight() -> None:
    gate = ForegroundGate()

    began = time.monotonic()
    gate.rest_after(60.0)
    alone_s = time.monotonic() - began
    with gate:
        pass
    gate.rest_after(0.001)
    short_s = time.monotonic() - began - alone_s
    gate.rest_after(60.0)
    long_s = time.monotonic() - began - alone_s - short_s

    assert alone_s < REST_MAX_S
    assert short_s >= 0.001 * REST_TIMES
    assert REST_MAX_S <= long_s < 60.0


@pytest.mark.parametrize(("active_s", "alone"), [(0.0, True), (60.0, False)])
def test_in_company_a_commit_takes_fewer_groups(
    lab: Lab, monkeypatch: pytest.MonkeyPatch, *, active_s: float, alone: bool
) -> None:
    backlog(lab.store, 6)
    sizes: list[int] = []
    write = lab.store.sleep.consolidate

    def counted(
        groups: Sequence[Sequence[Promotion]], *, durable: bool
    ) -> list[Exception | None]:
        sizes.append(len(groups))
        return write(groups, durable=durable)

    monkeypatch.setattr(lab.store.sleep, "consolidate", counted)
    monkeypatch.setattr(context, "ACTIVE_S", active_s)
    pacing = CommitPacing(hold_s=60.0)
    lab.cycle.pacing = pacing
    with lab.cycle.gate:
        pass

    lab.cycle.run(CycleRequest(trigger=Trigger.EXPLICIT))

    assert (max(sizes) > 1) is alone
    assert sum(sizes) == 6


def test_what_a_model_wrote_is_kept_before_it_writes_more(lab: Lab) -> None:
    backlog(lab.store, 4)
    kept: list[int] = []

    def count(_: Sequence[object]) -> None:
        kept.append(lab.store.maintenance.totals()[Tier.ARCHIVE].count)

    slow = SleepCycle(
        store=lab.store,
        lease=SummarizerLease(Slow(meanwhile=count)),
        clock=FakeClock(),
        settings=lab.settings,
    )
    slow.pacing = CommitPacing(wait_s=60.0, hold_s=60.0)

    slow.run(CycleRequest(trigger=Trigger.EXPLICIT))

    assert kept == [0, 3, 6, 9]


def test_the_log_file_is_folded_in_while_a_long_cycle_runs(
    lab: Lab, monkeypatch: pytest.MonkeyPatch
) -> None:
    backlog(lab.store, 6)
    pacing = CommitPacing(groups_max=1, commit_groups=4, checkpoint_groups=3 * (1 + 4))
    lab.cycle.pacing = pacing
    before = contents(lab.store)
    seen: list[bool] = []
    checkpoint = lab.store.maintenance.run_upkeep

    def noted() -> bool:
        short = checkpoint()
        seen.append(contents(lab.store) != before)
        return short

    monkeypatch.setattr(lab.store.maintenance, "run_upkeep", noted)

    lab.cycle.run(CycleRequest(trigger=Trigger.EXPLICIT))

    assert seen == [True, True]


# The consolidation before the end: who writes it, and that a model stops in time.


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
    lab: Lab, deadline_s: float, asked: int
) -> None:
    model = Writing(hangs=False)
    cycle = cycle_with(lab.store, lab.clock, model)

    report = final_consolidation(cycle, deadline_s=deadline_s, keep_going=lambda: True)

    assert (report.evicted, model.asked) == (9, asked)


def test_a_model_that_writes_for_too_long_is_ended_and_rules_do_the_rest(
    lab: Lab, monkeypatch: pytest.MonkeyPatch
) -> None:
    model = Writing(hangs=True)
    cycle = cycle_with(lab.store, lab.clock, model)
    monkeypatch.setattr(final, "RULES_S", DEADLINE_S - 1.0)
    monkeypatch.setattr(final, "MARGIN", 0)

    began = time.monotonic()
    report = final_consolidation(cycle, deadline_s=DEADLINE_S, keep_going=lambda: True)

    assert (report.evicted, model.asked) == (9, 1)
    assert time.monotonic() - began > 0.5


def test_a_second_signal_ends_a_model_that_writes(lab: Lab) -> None:
    model = Writing(hangs=True)
    cycle = cycle_with(lab.store, lab.clock, model)

    report = final_consolidation(
        cycle, deadline_s=DEADLINE_S, keep_going=lambda: not model.asked
    )

    assert (report.evicted, model.asked) == (3, 1)
