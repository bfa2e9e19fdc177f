"""A backlog is worked off in steps, within a cycle's time and tokens, and told while it goes."""

import threading
import time
from collections.abc import Sequence
from types import SimpleNamespace

import pytest
from support.engines import contents
from support.fakes import (
    FakeSummarizer,
    trio,
    working_ids,
)
from support.services import Lab

from mnemosyned import fairness
from mnemosyned.cli.output.show import render
from mnemosyned.fairness import REST_MAX_S, YIELD_MAX_S, ForegroundGate
from mnemosyned.memory.consolidation import (
    CycleStatus,
    Progress,
    Trigger,
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
from mnemosyned.sleep.context import CommitPacing
from mnemosyned.sleep.sleeper import RULES_S, final_consolidation


class Slow(FakeSummarizer):
    """A model that is in force, and lets a clock of the cycle's own run."""

    def status(self) -> SummarizerStatus:
        return SummarizerStatus(name=self.name, reason="", state=SummarizerState.MODEL)


def backlog(lab: Lab, groups: int, content: str = "a note") -> None:
    for at in range(groups):
        three = trio(f"g{at:02}x", source=f"s{at}", hours_ago=100 - at, content=content)
        lab.put(*three)


def test_a_backlog_of_many_steps_is_worked_off_in_one_cycle(lab: Lab) -> None:
    lab.cycle.plan_size = 7
    backlog(lab, 12)

    report = lab.run_cycle(Trigger.SCHEDULE)

    assert report.status is CycleStatus.DONE
    assert (report.evicted, report.promoted) == (36, 12)
    assert {group.items for group in report.groups if not group.level} == {3}
    assert lab.store.maintenance.totals()[Tier.ARCHIVE].count == 36


def test_steps_in_which_all_fails_come_to_an_end(lab: Lab) -> None:
    lab.cycle.plan_size = 7
    backlog(lab, 12)
    lab.summarizer.fail()

    report = lab.run_cycle(Trigger.SCHEDULE)

    assert (report.failed, report.evicted, report.remaining) == (12, 0, 36)
    assert len(working_ids(lab.store)) == 36


def test_a_cycle_ends_when_its_time_is_up_and_the_next_goes_on(
    lab: Lab, monkeypatch: pytest.MonkeyPatch
) -> None:
    backlog(lab, 5)
    lab.change({"sleep.cycle_minutes": 0.5 / 60})
    calls = lab.summarizer.calls
    clock = SimpleNamespace(monotonic=lambda: 0.3 * len(calls))
    monkeypatch.setattr(context, "time", clock)

    first = lab.run_cycle(Trigger.SCHEDULE)
    lab.change({"sleep.cycle_minutes": None})
    second = lab.run_cycle(Trigger.SCHEDULE)

    assert first.status is CycleStatus.PARTIAL
    assert 0 < first.evicted < 15
    assert (first.remaining, first.rolled_up) == (15 - first.evicted, 0)
    assert (second.status, second.evicted) == (CycleStatus.DONE, 15 - first.evicted)


def test_a_model_and_its_dry_run_end_where_the_tokens_do(lab: Lab) -> None:
    model = Slow()
    lab.cycle.lease.replace(model)
    lab.change({"sleep.cycle_tokens": 450})
    backlog(lab, 5, "word " * 80)

    planned, done = lab.sleep(dry_run=True), lab.sleep()

    assert len(model.calls) == 2
    assert (done.evicted, done.remaining) == (6, 9)
    sources = [group.source for group in planned.groups]
    assert sources == [group.source for group in done.groups]
    assert "9 would wait for the next cycle" in render(planned)


def test_rules_have_no_budget_of_tokens(lab: Lab) -> None:
    lab.change({"sleep.cycle_tokens": 1})
    backlog(lab, 4)

    assert lab.run_cycle(Trigger.SCHEDULE).evicted == 12


def test_status_tells_how_far_the_cycle_is(lab: Lab) -> None:
    backlog(lab, 3)
    seen: list[Progress | None] = []
    lab.summarizer.meanwhile = lambda _: seen.append(lab.status().sleep.progress)

    lab.sleep()

    assert seen[0] == Progress(0, 9)
    assert lab.status().sleep.progress is None


def test_a_dry_run_says_how_long_a_model_would_write(lab: Lab) -> None:
    backlog(lab, 2)
    assert lab.sleep(dry_run=True).model_s is None, "rules write"
    lab.cycle.lease.replace(Slow())

    assert lab.sleep(dry_run=True).model_s
    lab.sleep()
    for name in "mn":
        three = trio(name, source=name, content="x" * 1_000)
        lab.put(*three)
    pace = lab.store.sleep.chars_per_s("fake")

    assert pace
    assert (lab.sleep(dry_run=True).model_s or 0) >= 6_000 / pace


REST_TIMES = 9
"""How many times as long a cycle rests as it worked; in other tests it does not."""


def test_a_cycle_gives_way_while_somebody_waits_for_a_moment_at_most() -> None:
    gate = ForegroundGate()
    waiter = threading.Thread(target=gate.yield_to_requests)
    with gate:
        assert gate.active
        waiter.start()
        waiter.join(YIELD_MAX_S * 40)

    assert not waiter.is_alive(), "it goes on whatever the traffic"
    assert gate.quiet_s < 60


def test_a_cycle_pauses_after_each_step_only_while_requests_are_in_flight(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(fairness, "WORK_REST_TIMES", REST_TIMES)
    rests: list[float] = []
    clock = SimpleNamespace(monotonic=lambda: 0.0, sleep=rests.append)
    monkeypatch.setattr(fairness, "time", clock)
    gate = ForegroundGate()

    gate.rest_after(60.0)
    assert rests == []
    with gate:
        pass
    gate.rest_after(0.001)
    gate.rest_after(60.0)
    assert rests == [0.001 * REST_TIMES, REST_MAX_S]


@pytest.mark.parametrize(("active_s", "alone"), [(0.0, True), (60.0, False)])
def test_in_company_a_commit_takes_fewer_groups(
    lab: Lab, monkeypatch: pytest.MonkeyPatch, *, active_s: float, alone: bool
) -> None:
    backlog(lab, 6)
    sizes: list[int] = []
    write = lab.store.sleep.consolidate

    def counted(
        groups: Sequence[Sequence[Promotion]], *, durable: bool
    ) -> list[Exception | None]:
        sizes.append(len(groups))
        return write(groups, durable=durable)

    monkeypatch.setattr(lab.store.sleep, "consolidate", counted)
    monkeypatch.setattr(fairness, "ACTIVE_S", active_s)
    monkeypatch.setattr(context, "ACTIVE_S", active_s)
    lab.cycle.pacing = CommitPacing(hold_s=60.0)
    with lab.cycle.gate:
        pass

    lab.run_cycle(Trigger.SCHEDULE)

    assert (max(sizes) > 1) is alone
    assert sum(sizes) == 6


def test_what_a_model_wrote_is_kept_before_it_writes_more(lab: Lab) -> None:
    backlog(lab, 4)
    kept: list[int] = []

    def count(_: Sequence[object]) -> None:
        kept.append(lab.store.maintenance.totals()[Tier.ARCHIVE].count)

    lab.cycle.lease.replace(Slow(meanwhile=count))
    lab.cycle.pacing = CommitPacing(wait_s=60.0, hold_s=60.0)

    lab.run_cycle(Trigger.SCHEDULE)

    assert kept == [0, 3, 6, 9]


def test_the_log_file_is_folded_in_while_a_long_cycle_runs(
    lab: Lab, monkeypatch: pytest.MonkeyPatch
) -> None:
    backlog(lab, 6)
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

    lab.run_cycle(Trigger.SCHEDULE)

    assert seen == [True, True]


# The consolidation before the end: who writes it, and that a model stops in time.


DEADLINE_S = RULES_S + 240.0


def always() -> bool:
    return True


class Writing(FakeSummarizer):
    """Stands for a model that writes until it is interrupted, where it is told to hang."""

    def __init__(self, *, hangs: bool) -> None:
        super().__init__()
        self.stopped = threading.Event()
        self.asked = 0
        self._hangs = hangs

    def status(self) -> SummarizerStatus:
        stopped = self.stopped.is_set()
        state = SummarizerState.FALLBACK if stopped else SummarizerState.MODEL
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


@pytest.fixture
def writing(request: pytest.FixtureRequest, lab: Lab) -> Writing:
    """The model of a cycle that has three groups to read."""
    model = Writing(hangs=getattr(request, "param", True))
    lab.cycle.lease.replace(model)
    for at in range(3):
        lab.put(*trio(f"run {at} ", session=f"s{at}"))
    return model


@pytest.mark.parametrize("writing", [False], indirect=True)
@pytest.mark.parametrize(
    ("deadline_s", "asked"),
    [(RULES_S / 2, 0), (RULES_S, 0), (RULES_S + 1, 0), (DEADLINE_S, 3)],
)
def test_a_model_is_asked_only_with_time_to_spare(
    lab: Lab, writing: Writing, deadline_s: float, asked: int
) -> None:
    report = final_consolidation(lab.cycle, deadline_s=deadline_s, keep_going=always)

    assert (report.evicted, writing.asked) == (9, asked)


def test_a_model_that_writes_for_too_long_is_ended_and_rules_do_the_rest(
    lab: Lab, writing: Writing, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(final, "RULES_S", DEADLINE_S - 1.0)
    monkeypatch.setattr(final, "MARGIN", 0)

    began = time.monotonic()
    report = final_consolidation(lab.cycle, deadline_s=DEADLINE_S, keep_going=always)

    assert (report.evicted, writing.asked) == (9, 1)
    assert time.monotonic() - began > 0.5


def test_a_second_signal_ends_a_model_that_writes(lab: Lab, writing: Writing) -> None:
    report = final_consolidation(
        lab.cycle, deadline_s=DEADLINE_S, keep_going=lambda: not writing.asked
    )

    assert (report.evicted, writing.asked) == (3, 1)
