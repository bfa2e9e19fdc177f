"""What a cycle would do, told without writing anything and without asking a model."""

from __future__ import annotations

import time
from collections.abc import Sequence
from datetime import datetime

from mnemosyned.domain.consolidation import (
    CycleReport,
    GroupLimits,
    GroupReport,
    GroupStatus,
    Pending,
    Trigger,
    plan,
)
from mnemosyned.domain.model_ports import Summarizer, SummarizerState
from mnemosyned.domain.ports import MemoryStore
from mnemosyned.domain.pyramid import Child
from mnemosyned.sleep.fold import LevelPolicy, planned
from mnemosyned.sleep.run import cycle_report, unfinished

MODEL_CHARS_PER_S = 40.0
"""What a model reads until its own pace is in the log: TinyLlama on one core, 1,000 memories in
35 minutes."""
SUMMARY_SHARE = 1 / 3
"""About what a summary has of its sources' characters."""


def dry_report(
    *,
    store: MemoryStore,
    summarizer: Summarizer,
    limits: GroupLimits,
    levels: LevelPolicy,
    trigger: Trigger,
    pending: Sequence[Pending],
    over: datetime | None,
) -> CycleReport:
    """The report of a cycle that takes these memories; `over` is None where it would not fold."""
    started = time.monotonic()
    batches = plan(pending, limits=limits)
    groups = [unfinished(batch, GroupStatus.PLANNED) for batch in batches]
    if over is not None:
        coming = [
            Child(
                id=f"{at}",
                covers_from=batch.covers_from,
                item_count=len(batch.members),
                chars=int(batch.chars * SUMMARY_SHARE),
            )
            for at, batch in enumerate(batches)
        ]
        groups.extend(planned(store, before=over, coming=coming))
    return cycle_report(
        groups,
        trigger,
        len(pending),
        started,
        dry_run=True,
        model_s=_model_s(groups, store, summarizer, least=(limits.summarize_min, levels.minimum)),
    )


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
    standing = summarizer.standing()
    if standing.state is not SummarizerState.MODEL:
        return None
    pace = store.pace(standing.name) or MODEL_CHARS_PER_S
    read = sum(group.chars_before for group in groups if group.items >= least[group.level > 0])
    return read / pace
