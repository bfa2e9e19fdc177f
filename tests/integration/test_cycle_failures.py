"""The sleep cycle when something goes wrong or it has to end: whole groups, nothing lost."""

import threading
from collections.abc import Sequence

import pytest
from support.fakes import FakeSummarizer, memory, remember_batch, trio, working_ids

from mnemosyned.errors import SleepInProgress, SummarizerFailed
from mnemosyned.memory.consolidation import (
    CycleReport,
    CycleStatus,
    GroupStatus,
    Trigger,
)
from mnemosyned.memory.engine_ports import Summary
from mnemosyned.memory.values import MemoryRecord, Tier
from mnemosyned.sleep.context import CycleRequest
from mnemosyned.sleep.cycle import SleepCycle
from mnemosyned.storage.sqlite.store import SqliteStore


def sleep(cycle: SleepCycle, trigger: Trigger = Trigger.EXPLICIT) -> CycleReport:
    return cycle.run(CycleRequest(trigger=trigger))


# ------------------------------------------------------------ what goes wrong


def failing_for(name: str) -> FakeSummarizer:
    def fail(memories: Sequence[MemoryRecord]) -> None:
        if memories[0].id.startswith(name):
            raise SummarizerFailed("no words came")

    return FakeSummarizer(meanwhile=fail)


def test_a_group_that_fails_stays_and_the_others_go_on(
    store: SqliteStore, cycle: SleepCycle
) -> None:
    cycle.lease.replace(failing_for("b"))
    for at, name in enumerate("abc"):
        remember_batch(store, *trio(name, source=name, hours_ago=20 - at))

    report = sleep(cycle)

    assert (report.status, report.failed, report.evicted) == (CycleStatus.PARTIAL, 1, 6)
    assert working_ids(store) == ["b0", "b1", "b2"]
    (failed,) = (
        row for row in store.sleep.log(limit=9) if row.status is GroupStatus.FAILED
    )
    assert (failed.source, failed.items_consolidated, failed.episode) == ("b", 0, None)
    assert (failed.error, failed.summary_preview) == ("summarizer_failed", "")


def test_a_failed_group_is_tried_again_by_the_next_cycle(
    store: SqliteStore, cycle: SleepCycle, summarizer: FakeSummarizer
) -> None:
    remember_batch(store, *trio("a"))
    cycle.lease.replace(failing_for("a"))
    sleep(cycle)
    cycle.lease.replace(summarizer)

    report = sleep(cycle)

    assert (report.status, report.evicted) == (CycleStatus.DONE, 3)
    assert [row.status for row in store.sleep.log(limit=9)] == [
        GroupStatus.PROMOTED,
        GroupStatus.FAILED,
    ]


def test_an_error_nobody_foresaw_is_logged_without_its_words(
    store: SqliteStore, cycle: SleepCycle
) -> None:
    def fail(memories: Sequence[MemoryRecord]) -> None:
        raise ValueError(memories[0].content)

    cycle.lease.replace(FakeSummarizer(meanwhile=fail))
    remember_batch(store, *trio("a"))

    report = sleep(cycle)

    assert report.groups[0].error == "ValueError"
    assert store.sleep.log(limit=1)[0].error == "ValueError"


@pytest.mark.parametrize("nothing", ["", " \n\t"])
def test_an_empty_summary_is_refused(
    store: SqliteStore, cycle: SleepCycle, nothing: str
) -> None:
    class Mute(FakeSummarizer):
        def summarize(self, memories: Sequence[MemoryRecord]) -> Summary:  # noqa: ARG002
            return Summary(text=nothing, summarizer="mute")

    cycle.lease.replace(Mute())
    remember_batch(store, *trio("a"))

    report = sleep(cycle)

    assert report.groups[0].error == "summarizer_failed"
    assert store.memories.working_count() == 3


def test_a_promotion_that_breaks_half_way_leaves_the_originals(
    store: SqliteStore, cycle: SleepCycle, summarizer: FakeSummarizer
) -> None:
    remember_batch(store, *trio("a"))
    summarizer.meanwhile = lambda _: _swap_ids(store)

    sleep(cycle)

    assert working_ids(store) == ["a0", "a1", "new"]
    assert store.maintenance.totals()[Tier.EPISODIC].count == 0
    assert store.maintenance.totals()[Tier.ARCHIVE].count == 0


def _swap_ids(store: SqliteStore) -> None:
    """One of three goes and another comes: the last row of the promotion is missing."""
    store.deletion.forget(["a2"])
    remember_batch(store, memory("new", hours_ago=19))


def test_a_memory_forgotten_during_its_summary_is_not_brought_back(
    store: SqliteStore, cycle: SleepCycle, summarizer: FakeSummarizer
) -> None:
    remember_batch(store, *trio("a"), *trio("b", source="b", hours_ago=15))
    summarizer.meanwhile = lambda taken: (
        store.deletion.forget(["a1"]) if taken[0].id == "a0" else None
    )

    report = sleep(cycle)

    assert [group.error for group in report.groups if group.error] == ["batch_changed"]
    assert working_ids(store) == ["a0", "a2"]
    summarizer.meanwhile = lambda _: None
    assert sleep(cycle).status is CycleStatus.DONE
    assert store.maintenance.totals()[Tier.ARCHIVE].count == 5


def test_a_group_forgotten_before_its_turn_is_passed_over(
    store: SqliteStore, cycle: SleepCycle, summarizer: FakeSummarizer
) -> None:
    first, second = trio("a"), trio("b", source="b", hours_ago=15)
    remember_batch(store, *first, *second)
    summarizer.meanwhile = lambda _: store.deletion.forget([m.id for m in second])

    report = sleep(cycle)

    assert [group.status for group in report.groups] == [GroupStatus.PROMOTED]
    assert len(store.sleep.log(limit=9)) == 1


# ------------------------------------------------------------ when it ends


def test_a_deadline_that_has_passed_starts_no_group(
    store: SqliteStore, cycle: SleepCycle
) -> None:
    remember_batch(store, *trio("a"))

    report = cycle.run(CycleRequest(trigger=Trigger.SHUTDOWN, deadline_s=0))

    assert (report.status, report.evicted) == (CycleStatus.PARTIAL, 0)
    assert store.memories.working_count() == 3


def test_a_cycle_ends_between_two_groups_when_told(
    store: SqliteStore, cycle: SleepCycle
) -> None:
    for at, name in enumerate("abc"):
        remember_batch(store, *trio(name, source=name, hours_ago=20 - at))
    answers = iter([True, True, False])

    report = cycle.run(
        CycleRequest(trigger=Trigger.SHUTDOWN, keep_going=lambda: next(answers))
    )

    assert (report.status, report.evicted) == (CycleStatus.PARTIAL, 6)
    assert working_ids(store) == ["c0", "c1", "c2"]


def test_an_interrupted_cycle_finishes_its_group(
    store: SqliteStore, cycle: SleepCycle, summarizer: FakeSummarizer
) -> None:
    remember_batch(store, *trio("a"), *trio("b", source="b", hours_ago=15))
    summarizer.meanwhile = lambda _: cycle.lease.interrupt()

    report = sleep(cycle)

    assert (report.status, report.evicted) == (CycleStatus.PARTIAL, 3)
    assert working_ids(store) == ["b0", "b1", "b2"]


def test_the_last_cycle_runs_after_an_interrupt_and_keeps_the_age(
    store: SqliteStore, cycle: SleepCycle
) -> None:
    remember_batch(store, *trio("a"), memory("fresh", hours_ago=1))
    cycle.lease.interrupt()

    report = sleep(cycle, Trigger.SHUTDOWN)

    assert (report.status, report.trigger) == (CycleStatus.DONE, Trigger.SHUTDOWN)
    assert working_ids(store) == ["fresh"]
    assert store.sleep.log(limit=1)[0].trigger == "shutdown"


def test_there_are_never_two_cycles_at_once(
    store: SqliteStore, cycle: SleepCycle, summarizer: FakeSummarizer
) -> None:
    remember_batch(store, *trio("a"))
    refused: list[bool] = []

    def try_again(_: Sequence[MemoryRecord]) -> None:
        assert cycle.lease.is_in_cycle
        with pytest.raises(SleepInProgress):
            sleep(cycle)
        refused.append(True)

    summarizer.meanwhile = try_again

    assert sleep(cycle).failed == 0
    assert refused == [True]
    assert not cycle.lease.is_in_cycle


def test_the_last_cycle_waits_for_the_running_one(
    store: SqliteStore, cycle: SleepCycle, summarizer: FakeSummarizer
) -> None:
    remember_batch(store, *trio("a"), *trio("b", source="b", hours_ago=15))
    begun, finish = threading.Event(), threading.Event()

    def wait(_: Sequence[MemoryRecord]) -> None:
        begun.set()
        assert finish.wait(10)

    summarizer.meanwhile = wait
    running = threading.Thread(target=sleep, args=(cycle,))
    running.start()
    assert begun.wait(10)
    with pytest.raises(SleepInProgress):
        cycle.run(CycleRequest(trigger=Trigger.SHUTDOWN, deadline_s=0.01))
    cycle.lease.interrupt()
    finish.set()

    report = cycle.run(CycleRequest(trigger=Trigger.SHUTDOWN, deadline_s=10))
    running.join()

    assert report.evicted == 3
    assert store.memories.working_count() == 0
