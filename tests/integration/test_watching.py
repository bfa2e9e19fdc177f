"""Triggers in force: calm whatever the clock does, and gentle with the machine's model."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, timedelta
from pathlib import Path

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
from support.settings import change

from mnemosyned.config import SettingsInForce
from mnemosyned.errors import SleepInProgress
from mnemosyned.memory.consolidation import (
    CycleReport,
    CycleStatus,
    Selection,
    Trigger,
    WorkingActivity,
)
from mnemosyned.memory.values import SummarizerState, SummarizerStatus
from mnemosyned.sleep import triggers as machine
from mnemosyned.sleep.context import CycleRequest
from mnemosyned.sleep.cycle import SleepCycle
from mnemosyned.sleep.lease import SummarizerLease
from mnemosyned.sleep.sleeper import BackgroundCycles
from mnemosyned.sleep.triggers import (
    BACK_OFF_MAX_S,
    REST_S,
    AgeTrigger,
    CountTrigger,
    IdleTrigger,
    JumpTolerantClock,
    MachineState,
    SleepTrigger,
    TriggerWatch,
    is_on_battery,
    read_machine_state,
)
from mnemosyned.storage.sqlite.store import SqliteStore

HOUR = timedelta(hours=1)
FRESH = timedelta(minutes=10)


class Nights:
    """Triggers over a fake store: what was started, and what it gained."""

    def __init__(self, *triggers: SleepTrigger) -> None:
        self.started: list[tuple[Trigger, Selection]] = []
        self.up = 1_000.0
        self.gain = 5
        self.now = NOON
        self.activity = WorkingActivity(
            rows=50,
            movable=50,
            bytes=1,
            oldest=NOON - 20 * HOUR,
            by_source={None: 50},
            by_session={},
        )
        self.watch = TriggerWatch(
            triggers=lambda: triggers,
            activity=lambda: self.activity,
            now=lambda: self.now,
            sleep=self._sleep,
            monotonic=lambda: self.up,
        )

    def _sleep(self, trigger: Trigger, selection: Selection) -> CycleReport:
        self.started.append((trigger, selection))
        return report(evicted=self.gain)

    def pass_time(self, seconds: float, *, tick: float = 30) -> None:
        for _ in range(int(seconds / tick)):
            self.up += tick
            self.watch.check()


def report(*, evicted: int) -> CycleReport:
    return CycleReport(
        cycle="c",
        status=CycleStatus.DONE,
        trigger=Trigger.AGE,
        dry_run=False,
        candidates=evicted,
        groups=(),
        promoted=0,
        evicted=evicted,
        failed=0,
        chars_before=0,
        chars_after=0,
        duration_s=0,
    )


AGE = AgeTrigger(age=12 * HOUR)
COUNT = CountTrigger(entries=20, fresh=FRESH)


# ---------------------------------------------------------------------- calm


def test_the_first_trigger_that_is_due_names_the_cycle() -> None:
    nights = Nights(AGE, COUNT)

    assert nights.watch.check() is Trigger.AGE
    assert nights.started == [(Trigger.AGE, Selection(before=NOON - 12 * HOUR))]


def test_between_two_cycles_there_is_a_rest() -> None:
    nights = Nights(AGE)

    nights.watch.check()
    nights.pass_time(REST_S - 1, tick=1)
    during = len(nights.started)
    nights.pass_time(2, tick=1)

    assert (during, len(nights.started)) == (1, 2)


def test_a_trigger_that_gains_nothing_is_left_alone_ever_longer() -> None:
    nights = Nights(AGE)
    nights.gain = 0

    nights.pass_time(24 * 3_600)

    assert 4 <= len(nights.started) <= 12
    nights.gain = 5
    nights.pass_time(BACK_OFF_MAX_S + 60)
    before = len(nights.started)
    nights.pass_time(600)
    assert len(nights.started) - before >= 5


def test_one_that_gains_nothing_does_not_hold_up_the_others() -> None:
    nights = Nights(AGE, COUNT)
    nights.gain = 0

    nights.pass_time(200)

    assert [trigger for trigger, _ in nights.started] == [Trigger.AGE, Trigger.COUNT]


def test_a_cycle_under_way_is_no_failure_and_is_asked_again() -> None:
    nights = Nights(AGE)

    def refuse(_: Trigger, __: Selection) -> CycleReport:
        raise SleepInProgress("another")

    nights.watch = TriggerWatch(
        triggers=lambda: [AGE],
        activity=lambda: nights.activity,
        now=lambda: nights.now,
        sleep=refuse,
    )

    assert nights.watch.check() is None


@pytest.mark.parametrize("jump", [-400, -1, 1, 400])
def test_a_clock_that_jumps_by_days_starts_no_storm(jump: int) -> None:
    nights = Nights(AGE, COUNT)
    nights.now = NOON + timedelta(days=jump)

    nights.pass_time(300)

    assert len(nights.started) <= 300 / REST_S


# ---------------------------------------------------------------- the clock


def test_the_time_that_memories_age_by_believes_no_step_forward(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    wall, up = FakeClock(), [0.0]
    monkeypatch.setattr(machine, "machine_uptime_s", lambda: up[0])
    steady = JumpTolerantClock(wall, hold=12 * HOUR)

    wall.advance(hours=48)
    up[0] += 60
    stepped = steady.now()
    wall.advance(hours=12)
    up[0] += 12 * 3_600
    later = steady.now()

    assert stepped == NOON + timedelta(seconds=60)
    assert later == wall.now()


def test_it_follows_the_clock_back_and_through_a_suspended_night(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    wall, up = FakeClock(), [0.0]
    monkeypatch.setattr(machine, "machine_uptime_s", lambda: up[0])
    steady = JumpTolerantClock(wall, hold=12 * HOUR)

    wall.advance(hours=9)
    up[0] += 9 * 3_600
    slept = steady.now()
    wall.advance(hours=-100)

    assert slept == NOON + 9 * HOUR
    assert steady.now() == wall.now()


def test_a_step_of_the_clock_evicts_nothing_early(
    store: SqliteStore,
    summarizer: FakeSummarizer,
    clock: FakeClock,
    settings: SettingsInForce,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(machine, "machine_uptime_s", lambda: 0.0)
    steady = JumpTolerantClock(clock, hold=12 * HOUR)
    cycle = SleepCycle(
        store=store,
        lease=SummarizerLease(summarizer),
        clock=clock,
        settings=settings,
        age_clock=steady,
    )
    remember_batch(store, *trio("a", hours_ago=1))

    clock.advance(days=30)
    slept = cycle.run(CycleRequest(trigger=Trigger.SCHEDULE))

    assert slept.status is CycleStatus.NOTHING_TO_DO
    assert len(working_ids(store)) == 3


# --------------------------------------------------------------- the machine


def supply(power: Path, name: str, **facts: str) -> None:
    (power / name).mkdir(parents=True)
    for fact, text in facts.items():
        (power / name / fact).write_text(f"{text}\n")


def test_a_machine_that_drains_its_battery_is_on_it(tmp_path: Path) -> None:
    supply(tmp_path, "AC", type="Mains", online="0")
    supply(tmp_path, "BAT0", type="Battery", status="Discharging")

    assert is_on_battery(tmp_path)


@pytest.mark.parametrize("online", ["1", "0"])
def test_a_charging_machine_or_one_with_a_tired_mouse_is_not(
    tmp_path: Path, online: str
) -> None:
    supply(tmp_path, "AC", type="Mains", online=online)
    supply(tmp_path, "BAT0", type="Battery", status="Charging")
    supply(
        tmp_path,
        "hidpp_battery_0",
        type="Battery",
        status="Discharging",
        scope="Device",
    )

    assert not is_on_battery(tmp_path)


def test_a_machine_without_supplies_is_on_mains(tmp_path: Path) -> None:
    assert not is_on_battery(tmp_path / "none")
    assert read_machine_state(tmp_path / "none").load >= 0


# ------------------------------------------------------------ a model at work


class Modelled(FakeSummarizer):
    """Says that a model is in force, and counts who asked for the quick way."""

    quickly = 0

    def status(self) -> SummarizerStatus:
        return SummarizerStatus(name=self.name, reason="", state=SummarizerState.MODEL)

    def rule_based(self) -> FakeSummarizer:
        self.quickly += 1
        return FakeSummarizer(name="rules")


@pytest.fixture
def modelled(cycle: SleepCycle) -> Modelled:
    summarizer = Modelled()
    cycle.lease.replace(summarizer)
    return summarizer


@pytest.fixture
def background(
    store: SqliteStore, cycle: SleepCycle, settings: SettingsInForce
) -> BackgroundCycles:
    change(settings, {"sleep.model_policy": "ac_power"})
    return BackgroundCycles(
        store=store,
        cycle=cycle,
        zone=UTC,
        machine=lambda: MachineState(on_battery=True, load=0),
    )


def test_on_its_battery_a_cycle_waits_and_says_why(
    store: SqliteStore, background: BackgroundCycles, modelled: Modelled
) -> None:
    remember_batch(store, *trio("a", hours_ago=20))

    assert background.sleep(Trigger.SCHEDULE) is None
    assert "battery" in background.waits_for
    assert modelled.calls == []


def test_entries_past_the_ttl_are_summarized_by_rule_while_the_model_waits(
    store: SqliteStore, background: BackgroundCycles, modelled: Modelled
) -> None:
    remember_batch(store, *trio("old", hours_ago=30), *trio("new", hours_ago=20))

    slept = background.sleep(Trigger.SCHEDULE)

    assert slept
    assert (slept.evicted, modelled.calls, modelled.quickly) == (3, [], 1)
    assert store.sleep.log(limit=1)[0].summarizer == "rules"


def test_without_a_model_a_cycle_waits_for_nothing(
    store: SqliteStore, background: BackgroundCycles, summarizer: FakeSummarizer
) -> None:
    remember_batch(store, *trio("a", hours_ago=20))

    slept = background.sleep(Trigger.SCHEDULE)

    assert slept
    assert (slept.evicted, background.waits_for) == (3, "")
    assert len(summarizer.calls) == 1


def test_the_counted_source_alone_is_consolidated_and_its_trigger_logged(
    store: SqliteStore, background: BackgroundCycles, clock: FakeClock
) -> None:
    remember_batch(
        store,
        *trio("chat", hours_ago=1, source="chat"),
        *trio("mail", hours_ago=1, source="mail"),
    )
    remember_batch(
        store, memory("now", source="chat"), memory("mail9", hours_ago=1, source="mail")
    )
    watch = TriggerWatch(
        triggers=lambda: [
            CountTrigger(entries=4, fresh=FRESH),
            IdleTrigger(quiet=HOUR, gain_min=1, fresh=FRESH),
        ],
        activity=background.activity,
        now=clock.now,
        sleep=background.sleep,
    )

    assert watch.check() is Trigger.COUNT

    assert sorted(working_ids(store)) == ["chat0", "chat1", "chat2", "now"]
    assert {row.trigger for row in store.sleep.log(limit=9)} == {"count"}
    assert clock.now() == NOON


def test_activity_is_told_by_session_and_source(
    store: SqliteStore, background: BackgroundCycles
) -> None:
    remember_batch(
        store,
        memory("a", "Zürich", hours_ago=1, source="chat", session="s"),
        memory("b", "now", source="chat", session="s"),
        memory("c", "kept", hours_ago=9, session="t", pinned=True),
    )

    found = replace(background.activity(), quiet=timedelta())

    assert found == WorkingActivity(
        rows=3,
        movable=2,
        bytes=14,
        oldest=NOON - HOUR,
        by_source={"chat": 1},
        by_session={"s": (2, 9)},
    )
