"""The one door to APScheduler: cycles in the background, one at a time, caught up after suspend."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Self

from apscheduler.executors.pool import ThreadPoolExecutor
from apscheduler.schedulers.background import BackgroundScheduler
from apscheduler.triggers.cron import CronTrigger
from apscheduler.triggers.interval import IntervalTrigger

from mnemosyned.domain.consolidation import Trigger
from mnemosyned.domain.errors import ConfigInvalid, SleepInProgress
from mnemosyned.logs import logger

FIRST_CYCLE_AFTER = timedelta(seconds=60)
"""A cycle missed while the daemon was down is caught up this soon after its start."""
JOB = "sleep"
RELIEF = "relief"

log = logger()


class SleepScheduler:
    """Runs `sleep` on an interval or by cron, in UTC, and `relieve` when asked to."""

    def __init__(
        self, *, sleep: Callable[[Trigger], object], relieve: Callable[[], object]
    ) -> None:
        self._sleep = sleep
        self._relieve = relieve
        self._description = "off"
        self._scheduler = BackgroundScheduler(
            timezone=UTC,
            executors={"default": ThreadPoolExecutor(2)},
            job_defaults={"coalesce": True, "max_instances": 1, "misfire_grace_time": None},
        )

    def __enter__(self) -> Self:
        self._scheduler.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._scheduler.shutdown(wait=True)

    def set_schedule(self, *, auto: bool, interval: timedelta, cron: str | None) -> None:
        """Take over a schedule, in place of an earlier one. Raises `ConfigInvalid`."""
        if self._scheduler.get_job(JOB):
            self._scheduler.remove_job(JOB)
        if not auto:
            self._description = "off"
            return
        if cron:
            try:
                trigger = CronTrigger.from_crontab(cron, timezone=UTC)
            except ValueError as error:
                raise ConfigInvalid(f"sleep.cron: {error}; it says {cron!r}") from error
            self._description = f"cron {cron} (UTC)"
        else:
            trigger = IntervalTrigger(seconds=interval.total_seconds(), timezone=UTC)
            self._description = f"every {_readable(interval)}"
        first = datetime.now(UTC) + min(interval, FIRST_CYCLE_AFTER)
        self._scheduler.add_job(self._run, trigger, id=JOB, next_run_time=first)

    def relieve_soon(self) -> None:
        """Have working memory brought under its cap in the background, now."""
        self._scheduler.add_job(self._guarded(self._relieve), id=RELIEF, replace_existing=True)

    def wake(self) -> None:
        """Look at the wall clock again: after suspend a timed wait has lost its measure."""
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
        return due.astimezone(UTC) if due else None

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


def _readable(interval: timedelta) -> str:
    minutes = interval.total_seconds() / 60
    return f"{minutes:g} minutes" if minutes >= 1 else f"{interval.total_seconds():g} seconds"
