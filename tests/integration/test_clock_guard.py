"""A clock that jumps: nothing that cannot be undone is done by it before it is confirmed."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from datetime import timedelta

import pytest
from support.fakes import NOON, FakeClock, memory, remember_batch, trio
from support.services import Lab, make_service
from support.settings import change
from support.stores import get_memory, run_cycle

from mnemosyned.cli.output.show import render
from mnemosyned.config.settings import SettingsInForce
from mnemosyned.errors import ClockJumped, StorageFailed
from mnemosyned.memory.consolidation import Trigger
from mnemosyned.memory.forgetting import Retention
from mnemosyned.memory.values import Tier
from mnemosyned.service.forgetting import RetentionService
from mnemosyned.service.service import MemoryService
from mnemosyned.sleep.context import CycleRequest
from mnemosyned.sleep.cycle import SleepCycle
from mnemosyned.sleep.triggers import ClockGuard
from mnemosyned.storage.sqlite.store import SqliteStore
from mnemosyned.verbs.upkeep import Sleep, Status

YEAR = Retention(keep=timedelta(days=365))


@dataclass
class Machine:
    """A clock, and the time that passes for the machine."""

    clock: FakeClock
    uptime_s: float = 1_000.0
    boot: str = "first"

    def lives(self, **units: float) -> None:
        self.clock.advance(**units)
        self.uptime_s += timedelta(**units).total_seconds()

    def jumps(self, **units: float) -> None:
        self.clock.advance(**units)

    def starts_again(self, **off: float) -> None:
        self.clock.advance(**off)
        self.boot, self.uptime_s = f"{self.boot}, again", 60.0


@pytest.fixture
def machine(clock: FakeClock) -> Machine:
    return Machine(clock)


def guard_of(store: SqliteStore, machine: Machine) -> ClockGuard:
    """The guard as a start of the daemon makes it."""
    guard = ClockGuard(
        store=store.clock,
        clock=machine.clock,
        uptime=lambda: machine.uptime_s,
        boot=lambda: machine.boot,
    )
    guard.look()
    return guard


Open = Callable[[], MemoryService]


@pytest.fixture
def opened(
    store: SqliteStore, cycle: SleepCycle, settings: SettingsInForce, machine: Machine
) -> Open:
    """A service on the store, as after a start of the daemon."""
    change(settings, {"archive.keep_days": 365})

    def make() -> MemoryService:
        guard = guard_of(store, machine)
        retention = RetentionService(
            store=store,
            cycle=cycle,
            settings=settings,
            file=getattr(store, "database", None),
            guard=guard,
        )
        return make_service(store, cycle, retention, settings)

    return make


@pytest.fixture
def service(opened: Open, store: SqliteStore, cycle: SleepCycle) -> MemoryService:
    service = opened()
    remember_batch(store, *trio("old", hours_ago=24 * 400), *trio("new"))
    run_cycle(cycle)
    return service


def words(store: SqliteStore) -> dict[str, bool]:
    """Whether the originals have their words."""
    return {id: bool(get_memory(store, id).content) for id in ("old1", "new1")}


def test_a_clock_that_is_believed_prunes(lab: Lab) -> None:
    lab.sleep()

    assert words(lab.store) == {"old1": False, "new1": True}
    assert lab.status().clock == ""


def test_a_jump_of_the_clock_prunes_nothing_more_and_is_asked_about(
    lab: Lab, machine: Machine, caplog: pytest.LogCaptureFixture
) -> None:
    machine.lives(hours=1)
    machine.jumps(days=800)

    for _ in range(3):
        lab.sleep()
        machine.lives(days=20)

    assert words(lab.store) == {"old1": False, "new1": True}
    status = lab.status()
    assert "800 days later than can have passed" in status.clock
    assert "mnem archive prune --believe-clock" in render(status)
    said = [
        record for record in caplog.records if record.message == "clock_not_believed"
    ]
    assert len(said) == 1


def test_pruning_goes_on_by_the_time_that_passes(lab: Lab, machine: Machine) -> None:
    machine.jumps(days=800)
    machine.lives(days=364)
    lab.sleep()
    before = words(lab.store)

    machine.lives(days=2)
    lab.sleep()

    assert (before["new1"], words(lab.store)["new1"]) == (True, False)


def test_a_clock_that_goes_back_is_believed_again(lab: Lab, machine: Machine) -> None:
    machine.jumps(days=800)
    lab.sleep()
    machine.jumps(days=-800)

    assert lab.status().clock == ""
    assert lab.prune().memories == 0
    assert words(lab.store)["new1"]


def test_pruning_by_hand_says_so_and_needs_a_word_for_the_clock(
    lab: Lab, machine: Machine
) -> None:
    machine.jumps(days=800)

    preview = lab.prune(dry_run=True, believe_clock=True)
    with pytest.raises(ClockJumped, match="add --believe-clock"):
        lab.prune()
    with pytest.raises(ClockJumped):
        lab.prune(keep_days=700)
    kept = words(lab.store)
    done = lab.prune(believe_clock=True)

    assert (preview.memories, kept["new1"], done.memories) == (6, True, 6)
    assert "800 days later" in render(preview)
    assert "--believe-clock" in render(preview)
    assert (done.doubt, lab.status().clock) == ("", "")
    assert words(lab.store) == {"old1": False, "new1": False}


def test_pruning_by_size_ignores_the_clock(lab: Lab, machine: Machine) -> None:
    machine.jumps(days=800)

    assert lab.prune(characters_max=0).memories == 6


@pytest.mark.parametrize(("days", "kept"), [(6, True), (800, True)])
def test_after_a_time_switched_off_it_asks_rather_than_lose(
    lab: Lab, opened: Open, machine: Machine, *, days: int, kept: bool
) -> None:
    lab.status()
    machine.starts_again(days=days)

    again = opened()
    again.call(Sleep())

    assert words(lab.store)["new1"] is kept
    assert bool(again.call(Status()).clock) == (days > 7)


def test_a_restart_of_the_daemon_makes_no_jump_believed(
    lab: Lab, opened: Open, machine: Machine
) -> None:
    machine.jumps(days=800)
    lab.sleep()

    again = opened()
    again.call(Sleep())

    assert words(lab.store)["new1"]
    assert "800 days" in again.call(Status()).clock


def test_an_older_file_is_judged_by_when_it_last_slept(
    lab: Lab, opened: Open, machine: Machine
) -> None:
    remember_batch(lab.store, *trio("new"))
    run_cycle(lab.cycle)
    machine.jumps(days=800)

    assert "days later" in opened().call(Status()).clock


def test_a_full_disk_keeps_nobody_from_sleeping(
    lab: Lab,
    machine: Machine,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    def full(_: object) -> None:
        raise StorageFailed("the disk is full")

    monkeypatch.setattr(lab.store.clock, "keep_sighting", full)
    machine.lives(hours=2)

    lab.sleep()

    assert "clock_not_kept" in [record.message for record in caplog.records]


def test_a_sighting_is_kept_each_hour_and_at_the_end_but_not_for_a_moment(
    store: SqliteStore, machine: Machine
) -> None:
    def kept() -> timedelta:
        sighting = store.clock.last_sighting()
        assert sighting
        return machine.clock.now() - sighting.moment

    guard = guard_of(store, machine)
    ages = [kept()]
    for minutes in (30, 31):
        machine.lives(minutes=minutes)
        guard.look()
        ages.append(kept())
    machine.lives(seconds=59)
    guard_of(store, machine).close()
    ages.append(kept())
    machine.lives(seconds=1)
    guard.close()
    ages.append(kept())

    assert [age.total_seconds() for age in ages] == [0, 1_800, 0, 59, 0]


# ------------------------------------------------------- what can be undone


def test_a_memory_expired_by_a_wrong_clock_returns_with_the_right_one(
    lab: Lab, machine: Machine
) -> None:
    until = NOON + timedelta(days=30)
    lab.remember("the heron nests here", valid_until=until)
    machine.jumps(days=800)
    lab.sleep(force=True)
    expired = lab.recall("heron").hits

    machine.jumps(days=-800)

    assert expired == []
    (hit,) = lab.recall("heron").hits
    assert "the heron nests here" in hit.lines[0].content


def test_a_memory_dated_in_the_future_is_consolidated_once_it_is_old(
    lab: Lab, machine: Machine
) -> None:
    machine.jumps(days=800)
    for at in range(3):
        lab.remember(f"ahead {at}", id=f"ahead{at}")
    machine.jumps(days=-800)
    lab.remember("in time", id="now")

    evicted = []
    for _ in range(4):
        evicted.append(lab.cycle.run(CycleRequest(trigger=Trigger.SCHEDULE)).evicted)
        machine.lives(hours=5)

    assert evicted == [0, 0, 0, 4]
    assert lab.store.maintenance.totals()[Tier.WORKING].count == 0


def test_a_clock_that_is_far_behind_makes_nothing_old(
    lab: Lab, machine: Machine
) -> None:
    lab.remember("in time", id="now")
    machine.jumps(days=-20_000)

    assert lab.cycle.run(CycleRequest(trigger=Trigger.SCHEDULE)).evicted == 0
    machine.lives(hours=1)
    assert lab.cycle.run(CycleRequest(trigger=Trigger.SHUTDOWN)).evicted == 0


def test_a_memory_in_the_future_folds_no_day_that_is_not_over(
    lab: Lab, machine: Machine
) -> None:
    remember_batch(lab.store, memory("pinned", pinned=True))
    machine.jumps(days=800)
    lab.remember("ahead", id="ahead")
    machine.jumps(days=-800)
    lab.remember("today", id="today")

    report = lab.cycle.run(CycleRequest(trigger=Trigger.EXPLICIT, force=True))

    assert (report.evicted, report.rolled_up) == (2, 0)
