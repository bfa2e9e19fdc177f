"""A clock that jumps: nothing that cannot be undone is done by it before it is confirmed."""

from dataclasses import dataclass
from datetime import timedelta

import pytest
from support.fakes import NOON, memory, remember_batch, trio
from support.services import Lab, database_file, make_service
from support.settings import change
from support.stores import get_memory

from mnemosyned.cli.output.show import render
from mnemosyned.errors import ClockJumped, StorageFailed
from mnemosyned.memory.consolidation import Trigger
from mnemosyned.memory.values import Tier
from mnemosyned.service.forgetting import RetentionService
from mnemosyned.sleep.triggers import ClockGuard


@dataclass
class Machine(Lab):
    """A memory whose daemon starts on a machine with a clock, and the time that passes there."""

    uptime_s: float = 1_000.0
    boot: str = "first"

    def guard(self) -> ClockGuard:
        """The guard as a start of the daemon makes it."""
        guard = ClockGuard(
            store=self.store.clock,
            clock=self.clock,
            uptime=lambda: self.uptime_s,
            boot=lambda: self.boot,
        )
        guard.look()
        return guard

    def start_daemon(self) -> None:
        change(self.settings, {"archive.keep_days": 365})
        retention = RetentionService(
            store=self.store,
            cycle=self.cycle,
            settings=self.settings,
            file=database_file(self.store),
            guard=self.guard(),
        )
        self.service = make_service(self.store, self.cycle, retention, self.settings)

    def lives(self, **units: float) -> None:
        self.clock.advance(**units)
        self.uptime_s += timedelta(**units).total_seconds()

    def jumps(self, **units: float) -> None:
        self.clock.advance(**units)

    def starts_again(self, **off: float) -> None:
        self.clock.advance(**off)
        self.boot, self.uptime_s = f"{self.boot}, again", 60.0

    def words(self) -> dict[str, bool]:
        """Whether the originals have their words."""
        ids = ("old1", "new1")
        return {id: bool(get_memory(self.store, id).content) for id in ids}

    def evicted(self, trigger: Trigger = Trigger.SCHEDULE) -> int:
        return self.run_cycle(trigger).evicted


@pytest.fixture
def machine(lab: Lab) -> Machine:
    machine = Machine(**vars(lab))
    machine.start_daemon()
    lab.put(*trio("old", hours_ago=24 * 400), *trio("new"))
    lab.run_cycle(force=True)
    return machine


def test_a_jump_of_the_clock_prunes_nothing_more_and_is_asked_about(
    machine: Machine, caplog: pytest.LogCaptureFixture
) -> None:
    machine.lives(hours=1)
    machine.jumps(days=800)

    for _ in range(3):
        machine.sleep()
        machine.lives(days=20)

    assert machine.words() == {"old1": False, "new1": True}
    status = machine.status()
    assert "800 days later than can have passed" in status.clock
    assert "mnem archive prune --believe-clock" in render(status)
    said = [record.message for record in caplog.records]
    assert said.count("clock_not_believed") == 1


def test_pruning_goes_on_by_the_time_that_passes(machine: Machine) -> None:
    machine.jumps(days=800)
    machine.lives(days=364)
    machine.sleep()
    before = machine.words()

    machine.lives(days=2)
    machine.sleep()

    assert (before["new1"], machine.words()["new1"]) == (True, False)


def test_pruning_by_hand_needs_a_word_for_the_clock(machine: Machine) -> None:
    machine.jumps(days=800)

    preview = machine.prune(dry_run=True, believe_clock=True)
    with pytest.raises(ClockJumped, match="add --believe-clock"):
        machine.prune()
    with pytest.raises(ClockJumped):
        machine.prune(keep_days=700)
    kept = machine.words()
    done = machine.prune(believe_clock=True)

    assert (preview.memories, kept["new1"], done.memories) == (6, True, 6)
    assert "800 days later" in render(preview)
    assert "--believe-clock" in render(preview)
    assert (done.doubt, machine.status().clock) == ("", "")
    assert machine.words() == {"old1": False, "new1": False}


def test_pruning_by_size_ignores_the_clock(machine: Machine) -> None:
    machine.jumps(days=800)

    assert machine.prune(characters_max=0).memories == 6


@pytest.mark.parametrize("days", [6, 800])
def test_after_a_time_switched_off_it_asks_first(machine: Machine, days: int) -> None:
    machine.status()
    machine.starts_again(days=days)

    machine.start_daemon()
    machine.sleep()

    assert machine.words()["new1"]
    assert bool(machine.status().clock) == (days > 7)


def test_a_restart_of_the_daemon_makes_no_jump_believed(machine: Machine) -> None:
    machine.jumps(days=800)
    machine.sleep()

    machine.start_daemon()
    machine.sleep()

    assert machine.words()["new1"]
    assert "800 days" in machine.status().clock


def test_an_older_file_is_judged_by_when_it_last_slept(lab: Lab) -> None:
    lab.put(*trio("new"))
    lab.run_cycle(force=True)
    sighting = lab.store.clock.last_sighting()
    assert sighting
    assert sighting.boot == "", "no guard has looked"
    machine = Machine(**vars(lab))
    machine.jumps(days=800)

    machine.start_daemon()

    assert "days later" in machine.status().clock


def test_a_full_disk_keeps_nobody_from_sleeping(
    machine: Machine, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def full(_: object) -> None:
        raise StorageFailed("the disk is full")

    monkeypatch.setattr(machine.store.clock, "keep_sighting", full)
    machine.lives(hours=2)

    machine.sleep()

    assert "clock_not_kept" in [record.message for record in caplog.records]


def test_a_sighting_is_kept_each_hour_and_at_the_end_not_sooner(lab: Lab) -> None:
    machine = Machine(**vars(lab))
    ages: list[float] = []

    def note_age() -> None:
        sighting = machine.store.clock.last_sighting()
        assert sighting
        ages.append((machine.clock.now() - sighting.moment).total_seconds())

    guard = machine.guard()
    note_age()
    for minutes in (30, 31):
        machine.lives(minutes=minutes)
        guard.look()
        note_age()
    machine.lives(seconds=59)
    machine.guard().close()
    note_age()
    machine.lives(seconds=1)
    guard.close()
    note_age()

    assert ages == [0, 1_800, 0, 59, 0]


def test_a_memory_expired_by_a_wrong_clock_returns(machine: Machine) -> None:
    machine.remember("the heron nests here", valid_until=NOON + timedelta(days=30))
    machine.jumps(days=800)
    machine.sleep(force=True)
    expired = machine.recall("heron").hits

    machine.jumps(days=-800)

    assert expired == []
    (hit,) = machine.recall("heron").hits
    assert "the heron nests here" in hit.lines[0].content


def test_a_memory_of_the_future_is_consolidated_once_old(machine: Machine) -> None:
    machine.jumps(days=800)
    for at in range(3):
        machine.remember(f"ahead {at}", id=f"ahead{at}")
    machine.jumps(days=-800)
    machine.remember("in time", id="now")

    evicted = []
    for _ in range(4):
        evicted.append(machine.evicted())
        machine.lives(hours=5)

    assert evicted == [0, 0, 0, 4]
    assert machine.store.maintenance.totals()[Tier.WORKING].count == 0


def test_a_clock_that_is_far_behind_makes_nothing_old(machine: Machine) -> None:
    machine.remember("in time", id="now")
    machine.jumps(days=-20_000)

    assert machine.evicted() == 0
    machine.lives(hours=1)
    assert machine.evicted(Trigger.SHUTDOWN) == 0


def test_a_memory_of_the_future_folds_no_day_that_is_not_over(machine: Machine) -> None:
    remember_batch(machine.store, memory("pinned", pinned=True))
    machine.jumps(days=800)
    machine.remember("ahead", id="ahead")
    machine.jumps(days=-800)
    machine.remember("today", id="today")

    report = machine.sleep(force=True)

    assert (report.evicted, report.rolled_up) == (2, 0)
