"""What a memory was before an edit: kept, shown, masked, forgotten and dropped."""

from __future__ import annotations

from datetime import timedelta

import pytest
from support.edited import kettle
from support.fakes import (
    NOON,
    FakeClock,
)
from support.leftovers import left_of
from support.stores import run_cycle

from mnemosyned.service.service import MemoryService
from mnemosyned.sleep.cycle import SleepCycle
from mnemosyned.storage.sqlite.store import SqliteStore
from mnemosyned.verbs.memories import EditMemory, Get, Remember
from mnemosyned.verbs.retention import Forget, Prune

__all__ = ["kettle"]


@pytest.mark.parametrize("asleep", [False, True])
def test_what_it_was_is_kept_the_latest_first(
    service: MemoryService,
    cycle: SleepCycle,
    clock: FakeClock,
    kettle: str,
    *,
    asleep: bool,
) -> None:
    service.call(EditMemory(kettle, text="The samovar"))
    if asleep:
        run_cycle(cycle)
    clock.advance(hours=1)
    service.call(EditMemory(kettle, role="user", importance=0.9))

    got = service.call(Get(kettle, history=True))

    assert [(each.changed_at, each.text) for each in got.revisions] == [
        (NOON + timedelta(hours=1), None),
        (NOON, "The kettle is at 10.0.0.7"),
    ]
    assert got.revisions[0].fields == {"role": "", "importance": 0.5}
    assert service.call(Get(kettle)).revisions == []


def test_forgetting_an_edited_memory_takes_its_history_out_of_the_file(
    store: SqliteStore, service: MemoryService, cycle: SleepCycle
) -> None:
    service.call(Remember("the code is Zqxjv48213Kwyz", id="m"))
    run_cycle(cycle)
    service.call(EditMemory("m", text="the code is Wbvfk99071Pqrs"))
    assert left_of(store, "Zqxjv48213Kwyz")

    service.call(Forget("m"))

    words = ("Zqxjv48213Kwyz", "Wbvfk99071Pqrs")
    assert left_of(store, *words) == []


def test_history_can_be_dropped(store: SqliteStore, service: MemoryService) -> None:
    service.call(Remember("the code is Zqxjv48213Kwyz", id="m"))

    service.call(EditMemory("m", text="there was a code", drop_history=True))

    assert left_of(store, "Zqxjv48213Kwyz") == []
    assert [each.text for each in service.call(Get("m", history=True)).revisions] == [
        None
    ]


def test_a_name_that_only_the_history_has_is_found_to_be_forgotten(
    service: MemoryService,
) -> None:
    service.call(Remember("Zelda brings the cake", id="m"))
    service.call(EditMemory("m", text="somebody brings the cake"))

    assert service.call(Forget(person="Zelda", dry_run=True)).memories == 1
    assert service.call(Forget(query="Zelda", dry_run=True)).memories == 0


def test_secrets_are_masked_in_the_history(service: MemoryService) -> None:
    service.call(Remember("the password is larch-4471", id="m"))
    service.call(EditMemory("m", text="the password is birch-9023"))

    shown = service.call(Get("m", history=True))
    revealed = service.call(Get("m", history=True, reveal=True))

    assert "larch" not in str(shown)
    assert "birch" not in str(shown)
    assert revealed.revisions[0].text == "the password is larch-4471"


def test_pruning_takes_the_history_too(
    store: SqliteStore, service: MemoryService, cycle: SleepCycle, clock: FakeClock
) -> None:
    service.call(Remember("The kettle", id="m"))
    service.call(EditMemory("m", text="The samovar"))
    run_cycle(cycle)
    clock.advance(days=9)
    service.call(Prune(keep_days=1))

    assert store.changes.revisions("m") == []


def test_no_more_than_a_hundred_revisions_are_kept(
    store: SqliteStore, service: MemoryService, kettle: str
) -> None:
    for number in range(103):
        service.call(EditMemory(kettle, text=f"number {number}"))

    assert len(store.changes.revisions(kettle)) == 100
    assert service.call(Get(kettle, history=True)).revisions[0].text == "number 101"


def test_the_history_of_many_is_dropped_by_a_filter(
    store: SqliteStore, service: MemoryService
) -> None:
    for number in range(3):
        service.call(
            Remember(f"The wolpertinger {number}", id=f"{number}", session="s")
        )
    for number in range(2):
        service.call(EditMemory(f"{number}", text=f"The samovar {number}"))

    edited = service.call(EditMemory(of_session="s", drop_history=True))

    revisions = [
        revision.text
        for number in range(3)
        for revision in service.call(Get(f"{number}", history=True)).revisions
    ]
    assert (edited.memories, edited.changed) == (3, 2)
    assert set(revisions) == {None}
    assert left_of(store, "wolpertinger 0") == []
