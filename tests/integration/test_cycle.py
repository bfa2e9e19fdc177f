"""The sleep cycle through the real store: what it takes, what it makes of it, how it fails and ends."""

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
    memory,
    remember_batch,
    trio,
    working_ids,
)
from support.services import Lab
from support.settings import change

from mnemosyned.errors import InvalidRequest, SleepInProgress, SummarizerFailed
from mnemosyned.memory.consolidation import (
    VERBATIM,
    CycleReport,
    CycleStatus,
    GroupStatus,
    Selection,
    Trigger,
)
from mnemosyned.memory.engine_ports import Summary
from mnemosyned.memory.values import Episode, MemoryRecord, Tier
from mnemosyned.service.service import MemoryService
from mnemosyned.sleep.context import HOLD, CycleRequest, CycleStop, CycleStopper
from mnemosyned.sleep.cycle import SleepCycle
from mnemosyned.sleep.sleeper import Sleeper
from mnemosyned.sleep.triggers import MachineState
from mnemosyned.storage.sqlite.store import SqliteStore
from mnemosyned.verbs.upkeep import Sleep


def sleep(cycle: SleepCycle, trigger: Trigger = Trigger.EXPLICIT) -> CycleReport:
    return cycle.run(CycleRequest(trigger=trigger))


def episodes(store: SqliteStore, report: CycleReport) -> list[Episode]:
    found = [store.memories.get(id) for group in report.groups for id in group.episodes]
    return [episode for episode in found if isinstance(episode, Episode)]


# ------------------------------------------------------------ what it takes


def test_only_what_is_strictly_older_than_half_the_ttl_is_taken(lab: Lab) -> None:
    second = 1 / 3600
    remember_batch(
        lab.store,
        memory("older", hours_ago=12 + second),
        memory("exactly", hours_ago=12),
        memory("younger", hours_ago=12 - second),
    )

    report = sleep(lab.cycle)

    assert report.candidates == 1
    assert working_ids(lab.store) == ["exactly", "younger"]


def test_an_odd_ttl_is_halved_exactly(lab: Lab) -> None:
    change(lab.settings, {"sleep.ttl_hours": 1})
    remember_batch(lab.store, memory("1", hours_ago=0.51), memory("2", hours_ago=0.49))

    sleep(lab.cycle)

    assert working_ids(lab.store) == ["2"]


def test_force_ignores_the_age(lab: Lab) -> None:
    remember_batch(lab.store, *trio("a", hours_ago=1))

    report = lab.cycle.run(CycleRequest(trigger=Trigger.EXPLICIT, force=True))

    assert (report.status, report.evicted) == (CycleStatus.DONE, 3)
    assert working_ids(lab.store) == []


@pytest.mark.parametrize("force", [False, True])
def test_a_pinned_memory_never_leaves(lab: Lab, *, force: bool) -> None:
    remember_batch(lab.store, memory("pinned", hours_ago=99, pinned=True), *trio("a"))

    report = lab.cycle.run(CycleRequest(trigger=Trigger.EXPLICIT, force=force))

    assert report.evicted == 3
    assert lab.store.memories.working(["pinned"])


def test_a_session_sleeps_by_itself(lab: Lab) -> None:
    remember_batch(lab.store, *trio("a", session="a"), *trio("b", session="b"))

    lab.cycle.run(CycleRequest(trigger=Trigger.EXPLICIT, session="a"))

    assert working_ids(lab.store) == ["b0", "b1", "b2"]


def test_the_oldest_can_be_taken_by_number(lab: Lab) -> None:
    remember_batch(lab.store, *trio("late", hours_ago=1), *trio("early", hours_ago=2))

    lab.cycle.run(CycleRequest(trigger=Trigger.CAP, selection=Selection(oldest=3)))

    assert working_ids(lab.store) == ["late0", "late1", "late2"]


# ----------------------------------------------------- what it makes of it


def test_each_source_and_session_becomes_an_episode_of_its_own(lab: Lab) -> None:
    groups = [
        trio("chat", hours_ago=21, source="chat", session="s"),
        trio("tool", hours_ago=20, source="tool", session="s"),
        trio("other", hours_ago=19, source="chat", session="t"),
    ]
    remember_batch(lab.store, *(one for group in groups for one in group))

    report = sleep(lab.cycle)

    made = [(e.session, e.source, e.summary_of) for e in episodes(lab.store, report)]
    assert made == [
        ("s", "chat", ("chat0", "chat1", "chat2")),
        ("s", "tool", ("tool0", "tool1", "tool2")),
        ("t", "chat", ("other0", "other1", "other2")),
    ]
    assert (report.promoted, report.evicted, report.failed) == (3, 9, 0)
    assert lab.store.memories.working_count() == 0


def test_an_episode_holds_the_summary_and_its_originals_stay_word_for_word(
    lab: Lab,
) -> None:
    told = trio("a", source="chat")
    remember_batch(lab.store, *told)

    (episode,) = episodes(lab.store, sleep(lab.cycle))

    assert episode.content == "In short: note a0 / note a1 / note a2"
    assert (episode.summarizer, episode.level) == ("fake", 0)
    assert (episode.covers_from, episode.covers_until) == (
        NOON - timedelta(hours=20),
        NOON - timedelta(hours=19, minutes=58),
    )
    assert [m.content for m in lab.store.memories.originals(episode.id)] == [
        m.content for m in told
    ]


@pytest.mark.parametrize("count", [1, 2])
def test_a_small_group_is_promoted_word_for_word(lab: Lab, count: int) -> None:
    remember_batch(lab.store, *trio("a")[:count])

    report = sleep(lab.cycle)

    assert [e.content for e in episodes(lab.store, report)] == [
        f"note a{at}" for at in range(count)
    ]
    assert [e.item_count for e in episodes(lab.store, report)] == [1] * count
    assert [row.status for row in lab.store.sleep.log(limit=9)] == [
        GroupStatus.VERBATIM
    ] * count
    assert lab.store.sleep.log(limit=1)[0].summarizer == VERBATIM
    assert lab.summarizer.calls == []


def test_each_group_leaves_a_row_in_the_log(lab: Lab) -> None:
    remember_batch(
        lab.store,
        *trio("a", session="s", source="chat"),
        *trio("b", session="t", hours_ago=19),
    )
    lab.clock.advance(minutes=1)

    report = sleep(lab.cycle, Trigger.SCHEDULE)

    later, row = lab.store.sleep.log(limit=9)
    assert (row.id, later.id) == (1, 2)
    assert lab.store.sleep.log(limit=9, after=later.id) == [row]
    assert (row.session, row.source, later.session, later.source) == (
        "s",
        "chat",
        "t",
        None,
    )
    assert (row.items_consolidated, row.status, row.error) == (
        3,
        GroupStatus.PROMOTED,
        None,
    )
    assert row.summary_preview == "In short: note a0 / note a1 / note a2"
    assert row.created_at == NOON + timedelta(minutes=1)
    assert (row.cycle, row.trigger, row.summarizer) == (
        report.cycle,
        "schedule",
        "fake",
    )
    assert row.episode == report.groups[0].episodes[0]
    assert (row.chars_before, row.chars_after) == (21, len(row.summary_preview))
    assert row.duration_s >= 0


def test_a_dry_run_shows_the_plan_and_changes_nothing(lab: Lab) -> None:
    remember_batch(lab.store, *trio("a"), memory("b", hours_ago=30, source="tool"))

    report = lab.cycle.preview(CycleRequest(trigger=Trigger.EXPLICIT))

    assert report.dry_run
    assert [group.items for group in report.groups] == [1, 3]
    assert {group.status for group in report.groups} == {GroupStatus.PLANNED}
    assert (report.candidates, report.evicted, report.promoted) == (4, 0, 0)
    assert lab.summarizer.calls == []
    assert lab.store.sleep.log(limit=1) == []
    assert lab.store.memories.working_count() == 4


def test_nothing_old_enough_leaves_no_trace(lab: Lab) -> None:
    remember_batch(lab.store, *trio("a"), memory("1", hours_ago=1))
    sleep(lab.cycle)

    assert sleep(lab.cycle).status is CycleStatus.NOTHING_TO_DO
    assert len(lab.store.sleep.log(limit=9)) == 1


# The sleep cycle when something goes wrong or it has to end: whole groups, nothing lost.


# ------------------------------------------------------------ what goes wrong


def failing_for(name: str) -> FakeSummarizer:
    def fail(memories: Sequence[MemoryRecord]) -> None:
        if memories[0].id.startswith(name):
            raise SummarizerFailed("no words came")

    return FakeSummarizer(meanwhile=fail)


def test_a_group_that_fails_stays_and_the_others_go_on(lab: Lab) -> None:
    lab.cycle.lease.replace(failing_for("b"))
    for at, name in enumerate("abc"):
        remember_batch(lab.store, *trio(name, source=name, hours_ago=20 - at))

    report = sleep(lab.cycle)

    assert (report.status, report.failed, report.evicted) == (CycleStatus.PARTIAL, 1, 6)
    assert working_ids(lab.store) == ["b0", "b1", "b2"]
    (failed,) = (
        row for row in lab.store.sleep.log(limit=9) if row.status is GroupStatus.FAILED
    )
    assert (failed.source, failed.items_consolidated, failed.episode) == ("b", 0, None)
    assert (failed.error, failed.summary_preview) == ("summarizer_failed", "")


def test_an_error_nobody_foresaw_is_logged_without_its_words(lab: Lab) -> None:
    def fail(memories: Sequence[MemoryRecord]) -> None:
        raise ValueError(memories[0].content)

    lab.cycle.lease.replace(FakeSummarizer(meanwhile=fail))
    remember_batch(lab.store, *trio("a"))

    report = sleep(lab.cycle)

    assert report.groups[0].error == "ValueError"
    assert lab.store.sleep.log(limit=1)[0].error == "ValueError"


@pytest.mark.parametrize("nothing", ["", " \n\t"])
def test_an_empty_summary_is_refused(lab: Lab, nothing: str) -> None:
    class Mute(FakeSummarizer):
        def summarize(self, memories: Sequence[MemoryRecord]) -> Summary:  # noqa: ARG002
            return Summary(text=nothing, summarizer="mute")

    lab.cycle.lease.replace(Mute())
    remember_batch(lab.store, *trio("a"))

    report = sleep(lab.cycle)

    assert report.groups[0].error == "summarizer_failed"
    assert lab.store.memories.working_count() == 3


def test_a_promotion_that_breaks_half_way_leaves_the_originals(lab: Lab) -> None:
    remember_batch(lab.store, *trio("a"))
    lab.summarizer.meanwhile = lambda _: _swap_ids(lab.store)

    sleep(lab.cycle)

    assert working_ids(lab.store) == ["a0", "a1", "new"]
    assert lab.store.maintenance.totals()[Tier.EPISODIC].count == 0
    assert lab.store.maintenance.totals()[Tier.ARCHIVE].count == 0


def _swap_ids(store: SqliteStore) -> None:
    """One of three goes and another comes: the last row of the promotion is missing."""
    store.deletion.forget(["a2"])
    remember_batch(store, memory("new", hours_ago=19))


def test_a_memory_forgotten_during_its_summary_is_not_brought_back(lab: Lab) -> None:
    remember_batch(lab.store, *trio("a"), *trio("b", source="b", hours_ago=15))
    lab.summarizer.meanwhile = lambda taken: (
        lab.store.deletion.forget(["a1"]) if taken[0].id == "a0" else None
    )

    report = sleep(lab.cycle)

    assert [group.error for group in report.groups if group.error] == ["batch_changed"]
    assert working_ids(lab.store) == ["a0", "a2"]
    lab.summarizer.meanwhile = lambda _: None
    assert sleep(lab.cycle).status is CycleStatus.DONE
    assert lab.store.maintenance.totals()[Tier.ARCHIVE].count == 5


def test_a_group_forgotten_before_its_turn_is_passed_over(lab: Lab) -> None:
    first, second = trio("a"), trio("b", source="b", hours_ago=15)
    remember_batch(lab.store, *first, *second)

    def forget(_: object) -> None:
        with lab.cycle.gate:
            lab.store.deletion.forget([m.id for m in second])

    lab.summarizer.meanwhile = forget

    report = sleep(lab.cycle)

    assert [group.status for group in report.groups] == [GroupStatus.PROMOTED]
    assert len(lab.store.sleep.log(limit=9)) == 1


# ------------------------------------------------------------ when it ends


def test_a_deadline_that_has_passed_starts_no_group(lab: Lab) -> None:
    remember_batch(lab.store, *trio("a"))

    report = lab.cycle.run(CycleRequest(trigger=Trigger.SHUTDOWN, deadline_s=0))

    assert (report.status, report.evicted) == (CycleStatus.PARTIAL, 0)
    assert lab.store.memories.working_count() == 3


def test_a_cycle_ends_between_two_groups_when_told(lab: Lab) -> None:
    for at, name in enumerate("abc"):
        remember_batch(lab.store, *trio(name, source=name, hours_ago=20 - at))
    answers = iter([True, True, False])

    report = lab.cycle.run(
        CycleRequest(trigger=Trigger.SHUTDOWN, keep_going=lambda: next(answers))
    )

    assert (report.status, report.evicted) == (CycleStatus.PARTIAL, 6)
    assert working_ids(lab.store) == ["c0", "c1", "c2"]


def test_an_interrupted_cycle_finishes_its_group(lab: Lab) -> None:
    remember_batch(lab.store, *trio("a"), *trio("b", source="b", hours_ago=15))
    lab.summarizer.meanwhile = lambda _: lab.cycle.lease.interrupt()

    report = sleep(lab.cycle)

    assert (report.status, report.evicted) == (CycleStatus.PARTIAL, 3)
    assert working_ids(lab.store) == ["b0", "b1", "b2"]


def test_the_last_cycle_runs_after_an_interrupt_and_keeps_the_age(lab: Lab) -> None:
    remember_batch(lab.store, *trio("a"), memory("fresh", hours_ago=1))
    lab.cycle.lease.interrupt()

    report = sleep(lab.cycle, Trigger.SHUTDOWN)

    assert (report.status, report.trigger) == (CycleStatus.DONE, Trigger.SHUTDOWN)
    assert working_ids(lab.store) == ["fresh"]
    assert lab.store.sleep.log(limit=1)[0].trigger == "shutdown"


def test_there_are_never_two_cycles_at_once(lab: Lab) -> None:
    remember_batch(lab.store, *trio("a"))
    refused: list[bool] = []

    def try_again(_: Sequence[MemoryRecord]) -> None:
        assert lab.cycle.lease.is_in_cycle
        with pytest.raises(SleepInProgress):
            sleep(lab.cycle)
        refused.append(True)

    lab.summarizer.meanwhile = try_again

    assert sleep(lab.cycle).failed == 0
    assert refused == [True]
    assert not lab.cycle.lease.is_in_cycle


def test_the_last_cycle_waits_for_the_running_one(lab: Lab) -> None:
    remember_batch(lab.store, *trio("a"), *trio("b", source="b", hours_ago=15))
    begun, finish = threading.Event(), threading.Event()

    def wait(_: Sequence[MemoryRecord]) -> None:
        begun.set()
        assert finish.wait(10)

    lab.summarizer.meanwhile = wait
    running = threading.Thread(target=sleep, args=(lab.cycle,))
    running.start()
    assert begun.wait(10)
    with pytest.raises(SleepInProgress):
        lab.cycle.run(CycleRequest(trigger=Trigger.SHUTDOWN, deadline_s=0.01))
    lab.cycle.lease.interrupt()
    finish.set()

    report = lab.cycle.run(CycleRequest(trigger=Trigger.SHUTDOWN, deadline_s=10))
    running.join()

    assert report.evicted == 3
    assert lab.store.memories.working_count() == 0


# A cycle that somebody stops: its present group is finished, and no other is begun.


WAIT_S = 10.0


def wait_until_asked(stop: CycleStopper) -> None:
    deadline = time.monotonic() + WAIT_S
    while not stop._current.asked.is_set() and time.monotonic() < deadline:  # noqa: SLF001
        time.sleep(0.001)


def finish_when_asked(stop: CycleStop) -> None:
    """End a cycle without a report, as one does that fails."""
    stop.asked.wait(WAIT_S)
    stop.over.set()


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


def test_the_present_group_is_finished_and_no_other_begun(lab: Lab) -> None:
    remember_batch(
        lab.store, *trio("a", session="a", hours_ago=30), *trio("b", session="b")
    )
    reader = StoppingReader(lab.service, lab.cycle)
    lab.summarizer.meanwhile = reader

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
    stop = lab.cycle.stopper.begin()
    failing = threading.Thread(target=finish_when_asked, args=(stop,))
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
def test_a_stop_and_a_pause_take_no_other_field(
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
    resumed = lab.sleep(pause_minutes=0)

    assert paused.status is CycleStatus.PAUSED
    assert during == paused.held_until == NOON + timedelta(hours=1)
    assert after is resumed.held_until is None
    assert lab.status().sleep.paused_until is None


def test_a_stop_does_not_shorten_a_pause(clock: FakeClock) -> None:
    stopper = CycleStopper(clock)
    stopper.pause(timedelta(hours=2))
    stopper.begin()

    with pytest.raises(SleepInProgress):
        stopper.stop(timeout_s=0)

    assert stopper.held_until() == NOON + timedelta(hours=2)


def test_nothing_starts_in_the_background_for_a_while(lab: Lab) -> None:
    remember_batch(lab.store, *trio("a", session="a"), *trio("b", session="b"))
    background = Sleeper(
        store=lab.store,
        cycle=lab.cycle,
        zone=UTC,
        after_cycle=list,
        machine=lambda: MachineState(on_battery=False, load=0),
    )
    reader = StoppingReader(lab.service, lab.cycle)
    lab.summarizer.meanwhile = reader
    lab.cycle.run(CycleRequest(trigger=Trigger.SCHEDULE, force=True))
    reader.answer()

    assert background.sleep_in_background(Trigger.AGE) is None
    assert "stopped" in background.waits_for
    lab.clock.advance(seconds=HOLD.total_seconds())
    assert background.sleep_in_background(Trigger.AGE) is not None
    assert background.waits_for == ""
