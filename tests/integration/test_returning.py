"""The way back from the archive, and undoing a cycle: nothing lost, nothing twice."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from datetime import timedelta

import pytest
from support.fakes import FakeClock, memory, remember_batch, trio, working_ids
from support.services import make_service, undo_cycle
from support.settings import change
from support.stores import count_by_tier, episode_of, get_episode, get_memory, run_cycle

from mnemosyned.config.settings import SettingsInForce
from mnemosyned.errors import CannotUndo, InvalidRequest, NotFound, WordsPruned
from mnemosyned.memory.consolidation import CycleStatus, GroupStatus, Trigger
from mnemosyned.memory.values import MemoryRecord, Tier
from mnemosyned.service.forgetting import RetentionService
from mnemosyned.service.service import MemoryService
from mnemosyned.sleep.context import CycleRequest
from mnemosyned.sleep.cycle import SleepCycle
from mnemosyned.storage.sqlite.store import SqliteStore
from mnemosyned.verbs.memories import Pin, Recall, Remember, Unpin
from mnemosyned.verbs.retention import Forget, Prune, Restore
from mnemosyned.verbs.upkeep import Sleep, Status

Slept = Callable[..., str]


@pytest.fixture
def slept(store: SqliteStore, cycle: SleepCycle) -> Slept:
    """Remembers memories and consolidates everything; returns the id of the cycle."""

    def remember_and_sleep(*memories: MemoryRecord) -> str:
        remember_batch(store, *memories)
        return run_cycle(cycle)

    return remember_and_sleep


# ------------------------------------------------------------------- restore


def test_a_restored_memory_is_as_it_was_and_pinned(
    store: SqliteStore, service: MemoryService, slept: Slept
) -> None:
    given = memory(
        "1", "a bike", hours_ago=20, role="user", importance=0.9, metadata={"a": 1}
    )
    slept(given, *trio("a"))

    service.call(Restore("1"))

    assert get_memory(store, "1") == replace(given, pinned=True)
    assert [hit.id for hit in service.call(Recall("bike")).hits] == ["1"]


def test_a_restored_memory_is_in_no_summary_until_it_is_let_go_and_sleeps_again(
    store: SqliteStore, service: MemoryService, cycle: SleepCycle, slept: Slept
) -> None:
    slept(*trio("a"))

    receipt = service.call(Restore("a1"))
    again = cycle.run(CycleRequest(trigger=Trigger.EXPLICIT, force=True))

    assert not receipt.episode_removed
    assert again.status is CycleStatus.NOTHING_TO_DO
    assert "a1" not in episode_of(store, "a0").content
    assert episode_of(store, "a0").summary_of == ("a0", "a2")

    service.call(Unpin("a1"))
    run_cycle(cycle)

    assert episode_of(store, "a1").summary_of == ("a1",)
    counts = {tier: count for tier, (count, _) in count_by_tier(store).items()}
    assert counts == {"working": 0, "episodic": 2, "archive": 3}


def test_restoring_the_last_original_removes_its_episode(
    store: SqliteStore, service: MemoryService, slept: Slept
) -> None:
    slept(memory("1", hours_ago=20))

    assert service.call(Restore("1")).episode_removed
    assert store.maintenance.totals()[Tier.EPISODIC].count == 0


def test_what_cannot_be_restored_is_refused_with_a_hint(
    store: SqliteStore, service: MemoryService, cycle: SleepCycle
) -> None:
    remember_batch(store, *trio("a"), memory("fresh"))
    report = cycle.run(CycleRequest(trigger=Trigger.EXPLICIT))
    (episode,) = report.groups[0].episodes
    service.call(Prune(characters_max=0))

    for id, problem in (("fresh", "already"), (episode, "originals")):
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
    counts = count_by_tier(store)
    assert counts["episodic"] == counts["archive"] == (0, 0)
    assert service.call(Recall("note getUserName 東京", limit=20)).hits == before


def test_an_undo_is_in_the_log_and_cannot_be_repeated(
    store: SqliteStore, service: MemoryService, slept: Slept, clock: FakeClock
) -> None:
    first = slept(*trio("a"))
    clock.advance(minutes=5)

    undo_cycle(service, first)

    (row,) = store.sleep.log(limit=9)
    assert (row.undone_at, row.summary_preview) == (clock.now(), "")
    with pytest.raises(CannotUndo, match="already"):
        undo_cycle(service, first)
    with pytest.raises(NotFound):
        undo_cycle(service, "never")


B = ["b0", "b1", "b2"]


@pytest.mark.parametrize(
    ("memories", "forgotten", "errors", "left"),
    [
        (
            [*trio("a"), *trio("b", source="b")],
            ["a1", *B],
            {
                "1 original was forgotten or restored before",
                "3 originals were forgotten or restored before",
            },
            ["a0", "a2"],
        ),
        (
            [*trio("a", hours_ago=200), *trio("b", source="b")],
            [],
            {None, "the words of 3 originals were pruned"},
            B,
        ),
        (
            [*trio("a", hours_ago=200)],
            ["a1"],
            {
                "the words of 2 originals were pruned; 1 original was forgotten or restored before"
            },
            [],
        ),
    ],
    ids=["forgotten", "pruned", "both"],
)
def test_an_undo_brings_back_what_is_left_and_names_what_is_missing_as_its_dry_run_does(
    store: SqliteStore,
    service: MemoryService,
    slept: Slept,
    *,
    memories: list[MemoryRecord],
    forgotten: list[str],
    errors: set[str | None],
    left: list[str],
) -> None:
    first = slept(*memories)
    for id in forgotten:
        service.call(Forget(id))
    service.call(Prune(keep_days=3))

    planned = undo_cycle(service, first, dry_run=True)
    done = undo_cycle(service, first)

    for report in (planned, done):
        assert report.status is CycleStatus.PARTIAL
        assert {group.error for group in report.groups} == errors
        assert sum(group.items for group in report.groups) == len(left)
        # A group with pruned originals stays whole.
        kept = [group for group in report.groups if group.status is GroupStatus.KEPT]
        assert {group.items for group in kept} == ({0} if "a0" not in left else set())
        assert report.failed == len(kept)
        assert (report.held_until is None) == (not left)
    assert done.restored == len(left)
    assert working_ids(store) == left
    assert (get_memory(store, "a0").episode is None) == ("a0" in left)


def test_the_last_cycle_need_not_be_named(service: MemoryService, slept: Slept) -> None:
    slept(*trio("a", hours_ago=200))
    service.call(Prune(keep_days=3))
    older, newer = slept(*trio("b")), slept(*trio("c"))
    slept()  # there was nothing to do

    undone = [undo_cycle(service, "last").cycle for _ in range(2)]

    assert undone == [newer, older]
    # What was pruned cannot come back.
    with pytest.raises(CannotUndo, match="nothing to undo"):
        undo_cycle(service, "last")


def test_days_and_weeks_that_an_undo_leaves_nothing_of_are_undone_in_the_log(
    store: SqliteStore, service: MemoryService, slept: Slept, clock: FakeClock
) -> None:
    first = slept(*trio("a", hours_ago=80))
    second = slept(*trio("b", source="b", hours_ago=104))
    clock.advance(days=30)
    slept()

    undo_cycle(service, first)
    amid = {row.level for row in store.sleep.log(limit=99) if row.undone_at is None}
    undo_cycle(service, second)

    assert amid == {0, 1, 2, 3}
    assert all(row.undone_at for row in store.sleep.log(limit=99))
    assert store.maintenance.totals()[Tier.EPISODIC].count == 0


def test_an_undo_rewrites_the_day_above_from_what_remains(
    store: SqliteStore, service: MemoryService, slept: Slept, clock: FakeClock
) -> None:
    slept(*trio("a", hours_ago=80))
    second = slept(*trio("b", source="b", hours_ago=80))
    clock.advance(days=3)
    slept()
    day = episode_of(store, "a0").parent
    assert day

    undo_cycle(service, second)

    found = get_episode(store, day)
    assert found.item_count == 3
    assert found.summary_of == (get_memory(store, "a0").episode,)
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
    service: MemoryService, cycle: SleepCycle, slept: Slept
) -> None:
    undo_cycle(service, slept(*trio("a"), *trio("b", source="b")))

    service.call(Unpin("a0"))
    let_go = cycle.run(CycleRequest(trigger=Trigger.EXPLICIT))
    forced = service.call(Sleep(force=True))

    assert (let_go.evicted, forced.evicted) == (1, 5)


def test_what_an_undo_holds_back_keeps_no_trigger_busy_and_is_known_if_said_again(
    store: SqliteStore, service: MemoryService, slept: Slept, clock: FakeClock
) -> None:
    undo_cycle(service, slept(*trio("a")))

    now = clock.now()
    held = store.sleep.activity(fresh=now, now=now, limit=9)
    later = store.sleep.activity(fresh=now, now=now + timedelta(hours=1), limit=9)
    again = service.call(Remember("note a1", session=trio("a")[1].session, dedupe=True))

    assert (held.rows, held.movable, held.oldest) == (3, 0, None)
    assert (later.movable, later.oldest) == (3, trio("a")[0].created_at)
    assert (again.id, again.stored) == ("a1", False)
