"""Cycles in the background, by schedule and by triggers: on time, one at a time, calm."""

import logging
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from functools import partial
from pathlib import Path

import pytest
from support.answers import CYCLE
from support.cases import each_case
from support.fakes import NOON, FakeClock, FakeSummarizer, memory, trio, working_ids
from support.services import Lab
from support.settings import config_by_words
from support.vector_service import wait_until

from mnemosyned.assembly.build import open_memory
from mnemosyned.config.settings import Config, SleepConfig
from mnemosyned.errors import (
    ConfigInvalid,
    DatabaseUnreachable,
    SleepInProgress,
    StorageFailed,
)
from mnemosyned.memory.consolidation import (
    CycleReport,
    CycleStatus,
    Selection,
    Trigger,
    WorkingActivity,
)
from mnemosyned.memory.values import SummarizerState, SummarizerStatus, Tier
from mnemosyned.sleep import sleeper, triggers as machine
from mnemosyned.sleep.context import CycleRequest, SummarizerLease
from mnemosyned.sleep.cycle import SleepCycle
from mnemosyned.sleep.sleeper import Sleeper, SleepScheduler
from mnemosyned.sleep.triggers import (
    BACK_OFF_MAX_S,
    REST_S,
    SEEN_S,
    JumpTolerantClock,
    MachineState,
    SleepTrigger,
    TriggerWatch,
    is_on_battery,
    read_machine_state,
    select_by_age,
    select_by_count,
    select_when_idle,
)
from mnemosyned.verbs.memories import Remember, RememberMany
from mnemosyned.verbs.upkeep import Status

SOON = timedelta(milliseconds=20)
HOUR = timedelta(hours=1)
WAIT_S = 60


class Nights:
    """Counts the cycles asked for, and lets a test wait for the next."""

    def __init__(self, then: Callable[[], object] = lambda: None) -> None:
        self.triggers: list[Trigger] = []
        self._came = threading.Semaphore(0)
        self._then = then

    def sleep(self, trigger: Trigger) -> None:
        self.triggers.append(trigger)
        self._came.release()
        self._then()

    def wait(self, count: int = 1) -> None:
        for _ in range(count):
            assert self._came.acquire(timeout=WAIT_S)


@contextmanager
def running(
    nights: Nights,
    interval: timedelta = SOON,
    *,
    relieve: Callable[[], object] = lambda: None,
) -> Iterator[SleepScheduler]:
    """A scheduler that sleeps each interval."""
    scheduler = SleepScheduler(
        sleep=nights.sleep, enforce_cap=relieve, check_triggers=list
    )
    scheduler.start()
    try:
        scheduler.set_schedule(schedule(interval))
        yield scheduler
    finally:
        scheduler.stop()


def test_a_cycle_that_fails_while_the_scheduler_stops_does_not_hold_it_up() -> None:
    may_fail = threading.Event()

    def fail() -> None:
        may_fail.wait(WAIT_S)
        raise DatabaseUnreachable("the server is down")

    nights = Nights(fail)
    scheduler = SleepScheduler(
        sleep=nights.sleep, enforce_cap=lambda: None, check_triggers=list
    )
    scheduler.start()
    scheduler.set_schedule(schedule())
    nights.wait()

    stopping = threading.Thread(target=scheduler.stop, daemon=True)
    stopping.start()
    stopping.join(0.2)  # by now it waits for the cycle
    may_fail.set()
    stopping.join(WAIT_S)

    assert not stopping.is_alive()


def schedule(
    interval: timedelta = SOON, *, auto: bool = True, cron: str | None = None
) -> Config:
    minutes = interval.total_seconds() / 60
    sleep = SleepConfig(interval_minutes=minutes, cron=cron)
    return Config(auto_sleep=auto, sleep=sleep)


@pytest.mark.parametrize(
    ("error", "is_logged", "has_traceback"),
    [
        (RuntimeError("bug"), True, True),
        (StorageFailed("disk full"), True, True),
        (DatabaseUnreachable("the server is down"), True, False),
        (SleepInProgress("another"), False, False),
    ],
    ids=lambda value: type(value).__name__ if isinstance(value, Exception) else "",
)
def test_a_cycle_that_raises_is_logged_and_the_schedule_goes_on(
    error: Exception,
    caplog: pytest.LogCaptureFixture,
    *,
    is_logged: bool,
    has_traceback: bool,
) -> None:
    def fail() -> None:
        raise error

    nights = Nights(fail)

    with running(nights):
        nights.wait(3)

    failures = [record for record in caplog.records if record.message == "cycle_failed"]
    assert (len(failures) >= 2) is is_logged
    assert any(record.exc_info for record in failures) is has_traceback
    worst = max((record.levelno for record in caplog.records), default=0)
    assert (worst >= logging.WARNING) is is_logged


def test_a_cycle_that_loses_the_database_is_soon_tried_again(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(sleeper, "FIRST_CYCLE_AFTER", SOON)
    monkeypatch.setattr(sleeper, "AGAIN_AFTER", SOON)

    def fail() -> None:
        raise DatabaseUnreachable("the server is down")

    nights = Nights(fail)

    with running(nights, HOUR):
        nights.wait(3)


def test_a_scheduled_cycle_never_overlaps_the_one_before() -> None:
    at_once: list[int] = []
    inside = threading.Semaphore(1)
    go_on = threading.Event()

    def linger() -> None:
        at_once.append(inside.acquire(blocking=False))
        go_on.wait(0.1)
        inside.release()

    nights = Nights(linger)
    with running(nights):
        nights.wait(3)
        go_on.set()

    assert all(at_once)
    assert set(nights.triggers) == {Trigger.SCHEDULE}


def test_a_schedule_can_be_switched_off_and_on_again() -> None:
    nights = Nights()

    with running(nights, HOUR) as scheduler:
        scheduler.set_schedule(schedule(auto=False))
        assert (scheduler.next_cycle, scheduler.description) == (None, "off")
        scheduler.set_schedule(schedule())
        nights.wait()


@each_case(
    ("interval", "words"),
    [
        (timedelta(minutes=60), "every 60 minutes"),
        (timedelta(minutes=1.5), "every 1.5 minutes"),
        (timedelta(seconds=30), "every 30 seconds"),
    ],
)
def test_a_schedule_is_told_in_words_and_begins_within_a_minute(
    interval: timedelta, words: str
) -> None:
    with running(Nights(), interval) as scheduler:
        due = scheduler.next_cycle

        assert scheduler.description == words
    assert due
    assert due.utcoffset() == timedelta()
    assert timedelta() < due - datetime.now(UTC) <= timedelta(minutes=1)


def test_cron_times_are_utc() -> None:
    nights = Nights()
    with running(nights, HOUR) as scheduler:
        scheduler.set_schedule(schedule(cron="30 3 * * *"))
        nights.wait()

        due = scheduler.next_cycle

        assert scheduler.description == "cron 30 3 * * * (UTC)"
    assert due
    assert due.utcoffset() == timedelta()
    assert (due.hour, due.minute) == (3, 30)
    assert timedelta() < due - datetime.now(UTC) <= timedelta(days=1)


@each_case("cron", ["99 * * * *", "a b c d e", "* * * * * *", "*/0 * * * *"])
def test_a_refused_schedule_leaves_the_earlier_one_in_force(cron: str) -> None:
    with running(Nights(), HOUR) as scheduler:
        with pytest.raises(ConfigInvalid, match=r"sleep\.cron"):
            scheduler.set_schedule(schedule(cron=cron))

        assert scheduler.description == "every 60 minutes"
        assert scheduler.next_cycle is not None


def test_relief_asked_for_again_and_again_never_overlaps_and_warns_of_nothing(
    caplog: pytest.LogCaptureFixture,
) -> None:
    inside = threading.Semaphore(1)
    alone: list[bool] = []
    came = threading.Semaphore(0)

    def relieve() -> None:
        alone.append(inside.acquire(blocking=False))
        came.release()
        threading.Event().wait(0.01)
        inside.release()

    with running(Nights(), HOUR, relieve=relieve) as scheduler:
        for _ in range(3):
            for _ in range(30):
                scheduler.enforce_cap_soon()
            assert came.acquire(timeout=WAIT_S)

    assert all(alone)
    assert [each for each in caplog.records if each.levelno >= logging.WARNING] == []


def test_relief_that_raises_is_logged_and_the_next_one_runs(
    caplog: pytest.LogCaptureFixture,
) -> None:
    came = threading.Semaphore(0)

    def fail() -> None:
        came.release()
        raise StorageFailed("disk full")

    with running(Nights(), HOUR, relieve=fail) as scheduler:
        for _ in range(2):
            scheduler.enforce_cap_soon()
            assert came.acquire(timeout=WAIT_S)

    assert [record.message for record in caplog.records] == ["cycle_failed"] * 2


# Triggers in force: calm whatever the clock does, and gentle with the machine's model.


FRESH = timedelta(minutes=10)
AGE = partial(select_by_age, age=12 * HOUR)
COUNT = partial(select_by_count, entries=20, fresh=FRESH)
IDLE = partial(select_when_idle, quiet=HOUR / 12, gain_min=10, fresh=FRESH)


class WatchedNights:
    """Triggers over a fake store: what was started, and what it gained."""

    def __init__(self, **triggers: SleepTrigger) -> None:
        self.started: list[tuple[Trigger, Selection]] = []
        self.up = 1_000.0
        self.gain = 5
        self.is_in_cycle = False
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
            triggers=lambda: {Trigger(name): rule for name, rule in triggers.items()},
            activity=lambda: self.activity,
            now=lambda: self.now,
            sleep=self._sleep,
            monotonic=lambda: self.up,
        )

    def _sleep(self, trigger: Trigger, selection: Selection) -> CycleReport:
        if self.is_in_cycle:
            raise SleepInProgress("another")
        self.started.append((trigger, selection))
        return replace(CYCLE, trigger=trigger, evicted=self.gain)

    def pass_time(self, seconds: float, *, tick: float = 30) -> None:
        for _ in range(int(seconds / tick)):
            self.up += tick
            self.watch.check()


def test_the_first_trigger_that_is_due_names_the_cycle_and_a_rest_follows() -> None:
    nights = WatchedNights(age=AGE, count=COUNT)

    assert nights.watch.check() is Trigger.AGE
    assert nights.started == [(Trigger.AGE, Selection(before=NOON - 12 * HOUR))]

    nights.pass_time(REST_S - 1, tick=1)
    assert len(nights.started) == 1
    nights.pass_time(2, tick=1)
    assert len(nights.started) == 2


def test_a_trigger_that_gains_nothing_is_left_alone_ever_longer() -> None:
    nights = WatchedNights(age=AGE)
    nights.gain = 0

    nights.pass_time(24 * 3_600)

    assert 4 <= len(nights.started) <= 12
    nights.gain = 5
    nights.pass_time(BACK_OFF_MAX_S + 60)
    before = len(nights.started)
    nights.pass_time(600)
    assert len(nights.started) - before >= 5


def test_one_that_gains_nothing_does_not_hold_up_the_others() -> None:
    nights = WatchedNights(age=AGE, count=COUNT)
    nights.gain = 0

    nights.pass_time(200)

    assert [trigger for trigger, _ in nights.started] == [Trigger.AGE, Trigger.COUNT]


def test_a_cycle_under_way_is_no_failure_and_is_asked_again() -> None:
    nights = WatchedNights(age=AGE)
    nights.is_in_cycle = True
    assert nights.watch.check() is None

    nights.is_in_cycle = False
    nights.pass_time(REST_S + 30)

    assert nights.started


def test_a_memory_that_nobody_changed_is_looked_at_only_when_it_may_be_due() -> None:
    nights = WatchedNights(age=AGE, idle=IDLE)
    nights.activity = replace(nights.activity, oldest=NOON)

    def may_be_due(changed_at: float = 0.0, quiet: timedelta = HOUR / 60) -> bool:
        return nights.watch.may_be_due(changed_at, settle_s=600, quiet=quiet)

    nights.up = 700
    assert may_be_due()
    nights.watch.check()
    assert not may_be_due()
    assert may_be_due(changed_at=700), "a change"
    assert may_be_due(changed_at=101), "a change whose memories did not count yet"
    assert may_be_due(quiet=HOUR), "nobody asks any more"
    nights.now = NOON + 14 * HOUR
    assert may_be_due(), "its memories have aged"
    nights.now = NOON
    nights.up += SEEN_S + 1
    assert may_be_due(), "others may have changed it"


@each_case("jump", [-400, -1, 1, 400])
def test_a_clock_that_jumps_by_days_starts_no_storm(jump: int) -> None:
    nights = WatchedNights(age=AGE, count=COUNT)
    nights.now = NOON + timedelta(days=jump)

    nights.pass_time(300)

    assert len(nights.started) <= 300 / REST_S


@pytest.fixture
def up(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """For how many seconds the machine has been up."""
    seconds = [0.0]
    monkeypatch.setattr(machine, "machine_uptime_s", lambda: seconds[0])
    return seconds


def test_the_time_that_memories_age_by_believes_no_step_forward(
    clock: FakeClock, up: list[float]
) -> None:
    steady = JumpTolerantClock(clock, hold=12 * HOUR)

    clock.advance(hours=48)
    up[0] += 60
    assert steady.now() == NOON + timedelta(seconds=60)

    clock.advance(hours=12)
    up[0] += 12 * 3_600
    assert steady.now() == clock.now()


def test_it_follows_the_clock_back_and_through_a_suspended_night(
    clock: FakeClock, up: list[float]
) -> None:
    steady = JumpTolerantClock(clock, hold=12 * HOUR)

    clock.advance(hours=9)
    up[0] += 9 * 3_600
    assert steady.now() == NOON + 9 * HOUR

    clock.advance(hours=-100)
    assert steady.now() == clock.now()


@pytest.mark.usefixtures("up")
def test_a_step_of_the_clock_evicts_nothing_early(lab: Lab) -> None:
    cycle = SleepCycle(
        store=lab.store,
        lease=SummarizerLease(lab.summarizer),
        clock=lab.clock,
        settings=lab.service.settings,
        age_clock=JumpTolerantClock(lab.clock, hold=12 * HOUR),
    )
    lab.put(*trio("a", hours_ago=1))

    lab.clock.advance(days=30)
    slept = cycle.run(CycleRequest(trigger=Trigger.SCHEDULE))

    assert slept.status is CycleStatus.NOTHING_TO_DO
    assert len(working_ids(lab.store)) == 3


MOUSE = {"type": "Battery", "status": "Discharging", "scope": "Device"}


@pytest.mark.parametrize(
    ("online", "status", "others", "drains"),
    [
        ("0", "Discharging", {}, True),
        ("1", "Charging", {"hidpp_battery_0": MOUSE}, False),
        ("0", "Charging", {"hidpp_battery_0": MOUSE}, False),
    ],
    ids=["battery", "charging, a tired mouse", "charging by another cable"],
)
def test_a_machine_that_drains_its_battery_is_on_it(
    tmp_path: Path,
    online: str,
    status: str,
    others: dict[str, dict[str, str]],
    *,
    drains: bool,
) -> None:
    supplies = {
        "AC": {"type": "Mains", "online": online},
        "BAT0": {"type": "Battery", "status": status},
        **others,
    }
    for name, facts in supplies.items():
        (tmp_path / name).mkdir()
        for fact, text in facts.items():
            (tmp_path / name / fact).write_text(f"{text}\n")

    assert is_on_battery(tmp_path) is drains


def test_a_machine_without_supplies_is_on_mains(tmp_path: Path) -> None:
    assert not is_on_battery(tmp_path / "none")
    assert read_machine_state(tmp_path / "none").load >= 0


class Modelled(FakeSummarizer):
    """Says that a model is in force, and counts who asked for the quick way."""

    quickly = 0

    def status(self) -> SummarizerStatus:
        return SummarizerStatus(name=self.name, reason="", state=SummarizerState.MODEL)

    def rule_based(self) -> FakeSummarizer:
        self.quickly += 1
        return FakeSummarizer(name="rules")


@pytest.fixture
def modelled(lab: Lab) -> Modelled:
    summarizer = Modelled()
    lab.cycle.lease.replace(summarizer)
    return summarizer


@pytest.fixture
def background(lab: Lab) -> Sleeper:
    lab.change({"sleep.model_policy": "ac_power"})
    return Sleeper(
        store=lab.store,
        cycle=lab.cycle,
        after_cycle=list,
        machine=lambda: MachineState(on_battery=True, load=0),
    )


def test_on_its_battery_a_cycle_waits_and_says_why(
    lab: Lab, background: Sleeper, modelled: Modelled
) -> None:
    lab.put(*trio("a"))

    assert background.sleep_in_background(Trigger.SCHEDULE) is None
    assert "battery" in background.waits_for
    assert modelled.calls == []


def test_entries_past_the_ttl_are_summarized_by_rule_while_the_model_waits(
    lab: Lab, background: Sleeper, modelled: Modelled
) -> None:
    lab.put(*trio("old", hours_ago=30), *trio("new"))

    slept = background.sleep_in_background(Trigger.SCHEDULE)

    assert slept
    assert (slept.evicted, modelled.calls, modelled.quickly) == (3, [], 1)
    assert lab.store.sleep.log(limit=1)[0].summarizer == "rules"


def test_without_a_model_no_cycle_waits(lab: Lab, background: Sleeper) -> None:
    lab.put(*trio("a"))

    slept = background.sleep_in_background(Trigger.SCHEDULE)

    assert slept
    assert (slept.evicted, background.waits_for) == (3, "")
    assert len(lab.summarizer.calls) == 1


def test_the_counted_source_alone_is_consolidated_and_its_trigger_logged(
    lab: Lab, background: Sleeper
) -> None:
    lab.put(
        *trio("chat", hours_ago=1, source="chat"),
        *trio("mail", hours_ago=1, source="mail"),
    )
    lab.put(memory("now", source="chat"), memory("mail9", hours_ago=1, source="mail"))
    watch = TriggerWatch(
        triggers=lambda: {
            Trigger.COUNT: partial(select_by_count, entries=4, fresh=FRESH),
            Trigger.IDLE: partial(
                select_when_idle, quiet=HOUR, gain_min=1, fresh=FRESH
            ),
        },
        activity=background.activity,
        now=lab.clock.now,
        sleep=background.sleep_in_background,
    )

    assert watch.check() is Trigger.COUNT

    assert sorted(working_ids(lab.store)) == ["chat0", "chat1", "chat2", "now"]
    assert {row.trigger for row in lab.store.sleep.log(limit=9)} == {"count"}


def test_activity_is_told_by_session_and_source(lab: Lab, background: Sleeper) -> None:
    lab.put(
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


@pytest.mark.parametrize(("count", "left"), [(20, 20), (21, 18)])
def test_only_what_exceeds_the_capacity_is_relieved(
    lab: Lab, background: Sleeper, count: int, left: int
) -> None:
    lab.change({"wm_max": 20})
    lab.put(*(memory(f"m{at:02}") for at in range(count)))

    assert background.exceeds_capacity() is (count != left)
    background.consolidate_excess(rules_only=True)

    assert lab.store.memories.working_count() == left


def test_an_assembled_memory_is_relieved_in_the_background(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sleeper, "FIRST_CYCLE_AFTER", HOUR)
    config = config_by_words(
        tmp_path / "memory.db",
        auto_sleep=True,
        wm_max=10,
        sleep=SleepConfig(tick_s=3_600),  # which leaves no time to a trigger
    )
    with open_memory(config) as memory:
        service = memory.service
        service.call(RememberMany([Remember(f"note {at}") for at in range(30)]))

        wait_until(lambda: service.call(Status()).tiers[Tier.WORKING].count <= 10)

        assert service.call(Status()).tiers[Tier.ARCHIVE].count >= 20
