"""The way back from the archive, and undoing a cycle: nothing lost, nothing twice."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta

import pytest
from support.fakes import FakeClock, memory, remember_batch, trio, working_ids
from support.services import make_service, undo_cycle
from support.settings import change
from support.stores import episode_of, get_memory, run_cycle

from mnemosyned.config.settings import SettingsInForce
from mnemosyned.errors import CannotUndo, InvalidRequest, NotFound, WordsPruned
from mnemosyned.memory.consolidation import CycleStatus, GroupStatus, Trigger
from mnemosyned.memory.values import Episode, Tier
from mnemosyned.service.forgetting import RetentionService
from mnemosyned.service.service import MemoryService
from mnemosyned.sleep.context import CycleRequest
from mnemosyned.sleep.cycle import SleepCycle
from mnemosyned.storage.sqlite.store import SqliteStore
from mnemosyned.verbs.memories import Pin, Recall, Remember, Unpin
from mnemosyned.verbs.retention import Forget, Prune, Restore
from mnemosyned.verbs.upkeep import Sleep, Status

# ------------------------------------------------------------------- restore


def test_a_restored_memory_is_as_it_was_and_pinned(
    store: SqliteStore, service: MemoryService, cycle: SleepCycle
) -> None:
    given = memory(
        "1", "a bike", hours_ago=20, role="user", importance=0.9, metadata={"a": 1}
    )
    remember_batch(store, given, *trio("a"))
    run_cycle(cycle)

    service.call(Restore("1"))

    assert get_memory(store, "1") == replace(given, pinned=True)
    assert [hit.id for hit in service.call(Recall("bike")).hits] == ["1"]


def test_a_restored_memory_is_in_no_summary_and_sleep_leaves_it_alone(
    store: SqliteStore, service: MemoryService, cycle: SleepCycle
) -> None:
    remember_batch(store, *trio("a"))
    run_cycle(cycle)

    receipt = service.call(Restore("a1"))
    again = cycle.run(CycleRequest(trigger=Trigger.EXPLICIT, force=True))

    assert not receipt.episode_removed
    assert again.status is CycleStatus.NOTHING_TO_DO
    assert "a1" not in episode_of(store, "a0").content
    assert episode_of(store, "a0").summary_of == ("a0", "a2")


def test_a_restored_memory_that_is_let_go_is_consolidated_once_more(
    store: SqliteStore, service: MemoryService, cycle: SleepCycle
) -> None:
    remember_batch(store, *trio("a"))
    run_cycle(cycle)
    service.call(Restore("a1"))

    service.call(Unpin("a1"))
    run_cycle(cycle)

    assert episode_of(store, "a1").summary_of == ("a1",)
    assert {
        tier.value: total.count for tier, total in store.maintenance.totals().items()
    } == {
        "working": 0,
        "episodic": 2,
        "archive": 3,
    }


def test_restoring_the_last_original_removes_its_episode(
    store: SqliteStore, service: MemoryService, cycle: SleepCycle
) -> None:
    remember_batch(store, memory("1", hours_ago=20))
    run_cycle(cycle)

    assert service.call(Restore("1")).episode_removed
    assert store.maintenance.totals()[Tier.EPISODIC].count == 0


def test_what_cannot_be_restored_is_refused_with_a_hint(
    store: SqliteStore, service: MemoryService, cycle: SleepCycle
) -> None:
    remember_batch(store, *trio("a"), memory("fresh"))
    slept_episode = (
        cycle.run(CycleRequest(trigger=Trigger.EXPLICIT)).groups[0].episodes[0]
    )
    service.call(Prune(characters_max=0))

    for id, problem in (("fresh", "already"), (slept_episode, "originals")):
        with pytest.raises(InvalidRequest, match=problem):
            service.call(Restore(id))
    with pytest.raises(WordsPruned, match="2026-03-17"):
        service.call(Restore("a1"))
    with pytest.raises(InvalidRequest, match="restore"):
        service.call(Pin("a1"))


# ---------------------------------------------------------------------- undo


def test_an_undone_cycle_leaves_everything_as_it_was_before(
    store: SqliteStore, service: MemoryService, cycle: SleepCycle
) -> None:
    given = [
        *trio("a"),
        *trio("b", source="chat", hours_ago=30, importance=0.75, metadata={"n": [1]}),
        memory("pinned", hours_ago=40, pinned=True),
        memory("alone", "東京 getUserName", hours_ago=50, session="s", role="user"),
    ]
    remember_batch(store, *given)
    order = working_ids(store)
    before = service.call(Recall("note getUserName 東京", limit=20)).hits

    report = undo_cycle(service, run_cycle(cycle))

    assert (report.status, report.restored) == (CycleStatus.UNDONE, 7)
    assert {group.covers_from for group in report.groups} == {
        one.created_at for one in given if one.id in {"a0", "b0", "alone"}
    }
    assert {one.id: get_memory(store, one.id) for one in given} == {
        one.id: one for one in given
    }
    assert working_ids(store) == order
    assert (
        store.maintenance.totals()[Tier.EPISODIC].count
        == store.maintenance.totals()[Tier.ARCHIVE].count
        == 0
    )
    assert service.call(Recall("note getUserName 東京", limit=20)).hits == before


def test_an_undo_is_in_the_log_and_cannot_be_repeated(
    store: SqliteStore, service: MemoryService, cycle: SleepCycle, clock: FakeClock
) -> None:
    remember_batch(store, *trio("a"))
    first = run_cycle(cycle)
    clock.advance(minutes=5)

    undo_cycle(service, first)

    (row,) = store.sleep.log(limit=9)
    assert (row.undone_at, row.summary_preview) == (clock.now(), "")
    with pytest.raises(CannotUndo, match="already"):
        undo_cycle(service, first)
    with pytest.raises(NotFound):
        undo_cycle(service, "never")


def test_a_dry_run_of_an_undo_foresees_what_cannot_come_back(
    store: SqliteStore, service: MemoryService, cycle: SleepCycle
) -> None:
    remember_batch(
        store, *trio("a"), *trio("b", source="b"), *trio("c", source="c", hours_ago=200)
    )
    first = run_cycle(cycle)
    service.call(Forget("a1"))
    service.call(Prune(keep_days=3))

    planned = undo_cycle(service, first, dry_run=True)
    done = undo_cycle(service, first)

    assert planned.status == done.status == CycleStatus.PARTIAL
    assert (planned.failed, done.failed) == (1, 1)
    assert sum(group.items for group in planned.groups) == done.restored == 5
    assert [(group.items, group.error) for group in planned.groups] == [
        (group.items, group.error) for group in done.groups
    ]


def test_the_last_cycle_need_not_be_named(
    store: SqliteStore, service: MemoryService, cycle: SleepCycle
) -> None:
    remember_batch(store, *trio("a", hours_ago=200))
    run_cycle(cycle)
    service.call(Prune(keep_days=3))
    remember_batch(store, *trio("b"))
    older = run_cycle(cycle)
    remember_batch(store, *trio("c"))
    newer = run_cycle(cycle)
    run_cycle(cycle)  # there was nothing to do

    undone = [undo_cycle(service, "last").cycle for _ in range(2)]

    assert undone == [newer, older]
    with pytest.raises(
        CannotUndo, match="nothing to undo"
    ):  # what was pruned cannot come back
        undo_cycle(service, "last")


def test_days_and_weeks_that_an_undo_leaves_nothing_of_are_undone_in_the_log(
    store: SqliteStore, service: MemoryService, cycle: SleepCycle, clock: FakeClock
) -> None:
    remember_batch(store, *trio("a", hours_ago=80))
    first = run_cycle(cycle)
    remember_batch(store, *trio("b", source="b", hours_ago=104))
    second = run_cycle(cycle)
    clock.advance(days=30)
    run_cycle(cycle)

    undo_cycle(service, first)
    amid = {row.level for row in store.sleep.log(limit=99) if row.undone_at is None}
    undo_cycle(service, second)

    assert amid == {0, 1, 2, 3}
    assert all(row.undone_at for row in store.sleep.log(limit=99))
    assert store.maintenance.totals()[Tier.EPISODIC].count == 0


def test_an_undo_brings_nothing_back_that_was_forgotten_and_says_so(
    store: SqliteStore, service: MemoryService, cycle: SleepCycle
) -> None:
    remember_batch(store, *trio("a"), *trio("b", source="b"))
    first = run_cycle(cycle)
    service.call(Forget("a1"))
    for at in range(3):
        service.call(Forget(f"b{at}"))

    report = undo_cycle(service, first)

    assert (report.status, report.restored) == (CycleStatus.PARTIAL, 2)
    assert sorted(group.error or "" for group in report.groups) == [
        "1 original was forgotten or restored before",
        "3 originals were forgotten or restored before",
    ]
    assert working_ids(store) == ["a0", "a2"]


def test_an_undo_leaves_a_group_with_pruned_originals_as_it_is(
    store: SqliteStore, service: MemoryService, cycle: SleepCycle
) -> None:
    remember_batch(store, *trio("a", hours_ago=200), *trio("b", source="b"))
    first = run_cycle(cycle)
    service.call(Prune(keep_days=3))

    report = undo_cycle(service, first)

    assert (report.status, report.restored, report.failed) == (
        CycleStatus.PARTIAL,
        3,
        1,
    )
    assert {group.status for group in report.groups} == {
        GroupStatus.KEPT,
        GroupStatus.UNDONE,
    }
    assert working_ids(store) == ["b0", "b1", "b2"]
    assert episode_of(store, "a1").item_count == 3


def test_an_undo_rewrites_the_day_above_from_what_remains(
    store: SqliteStore, service: MemoryService, cycle: SleepCycle, clock: FakeClock
) -> None:
    remember_batch(store, *trio("a", hours_ago=80))
    run_cycle(cycle)
    remember_batch(store, *trio("b", source="b", hours_ago=80))
    second = cycle.run(CycleRequest(trigger=Trigger.EXPLICIT, force=True)).cycle
    clock.advance(days=3)
    run_cycle(cycle)
    day = episode_of(store, "a0").parent
    assert day

    undo_cycle(service, second)

    found = store.memories.get(day)
    assert isinstance(found, Episode)
    assert (found.item_count, found.summary_of) == (
        3,
        (get_memory(store, "a0").episode,),
    )
    assert "note a1" in found.content
    assert "note b" not in found.content


# ------------------------------------------------------- how long it lasts


@pytest.mark.parametrize("trigger", [Trigger.AGE, Trigger.SCHEDULE, Trigger.SHUTDOWN])
def test_what_an_undo_put_back_stays_for_as_long_as_it_says(
    store: SqliteStore,
    service: MemoryService,
    cycle: SleepCycle,
    clock: FakeClock,
    trigger: Trigger,
) -> None:
    remember_batch(store, *trio("a"))
    report = undo_cycle(service, run_cycle(cycle))
    remember_batch(store, *trio("b", source="b"))

    at_once = cycle.run(CycleRequest(trigger=trigger))
    due = service.call(Status()).sleep.due
    assert report.held_until == clock.now() + timedelta(hours=1)
    clock.moment = report.held_until
    in_time = cycle.run(CycleRequest(trigger=trigger))

    assert (at_once.evicted, at_once.candidates, due) == (3, 3, 0)
    assert in_time.evicted == 3


def test_an_undo_holds_until_the_next_scheduled_cycle_or_as_long_as_told(
    store: SqliteStore,
    cycle: SleepCycle,
    clock: FakeClock,
    retention: RetentionService,
    settings: SettingsInForce,
) -> None:
    remember_batch(store, *trio("a"))
    tonight = clock.now() + timedelta(hours=9)
    change(settings, {"auto_sleep": True, "sleep.cron": "0 3 * * *"})
    service = make_service(store, cycle, retention, settings, in_background=True)
    with service.sleeper as sleeper:
        scheduled = undo_cycle(service, run_cycle(cycle), dry_run=True).held_until
        told = undo_cycle(service, "last", keep_hours=9).held_until
        assert sleeper.next_cycle

        assert scheduled == max(clock.now() + timedelta(hours=1), sleeper.next_cycle)
    assert told == tonight


def test_a_cycle_that_ignores_age_and_a_pin_let_go_ignore_the_undo(
    store: SqliteStore, service: MemoryService, cycle: SleepCycle
) -> None:
    remember_batch(store, *trio("a"), *trio("b", source="b"))
    undo_cycle(service, run_cycle(cycle))

    service.call(Unpin("a0"))
    let_go = cycle.run(CycleRequest(trigger=Trigger.EXPLICIT))
    forced = service.call(Sleep(force=True))

    assert (let_go.evicted, forced.evicted) == (1, 5)


def test_what_an_undo_holds_back_keeps_no_trigger_busy(
    store: SqliteStore, service: MemoryService, cycle: SleepCycle, clock: FakeClock
) -> None:
    remember_batch(store, *trio("a"))
    undo_cycle(service, run_cycle(cycle))

    now = clock.now()
    held = store.sleep.activity(fresh=now, now=now, limit=9)
    later = store.sleep.activity(fresh=now, now=now + timedelta(hours=1), limit=9)

    assert (held.rows, held.movable, held.oldest) == (3, 0, None)
    assert (later.movable, later.oldest) == (3, trio("a")[0].created_at)


def test_what_was_put_back_is_known_when_it_is_said_again(
    store: SqliteStore, service: MemoryService, cycle: SleepCycle
) -> None:
    remember_batch(store, *trio("a"))
    undo_cycle(service, run_cycle(cycle))

    again = service.call(Remember("note a1", session=trio("a")[1].session, dedupe=True))

    assert (again.id, again.stored) == ("a1", False)


def test_an_undo_names_all_that_is_missing_of_a_group(
    store: SqliteStore, service: MemoryService, cycle: SleepCycle
) -> None:
    remember_batch(store, *trio("a", hours_ago=200))
    first = run_cycle(cycle)
    service.call(Forget("a1"))
    service.call(Prune(keep_days=3))

    planned = undo_cycle(service, first, dry_run=True)
    done = undo_cycle(service, first)

    for report in (planned, done):
        (group,) = report.groups
        assert group.error == (
            "the words of 2 originals were pruned; 1 original was forgotten or restored before"
        )
        assert (group.status, group.items, report.held_until) == (
            GroupStatus.KEPT,
            0,
            None,
        )
