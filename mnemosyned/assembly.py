"""The one place where parts meet: a memory, opened for the daemon or for a program of its own."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path

from tzlocal import get_localzone

from mnemosyned import __version__
from mnemosyned.config import Config
from mnemosyned.domain.consolidation import CycleReport, GroupLimits, Trigger
from mnemosyned.domain.ports import Clock, Summarizer
from mnemosyned.paths import shipped
from mnemosyned.service import About, Limits, MemoryService, SystemClock
from mnemosyned.sleep.cycle import SleepCycle, SleepPolicy
from mnemosyned.sleep.scheduler import SleepScheduler, cron_trigger
from mnemosyned.storage.sqlite import open_store
from mnemosyned.summarizers.sharing import SharingSummarizer


@dataclass(frozen=True, slots=True)
class OpenMemory:
    """The parts in force while a memory is open."""

    service: MemoryService
    cycle: SleepCycle
    scheduler: SleepScheduler | None

    def reconfigure(self, config: Config) -> None:
        """Take over the settings that need no restart. Raises `ConfigInvalid`."""
        if self.scheduler:
            _schedule(self.scheduler, config)
        self.cycle.policy = _policy(config)
        self.cycle.summarizer = _summarizer(config)
        self.service.use_limits(_limits(config))


@contextmanager
def open_memory(
    config: Config, *, clock: Clock | None = None, socket: Path | None = None
) -> Iterator[OpenMemory]:
    """Open the database and start what runs in the background; close all of it in the end.

    `socket` is where the caller will serve the verbs; without one the memory is embedded, and
    has a background thread only with `auto_sleep`. Raises `DatabaseInUse` and `SchemaTooNew`.
    """
    database = config.database_path
    clock = clock or SystemClock()
    with open_store(database, migrations=shipped("migrations"), socket=socket) as store:
        cycle = SleepCycle(
            store=store,
            summarizer=_summarizer(config),
            clock=clock,
            policy=_policy(config),
        )
        service = MemoryService(
            store=store,
            cycle=cycle,
            clock=clock,
            limits=_limits(config),
            about=About(
                version=__version__,
                database=database,
                schema_version=store.schema_version,
            ),
        )
        if socket is None and not config.auto_sleep:
            yield OpenMemory(service, cycle, None)
            return
        scheduler = SleepScheduler(
            sleep=lambda trigger: cycle.run(trigger=trigger), relieve=service.relieve
        )
        _schedule(scheduler, config)
        with scheduler:
            service.use_scheduler(scheduler)
            try:
                yield OpenMemory(service, cycle, scheduler)
            finally:
                cycle.interrupt()


def check_schedule(config: Config) -> None:
    """Hold the schedule to the scheduler's own rules. Raises `ConfigInvalid`."""
    if config.sleep.cron:
        cron_trigger(config.sleep.cron)


def final_consolidation(
    memory: OpenMemory, config: Config, *, go_on: Callable[[], bool]
) -> CycleReport:
    """The cycle at the end: the age rule holds, the deadline cuts it short between two groups."""
    memory.cycle.interrupt()
    return memory.cycle.run(
        trigger=Trigger.SHUTDOWN,
        deadline_s=config.sleep.shutdown_deadline_s,
        go_on=go_on,
    )


def _summarizer(config: Config) -> Summarizer:
    # Its owner's "yesterday" is a day of the owner's calendar.
    return SharingSummarizer(ratio=config.sleep.summary_ratio, zone=get_localzone())


def _policy(config: Config) -> SleepPolicy:
    sleep = config.sleep
    return SleepPolicy(
        ttl=timedelta(hours=sleep.ttl_hours),
        groups=GroupLimits(
            entries_max=sleep.group_entries_max,
            chars_max=sleep.group_chars_max,
            pause=timedelta(hours=sleep.group_pause_hours),
        ),
    )


def _limits(config: Config) -> Limits:
    return Limits(content_bytes_max=config.limits.content_bytes_max, wm_max=config.wm_max)


def _schedule(scheduler: SleepScheduler, config: Config) -> None:
    scheduler.set_schedule(
        auto=config.auto_sleep,
        interval=timedelta(minutes=config.sleep.interval_minutes),
        cron=config.sleep.cron,
    )
