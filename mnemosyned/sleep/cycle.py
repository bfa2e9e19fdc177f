"""The sleep cycle: plans the pending memories, consolidates them group by group, rolls up periods."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from datetime import datetime

from mnemosyned.domain.errors import StorageFailed
from mnemosyned.domain.ids import new_id
from mnemosyned.domain.ports.clock import Clock
from mnemosyned.domain.ports.models import Summarizer
from mnemosyned.domain.ports.store import MemoryStore
from mnemosyned.domain.sleep.consolidation import Selection, closed_batches, plan
from mnemosyned.domain.sleep.cycles import CycleReport, Progress
from mnemosyned.domain.statuses import SummarizerState, SummarizerStatus
from mnemosyned.logs import log_failure, logger
from mnemosyned.sleep.consolidate import ConsolidationRun
from mnemosyned.sleep.context import (
    CycleContext,
    CycleObserver,
    CycleRequest,
    Meter,
)
from mnemosyned.sleep.lease import SummarizerLease
from mnemosyned.sleep.policy import SleepPolicies, SleepPolicy
from mnemosyned.sleep.preview import preview_report
from mnemosyned.sleep.reports import cycle_report
from mnemosyned.sleep.rollup import RollupRun
from mnemosyned.sleep.stopping import CycleStop, CycleStopper
from mnemosyned.sleep.throttle import ForegroundGate

CLAIM_LOST = "the database ended the connection that kept other daemons from sleeping"

log = logger()


class SleepCycle:
    """Runs one cycle at a time; an interrupted cycle leaves each group either whole or untouched."""

    def __init__(
        self,
        *,
        store: MemoryStore,
        lease: SummarizerLease,
        clock: Clock,
        policies: SleepPolicies,
        age_clock: Clock | None = None,
        gate: ForegroundGate | None = None,
    ) -> None:
        """Judge the age of memories by `age_clock`, which need not believe every step of `clock`."""
        self.lease = lease
        self.gate = gate or ForegroundGate()
        self.last_finished: datetime | None = None
        self.clock = clock
        self.stopper = CycleStopper(clock)
        self._store = store
        self._policies = policies
        self._age_clock = age_clock or clock
        self._run: tuple[ConsolidationRun, int] | None = None
        self.observer: CycleObserver | None = None
        self.outcomes: Counter[tuple[str, str]] = Counter()
        """Cycles since the start, by trigger and outcome."""

    @property
    def policy(self) -> SleepPolicy:
        """The rules in force."""
        return self._policies.sleep

    def now(self) -> datetime:
        """Return the time by which memories age."""
        return self._age_clock.now()

    @property
    def progress(self) -> Progress | None:
        """How far the running cycle is; None when none runs."""
        run = self._run
        return Progress(min(run[0].items, run[1]), run[1]) if run else None

    def run(self, request: CycleRequest) -> CycleReport:
        """Consolidate what is requested, and roll up the periods that are over.

        Raises `SleepInProgress`: for a final request only after waiting for the running cycle
        until the deadline, and for no request after waiting for another process.
        """
        with (
            self.lease.exclusive(wait_s=request.lease_wait_s) as summarizer,
            self._store.sleep.claim() as claimed,
        ):
            stop = self.stopper.begin()
            try:
                report = self._run_with(summarizer, request.while_true(claimed), stop)
                if report.remaining and not claimed():
                    report = replace(report, problem=report.problem or CLAIM_LOST)
                stop.report = report
            except BaseException:
                stop.finish()
                raise
        stop.finish()  # when another cycle may begin
        return stop.report

    def _run_with(
        self, summarizer: Summarizer, request: CycleRequest, stop: CycleStop
    ) -> CycleReport:
        now = self.now()
        before = summarizer.status()
        context = self._context(
            request,
            summarizer.rule_based() if request.rules_only else summarizer,
            now=now,
            stop=stop,
        )
        if self.observer:
            self.observer.cycle_begun(context.id, request.trigger)
        try:
            report = self._work(context, rollup_cutoff=self.policy.rollup_cutoff(now))
        except Exception:
            self.outcomes[request.trigger.value, "error"] += 1
            if self.observer:
                self.observer.cycle_failed(context.id, request.trigger)
            raise
        finally:
            summarizer.release_workers()
        self.outcomes[request.trigger.value, report.status.value] += 1
        if self.observer:
            self.observer.cycle_ended(report)
        _log_finished(report, before, summarizer.status())
        return report

    def preview(self, request: CycleRequest) -> CycleReport:
        """Return what `run` would do, without writing anything or asking a model."""
        now = self.now()
        context = self._context(request, self.lease.current, now=now, stop=CycleStop())
        return preview_report(context, rollup_cutoff=self.policy.rollup_cutoff(now))

    def _context(
        self,
        request: CycleRequest,
        summarizer: Summarizer,
        *,
        now: datetime,
        stop: CycleStop,
    ) -> CycleContext:
        policy = self.policy
        has_model = summarizer.status().state is not SummarizerState.RULES
        return CycleContext(
            id=new_id(self.clock.now()),
            request=request,
            selection=request.selected(cutoff=policy.cutoff(now), now=now),
            store=self._store,
            summarizer=summarizer,
            has_model=has_model,
            lease=self.lease,
            clock=self.clock,
            policy=policy,
            gate=self.gate,
            stop=stop,
            meter=Meter(
                request.budget(policy), deadline_s=request.deadline_s, model=has_model
            ),
        )

    def _work(self, context: CycleContext, *, rollup_cutoff: datetime) -> CycleReport:
        self._store.surroundings.clock.note_future(now=self.now())
        total = self._store.sleep.count_due(
            context.selection, limit=context.candidates_max
        )
        run = ConsolidationRun(context)
        rollup = RollupRun(context)
        self._run = (run, total)
        problem = ""
        try:
            _consolidate_all(run, context)
            if run.lost:
                raise run.lost
            if context.rolls_up and not run.ended:
                rollup.roll_up(before=_rollup_limit(context, rollup_cutoff))
        except StorageFailed as error:
            if not (run.reports or rollup.reports):
                nothing = f"nothing was consolidated: {error.reason}"
                raise type(error)(nothing, reason=error.reason) from error
            # The work up to here is on disk, and is reported.
            log_failure("cycle_cut_short", error, cycle=context.id)
            problem = error.reason
        finally:
            self._run = None
            self.last_finished = self.clock.now()
        return cycle_report(
            [*run.reports, *rollup.reports],
            context=context,
            candidates=total,
            problem=problem,
        )


def _consolidate_all(run: ConsolidationRun, context: CycleContext) -> None:
    """Plan and consolidate part by part, until only groups that failed are left."""
    limits, plan_size = context.policy.groups, context.policy.plan_size
    remaining = context.candidates_max
    while remaining > 0 and not run.ended:
        wanted = min(plan_size, remaining)
        limit = wanted + len(run.failed)
        candidates = context.pending(limit=limit)
        pending = [memory for memory in candidates if memory.id not in run.failed]
        if not pending:
            return
        batches = plan(pending, limits=limits)
        more = len(candidates) == limit and wanted < remaining
        if more:
            batches = closed_batches(
                batches, until=pending[-1].created_at, limits=limits
            )
        run.consolidate(batches)
        remaining -= sum(len(batch.members) for batch in batches)
        if not more:
            return


def _rollup_limit(context: CycleContext, cutoff: datetime) -> datetime:
    """Return until when periods are rolled up: no day of which a memory is still to come.

    A memory in the future holds nothing back.
    """
    waiting = context.pending(limit=1, selection=Selection(before=cutoff))
    return min(waiting[0].created_at, cutoff) if waiting else cutoff


def _log_finished(
    report: CycleReport, before: SummarizerStatus, after: SummarizerStatus
) -> None:
    log.info(
        "cycle_finished",
        cycle=report.cycle,
        trigger=report.trigger.value,
        status=report.status.value,
        promoted=report.promoted,
        evicted=report.evicted,
        rolled_up=report.rolled_up,
        failed=report.failed,
        remaining=report.remaining,
        duration_s=round(report.duration_s, 3),
        **_model_counts(before, after),
    )


def _model_counts(before: SummarizerStatus, after: SummarizerStatus) -> dict[str, int]:
    """Return what became of a model's work in between; nothing without a model."""
    if after.state is SummarizerState.RULES:
        return {}
    return {
        "accepted": after.accepted - before.accepted,
        "retried": after.retried - before.retried,
        "rejected": after.rejected - before.rejected,
        "fallbacks": after.fallbacks - before.fallbacks,
    }
