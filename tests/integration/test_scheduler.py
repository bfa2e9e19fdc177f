"""Cycles in the background: on time, one at a time, and never ended by one that fails."""

import logging
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from support.fakes import NOON, FakeClock

from mnemosyned.assembly.build import open_memory
from mnemosyned.config import Config, SleepConfig, load_config
from mnemosyned.errors import (
    ConfigInvalid,
    DatabaseUnreachable,
    SleepInProgress,
    StorageFailed,
)
from mnemosyned.memory.consolidation import Trigger
from mnemosyned.memory.values import Tier
from mnemosyned.sleep import scheduler as scheduler_module
from mnemosyned.sleep.scheduler import SleepScheduler
from mnemosyned.sleep.sleeper import final_consolidation
from mnemosyned.verbs.memories import Remember, RememberMany
from mnemosyned.verbs.upkeep import Log, Status

SOON = timedelta(milliseconds=20)
HOUR = timedelta(hours=1)
WAIT_S = 10


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
    nights: Nights, relieve: Callable[[], object] = lambda: None
) -> Iterator[SleepScheduler]:
    with SleepScheduler(sleep=nights.sleep, enforce_cap=relieve) as scheduler:
        yield scheduler


def schedule(*, auto: bool, interval: timedelta, cron: str | None) -> Config:
    minutes = interval.total_seconds() / 60
    sleep = SleepConfig(interval_minutes=minutes, cron=cron)
    return Config(auto_sleep=auto, sleep=sleep)


# ------------------------------------------------------------------ schedule


def test_cycles_run_again_and_again_in_the_background() -> None:
    nights = Nights()

    with running(nights) as scheduler:
        scheduler.set_schedule(schedule(auto=True, interval=SOON, cron=None))
        nights.wait(3)

    assert set(nights.triggers) == {Trigger.SCHEDULE}


@pytest.mark.parametrize("error", [RuntimeError("bug"), StorageFailed("disk full")])
def test_a_cycle_that_raises_is_logged_and_the_schedule_goes_on(
    error: Exception, caplog: pytest.LogCaptureFixture
) -> None:
    def fail() -> None:
        raise error

    nights = Nights(fail)

    with running(nights) as scheduler:
        scheduler.set_schedule(schedule(auto=True, interval=SOON, cron=None))
        nights.wait(3)

    failures = [record for record in caplog.records if record.message == "cycle_failed"]
    assert len(failures) >= 2
    assert failures[0].exc_info


def test_a_cycle_that_loses_the_database_is_soon_tried_again(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(scheduler_module, "FIRST_CYCLE_AFTER", SOON)
    monkeypatch.setattr(scheduler_module, "AGAIN_AFTER", SOON)

    def fail() -> None:
        raise DatabaseUnreachable("the server is down")

    nights = Nights(fail)

    with running(nights) as scheduler:
        scheduler.set_schedule(schedule(auto=True, interval=HOUR, cron=None))
        nights.wait(3)

    failures = [record for record in caplog.records if record.message == "cycle_failed"]
    assert len(failures) >= 2
    assert not any(record.exc_info for record in failures)


def test_a_cycle_that_finds_another_running_is_no_failure(
    caplog: pytest.LogCaptureFixture,
) -> None:
    def refuse() -> None:
        raise SleepInProgress("another")

    nights = Nights(refuse)

    with running(nights) as scheduler:
        scheduler.set_schedule(schedule(auto=True, interval=SOON, cron=None))
        nights.wait(2)

    assert [
        record for record in caplog.records if record.levelno >= logging.ERROR
    ] == []


def test_a_scheduled_cycle_never_overlaps_the_one_before() -> None:
    at_once: list[int] = []
    inside = threading.Semaphore(1)
    go_on = threading.Event()

    def linger() -> None:
        at_once.append(inside.acquire(blocking=False))
        go_on.wait(0.1)
        inside.release()

    nights = Nights(linger)
    with running(nights) as scheduler:
        scheduler.set_schedule(schedule(auto=True, interval=SOON, cron=None))
        nights.wait(3)
        go_on.set()

    assert all(at_once)


def test_switched_off_nothing_is_planned() -> None:
    with running(Nights()) as scheduler:
        scheduler.set_schedule(schedule(auto=False, interval=SOON, cron=None))

        assert (scheduler.next_cycle, scheduler.description) == (None, "off")


def test_a_schedule_can_be_switched_off_and_on_again() -> None:
    nights = Nights()

    with running(nights) as scheduler:
        scheduler.set_schedule(schedule(auto=True, interval=HOUR, cron=None))
        scheduler.set_schedule(schedule(auto=False, interval=HOUR, cron=None))
        assert scheduler.next_cycle is None
        scheduler.set_schedule(schedule(auto=True, interval=SOON, cron=None))
        nights.wait()


@pytest.mark.parametrize(
    ("interval", "words"),
    [
        (timedelta(minutes=60), "every 60 minutes"),
        (timedelta(minutes=1.5), "every 1.5 minutes"),
        (timedelta(seconds=30), "every 30 seconds"),
    ],
)
def test_a_schedule_is_told_in_words(interval: timedelta, words: str) -> None:
    with running(Nights()) as scheduler:
        scheduler.set_schedule(schedule(auto=True, interval=interval, cron=None))

        assert scheduler.description == words


def test_the_first_cycle_comes_within_a_minute_of_the_start() -> None:
    with running(Nights()) as scheduler:
        scheduler.set_schedule(schedule(auto=True, interval=HOUR, cron=None))

        due = scheduler.next_cycle

    assert due
    assert due.utcoffset() == timedelta()
    assert timedelta() < due - datetime.now(UTC) <= timedelta(minutes=1)


def test_cron_times_are_utc() -> None:
    nights = Nights()
    with running(nights) as scheduler:
        scheduler.set_schedule(schedule(auto=True, interval=SOON, cron="30 3 * * *"))
        nights.wait()

        due = scheduler.next_cycle

        assert scheduler.description == "cron 30 3 * * * (UTC)"
    assert due
    assert due.utcoffset() == timedelta()
    assert (due.hour, due.minute) == (3, 30)
    assert timedelta() < due - datetime.now(UTC) <= timedelta(days=1)


@pytest.mark.parametrize(
    "cron", ["99 * * * *", "a b c d e", "* * * * * *", "*/0 * * * *"]
)
def test_a_refused_schedule_leaves_the_earlier_one_in_force(cron: str) -> None:
    with running(Nights()) as scheduler:
        scheduler.set_schedule(schedule(auto=True, interval=HOUR, cron=None))

        with pytest.raises(ConfigInvalid, match=r"sleep\.cron"):
            scheduler.set_schedule(schedule(auto=True, interval=SOON, cron=cron))

        assert scheduler.description == "every 60 minutes"
        assert scheduler.next_cycle is not None


# -------------------------------------------------------------------- relief


def test_relief_runs_in_the_background_at_once() -> None:
    came = threading.Event()

    with running(Nights(), came.set) as scheduler:
        scheduler.enforce_cap_soon()

        assert came.wait(WAIT_S)


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

    with running(Nights(), relieve) as scheduler:
        for _ in range(3):
            for _ in range(30):
                scheduler.enforce_cap_soon()
            assert came.acquire(timeout=WAIT_S)

    assert all(alone)
    assert [
        record for record in caplog.records if record.levelno >= logging.WARNING
    ] == []


def test_relief_that_raises_is_logged_and_the_next_one_runs(
    caplog: pytest.LogCaptureFixture,
) -> None:
    came = threading.Semaphore(0)

    def fail() -> None:
        came.release()
        raise StorageFailed("disk full")

    with running(Nights(), fail) as scheduler:
        for _ in range(2):
            scheduler.enforce_cap_soon()
            assert came.acquire(timeout=WAIT_S)

    assert [record.message for record in caplog.records] == ["cycle_failed"] * 2


# -------------------------------------------------------------- as assembled


@pytest.fixture
def config(tmp_path: Path) -> Config:
    return Config(
        auto_sleep=True,
        wm_max=10,
        database=str(tmp_path / "memory.db"),
        sleep=SleepConfig(interval_minutes=0.01),
    )


def test_an_assembled_memory_sleeps_by_itself(config: Config) -> None:
    with open_memory(config, clock=FakeClock()) as memory:
        old = NOON - timedelta(hours=13)
        memory.service.call(
            RememberMany([Remember(f"note {at}", created_at=old) for at in range(3)])
        )

        _until(lambda: memory.service.call(Log()).rows)

        status = memory.service.call(Status())
        assert (status.sleep.auto, status.sleep.schedule) == (True, "every 0.6 seconds")
        assert status.tiers[Tier.ARCHIVE].count == 3
        assert memory.service.call(Log()).rows[0].trigger == "schedule"


def test_an_assembled_memory_is_relieved_in_the_background(config: Config) -> None:
    with open_memory(config) as memory:
        memory.service.call(RememberMany([Remember(f"note {at}") for at in range(30)]))

        _until(lambda: memory.service.call(Status()).tiers[Tier.WORKING].count <= 10)

        assert memory.service.call(Status()).tiers[Tier.ARCHIVE].count >= 20


def test_the_final_consolidation_keeps_the_age_rule(config: Config) -> None:
    with open_memory(
        load_config(environ={}, overrides={"database": config.database}),
        clock=FakeClock(),
    ) as memory:
        old, fresh = NOON - timedelta(hours=13), NOON - timedelta(hours=1)
        memory.service.call(
            RememberMany([Remember(f"note {at}", created_at=old) for at in range(3)])
        )
        memory.service.call(Remember("fresh", created_at=fresh))

        report = final_consolidation(
            memory.sleeper.cycle,
            deadline_s=config.sleep.shutdown_deadline_s,
            keep_going=lambda: True,
        )

        assert (report.trigger, report.evicted) == (Trigger.SHUTDOWN, 3)
        assert memory.service.call(Status()).tiers[Tier.WORKING].count == 1


def _until(condition: Callable[[], object]) -> None:
    for _ in range(500):
        if condition():
            return
        threading.Event().wait(0.02)
    pytest.fail("it never came")
