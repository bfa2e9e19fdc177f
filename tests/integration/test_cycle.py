"""The sleep cycle through the real store: what it takes, what it makes of it, how it fails and ends."""

import threading
import time
from collections.abc import Sequence
from datetime import timedelta
from typing import Any

import pytest
from support.fakes import (
    NOON,
    FakeClock,
    FakeSummarizer,
    memory,
    trio,
    working_ids,
)
from support.services import Lab
from support.settings import change
from support.stores import get_episode

from mnemosyned.errors import InvalidRequest, SleepInProgress, SummarizerFailed
from mnemosyned.memory.consolidation import (
    VERBATIM,
    CycleReport,
    CycleStatus,
    GroupStatus,
    Trigger,
)
from mnemosyned.memory.engine_ports import Summary
from mnemosyned.memory.values import Acknowledged, Episode, MemoryRecord, Tier
from mnemosyned.sleep.context import HOLD, CycleRequest, CycleStop, CycleStopper
from mnemosyned.sleep.sleeper import Sleeper
from mnemosyned.sleep.triggers import MachineState
from mnemosyned.verbs.memories import Remember
from mnemosyned.verbs.upkeep import Sleep

WAIT_S = 60.0


def episodes(lab: Lab, report: CycleReport) -> list[Episode]:
    ids = [id for group in report.groups for id in group.episodes]
    return [get_episode(lab.store, id) for id in ids]


def test_a_session_sleeps_by_itself(lab: Lab) -> None:
    lab.put(*trio("a", session="a"), *trio("b", session="b"))

    lab.run_cycle(session="a")

    assert working_ids(lab.store) == ["b0", "b1", "b2"]


@pytest.mark.parametrize("count", [1, 2])
def test_a_small_group_is_promoted_word_for_word(lab: Lab, count: int) -> None:
    lab.put(*trio("a")[:count])

    made = episodes(lab, lab.run_cycle())

    assert [e.content for e in made] == [f"note a{at}" for at in range(count)]
    assert [e.item_count for e in made] == [1] * count
    rows = lab.store.sleep.log(limit=9)
    assert [row.status for row in rows] == [GroupStatus.VERBATIM] * count
    assert rows[0].summarizer == VERBATIM
    assert lab.summarizer.calls == []


def test_each_group_leaves_a_row_in_the_log(lab: Lab) -> None:
    lab.put(*trio("a", session="s", source="chat"))
    lab.put(*trio("b", session="t", hours_ago=19))
    lab.clock.advance(minutes=1)

    report = lab.run_cycle(Trigger.SCHEDULE)

    later, row = lab.store.sleep.log(limit=9)
    assert (row.id, row.session, row.source) == (1, "s", "chat")
    assert (later.id, later.session, later.source) == (2, "t", None)
    assert (row.items_consolidated, row.error) == (3, None)
    assert (row.status, row.trigger) == (GroupStatus.PROMOTED, "schedule")
    assert row.summary_preview == "In short: note a0 / note a1 / note a2"
    assert row.created_at == NOON + timedelta(minutes=1)
    assert (row.cycle, row.summarizer) == (report.cycle, "fake")
    assert row.episode == report.groups[0].episodes[0]
    assert (row.chars_before, row.chars_after) == (21, len(row.summary_preview))
    assert row.duration_s >= 0


def remember_groups(lab: Lab, *names: str) -> None:
    """Three memories of a source for each name, the first the oldest."""
    for at, name in enumerate(names):
        lab.put(*trio(name, source=name, hours_ago=20 - at))


def test_a_group_that_fails_stays_and_the_others_go_on(lab: Lab) -> None:
    def fail(memories: Sequence[MemoryRecord]) -> None:
        if memories[0].source == "b":
            raise SummarizerFailed("no words came")

    lab.summarizer.meanwhile = fail
    remember_groups(lab, *"abc")

    report = lab.run_cycle()

    assert (report.status, report.failed, report.evicted) == (CycleStatus.PARTIAL, 1, 6)
    assert working_ids(lab.store) == ["b0", "b1", "b2"]
    rows = lab.store.sleep.log(limit=9)
    (failed,) = (row for row in rows if row.status is GroupStatus.FAILED)
    assert (failed.source, failed.items_consolidated, failed.episode) == ("b", 0, None)
    assert (failed.error, failed.summary_preview) == ("summarizer_failed", "")


def test_an_error_nobody_foresaw_is_logged_without_its_words(lab: Lab) -> None:
    def fail(memories: Sequence[MemoryRecord]) -> None:
        raise ValueError(memories[0].content)

    lab.summarizer.meanwhile = fail
    remember_groups(lab, "a")

    assert lab.run_cycle().groups[0].error == "ValueError"
    assert lab.store.sleep.log(limit=1)[0].error == "ValueError"


@pytest.mark.parametrize("nothing", ["", " \n\t"])
def test_an_empty_summary_is_refused(lab: Lab, nothing: str) -> None:
    class Mute(FakeSummarizer):
        def summarize(self, memories: Sequence[MemoryRecord]) -> Summary:  # noqa: ARG002
            return Summary(text=nothing, summarizer="mute")

    lab.cycle.lease.replace(Mute())
    remember_groups(lab, "a")

    assert lab.run_cycle().groups[0].error == "summarizer_failed"
    assert lab.store.memories.working_count() == 3


def test_a_memory_forgotten_during_its_summary_is_not_brought_back(lab: Lab) -> None:
    remember_groups(lab, *"ab")
    lab.summarizer.meanwhile = lambda taken: (
        lab.store.deletion.forget(["a1"]) if taken[0].id == "a0" else None
    )

    report = lab.run_cycle()

    assert [group.error for group in report.groups if group.error] == ["batch_changed"]
    assert working_ids(lab.store) == ["a0", "a2"]
    lab.summarizer.meanwhile = lambda _: None
    assert lab.run_cycle().status is CycleStatus.DONE
    assert lab.store.maintenance.totals()[Tier.ARCHIVE].count == 5


def test_a_group_forgotten_before_its_turn_is_passed_over(lab: Lab) -> None:
    remember_groups(lab, *"ab")

    def forget(_: object) -> None:
        with lab.cycle.gate:
            lab.store.deletion.forget(["b0", "b1", "b2"])

    lab.summarizer.meanwhile = forget

    report = lab.run_cycle()

    assert [group.status for group in report.groups] == [GroupStatus.PROMOTED]
    assert len(lab.store.sleep.log(limit=9)) == 1


@pytest.mark.parametrize("groups", [0, 1, 2])
def test_a_cycle_ends_between_two_groups_when_told_or_interrupted(
    lab: Lab, groups: int
) -> None:
    remember_groups(lab, *"abc")
    answers = iter([True, True, False])
    ends: dict[int, dict[str, Any]] = {
        0: {"deadline_s": 0},
        1: {},
        2: {"keep_going": lambda: next(answers)},
    }
    if groups == 1:
        lab.summarizer.meanwhile = lambda _: lab.cycle.lease.interrupt()

    report = lab.run_cycle(**ends[groups])

    assert (report.status, report.evicted) == (CycleStatus.PARTIAL, 3 * groups)
    left = [f"{name}{at}" for name in "abc"[groups:] for at in range(3)]
    assert working_ids(lab.store) == left


def test_the_last_cycle_runs_after_an_interrupt_and_keeps_the_age(lab: Lab) -> None:
    lab.put(*trio("a"), memory("fresh", hours_ago=1))
    lab.cycle.lease.interrupt()

    report = lab.run_cycle(Trigger.SHUTDOWN)

    assert (report.status, report.trigger) == (CycleStatus.DONE, Trigger.SHUTDOWN)
    assert working_ids(lab.store) == ["fresh"]
    assert lab.store.sleep.log(limit=1)[0].trigger == "shutdown"


def test_there_are_never_two_cycles_at_once(lab: Lab) -> None:
    remember_groups(lab, "a")
    refused: list[bool] = []

    def try_again(_: Sequence[MemoryRecord]) -> None:
        assert lab.cycle.lease.is_in_cycle
        with pytest.raises(SleepInProgress):
            lab.run_cycle()
        refused.append(True)

    lab.summarizer.meanwhile = try_again

    assert lab.run_cycle().failed == 0
    assert refused == [True]
    assert not lab.cycle.lease.is_in_cycle


def test_the_last_cycle_waits_for_the_running_one(lab: Lab) -> None:
    remember_groups(lab, *"ab")
    begun, finish = threading.Event(), threading.Event()

    def wait(_: Sequence[MemoryRecord]) -> None:
        begun.set()
        assert finish.wait(WAIT_S)

    lab.summarizer.meanwhile = wait
    running = threading.Thread(target=lab.run_cycle)
    running.start()
    assert begun.wait(WAIT_S)
    with pytest.raises(SleepInProgress):
        lab.run_cycle(Trigger.SHUTDOWN, deadline_s=0.01)
    lab.cycle.lease.interrupt()
    finish.set()

    report = lab.run_cycle(Trigger.SHUTDOWN, deadline_s=WAIT_S)
    running.join()

    assert report.evicted == 3
    assert lab.store.memories.working_count() == 0


# A cycle that somebody stops: its present group is finished, and no other is begun.


class StoppingReader:
    """Somebody who stops the cycle as soon as the model has read its first group."""

    def __init__(self, lab: Lab) -> None:
        self.answers: list[CycleReport] = []
        self._lab = lab
        self._thread = threading.Thread(target=self._stop)

    def __call__(self, _: Sequence[MemoryRecord]) -> None:
        if not self._thread.ident:
            self._thread.start()
            asked = self._lab.cycle.stopper._current.asked  # noqa: SLF001
            deadline = time.monotonic() + WAIT_S
            while not asked.is_set() and time.monotonic() < deadline:
                time.sleep(0.001)

    def _stop(self) -> None:
        self.answers.append(self._lab.sleep(stop=True))

    def answer(self) -> CycleReport:
        self._thread.join(WAIT_S)
        (answer,) = self.answers
        return answer


def test_the_present_group_is_finished_and_no_other_begun(lab: Lab) -> None:
    remember_groups(lab, *"ab")
    lab.summarizer.meanwhile = reader = StoppingReader(lab)

    report = lab.sleep(force=True)

    assert report.status is CycleStatus.STOPPED
    assert (report.evicted, report.promoted, report.remaining) == (3, 1, 3)
    assert reader.answer() == report
    assert working_ids(lab.store) == ["b0", "b1", "b2"]
    assert not lab.cycle.lease.is_in_cycle


def test_without_a_cycle_there_is_nothing_to_stop(lab: Lab) -> None:
    report = lab.sleep(stop=True)

    assert (report.status, report.cycle) == (CycleStatus.NOT_RUNNING, "")


def test_one_that_failed_says_so_to_who_stopped_it(lab: Lab) -> None:
    def end_without_report(stop: CycleStop) -> None:
        stop.asked.wait(WAIT_S)
        stop.over.set()

    stop = lab.cycle.stopper.begin()
    failing = threading.Thread(target=end_without_report, args=(stop,))
    failing.start()

    report = lab.sleep(stop=True)

    failing.join(WAIT_S)
    assert report.status is CycleStatus.NOT_RUNNING
    assert "failed" in report.problem


@pytest.mark.parametrize(
    ("asked", "said"),
    [
        (Sleep(stop=True, force=True), "give nothing else"),
        (Sleep(pause_minutes=5, force=True), "pause_minutes.*runs no cycle"),
    ],
    ids=["stop", "pause"],
)
def test_a_stop_or_pause_takes_no_other_field(
    lab: Lab, asked: Sleep, said: str
) -> None:
    with pytest.raises(InvalidRequest, match=said):
        lab.call(asked)


def test_a_pause_ends_by_itself_or_when_told(lab: Lab) -> None:
    paused = lab.sleep(pause_minutes=60)
    during = lab.status().sleep.paused_until
    lab.clock.advance(hours=1)
    after = lab.status().sleep.paused_until
    lab.sleep(pause_minutes=60)
    lab.service.sleeper.sleep_in_background(Trigger.SCHEDULE)
    waits_for = lab.status().sleep.waits_for
    resumed = lab.sleep(pause_minutes=0)

    assert paused.status is CycleStatus.PAUSED
    assert during == paused.held_until == NOON + timedelta(hours=1)
    assert after is resumed.held_until is None
    assert lab.status().sleep.paused_until is None
    assert waits_for.startswith("it was stopped or paused")
    assert lab.status().sleep.waits_for == ""


def test_a_stop_does_not_shorten_a_pause(clock: FakeClock) -> None:
    stopper = CycleStopper(clock)
    stopper.pause(timedelta(hours=2))
    stopper.begin()

    with pytest.raises(SleepInProgress):
        stopper.stop(timeout_s=0)

    assert stopper.held_until() == NOON + timedelta(hours=2)


def test_nothing_starts_in_the_background_for_a_while(lab: Lab) -> None:
    remember_groups(lab, *"ab")
    background = Sleeper(
        store=lab.store,
        cycle=lab.cycle,
        after_cycle=list,
        machine=lambda: MachineState(on_battery=False, load=0),
    )
    lab.summarizer.meanwhile = reader = StoppingReader(lab)
    lab.run_cycle(Trigger.SCHEDULE, force=True)
    reader.answer()

    assert background.sleep_in_background(Trigger.AGE) is None
    assert "stopped" in background.waits_for
    lab.clock.advance(seconds=HOLD.total_seconds())
    assert background.sleep_in_background(Trigger.AGE) is not None
    assert background.waits_for == ""


# Working memory has a cap; what goes beyond it is consolidated early, never dropped.


@pytest.fixture
def capped(lab: Lab) -> Lab:
    lab.change({"wm_max": 3})
    return lab


def remember_notes(lab: Lab, count: int, **fields: Any) -> None:  # noqa: ANN401
    for at in range(1, count + 1):
        lab.remember(f"note {at}", id=str(at), **fields)


def everything(lab: Lab) -> int:
    totals = lab.store.maintenance.totals()
    return totals[Tier.WORKING].count + totals[Tier.ARCHIVE].count


def test_the_memory_beyond_the_cap_sends_the_oldest_to_sleep(capped: Lab) -> None:
    remember_notes(capped, 3)
    assert working_ids(capped.store) == ["1", "2", "3"]
    assert capped.store.sleep.log(limit=9) == []

    capped.remember("note 4", id="4")

    assert capped.store.memories.working_count() <= 3
    assert "4" in working_ids(capped.store)
    assert everything(capped) == 4
    assert {row.trigger for row in capped.store.sleep.log(limit=9)} == {"cap"}


def test_pinned_memories_beyond_the_cap_are_not_tried_at_every_call(
    lab: Lab, monkeypatch: pytest.MonkeyPatch
) -> None:
    lab.change({"wm_max": 20})
    tries: list[CycleRequest] = []
    usual = lab.cycle.run

    def counted(request: CycleRequest) -> CycleReport:
        tries.append(request)
        return usual(request)

    monkeypatch.setattr(lab.cycle, "run", counted)

    remember_notes(lab, 30, pinned=True)

    assert lab.store.memories.working_count() == 30
    assert 1 <= len(tries) <= 5


def test_when_no_summary_comes_out_everything_stays(capped: Lab) -> None:
    capped.summarizer.fail()

    capped.remember_many([Remember(f"note {at}") for at in range(20)])

    assert capped.store.memories.working_count() == 20
    assert capped.store.sleep.log(limit=1)[0].error == "summarizer_failed"


def test_a_lowered_cap_is_in_force_at_the_next_memory(capped: Lab) -> None:
    remember_notes(capped, 3)
    change(capped.settings, {"wm_max": 1})

    capped.remember("note 4", id="4")

    assert capped.store.memories.working_count() <= 1
    assert everything(capped) == 4


def test_a_memory_is_acknowledged_while_a_cycle_runs(capped: Lab) -> None:
    remember_groups(capped, "a")
    acknowledged: list[Acknowledged] = []
    capped.summarizer.meanwhile = lambda _: acknowledged.append(
        capped.remember("note", id="new")
    )

    capped.sleep()

    assert [one.stored for one in acknowledged] == [True]
    assert working_ids(capped.store) == ["new"]
