"""Reports of cycles, put together from what became of each group."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass

from mnemosyned.domain.sleep.consolidation import Batch
from mnemosyned.domain.sleep.cycles import (
    CycleReport,
    CycleStatus,
    GroupReport,
    GroupStatus,
)
from mnemosyned.domain.sleep.rollup import Level, begin_of, key_of
from mnemosyned.sleep.context import CycleContext


def unfinished(
    batch: Batch, status: GroupStatus, *, error: str | None = None
) -> GroupReport:
    """Return the report of a group that is only planned, or that failed."""
    return GroupReport(
        session=batch.session,
        source=batch.source,
        status=status,
        items=len(batch.members),
        covers_from=batch.covers_from,
        covers_until=batch.covers_until,
        chars_before=batch.chars,
        error=error,
        period=day_of(batch),
    )


def day_of(batch: Batch) -> str:
    """The day on which a group began."""
    return key_of(Level.DAY, begin_of(Level.DAY, batch.covers_from))


def cycle_report(
    groups: Sequence[GroupReport],
    *,
    context: CycleContext,
    candidates: int,
    problem: str = "",
) -> CycleReport:
    """Return what a cycle did with the memories that it was to consolidate."""
    tally = _Tally()
    for group in groups:
        tally.add(group)
    remaining = max(0, candidates - tally.evicted)
    status = _status(groups, incomplete=bool(tally.failed or problem or remaining))
    return CycleReport(
        cycle=context.id,
        status=CycleStatus.STOPPED if context.stop.asked else status,
        trigger=context.trigger,
        dry_run=False,
        candidates=candidates,
        groups=tuple(groups),
        promoted=tally.promoted,
        evicted=tally.evicted,
        failed=tally.failed,
        rolled_up=tally.rolled_up,
        remaining=remaining,
        chars_before=tally.chars_before,
        chars_after=tally.chars_after,
        duration_s=time.monotonic() - context.meter.started,
        problem=problem,
    )


@dataclass(slots=True)
class _Tally:
    """The sums of a cycle over its groups."""

    promoted: int = 0
    evicted: int = 0
    failed: int = 0
    rolled_up: int = 0
    chars_before: int = 0
    chars_after: int = 0

    def add(self, group: GroupReport) -> None:
        failed = group.status is GroupStatus.FAILED
        self.failed += failed
        if group.level:
            self.rolled_up += len(group.episodes)
            return
        self.chars_before += group.chars_before
        self.chars_after += group.chars_after
        if not failed:
            self.promoted += len(group.episodes)
            self.evicted += group.items


def _status(groups: Sequence[GroupReport], *, incomplete: bool) -> CycleStatus:
    if incomplete:
        return CycleStatus.PARTIAL
    return CycleStatus.DONE if groups else CycleStatus.NOTHING_TO_DO
