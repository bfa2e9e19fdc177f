"""The sleep cycle: plans, consolidates and rolls up, or previews this without writing or asking a model."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Sequence, Set as AbstractSet
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta

from mnemosyned import errors, fairness, ids, instants
from mnemosyned.config.settings import SettingsInForce
from mnemosyned.logs import log_failure, logger
from mnemosyned.memory import consolidation, ports, values
from mnemosyned.memory.clock import Clock
from mnemosyned.memory.engine_ports import Summarizer
from mnemosyned.memory.periods import Child, Level, begin_of, open_from
from mnemosyned.sleep import consolidate
from mnemosyned.sleep.context import (
    CommitPacing,
    CycleContext,
    CycleRequest,
    CycleStop,
    CycleStopper,
    Meter,
    SummarizerLease,
)
from mnemosyned.sleep.rollup import (
    ROLLUP_MAX,
    UPPER_LEVELS,
    RollupRun,
    period_report,
    rollup_periods,
)
from mnemosyned.summary.rollup import ROLLUP_SHARES, SMALL_CHARS
from mnemosyned.verbs.upkeep import EventKind

MODEL_CHARS_PER_S = 40.0
"""Reading speed assumed of a model until the log has its own: TinyLlama on one core, 1,000
memories in 35 minutes."""
SUMMARY_SHARE = 1 / 3
"""Estimated length of a summary, as a share of its sources."""


def _plan_parts(
    context: CycleContext,
    first: Sequence[consolidation.Pending],
    read: Callable[[int], Sequence[consolidation.Pending]],
    done: AbstractSet[str],
) -> Iterator[list[consolidation.Batch]]:
    """Yield the batches of the pending memories, one list for each part of the backlog.

    `first` has the memories of the first part. `read(n)` returns the `n` oldest pending memories, for
    the further parts. Memories with ids in `done` are skipped.
    """
    limits, remaining = context.limits, context.candidates_max
    limit, found = min(context.plan_size, remaining), first
    while pending := [memory for memory in found if memory.id not in done]:
        batches = consolidation.plan(pending, limits=limits)
        is_last = len(found) < limit or context.plan_size >= remaining
        if not is_last:
            until = pending[-1].created_at
            batches = consolidation.closed_batches(batches, until=until, limits=limits)
        yield batches
        remaining -= sum(len(batch.members) for batch in batches)
        if is_last or remaining <= 0:
            return
        limit = min(context.plan_size, remaining) + len(done)
        found = read(limit)


def _estimate_episodes(
    batch: consolidation.Batch,
    excluded: AbstractSet[str],
    limits: consolidation.GroupLimits,
) -> Iterator[Child]:
    """Yield the episodes that a planned batch will become, with estimated lengths.

    In a batch too small for a summary, each memory becomes an episode; those in `excluded` share one.
    """
    lasting = [memory for memory in batch.members if memory.id not in excluded]
    unsummarized = [memory for memory in batch.members if memory.id in excluded]
    chars = sum(memory.chars for memory in lasting)
    if limits.are_summarized(len(lasting), chars):
        yield _estimate_episode(batch.members, int(chars * SUMMARY_SHARE))
        return
    for memory in lasting:
        yield _estimate_episode([memory], memory.chars)
    if unsummarized:
        yield _estimate_episode(unsummarized, len(consolidation.UNSPOKEN))


def _estimate_episode(members: Sequence[consolidation.Pending], chars: int) -> Child:
    """Return a planned episode of these memories, with a text of about `chars` characters."""
    return Child(
        id=members[0].id,
        covers_from=instants.calendar_time(members[0].created_at),
        item_count=len(members),
        chars=chars,
    )


def _plan_rollups(
    batches: Sequence[consolidation.Batch], context: CycleContext, *, cutoff: datetime
) -> Iterator[consolidation.GroupReport]:
    """Yield reports of the periods, over by `cutoff`, that a cycle with these batches would roll up."""
    excluded = context.store.sleep.ids_excluded_from_summaries()
    limits, minimum = context.limits, context.sleep.rollup_min_items
    coming = [
        child
        for batch in batches
        for child in _estimate_episodes(batch, excluded, limits)
    ]
    reopened: set[datetime] = set()
    for level in UPPER_LEVELS:
        limit = open_from(level, cutoff)
        coming = [child for child in coming if child.covers_from < limit]
        reopened.update(child.covers_from for child in coming)
        pending = context.store.rollups.pending(
            to_level=level,
            before=limit,
            limit=ROLLUP_MAX,
            opened={begin_of(level, moment) for moment in reopened},
        )
        children = [*pending.children, *coming]
        due = rollup_periods(ports.PendingRollups(children, pending.existing), level)
        coming, reopened = [], set()
        for period in due:
            yield period_report(period, consolidation.GroupStatus.PLANNED)
            if period.begins in pending.existing:
                # A summary that is rewritten has the period above it rewritten.
                reopened.add(period.begins)
                continue
            # The summary that the period will have, for the level above.
            few = len(period.members) < minimum and period.level is Level.DAY
            is_whole = few and period.chars <= SMALL_CHARS
            share = 1 if is_whole else ROLLUP_SHARES[period.level]
            summary = Child(
                id=period.key,
                covers_from=period.begins,
                item_count=period.item_count,
                chars=int(period.chars * share),
            )
            coming.append(summary)


CLAIM_LOST = "the database ended the connection that kept other daemons from sleeping"

log = logger()


@dataclass(eq=False, kw_only=True)
class SleepCycle:
    """Runner of sleep cycles, one at a time; an interrupted cycle leaves no group half done."""

    store: ports.MemoryStore
    lease: SummarizerLease
    clock: Clock
    """Dates all that is written."""
    settings: SettingsInForce
    age_clock: Clock | None = None
    """Decides how old memories are, without the jumps of `clock`; None: that decides."""
    gate: fairness.ForegroundGate = field(default_factory=fairness.ForegroundGate)
    """Counts the requests to which cycles yield."""
    publish: Callable[..., object] = lambda *_, **__: None
    """Sends an event of a kind, with its fields, to readers."""

    def __post_init__(self) -> None:
        self.last_finished: datetime | None = None
        self.stopper = CycleStopper(self.clock)
        self.pacing = CommitPacing()
        self.plan_size = 10_000
        self._run: tuple[consolidate.ConsolidationRun, int] | None = None
        self.outcomes: Counter[tuple[str, str]] = Counter()
        """Cycles since the start, by trigger and outcome."""

    def now(self) -> datetime:
        """Return the present time from which the age of memories is counted."""
        return (self.age_clock or self.clock).now()

    @property
    def progress(self) -> consolidation.Progress | None:
        """Memories done and due in the running cycle, or None if no cycle is running."""
        run = self._run
        return (
            consolidation.Progress(min(run[0].items, run[1]), run[1]) if run else None
        )

    def run(self, request: CycleRequest) -> consolidation.CycleReport:
        """Run a cycle as requested and return its report.

        Raises `SleepInProgress` if a cycle is running in any process. A final request first waits for a cycle
        of its own process, up to its deadline.
        """
        wait_s = (request.deadline_s or 0.0) if request.final else 0.0
        with (
            self.lease.exclusive(wait_s=wait_s) as summarizer,
            self.store.sleep.claim() as claimed,
        ):
            stop = self.stopper.begin()
            try:
                asked = replace(
                    request, keep_going=lambda: request.keep_going() and claimed()
                )
                report = self._run_exclusively(summarizer, asked, stop)
                if report.remaining and not claimed():
                    report = replace(report, problem=report.problem or CLAIM_LOST)
                stop.report = report
            except BaseException:
                stop.over.set()
                raise
        stop.over.set()  # when another cycle may begin
        return stop.report

    def _run_exclusively(
        self, summarizer: Summarizer, request: CycleRequest, stop: CycleStop
    ) -> consolidation.CycleReport:
        """Run a cycle with a borrowed summarizer; log the result, publish events, return the report."""
        now, before = self.now(), summarizer.status()
        used = summarizer.rule_based() if request.rules_only else summarizer
        context = self._make_context(request, used, now=now, stop=stop)
        named = {"cycle": context.id, "trigger": request.trigger.value}
        self.publish(EventKind.CYCLE_BEGUN, **named)
        try:
            report = self._consolidate_and_roll_up(
                context, rollup_cutoff=self.settings.config.sleep.rollup_cutoff(now)
            )
        except Exception:
            self.outcomes[request.trigger.value, "error"] += 1
            self.publish(EventKind.CYCLE_ENDED, **named, status="failed")
            raise
        finally:
            summarizer.release_workers()
        self.outcomes[request.trigger.value, report.status.value] += 1
        self.publish(
            EventKind.CYCLE_ENDED,
            **named,
            status=report.status.value,
            count=report.evicted,
            episodes=report.promoted,
            duration_s=round(report.duration_s, 3),
        )
        after = summarizer.status()
        has_model = after.state is not values.SummarizerState.RULES
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
            **{
                name: getattr(after, name) - getattr(before, name)
                for name in ("accepted", "retried", "rejected", "fallbacks")
                if has_model
            },
        )
        return report

    def preview(self, request: CycleRequest) -> consolidation.CycleReport:
        """Return the report that a cycle would have; write nothing and ask no model.

        Groups, periods and their members are those of the cycle; the length of a summary is an estimate.
        """
        now, stop = self.now(), CycleStop()
        context = self._make_context(request, self.lease.current, now=now, stop=stop)
        limit = context.candidates_max
        pending = self.store.sleep.pending(context.selection, limit=limit)
        first, planned = pending[: context.plan_size], set[str]()
        batches: list[consolidation.Batch] = []
        for part in _plan_parts(context, first, lambda limit: pending[:limit], planned):
            batches += part
            planned.update(id for batch in part for id in batch.ids)
        begun: list[consolidation.Batch] = []
        chars_left = context.meter.chars_max
        for batch in batches:
            if chars_left <= 0:
                break
            begun.append(batch)
            if context.limits.are_summarized(len(batch.members), batch.chars):
                chars_left -= batch.chars
        groups = [
            consolidate.unfinished_report(batch, consolidation.GroupStatus.PLANNED)
            for batch in begun
        ]
        if context.rolls_up and len(begun) == len(batches):
            cutoff = context.sleep.rollup_cutoff(now)
            groups.extend(_plan_rollups(batches, context, cutoff=cutoff))
        model_s = None
        status = context.summarizer.status()
        if status.state is values.SummarizerState.MODEL:
            pace = self.store.sleep.chars_per_s(status.name) or MODEL_CHARS_PER_S
            are_summarized = context.limits.are_summarized
            read = (
                group.chars_before
                for group in groups
                if not group.level and are_summarized(group.items, group.chars_before)
            )
            model_s = sum(read) / pace
        report = consolidate.cycle_report(
            groups, context=context, candidates=len(pending)
        )
        return replace(
            report,
            cycle="",
            dry_run=True,
            evicted=0,
            remaining=len(pending),
            model_s=model_s,
        )

    def _make_context(
        self,
        request: CycleRequest,
        summarizer: Summarizer,
        *,
        now: datetime,
        stop: CycleStop,
    ) -> CycleContext:
        """Return the context of a cycle: store, summarizer, settings and limits at its start."""
        sleep = self.settings.config.sleep
        has_model = summarizer.status().state is not values.SummarizerState.RULES
        return CycleContext(
            id=ids.new_id(self.clock.now()),
            request=request,
            selection=request.select(cutoff=sleep.cutoff(now), now=now),
            store=self.store,
            summarizer=summarizer,
            has_model=has_model,
            lease=self.lease,
            clock=self.clock,
            sleep=sleep,
            limits=consolidation.GroupLimits(
                entries_max=sleep.group_entries_max,
                chars_max=sleep.group_chars_max,
                pause=timedelta(hours=sleep.group_pause_hours),
            ),
            pacing=self.pacing,
            plan_size=self.plan_size,
            gate=self.gate,
            stop=stop,
            meter=Meter(
                minutes=None if request.final else sleep.cycle_minutes,
                tokens=None if request.final else sleep.cycle_tokens,
                deadline_s=request.deadline_s,
                model=has_model,
            ),
        )

    def _consolidate_and_roll_up(
        self, context: CycleContext, *, rollup_cutoff: datetime
    ) -> consolidation.CycleReport:
        """Consolidate the selected memories, roll up periods that are over, and return the report.

        Periods that ended after `rollup_cutoff` wait. Raises `StorageFailed` only if nothing was
        done before the store failed.
        """
        limit, total = min(context.plan_size, context.candidates_max), 0
        run = consolidate.ConsolidationRun(context)
        rollup = RollupRun(context)
        problem = ""
        try:
            with self.store.search.one_snapshot():
                self.store.clock.note_future(now=self.now())
                first = self.store.sleep.pending(context.selection, limit=limit)
            total = len(first)
            if total == limit:
                total = self.store.sleep.count_due(
                    context.selection, limit=context.candidates_max
                )
            self._run = (run, total)
            parts = _plan_parts(
                context,
                first,
                lambda limit: self.store.sleep.pending(context.selection, limit=limit),
                run.failed,
            )
            for batches in parts:
                run.consolidate(batches)
                if run.ended:
                    break
            if run.lost:
                raise run.lost
            if context.rolls_up and not run.ended:
                rollup.roll_up(before=rollup_cutoff)
        except errors.StorageFailed as error:
            if not (run.reports or rollup.reports):
                nothing = f"nothing was consolidated: {error.reason}"
                raise type(error)(nothing, reason=error.reason) from error
            # The work up to here is on disk, and is reported.
            log_failure("cycle_cut_short", error, cycle=context.id)
            problem = error.reason
        finally:
            self._run = None
            self.last_finished = self.clock.now()
        return consolidate.cycle_report(
            [*run.reports, *rollup.reports],
            context=context,
            candidates=total,
            problem=problem,
        )
