"""The one door to APScheduler: cycles in the background, one at a time, caught up after suspend."""

from __future__ import annotations

import concurrent.futures
import threading
from collections.abc import Callable
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from typing import Self

from apscheduler.executors.pool import ThreadPoolExecutor
from apscheduler.schedulers.background import BackgroundScheduler
from apscheduler.triggers.cron import CronTrigger
from apscheduler.triggers.interval import IntervalTrigger

from mnemosyned.domain.consolidation import Trigger
from mnemosyned.domain.errors import ConfigInvalid, SleepInProgress
from mnemosyned.domain.instants import in_zone, shift
from mnemosyned.logs import logger

FIRST_CYCLE_AFTER = timedelta(seconds=60)
"""A cycle missed while the daemon was down is caught up this soon after its start."""
JOB = "sleep"
TICK_S = 30.0
"""How often the triggers are looked at."""

log = logger()


class SleepScheduler:
    """Runs `sleep` on an interval or by cron, in UTC, and `relieve` when asked to.

    The timetable is the one trigger without a `due(activity, now)`: it looks at nothing that goes
    on, and APScheduler knows the arithmetic of cron and of times that were missed.
    """

    def __init__(
        self,
        *,
        sleep: Callable[[Trigger], object],
        relieve: Callable[[], object],
        look: Callable[[], object] | None = None,
        tick_s: float = TICK_S,
    ) -> None:
        self._sleep = sleep
        self._relieve = relieve
        self._look = look
        self._tick_s = tick_s
        self._stopped = threading.Event()
        # By its own wait, which no step of the wall clock shortens or draws out.
        self._ticker = threading.Thread(target=self._tick, name="triggers")
        self._description = "off"
        self._plan: IntervalTrigger | CronTrigger | None = None
        self._relief_asked = threading.Event()
        # Not a job of APScheduler: its thread dies of a job that ends while it is shut down.
        self._relief = concurrent.futures.ThreadPoolExecutor(1, "relief")
        self._scheduler = BackgroundScheduler(
            timezone=UTC,
            executors={"default": ThreadPoolExecutor(1)},
            job_defaults={
                "coalesce": True,
                "max_instances": 1,
                "misfire_grace_time": None,
            },
        )

    def __enter__(self) -> Self:
        self._scheduler.start()
        if self._look:
            self._ticker.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stopped.set()
        self._scheduler.shutdown(wait=True)
        if self._look:
            self._ticker.join()
        self._relief.shutdown(wait=True)

    def set_schedule(
        self, *, auto: bool, interval: timedelta, cron: str | None
    ) -> None:
        """Take over a schedule, in place of an earlier one. Raises `ConfigInvalid`."""
        trigger = cron_trigger(cron) if cron else _every(interval)
        if self._scheduler.get_job(JOB):
            self._scheduler.remove_job(JOB)
        if not auto:
            self._description, self._plan = "off", None
            return
        self._plan = trigger
        self._description = (
            f"cron {cron} (UTC)" if cron else f"every {_readable(interval)}"
        )
        first = datetime.now(UTC) + min(interval, FIRST_CYCLE_AFTER)
        self._scheduler.add_job(self._run, trigger, id=JOB, next_run_time=first)

    def relieve_soon(self) -> None:
        """Have working memory brought under its cap in the background, now."""
        if not self._relief_asked.is_set():
            self._relief_asked.set()
            with suppress(
                RuntimeError
            ):  # shut down: the memory was kept, the cap can wait
                self._relief.submit(self._guarded(self._relieve_once))

    def _relieve_once(self) -> None:
        """Whoever asks while one runs gets one more, which sees what that one did not."""
        self._relief_asked.clear()
        self._relieve()

    def wake(self) -> None:
        """Look at the wall clock again: after suspend a timed wait has lost its measure.

        Where the clock was set back, the next cycle does not wait for it to come round again.
        """
        job, plan = self._scheduler.get_job(JOB), self._plan
        if job and plan:
            now = datetime.now(UTC)
            latest = plan.get_next_fire_time(None, now)
            if isinstance(plan, IntervalTrigger):
                latest = shift(now, plan.interval)
            if latest and job.next_run_time > latest:
                job.modify(next_run_time=latest)
        self._scheduler.wakeup()

    @property
    def description(self) -> str:
        """The schedule in words."""
        return self._description

    @property
    def next_cycle(self) -> datetime | None:
        """When the next scheduled cycle starts, None where there is none."""
        job = self._scheduler.get_job(JOB)
        due: datetime | None = job.next_run_time if job else None
        return in_zone(due, UTC) if due else None

    def _tick(self) -> None:
        """Have the triggers looked at until the end, one look after the other."""
        look = self._guarded(self._look) if self._look else None
        while look and not self._stopped.wait(self._tick_s):
            look()

    def _run(self) -> None:
        self._guarded(lambda: self._sleep(Trigger.SCHEDULE))()

    @staticmethod
    def _guarded(job: Callable[[], object]) -> Callable[[], None]:
        """A scheduled job is a boundary: what it raises is logged and the schedule goes on."""

        def run() -> None:
            try:
                job()
            except SleepInProgress:
                log.info("cycle_skipped", reason="another is running")
            except Exception:
                log.exception("cycle_failed")

        return run


def cron_trigger(fields: str) -> CronTrigger:
    """A schedule from five fields, in UTC. Raises `ConfigInvalid`."""
    try:
        return CronTrigger.from_crontab(fields, timezone=UTC)
    except ValueError as error:
        raise ConfigInvalid(
            f"sleep.cron: {error}; it says {fields!r}", field="sleep.cron"
        ) from error


def _every(interval: timedelta) -> IntervalTrigger:
    return IntervalTrigger(seconds=interval.total_seconds(), timezone=UTC)


def _readable(interval: timedelta) -> str:
    minutes = interval.total_seconds() / 60
    return (
        f"{minutes:g} minutes"
        if minutes >= 1
        else f"{interval.total_seconds():g} seconds"
    )
