"""What a cycle would do, told without writing anything and without asking a model."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence, Set as AbstractSet
from dataclasses import dataclass
from datetime import datetime

from mnemosyned.domain.consolidation import (
    UNSPOKEN,
    Batch,
    CycleReport,
    GroupLimits,
    GroupReport,
    GroupStatus,
    Pending,
    Trigger,
    plan,
    whole,
)
from mnemosyned.domain.ports.models import Summarizer, SummarizerState
from mnemosyned.domain.ports.store import Foldable, MemoryStore
from mnemosyned.domain.rollup import Child, Period, begin_of, edge
from mnemosyned.sleep.budget import CHARS_PER_TOKEN
from mnemosyned.sleep.consolidate import cycle_report, unfinished
from mnemosyned.sleep.rollup import (
    FOLDABLE_MAX,
    SEPARATOR,
    UPPER,
    LevelPolicy,
    folding,
    report,
)

MODEL_CHARS_PER_S = 40.0
"""What a model reads until its own pace is in the log: TinyLlama on one core, 1,000 memories in
35 minutes."""
SUMMARY_SHARE = 1 / 3
"""About what a summary has of its sources' characters."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Bounds:
    """How far a cycle would go."""

    most: int
    """So many memories in all."""
    step: int
    """So many are planned at once."""
    over: datetime | None
    """Periods that ended by then are folded; None where none would be."""
    tokens: int | None
    """Once a model was given about so many to read, no group is begun any more."""


def dry_report(
    *,
    store: MemoryStore,
    summarizer: Summarizer,
    limits: GroupLimits,
    levels: LevelPolicy,
    trigger: Trigger,
    pending: Sequence[Pending],
    bounds: Bounds,
) -> CycleReport:
    """The report of a cycle that takes these memories.

    Groups, periods and their members are those of the cycle; how many characters a summary will
    have is an estimate, as only writing it tells.
    """
    started = time.monotonic()
    model = summarizer.status().state is not SummarizerState.RULES
    chars_left = bounds.tokens * CHARS_PER_TOKEN if bounds.tokens and model else None
    batches = _batches(pending, limits, bounds)
    begun = list(_begun(batches, limits, chars_left))
    groups = [unfinished(batch, GroupStatus.PLANNED) for batch in begun]
    if bounds.over is not None and len(begun) == len(batches):
        passing = store.passing()
        coming = [
            child for batch in batches for child in _children(batch, passing, limits)
        ]
        groups.extend(_periods(store, bounds.over, coming, levels.minimum))
    return cycle_report(
        groups,
        trigger,
        len(pending),
        started,
        dry_run=True,
        model_s=_model_s(
            groups, store, summarizer, least=(limits.summarize_min, levels.minimum)
        ),
    )


def _batches(
    pending: Sequence[Pending], limits: GroupLimits, bounds: Bounds
) -> list[Batch]:
    """The groups as the cycle parts them, which reads a backlog step by step."""
    found: list[Batch] = []
    left, most = list(pending), bounds.most
    while left:  # ends, as each step takes a group at least
        asked = left[: bounds.step]
        batches = plan(asked, limits=limits)
        if len(asked) == bounds.step < most:
            batches = whole(batches, until=asked[-1].created_at, limits=limits)
        taken = {id for batch in batches for id in batch.ids}
        left = [memory for memory in left if memory.id not in taken]
        most -= len(taken)
        found += batches
    return found


def _begun(
    batches: Sequence[Batch], limits: GroupLimits, chars_left: int | None
) -> Iterator[Batch]:
    """The groups that a cycle gets to before a model has read so many characters."""
    for batch in batches:
        if chars_left is not None and chars_left <= 0:
            return
        yield batch
        if chars_left is not None and len(batch.members) >= limits.summarize_min:
            chars_left -= batch.chars


def _children(
    batch: Batch, passing: AbstractSet[str], limits: GroupLimits
) -> Iterator[Child]:
    """The episodes that a group becomes: one, or word for word one for each memory.

    `passing` are those that no summary speaks of; they share one.
    """
    lasting = [memory for memory in batch.members if memory.id not in passing]
    rest = [memory for memory in batch.members if memory.id in passing]
    if len(lasting) >= limits.summarize_min:
        chars = sum(memory.chars for memory in lasting)
        yield _child(batch.members, int(chars * SUMMARY_SHARE))
        return
    for memory in lasting:
        yield _child([memory], memory.chars)
    if rest:
        yield _child(rest, len(UNSPOKEN))


def _child(members: Sequence[Pending], chars: int) -> Child:
    return Child(
        id=members[0].id,
        covers_from=members[0].created_at,
        item_count=len(members),
        chars=chars,
    )


def _periods(
    store: MemoryStore, before: datetime, coming: Sequence[Child], minimum: int
) -> Iterator[GroupReport]:
    """What would be folded, `coming` being the episodes that would be written first."""
    opened: set[datetime] = set()
    for level in UPPER:
        over = edge(level, before)
        coming = [child for child in coming if child.covers_from < over]
        opened |= {child.covers_from for child in coming}
        found = store.foldable(
            to_level=level,
            before=over,
            limit=FOLDABLE_MAX,
            opened={begin_of(level, moment) for moment in opened},
        )
        due = folding(Foldable([*found.children, *coming], found.standing), level)
        yield from (report(period, GroupStatus.PLANNED) for period in due)
        coming = [
            Child(
                id=period.key,
                covers_from=period.begins,
                item_count=period.item_count,
                chars=_carried(period, minimum),
            )
            for period in due
            if period.begins not in found.standing
        ]
        # One that is written again has the period above written again.
        opened = {period.begins for period in due if period.begins in found.standing}


def _carried(period: Period, minimum: int) -> int:
    """About how many characters a period's summary will have."""
    if len(period.members) < minimum:
        return period.chars + len(SEPARATOR) * (len(period.members) - 1)
    return int(period.chars * SUMMARY_SHARE)


def _model_s(
    groups: Sequence[GroupReport],
    store: MemoryStore,
    summarizer: Summarizer,
    *,
    least: tuple[int, int],
) -> float | None:
    """About how long a model would write; None where rules do.

    `least` says how many members a summary is written of: for an episode, and above.
    """
    status = summarizer.status()
    if status.state is not SummarizerState.MODEL:
        return None
    pace = store.pace(status.name) or MODEL_CHARS_PER_S
    read = sum(
        group.chars_before for group in groups if group.items >= least[group.level > 0]
    )
    return read / pace
