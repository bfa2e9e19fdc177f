"""The sleep cycle: what is pending, planned and consolidated group by group, one at a time."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from queue import Empty, SimpleQueue

from mnemosyned.domain.consolidation import (
    CycleReport,
    GroupLimits,
    Pending,
    Progress,
    Selection,
    Trigger,
    plan,
    whole,
)
from mnemosyned.domain.errors import SleepInProgress, StorageFailed, SummarizerFailed
from mnemosyned.domain.instants import shift
from mnemosyned.domain.memory import MemoryRecord, new_id
from mnemosyned.domain.ports.models import (
    Summarizer,
    SummarizerState,
    SummarizerStatus,
    Summary,
)
from mnemosyned.domain.ports.store import Clock, MemoryStore
from mnemosyned.logs import logger
from mnemosyned.sleep.budget import Budget, Meter
from mnemosyned.sleep.consolidate import CycleRun, cycle_report
from mnemosyned.sleep.preview import Bounds, dry_report
from mnemosyned.sleep.rollup import FoldRun, LevelPolicy
from mnemosyned.sleep.throttle import Company

CANDIDATES_MAX = 200_000
"""What one cycle looks at; the rest waits for the next."""
STEP = 5_000
"""So many are planned at once: a backlog takes no more memory than this."""
URGENT = (Trigger.CAP, Trigger.SHUTDOWN)
"""These give way to nobody, and leave days to be folded later."""

log = logger()


@dataclass(frozen=True, slots=True, kw_only=True)
class SleepPolicy:
    """What the cycle takes, and how it parts it."""

    ttl: timedelta = timedelta(hours=24)
    groups: GroupLimits = field(default_factory=GroupLimits)
    levels: LevelPolicy = field(default_factory=LevelPolicy)
    budget: Budget = field(default_factory=Budget)

    def cutoff(self, now: datetime) -> datetime:
        """What was created strictly before this is old enough. Source: the sleep seed, TTL/2."""
        return shift(now, -self.ttl / 2)

    def over(self, now: datetime) -> datetime:
        """A day, week or month that ended by then is folded: its memories were all old enough."""
        return shift(self.cutoff(now), -self.levels.grace)


class SleepCycle:
    """Runs one cycle at a time; whatever interrupts it, each group is whole or untouched."""

    def __init__(
        self,
        *,
        store: MemoryStore,
        summarizer: Summarizer,
        clock: Clock,
        policy: SleepPolicy,
        age_clock: Clock | None = None,
        company: Company | None = None,
    ) -> None:
        self.policy = policy
        self.summarizer = summarizer
        self._at_work = summarizer
        self.company = company or Company()
        self.last_finished: datetime | None = None
        self._store = store
        self._clock = clock
        self._age_clock = age_clock or clock
        """Tells what time it is for the age of memories, however the clock was set meanwhile."""
        self._running = threading.Lock()
        self._interrupted = threading.Event()
        self._run: tuple[CycleRun, int] | None = None

    def now(self) -> datetime:
        """The time by which memories age."""
        return self._age_clock.now()

    @property
    def running(self) -> bool:
        """Whether a cycle is under way."""
        return self._running.locked()

    @property
    def progress(self) -> Progress | None:
        """How far the running cycle is; None where none runs."""
        run = self._run
        return Progress(min(run[0].items, run[1]), run[1]) if run else None

    def use_summarizer(self, summarizer: Summarizer) -> None:
        """From the next cycle on, use this one; the former ends with the cycle that has it."""
        former, self.summarizer = self.summarizer, summarizer
        if self._running.acquire(blocking=False):
            self._running.release()
            former.close()

    def close(self) -> None:
        """End what runs for the summarizer in force."""
        self.summarizer.close()

    def wait_idle(self, timeout_s: float) -> None:
        """Wait until no cycle runs, at most so long."""
        if self._running.acquire(timeout=timeout_s):
            self._running.release()

    def interrupt(self) -> None:
        """Let the running cycle end after its present group, and no other start but the last.

        That group waits for no model, and none is asked from here on.
        """
        self._interrupted.set()
        for summarizer in {
            id(one): one for one in (self.summarizer, self._at_work)
        }.values():
            summarizer.interrupt()

    def run(
        self,
        *,
        trigger: Trigger,
        session: str | None = None,
        force: bool = False,
        dry_run: bool = False,
        oldest: int | None = None,
        quick: bool = False,
        deadline_s: float | None = None,
        go_on: Callable[[], bool] | None = None,
        selection: Selection | None = None,
    ) -> CycleReport:
        """Consolidate what is old enough; with `force` everything, with `oldest` so many.

        `selection` says it more finely. `quick` asks no model, as somebody waits; `deadline_s`
        ends the cycle between two groups, and so does `go_on`, asked before each, when it says
        no. Raises `SleepInProgress`, at shutdown only after waiting for the running cycle until
        the deadline.
        """
        now = self.now()
        before = None if force or oldest is not None else self.policy.cutoff(now)
        wanted = selection or Selection(before=before, session=session, oldest=oldest)
        wanted = replace(wanted, now=None if force else now)
        if dry_run:
            folds = wanted.everywhere and trigger not in URGENT
            return dry_report(
                store=self._store,
                summarizer=self.summarizer,
                limits=self.policy.groups,
                levels=self.policy.levels,
                trigger=trigger,
                pending=self._pending(wanted, _most(wanted)),
                bounds=Bounds(
                    most=_most(wanted),
                    step=STEP,
                    over=self.policy.over(now) if folds else None,
                    tokens=None
                    if trigger is Trigger.SHUTDOWN
                    else self.policy.budget.tokens,
                ),
            )
        with self._alone(deadline_s if trigger is Trigger.SHUTDOWN else None):
            summarizer = self._at_work = self.summarizer
            before_it = summarizer.status()
            active = summarizer.rule_based() if quick else summarizer
            model = active.status().state is not SummarizerState.RULES
            last = trigger is Trigger.SHUTDOWN
            budget = Budget() if last else self.policy.budget
            meter = Meter(budget, deadline_s=deadline_s, model=model)

            def may_go_on() -> bool:
                return (
                    meter.left
                    and (last or not self._interrupted.is_set())
                    and (go_on is None or go_on())
                )

            over = self.policy.over(now)
            try:
                report = self._cycle(
                    trigger, wanted, active, meter, may_go_on, over=over, quick=quick
                )
            finally:
                summarizer.release_workers()
        if summarizer is not self.summarizer:  # the settings changed meanwhile
            summarizer.close()
        log.info(
            "cycle_finished",
            cycle=report.cycle,
            trigger=trigger.value,
            status=report.status.value,
            promoted=report.promoted,
            evicted=report.evicted,
            folded=report.folded,
            failed=report.failed,
            remaining=report.remaining,
            duration_s=round(report.duration_s, 3),
            **_model_counts(before_it, summarizer.status()),
        )
        return report

    def retell(
        self, memories: Sequence[MemoryRecord], *, time_limit_s: float
    ) -> Summary:
        """A summary for somebody who waits, but not longer than so many seconds.

        Raises `SleepInProgress` while a cycle has the model, and `SummarizerFailed` where nothing
        came in time; what the model is at then ends by its own limits.
        """
        answers: SimpleQueue[Summary | Exception] = SimpleQueue()
        if not self._running.acquire(blocking=False):
            raise SleepInProgress(
                "a sleep cycle has the model; ask again when it has finished"
            )
        summarizer = self._at_work = self.summarizer

        def work() -> None:
            try:
                answers.put(summarizer.outcome(memories))
            finally:
                self._running.release()
                if summarizer is not self.summarizer:  # the settings changed meanwhile
                    summarizer.close()

        threading.Thread(target=work, name="retelling", daemon=True).start()
        try:
            outcome = answers.get(timeout=time_limit_s)
        except Empty:
            raise SummarizerFailed(
                f"{summarizer.name} took longer than the {time_limit_s:g} s somebody waits for it"
            ) from None
        if isinstance(outcome, Exception):
            raise outcome
        return outcome

    @contextmanager
    def held(self) -> Iterator[None]:
        """No cycle runs while the block does. Raises `SleepInProgress`."""
        with self._alone(None):
            yield

    def _cycle(
        self,
        trigger: Trigger,
        wanted: Selection,
        summarizer: Summarizer,
        meter: Meter,
        go_on: Callable[[], bool],
        *,
        over: datetime,
        quick: bool,
    ) -> CycleReport:
        cycle = new_id(self._clock.now())
        self._store.note_future(now=self.now())
        total = self._store.count_due(
            before=wanted.before,
            session=wanted.session,
            sources=wanted.sources,
            now=wanted.now,
            limit=_most(wanted),
        )
        run = CycleRun(
            cycle=cycle,
            trigger=trigger,
            store=self._store,
            summarizer=summarizer,
            clock=self._clock,
            summarize_min=self.policy.groups.summarize_min,
            meter=meter,
            durable=summarizer.status().state is not SummarizerState.RULES,
            company=None if quick or trigger in URGENT else self.company,
        )
        folds = FoldRun(
            cycle=cycle,
            trigger=trigger,
            store=self._store,
            summarizer=summarizer,
            clock=self._clock,
            policy=self.policy.levels,
            meter=meter,
        )
        self._run = (run, total)
        problem = ""
        try:
            self._consolidate(run, wanted, go_on)
            may_fold = wanted.everywhere and trigger not in URGENT
            if may_fold and not quick and not run.ended:
                # What was to be consolidated and is not yet holds its day back.
                held = self._pending(Selection(before=over), 1)
                # One in the future holds nothing back.
                before = min(held[0].created_at, over) if held else over
                folds.fold(before=before, go_on=go_on)
        except StorageFailed as error:
            if not (run.reports or folds.reports):
                nothing = f"nothing was consolidated: {error.reason}"
                raise type(error)(nothing, reason=error.reason) from error
            log.exception(
                "cycle_cut_short", cycle=cycle
            )  # what is done is done, and is told
            problem = error.reason
        finally:
            self._run = None
            self.last_finished = self._clock.now()
        reports = [*run.reports, *folds.reports]
        return cycle_report(
            reports, trigger, total, meter.started, cycle=cycle, problem=problem
        )

    def _consolidate(
        self, run: CycleRun, wanted: Selection, go_on: Callable[[], bool]
    ) -> None:
        """Step by step, until nothing is left but what failed."""
        left = _most(wanted)
        while left > 0 and not run.ended:
            asked = min(STEP, left)
            found = self._pending(wanted, asked + len(run.failed))
            pending = [memory for memory in found if memory.id not in run.failed]
            if not pending:
                return
            batches = plan(pending, limits=self.policy.groups)
            more = len(found) == asked + len(run.failed) and asked < left
            if more:
                batches = whole(
                    batches, until=pending[-1].created_at, limits=self.policy.groups
                )
            run.consolidate(batches, go_on=go_on)
            left -= sum(len(batch.members) for batch in batches)
            if not more:
                return

    @contextmanager
    def _alone(self, wait_s: float | None) -> Iterator[None]:
        acquired = (
            self._running.acquire(timeout=wait_s)
            if wait_s is not None
            else self._running.acquire(blocking=False)
        )
        if not acquired:
            raise SleepInProgress(
                "a sleep cycle is running; ask again when it has finished"
            )
        try:
            yield
        finally:
            self._running.release()

    def _pending(self, wanted: Selection, limit: int) -> list[Pending]:
        return self._store.pending(
            before=wanted.before,
            session=wanted.session,
            sources=wanted.sources,
            now=wanted.now,
            limit=limit,
        )


def _most(wanted: Selection) -> int:
    """How many memories a cycle takes at most."""
    return (
        CANDIDATES_MAX if wanted.oldest is None else min(wanted.oldest, CANDIDATES_MAX)
    )


def _model_counts(before: SummarizerStatus, after: SummarizerStatus) -> dict[str, int]:
    """What became of a model's work in between; nothing where there is no model."""
    if after.state is SummarizerState.RULES:
        return {}
    return {
        "accepted": after.accepted - before.accepted,
        "retried": after.retried - before.retried,
        "rejected": after.rejected - before.rejected,
        "fallbacks": after.fallbacks - before.fallbacks,
    }
