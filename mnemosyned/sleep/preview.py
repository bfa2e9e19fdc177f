"""The preview of a cycle: what it would do, without writing anything or asking a model."""

from __future__ import annotations

from collections.abc import Iterator, Sequence, Set as AbstractSet
from dataclasses import replace
from datetime import datetime

from mnemosyned.domain.ports.rollups import PendingRollups
from mnemosyned.domain.sleep.consolidation import (
    UNSPOKEN,
    Batch,
    GroupLimits,
    Pending,
    closed_batches,
    plan,
)
from mnemosyned.domain.sleep.cycles import CycleReport, GroupReport, GroupStatus
from mnemosyned.domain.sleep.rollup import Child, Level, Period, begin_of, closed_before
from mnemosyned.domain.statuses import SummarizerState
from mnemosyned.domain.summary.rollup_text import WEIGHTS
from mnemosyned.sleep.context import CycleContext
from mnemosyned.sleep.reports import cycle_report, unfinished
from mnemosyned.sleep.rollup import (
    ROLLUP_MAX,
    UPPER_LEVELS,
    period_report,
    rollup_periods,
)

MODEL_CHARS_PER_S = 40.0
"""Reading speed assumed of a model until the log has its own: TinyLlama on one core, 1,000
memories in 35 minutes."""
SUMMARY_SHARE = 1 / 3
"""Estimated length of a summary, as a share of its sources."""


def preview_report(context: CycleContext, *, rollup_cutoff: datetime) -> CycleReport:
    """Return the report of a cycle that is not run.

    Groups, periods and their members are those of the cycle. The characters of a summary are an
    estimate, because they are known only once it is written.
    """
    pending = context.pending(limit=context.candidates_max)
    batches = _plan_all(pending, context)
    begun = list(_within_budget(batches, context))
    groups = [unfinished(batch, GroupStatus.PLANNED) for batch in begun]
    if context.rolls_up and len(begun) == len(batches):
        groups.extend(_rollups(batches, context, cutoff=rollup_cutoff))
    report = cycle_report(groups, context=context, candidates=len(pending))
    return replace(
        report,
        cycle="",
        dry_run=True,
        evicted=0,
        remaining=len(pending),
        model_s=_model_s(groups, context),
    )


def _plan_all(pending: Sequence[Pending], context: CycleContext) -> list[Batch]:
    """Plan the groups part by part, as the cycle does with a backlog."""
    limits, plan_size = context.policy.groups, context.policy.plan_size
    planned: list[Batch] = []
    left, remaining = list(pending), context.candidates_max
    while left:  # ends, because each part yields at least one group
        part = left[:plan_size]
        batches = plan(part, limits=limits)
        if len(part) == plan_size < remaining:
            batches = closed_batches(batches, until=part[-1].created_at, limits=limits)
        taken = {id for batch in batches for id in batch.ids}
        left = [memory for memory in left if memory.id not in taken]
        remaining -= len(taken)
        planned += batches
    return planned


def _within_budget(batches: Sequence[Batch], context: CycleContext) -> Iterator[Batch]:
    """Yield the groups that the cycle begins before a model has read its share."""
    chars_left = context.meter.chars_max
    for batch in batches:
        if chars_left <= 0:
            return
        yield batch
        if context.policy.groups.are_summarized(len(batch.members), batch.chars):
            chars_left -= batch.chars


def _children(
    batch: Batch, excluded: AbstractSet[str], limits: GroupLimits
) -> Iterator[Child]:
    """Yield the episodes that a group becomes: one, or one for each memory of a small group.

    Memories that are `excluded` from summaries share one.
    """
    lasting: list[Pending] = []
    unsummarized: list[Pending] = []
    for memory in batch.members:
        members = unsummarized if memory.id in excluded else lasting
        members.append(memory)
    chars = sum(memory.chars for memory in lasting)
    if limits.are_summarized(len(lasting), chars):
        yield _child(batch.members, int(chars * SUMMARY_SHARE))
        return
    for memory in lasting:
        yield _child([memory], memory.chars)
    if unsummarized:
        yield _child(unsummarized, len(UNSPOKEN))


def _child(members: Sequence[Pending], chars: int) -> Child:
    return Child(
        id=members[0].id,
        covers_from=members[0].created_at,
        item_count=len(members),
        chars=chars,
    )


def _rollups(
    batches: Sequence[Batch], context: CycleContext, *, cutoff: datetime
) -> Iterator[GroupReport]:
    """Yield the periods that are rolled up after the episodes of these groups."""
    excluded = context.store.sleep.ids_excluded_from_summaries()
    limits, minimum = context.policy.groups, context.policy.rollup.minimum
    coming: list[Child] = []
    for batch in batches:
        coming.extend(_children(batch, excluded, limits))
    reopened: set[datetime] = set()
    for level in UPPER_LEVELS:
        limit = closed_before(level, cutoff)
        coming = [child for child in coming if child.covers_from < limit]
        reopened.update(child.covers_from for child in coming)
        pending = context.store.rollups.pending(
            to_level=level,
            before=limit,
            limit=ROLLUP_MAX,
            opened={begin_of(level, moment) for moment in reopened},
        )
        children = [*pending.children, *coming]
        due = rollup_periods(PendingRollups(children, pending.existing), level)
        coming, reopened = [], set()
        for period in due:
            yield period_report(period, GroupStatus.PLANNED)
            if period.begins in pending.existing:
                # A summary that is rewritten has the period above it rewritten.
                reopened.add(period.begins)
            else:
                coming.append(_as_child(period, minimum))


def _as_child(period: Period, minimum: int) -> Child:
    return Child(
        id=period.key,
        covers_from=period.begins,
        item_count=period.item_count,
        chars=_rolled_up_chars(period, minimum),
    )


def _rolled_up_chars(period: Period, minimum: int) -> int:
    """Estimate the characters of a period's summary."""
    few = len(period.members) < minimum and period.level is Level.DAY
    if few and period.chars <= WEIGHTS.small_chars:
        return period.chars
    return int(period.chars * WEIGHTS.share)


def _model_s(groups: Sequence[GroupReport], context: CycleContext) -> float | None:
    """Estimate how long a model would write; None when rules do."""
    status = context.summarizer.status()
    if status.state is not SummarizerState.MODEL:
        return None
    pace = context.store.sleep.chars_per_s(status.name) or MODEL_CHARS_PER_S
    read = 0
    for group in groups:
        limits = context.policy.groups
        if not group.level and limits.are_summarized(group.items, group.chars_before):
            read += group.chars_before
    return read / pace
