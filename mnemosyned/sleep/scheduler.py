"""The adapter of APScheduler: cycles in the background, one at a time, caught up after suspend."""

from __future__ import annotations

import concurrent.futures
import threading
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Self

from apscheduler.executors.pool import ThreadPoolExecutor
from apscheduler.schedulers.background import BackgroundScheduler
from apscheduler.triggers.cron import CronTrigger
from apscheduler.triggers.interval import IntervalTrigger

from mnemosyned.config import Config
from mnemosyned.errors import (
    ConfigInvalid,
    DatabaseUnreachable,
    MemoryBusy,
    SleepInProgress,
)
from mnemosyned.instants import in_zone, shift
from mnemosyned.logs import log_failure, logger
from mnemosyned.memory.consolidation import CycleReport, Trigger

FIRST_CYCLE_AFTER = timedelta(seconds=60)
"""A cycle missed while the daemon was down is caught up this soon after its start."""
AGAIN_AFTER = timedelta(seconds=60)
"""A scheduled cycle that lost the database is tried again so soon, until one did not."""
JOB = "sleep"

log = logger()


@dataclass(eq=False, kw_only=True)
class SleepScheduler:
    """Background scheduler of cycles (in UTC), trigger checks and the capacity of working memory.

    The schedule is no `SleepTrigger`: it depends on no activity, and APScheduler has the arithmetic
    of cron and of missed times.
    """

    turn_s: float | None = None
    """No other memory waits for a cycle."""

    sleep: Callable[[Trigger], CycleReport | None]
    """Runs a cycle for a trigger."""
    enforce_cap: Callable[[], object]
    """Consolidates what exceeds working memory's capacity; called in a thread."""
    check_triggers: Callable[[], object] | None = None
    tick_s: float = 30.0

    def __post_init__(self) -> None:
        self._stopped = threading.Event()
        # By its own wait, which no step of the wall clock shortens or draws out.
        self._ticker = threading.Thread(target=self._check_repeatedly, name="triggers")
        self._description = "off"
        self._plan: IntervalTrigger | CronTrigger | None = None
        self._cap_asked = threading.Event()
        # Not a job of APScheduler: its thread dies of a job that ends while it is shut down.
        self._cap_executor = concurrent.futures.ThreadPoolExecutor(1, "capacity")
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
        self.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    def start(self) -> None:
        """Start the schedule of cycles, and the checks of the triggers."""
        self._scheduler.start()
        if self.check_triggers:
            self._ticker.start()

    def stop(self) -> None:
        """Stop the schedule, the checks and the capacity's thread; wait for running work."""
        self._stopped.set()
        self._scheduler.shutdown(wait=True)
        if self.check_triggers:
            self._ticker.join()
        self._cap_executor.shutdown(wait=True)

    def set_schedule(self, config: Config) -> None:
        """Apply the schedule in the settings: cron, interval or off. Raises `ConfigInvalid`."""
        cron = config.sleep.cron
        interval = timedelta(minutes=config.sleep.interval_minutes)
        interval_s = interval.total_seconds()
        trigger = (
            cron_trigger(cron)
            if cron
            else IntervalTrigger(seconds=interval_s, timezone=UTC)
        )
        if self._scheduler.get_job(JOB):
            self._scheduler.remove_job(JOB)
        if not config.auto_sleep:
            self._description, self._plan = "off", None
            return
        self._plan = trigger
        if cron:
            self._description = f"cron {cron} (UTC)"
        elif interval_s >= 60:
            self._description = f"every {interval_s / 60:g} minutes"
        else:
            self._description = f"every {interval_s:g} seconds"
        run = self._guard_job(self._sleep_by_schedule)
        first = datetime.now(UTC) + min(interval, FIRST_CYCLE_AFTER)
        self._scheduler.add_job(run, trigger, id=JOB, next_run_time=first)

    def enforce_cap_soon(self) -> None:
        """Queue a call of `enforce_cap` in a background thread, unless one is queued."""

        def enforce_once() -> None:  # once more if asked meanwhile: that run sees more
            """Enforce the capacity; another request from now on queues another run."""
            self._cap_asked.clear()
            self.enforce_cap()

        if not self._cap_asked.is_set():
            self._cap_asked.set()
            with suppress(
                RuntimeError
            ):  # shut down: the memory was kept, the cap can wait
                self._cap_executor.submit(self._guard_job(enforce_once))

    def wake(self) -> None:
        """Reckon the next cycle again after the wall clock has jumped, also back, as after suspend."""
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
        """The schedule in words: "off", "every 30 minutes" or "cron 0 3 * * * (UTC)"."""
        return self._description

    @property
    def next_cycle(self) -> datetime | None:
        """Time of the next scheduled cycle; None without a schedule."""
        job = self._scheduler.get_job(JOB)
        due: datetime | None = job.next_run_time if job else None
        return in_zone(due, UTC) if due else None

    def _check_repeatedly(self) -> None:
        """Check the triggers every `tick_s` until the scheduler stops."""
        if self.check_triggers is None:
            return
        check = self._guard_job(self.check_triggers)
        while not self._stopped.wait(self.tick_s):
            check()

    def _sleep_by_schedule(self) -> None:
        """Run a scheduled cycle; retry soon if it had a problem or the database was unreachable."""
        try:
            report = self.sleep(Trigger.SCHEDULE)
        except (DatabaseUnreachable, MemoryBusy):
            self._retry_soon()
            raise
        if report and report.problem:
            self._retry_soon()

    def _retry_soon(self) -> None:
        """Move the next scheduled cycle forward to `AGAIN_AFTER` from now, if that is earlier."""
        job, soon = self._scheduler.get_job(JOB), datetime.now(UTC) + AGAIN_AFTER
        if job and job.next_run_time > soon:
            job.modify(next_run_time=soon)

    @staticmethod
    def _guard_job(job: Callable[[], object]) -> Callable[[], None]:
        """Return a function that calls `job` and logs errors, so that the schedule goes on."""

        def run() -> None:
            """Run the job and log its errors."""
            try:
                job()
            except SleepInProgress:
                log.info("cycle_skipped", reason="another is running")
            except Exception as error:  # noqa: BLE001 a boundary: it is logged
                log_failure("cycle_failed", error)

        return run


def cron_trigger(fields: str, *, key: str = "sleep.cron") -> CronTrigger:
    """Return the trigger of five cron fields in UTC. Raises `ConfigInvalid`, which names `key`."""
    try:
        return CronTrigger.from_crontab(fields, timezone=UTC)
    except ValueError as error:
        raise ConfigInvalid(f"{key}: {error}; it says {fields!r}", field=key) from error


def cron_times(fields: str, *, after: datetime) -> tuple[datetime, datetime]:
    """Return the next two times after `after` of five valid cron fields, in UTC."""
    trigger = cron_trigger(fields)
    first = trigger.get_next_fire_time(after, after) or after
    second = trigger.get_next_fire_time(first, shift(first, timedelta(seconds=1)))
    return first, second or first
