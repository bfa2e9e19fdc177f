"""Starts of cycles: by schedule, by trigger, at the capacity of working memory, and at shutdown."""

from __future__ import annotations

import concurrent.futures
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from typing import Self

from apscheduler.executors.pool import ThreadPoolExecutor
from apscheduler.schedulers.background import BackgroundScheduler
from apscheduler.triggers.cron import CronTrigger
from apscheduler.triggers.interval import IntervalTrigger

from mnemosyned import errors
from mnemosyned.config.settings import Config
from mnemosyned.instants import in_zone, shift
from mnemosyned.logs import log_failure, logger
from mnemosyned.memory.consolidation import (
    CycleReport,
    Selection,
    Trigger,
    WorkingActivity,
)
from mnemosyned.memory.ports import MemoryStore
from mnemosyned.sleep import context, triggers
from mnemosyned.sleep.cycle import SleepCycle
from mnemosyned.verbs.upkeep import SleepStatus

FIRST_CYCLE_AFTER = timedelta(seconds=60)
"""Delay, after the daemon's start, of a cycle that was missed while it was down."""
AGAIN_AFTER = timedelta(seconds=60)
"""Delay before a scheduled cycle that lost the database is tried again."""
JOB = "sleep"

log = logger()


@dataclass(eq=False, kw_only=True)
class SleepScheduler:
    """Background scheduler of cycles (in UTC), trigger checks and the capacity of working memory.

    The schedule is no `SleepTrigger`: it depends on no activity, and APScheduler has the arithmetic
    of cron and of missed times.
    """

    sleep: Callable[[Trigger], CycleReport | None]
    """Runs a cycle for a trigger."""
    enforce_cap: Callable[[], object]
    """Consolidates what exceeds working memory's capacity; called in a thread."""
    check_triggers: Callable[[], object]
    tick_s: float = 30.0

    def __post_init__(self) -> None:
        self._stopped = threading.Event()
        # By its own wait, which no step of the wall clock shortens or draws out.
        self._ticker = threading.Thread(
            target=self._check_triggers_repeatedly, name="triggers", daemon=True
        )
        self.description = "off"
        """The schedule in words: "off", "every 30 minutes" or "cron 0 3 * * * (UTC)"."""
        self._cap_asked = threading.Event()
        # Not a job of APScheduler: its thread dies of a job that ends while it is shut down.
        self._cap_executor = concurrent.futures.ThreadPoolExecutor(1, "capacity")
        self._executor = ThreadPoolExecutor(1)
        self._scheduler = BackgroundScheduler(
            timezone=UTC,
            executors={"default": self._executor},
            job_defaults={
                "coalesce": True,
                "max_instances": 1,
                "misfire_grace_time": None,
            },
        )

    def start(self) -> None:
        """Start the schedule of cycles, and the checks of the triggers."""
        self._scheduler.start()
        self._ticker.start()

    def stop(self) -> None:
        """Stop the schedule, the checks and the thread that enforces the capacity; wait for running work."""
        self._stopped.set()
        self._scheduler.shutdown(wait=False)
        # Not while APScheduler has its lock, for which a cycle that failed waits.
        self._executor.shutdown(wait=True)
        self._ticker.join()
        self._cap_executor.shutdown(wait=True)

    def set_schedule(self, config: Config) -> None:
        """Apply the schedule in the settings: cron, interval or off. Raises `ConfigInvalid`."""
        cron = config.sleep.cron
        interval_s = config.sleep.interval_minutes * 60
        trigger = (
            cron_trigger(cron)
            if cron
            else IntervalTrigger(seconds=interval_s, timezone=UTC)
        )
        if self._scheduler.get_job(JOB):
            self._scheduler.remove_job(JOB)
        if not config.auto_sleep:
            self.description = "off"
            return
        if cron:
            self.description = f"cron {cron} (UTC)"
        elif interval_s >= 60:
            self.description = f"every {interval_s / 60:g} minutes"
        else:
            self.description = f"every {interval_s:g} seconds"
        run = self._guard_job(self._sleep_by_schedule)
        first = datetime.now(UTC) + min(
            timedelta(seconds=interval_s), FIRST_CYCLE_AFTER
        )
        self._scheduler.add_job(run, trigger, id=JOB, next_run_time=first)

    def enforce_cap_soon(self) -> None:
        """Queue a call of `enforce_cap` in a background thread, unless one is queued already."""

        def enforce_once() -> None:  # once more if asked meanwhile: that run sees more
            """Enforce the capacity; another request from now on queues another run."""
            self._cap_asked.clear()
            self.enforce_cap()

        if not self._cap_asked.is_set():
            self._cap_asked.set()
            # After the shutdown: the memory was kept, the cap can wait.
            with suppress(RuntimeError):
                self._cap_executor.submit(self._guard_job(enforce_once))

    def wake(self) -> None:
        """Run a missed cycle, or move the next one forward, after the wall clock has jumped."""
        if job := self._scheduler.get_job(JOB):
            plan, now = job.trigger, datetime.now(UTC)
            latest = plan.get_next_fire_time(None, now)
            if isinstance(plan, IntervalTrigger):
                latest = shift(now, plan.interval)
            if latest and job.next_run_time > latest:
                job.modify(next_run_time=latest)
        self._scheduler.wakeup()

    @property
    def next_cycle(self) -> datetime | None:
        """Time of the next scheduled cycle; None without a schedule."""
        job = self._scheduler.get_job(JOB)
        due: datetime | None = job.next_run_time if job else None
        return in_zone(due, UTC) if due else None

    def _check_triggers_repeatedly(self) -> None:
        """Check the triggers of sleep cycles again and again, until the scheduler stops."""
        check = self._guard_job(self.check_triggers)
        while not self._stopped.wait(self.tick_s):
            check()

    def _sleep_by_schedule(self) -> None:
        """Run a scheduled cycle; retry soon if it had a problem or the database was unreachable."""
        try:
            report = self.sleep(Trigger.SCHEDULE)
        except (errors.DatabaseUnreachable, errors.MemoryBusy):
            self._retry_soon()
            raise
        if report and report.problem and not report.failed:
            self._retry_soon()

    def _retry_soon(self) -> None:
        """Set the next scheduled cycle to `AGAIN_AFTER` from now, unless it comes earlier anyway."""
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
            except errors.SleepInProgress:
                log.info("cycle_skipped", reason="another is running")
            except Exception as error:  # noqa: BLE001 a boundary: it is logged
                log_failure("cycle_failed", error)

        return run


def cron_trigger(fields: str, *, key: str = "sleep.cron") -> CronTrigger:
    """Return the trigger of five cron fields in UTC. Raises `ConfigInvalid`, which names `key`."""
    try:
        return CronTrigger.from_crontab(fields, timezone=UTC)
    except ValueError as error:
        raise errors.ConfigInvalid(
            f"{key}: {error}; it says {fields!r}", field=key
        ) from error


RULES_S = 60.0
"""Seconds reserved for the extractive summarizer. A model gets what the deadline leaves beyond them: by default
nothing."""
MARGIN = 2
"""A model is used only if the time left is this many times what it needs by its pace in the log."""
POLL_S = 0.2


def final_consolidation(
    cycle: SleepCycle, *, deadline_s: float, keep_going: Callable[[], bool]
) -> CycleReport:
    """Run the last cycle before the program ends, within `deadline_s`, and return its report.

    The usual age of memories applies, and the deadline ends the cycle between two groups. A summary that a
    model is writing is abandoned. If the deadline leaves ample time, a model writes summaries until its time
    is up or `keep_going` returns False; the extractive summarizer does the rest. Pruning and purging, whose
    time cannot be known, wait for the first cycle after the next start.
    """
    ends = time.monotonic() + deadline_s
    cycle.lease.interrupt()
    model_s = 0.0
    if deadline_s > RULES_S:
        cycle.lease.wait_idle(deadline_s - RULES_S)
        model_s = ends - time.monotonic() - RULES_S
    use_model = False
    if model_s > 0 and not cycle.lease.is_lent:
        cycle.lease.current.resume()
        due = cycle.preview(context.CycleRequest(trigger=Trigger.SHUTDOWN))
        use_model = due.model_s is not None and due.model_s * MARGIN <= model_s
    request = context.CycleRequest(
        trigger=Trigger.SHUTDOWN,
        rules_only=not use_model,
        deadline_s=max(0.0, ends - time.monotonic()),
        keep_going=keep_going,
    )
    if not use_model:
        return cycle.run(request)
    with _interrupt_model_after(cycle.lease, model_s, keep_going):
        return cycle.run(request)


@contextmanager
def _interrupt_model_after(
    lease: context.SummarizerLease, seconds: float, keep_going: Callable[[], bool]
) -> Iterator[None]:
    """Interrupt the model during the block, after `seconds` or when `keep_going` returns False."""
    over = threading.Event()
    ends = time.monotonic() + seconds

    def watch() -> None:
        """Interrupt the model when the time is up or `keep_going` returns False, unless the block has ended."""
        while not over.wait(POLL_S):
            if time.monotonic() >= ends or not keep_going():
                lease.interrupt()
                return

    watching = threading.Thread(target=watch, name="last-model")
    watching.start()
    try:
        yield
    finally:
        over.set()
        watching.join()


ROWS_MAX = 50_000
"""Number of memories that the triggers look at; with more in working memory, a trigger is due anyway."""


WAIT_S = 600.0
"""Seconds to wait for a running cycle before the capacity is enforced; then it is left to the next call."""
ROUNDS_MAX = 100


@dataclass(frozen=True, slots=True)
class SleepHost:
    """Starter of a memory's background cycles: its own scheduler, or one shared by many memories."""

    scheduler: SleepScheduler
    enforce_cap_soon: Callable[[], object]
    """Has memories over working memory's capacity consolidated soon, in the background."""
    turn_s: float | None = None
    """Seconds after which a background cycle gives way to other memories; None: never."""


@dataclass(eq=False, kw_only=True)
class Sleeper:
    """Runs cycles on request, by schedule or trigger, and when working memory is full; safe from any thread."""

    store: MemoryStore
    cycle: SleepCycle
    after_cycle: Callable[[], object]
    """Called when a cycle is over, in the thread that ran it."""
    chores: Sequence[Callable[[], object]] = ()
    """Called with each check of the triggers."""
    in_background: bool = False
    """Whether cycles run by a schedule and triggers here."""
    host: SleepHost | None = None
    """Runs them instead; its own where they run here. Without one, who exceeds the capacity waits."""
    machine: Callable[[], triggers.MachineState] = triggers.read_machine_state
    """Returns load and power supply."""

    def __post_init__(self) -> None:
        self.waits_for = ""
        """Why the last background cycle was put off; empty if it was not."""
        self._watch = triggers.TriggerWatch(
            triggers=lambda: triggers.make_triggers(self.cycle.settings.config),
            activity=self.activity,
            now=self.cycle.now,
            sleep=self.sleep_in_background,
        )
        self._enforcing = threading.Lock()
        self._raised: tuple[int, int] | None = None
        """A capacity that could not be enforced, and the size from which on to try again."""
        self._postponed_until = 0.0
        """Until then no cycle starts by schedule, trigger or capacity, by the monotonic clock."""
        self.changed_at = time.monotonic()
        """When memories were last stored or changed, by the monotonic clock."""
        self._scheduler = (
            SleepScheduler(
                sleep=self.sleep_in_background,
                enforce_cap=self.enforce_cap_now,
                check_triggers=self.check_triggers,
                tick_s=self.cycle.settings.config.sleep.tick_s,
            )
            if self.in_background
            else None
        )
        if self._scheduler:
            self.host = SleepHost(self._scheduler, self._scheduler.enforce_cap_soon)

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    def start(self) -> None:
        """Start the schedule and the triggers, if this object has a scheduler. Raises `ConfigInvalid`."""
        self.reschedule()
        if self._scheduler:
            self._scheduler.start()

    def stop(self) -> None:
        """Stop the scheduler, if there is one; wait until the running cycle ends after its present group."""
        if self._scheduler:
            self.cycle.lease.interrupt()
            self._scheduler.stop()

    def reschedule(self) -> None:
        """Apply the schedule in the present settings to the scheduler, if any. Raises `ConfigInvalid`."""
        if self._scheduler:
            self._scheduler.set_schedule(self.cycle.settings.config)

    def wake(self) -> None:
        """Correct the time of the scheduler's next cycle, if there is one, after a jump of the wall clock."""
        if self._scheduler:
            self._scheduler.wake()

    def sleep(self, request: context.CycleRequest) -> CycleReport:
        """Run a cycle and `after_cycle` for a waiting caller; return the report. Raises `SleepInProgress`."""
        report = self.cycle.run(request)
        self.after_cycle()
        return report

    def exceeds_capacity(self, working: int | None = None) -> bool:
        """Return whether `working` memories (None: the present number) exceed the present capacity."""
        if working is None:
            working = self.store.memories.working_count()
        capacity = self.cycle.settings.config.wm_max
        if self._raised and self._raised[0] == capacity:
            return working > self._raised[1]
        return working > capacity

    def enforce_cap(self, working: int | None = None) -> None:
        """Consolidate the oldest memories if working memory exceeds its capacity, unless postponed.

        With a host, this only queues the work for a background thread; without one, the work is done here,
        without a model. `working` is the number of working memories, if known. Errors are logged, not raised.
        """
        try:
            if time.monotonic() < self._postponed_until or not self.exceeds_capacity(
                working
            ):
                return
            if self.host:
                self.host.enforce_cap_soon()
            else:
                self.consolidate_excess(rules_only=True)
        except errors.SleepInProgress:
            log.debug("cap_not_enforced", reason="the running cycle enforces it too")
        except errors.MnemosynedError as error:
            log_failure("cap_not_enforced", error)

    def enforce_cap_now(self) -> None:
        """Consolidate excess memories unless postponed, then finish like a cycle. Raises `SleepInProgress`."""
        if time.monotonic() < self._postponed_until:
            return
        self.consolidate_excess(rules_only=bool(self._find_refusal()), wait_s=WAIT_S)
        self.after_cycle()

    def consolidate_excess(self, *, rules_only: bool, wait_s: float = 0.0) -> None:
        """Consolidate the oldest memories until the others fit the capacity.

        First waits up to `wait_s` for a running cycle. With `rules_only` no model is asked. A cycle that
        takes longer than the host's turn resumes in another turn. If some memories cannot be consolidated,
        the capacity is raised. Raises `SleepInProgress`.
        """
        turn_s = self._turn_s
        with self._enforcing:
            if wait_s:
                self.cycle.lease.wait_idle(wait_s)
            capacity, self._raised = self.cycle.settings.config.wm_max, None
            for _ in range(ROUNDS_MAX):  # more may come in meanwhile
                count = self.store.memories.working_count()
                if count <= capacity:
                    return
                excess = count - int(capacity * (1 - triggers.HEADROOM))
                request = context.CycleRequest(
                    trigger=Trigger.CAP,
                    selection=Selection(oldest=excess),
                    rules_only=rules_only,
                    deadline_s=turn_s,
                )
                try:
                    report = self.cycle.run(request)
                except errors.SleepInProgress:
                    if not self.cycle.lease.is_lent:  # another process sleeps
                        self._raise_capacity(capacity)
                    raise
                is_cut = turn_s is not None and report.duration_s >= turn_s
                if self.host and is_cut and 0 < report.evicted < excess:
                    self.host.enforce_cap_soon()
                    return
                if report.evicted < excess:
                    break
            # Memories that cannot be consolidated (pinned, failed) are not tried at every call.
            self._raise_capacity(capacity)

    def _raise_capacity(self, capacity: int) -> None:
        """Raise the capacity if memories beyond `capacity` could not be consolidated.

        The next try comes when the setting changes, or working memory has grown by the share `HEADROOM`.
        """
        left = self.store.memories.working_count()
        if left > capacity:
            self._raised = (capacity, left + max(1, int(capacity * triggers.HEADROOM)))

    def postpone(self, seconds: float) -> None:
        """Start no cycle by schedule, trigger or capacity for this many seconds; 0 ends a delay."""
        self._postponed_until = time.monotonic() + seconds

    @property
    def next_cycle(self) -> datetime | None:
        """Time of the next scheduled cycle; None without a schedule."""
        return self.host.scheduler.next_cycle if self.host else None

    def status(self) -> SleepStatus:
        """Return the state of sleep: schedule, last and next cycle, due memories and progress."""
        cycle = self.cycle
        newest = self.store.sleep.log(limit=1)
        now = cycle.clock.now()
        due = Selection(before=cycle.settings.config.sleep.cutoff(now), now=now)
        return SleepStatus(
            auto=self.next_cycle is not None,
            schedule=self.host.scheduler.description if self.host else "off",
            last_cycle=cycle.last_finished
            or (newest[0].created_at if newest else None),
            next_cycle=self.next_cycle,
            running=cycle.lease.is_in_cycle,
            due=self.store.sleep.count_due(due, limit=100_000),
            progress=cycle.progress,
            waits_for=self.waits_for,
            paused_until=cycle.stopper.held_until(),
        )

    def check_triggers(self) -> None:
        """Run a cycle if a trigger is due, then the memory's other periodic work.

        An object without its own scheduler counts the memories only if a trigger may be due.
        """
        sleep = self.cycle.settings.config.sleep
        by_age = bool(sleep.on_count or sleep.on_idle_minutes)
        if self._scheduler or self._watch.may_be_due(
            self.changed_at,
            settle_s=60 * sleep.min_age_minutes * by_age,
            quiet=timedelta(seconds=self.cycle.gate.quiet_s),
        ):
            self._watch.check()
        for chore in self.chores:
            chore()

    def activity(self) -> WorkingActivity:
        """Return counts, ages and sizes of working memories, from which triggers decide."""
        now = self.cycle.now()
        minutes = self.cycle.settings.config.sleep.min_age_minutes
        fresh = shift(now, -timedelta(minutes=minutes))
        activity = self.store.sleep.activity(fresh=fresh, now=now, limit=ROWS_MAX)
        return replace(activity, quiet=timedelta(seconds=self.cycle.gate.quiet_s))

    def sleep_in_background(
        self, trigger: Trigger, selection: Selection | None = None
    ) -> CycleReport | None:
        """Run a cycle that no request waits for; return the report, or None if the cycle was put off.

        A cycle is put off while cycles are paused or postponed. While only a model may not write, the
        extractive summarizer still consolidates memories past their time to live, if there are any.
        `selection` is what to consolidate; None for all memories old enough. Raises `SleepInProgress`.
        """
        if time.monotonic() < self._postponed_until:
            return None
        report = None
        if until := self.cycle.stopper.held_until():
            clock = f"{in_zone(until, None):%H:%M}"
            paused = f"it was stopped or paused, and waits until {clock}"
            self._note_refusal(paused, trigger)
        else:
            activity = self.activity() if self.cycle.lease.has_model else None
            reason = self._find_refusal(activity)
            self._note_refusal(reason, trigger)
            ttl = timedelta(hours=self.cycle.settings.config.sleep.ttl_hours)
            limit = self.cycle.now() - ttl
            oldest = activity.oldest if activity and reason else None
            if reason:
                selection = Selection(before=limit)
            if not reason or (oldest is not None and oldest < limit):
                request = context.CycleRequest(
                    trigger=trigger,
                    selection=selection,
                    rules_only=bool(reason),
                    deadline_s=self._turn_s,
                )
                report = self.cycle.run(request)
        self.after_cycle()
        return report

    def _find_refusal(self, activity: WorkingActivity | None = None) -> str:
        """Return why a model may not write now, such as "quiet hours"; empty if it may or there is no model."""
        if not self.cycle.lease.has_model:
            return ""
        local = in_zone(datetime.now(UTC), None).time()
        sleep = self.cycle.settings.config.sleep
        activity = activity or self.activity()
        return triggers.model_refusal(sleep, self.machine(), activity, local)

    def _note_refusal(self, reason: str, trigger: Trigger) -> None:
        """Save for `status` why a cycle was put off, or "" if it was not; log a new reason."""
        if reason and reason != self.waits_for:
            log.info("cycle_put_off", trigger=trigger.value, reason=reason)
        self.waits_for = reason

    @property
    def _turn_s(self) -> float | None:
        """Seconds that a background cycle may take before it gives way; None for no limit."""
        return self.host.turn_s if self.host else None
