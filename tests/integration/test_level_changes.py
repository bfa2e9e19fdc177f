"""Roll-ups that fail or race, and what forgetting changes in them."""

from collections.abc import Sequence
from datetime import timedelta

import pytest
from support.fakes import FakeClock
from support.levels import MONDAY, a_day, keys, level, sleep

from mnemosyned.errors import DatabaseUnreachable, StorageFailed
from mnemosyned.memory.consolidation import CycleStatus, Selection, Trigger
from mnemosyned.memory.ports import Rollup
from mnemosyned.memory.values import Tier
from mnemosyned.service.service import MemoryService
from mnemosyned.sleep.context import CycleRequest
from mnemosyned.sleep.cycle import SleepCycle
from mnemosyned.storage.sqlite.store import SqliteStore
from mnemosyned.verbs.retention import Forget


@pytest.fixture(autouse=True)
def on_monday(clock: FakeClock) -> None:
    clock.moment = MONDAY + timedelta(hours=12)


def test_a_fold_that_fails_leaves_all_as_it_was_and_is_tried_again(
    store: SqliteStore,
    cycle: SleepCycle,
    clock: FakeClock,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    for day in range(7):
        a_day(store, day)

    def refuse(_: Rollup) -> None:
        raise StorageFailed("disk full")

    with monkeypatch.context() as patch:
        patch.setattr(store.rollups, "write", refuse)
        failed = sleep(cycle, clock, day=7)
    again = sleep(cycle, clock, day=7)

    assert (failed.rolled_up, failed.failed, failed.promoted) == (0, 7, 21)
    assert failed.status is CycleStatus.PARTIAL
    assert again.rolled_up == 8
    assert {
        row.error for row in store.sleep.log(limit=99) if row.level and row.error
    } == {"storage_failed"}


def test_folds_that_lose_the_database_are_logged_without_a_traceback(
    store: SqliteStore,
    cycle: SleepCycle,
    clock: FakeClock,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    def lose(_: Rollup) -> None:
        raise DatabaseUnreachable("the server ended")

    a_day(store, 0)
    monkeypatch.setattr(store.rollups, "write", lose)

    sleep(cycle, clock, day=7)

    (line,) = (one for one in caplog.records if one.message == "rollup_failed")
    assert (line.levelname, line.exc_info) == ("WARNING", None)


def test_a_memory_forgotten_during_a_roll_up_does_not_return(
    store: SqliteStore,
    cycle: SleepCycle,
    clock: FakeClock,
    service: MemoryService,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    a_day(store, 0)
    clock.moment = MONDAY + timedelta(hours=26)
    cycle.run(CycleRequest(trigger=Trigger.SCHEDULE))

    read = store.rollups.index_terms

    def forget(ids: Sequence[str]) -> dict[str, str]:
        service.call(Forget("d0e1x1"))
        return read(ids)

    with monkeypatch.context() as patch:
        patch.setattr(store.rollups, "index_terms", forget)
        raced = sleep(cycle, clock, day=0)
    again = sleep(cycle, clock, day=0)

    assert (raced.rolled_up, again.rolled_up) == (0, 1)
    assert "d0e1x1" not in level(store, 1)[0].content


def test_forgetting_rewrites_the_summaries_above_at_once(
    store: SqliteStore, cycle: SleepCycle, clock: FakeClock, service: MemoryService
) -> None:
    for day in range(7):
        a_day(store, day)
    sleep(cycle, clock, day=7)

    service.call(Forget("d3e1x1"))

    fourth, week = level(store, 1)[3], level(store, 2)[0]
    assert (fourth.item_count, week.item_count) == (8, 62)
    assert fourth.content
    assert keys(sleep(cycle, clock, day=7)) == []
    assert not any(
        "d3e1x1" in one.content for number in (1, 2) for one in level(store, number)
    )
    assert not any(
        "d3e1x1" in row.summary_preview for row in store.sleep.log(limit=999)
    )


def test_forgetting_a_day_forgets_its_originals(
    store: SqliteStore, cycle: SleepCycle, clock: FakeClock, service: MemoryService
) -> None:
    for day in range(2):
        a_day(store, day)
    sleep(cycle, clock, day=2)

    receipt = service.call(Forget(level(store, 1)[0].id))

    assert receipt.memories == 9
    assert store.maintenance.totals()[Tier.ARCHIVE].count == 9


def test_relief_at_the_cap_and_a_cycle_of_one_session_fold_nothing(
    store: SqliteStore, cycle: SleepCycle, clock: FakeClock
) -> None:
    a_day(store, 0)
    clock.moment = MONDAY + timedelta(days=9)

    relief = cycle.run(CycleRequest(trigger=Trigger.CAP, selection=Selection(oldest=3)))
    session = cycle.run(CycleRequest(trigger=Trigger.EXPLICIT, session="default"))

    assert (relief.rolled_up, session.rolled_up) == (0, 0)
