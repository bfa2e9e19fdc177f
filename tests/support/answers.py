"""Answers of verbs with plausible values, of which a test states only those that it is about."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import msgspec
from support.fakes import NOON

from mnemosyned.memory.consolidation import (
    CycleReport,
    CycleStatus,
    GroupStatus,
    LogEntry,
    Trigger,
)
from mnemosyned.memory.values import (
    AgentActivity,
    EmbedderStatus,
    SummarizerStatus,
    Tier,
    TierTotals,
)
from mnemosyned.verbs.upkeep import SleepStatus, Stats

CYCLE = CycleReport(
    cycle="the-cycle",
    status=CycleStatus.DONE,
    trigger=Trigger.EXPLICIT,
    dry_run=False,
    candidates=3,
    groups=(),
    duration_s=0.1,
    promoted=1,
    evicted=3,
    failed=0,
    chars_before=300,
    chars_after=100,
)
ENTRY = LogEntry(
    cycle="the-cycle",
    created_at=NOON,
    session="Haushalt",
    source=None,
    trigger="schedule",
    status=GroupStatus.PROMOTED,
    items_consolidated=3,
    episode="an-episode",
    summarizer="aaak",
    summary_preview="",
    duration_s=0.1,
    chars_before=300,
    chars_after=100,
)
SILENT = AgentActivity(
    client="claude-code",
    event="Stop",
    calls=1,
    stored=0,
    characters=0,
    failures=0,
    mean_ms=10,
    slowest_ms=20,
    called_at=NOON,
)
"""One call of a hook that stored and injected nothing."""
STATUS = Stats(
    version="0.1.0",
    schema_version=15,
    database="/home/ada/.local/state/mnemosyned/memory.db",
    bytes_on_disk=4_200_000,
    tiers={tier: TierTotals(1204, 99_000, NOON) for tier in Tier},
    today=14,
    wm_max=10_000,
    sleep=SleepStatus(
        auto=True,
        schedule="every 60 minutes",
        last_cycle=None,
        next_cycle=NOON,
        running=False,
        due=12,
    ),
    summarizer=SummarizerStatus(name="aaak", reason="no model is configured"),
    counter="estimate",
    embedder=EmbedderStatus(),
    pid=4711,
    uptime_s=11_520.0,
    longest_write_ms=3.1,
)


def stats(**changes: object) -> Stats:
    """The status of a memory in good health, but for these fields."""
    return msgspec.structs.replace(STATUS, **changes)


def sleep_status(**changes: object) -> SleepStatus:
    """The status of a sleep that waits for its next cycle, but for these fields."""
    return msgspec.structs.replace(STATUS.sleep, **changes)


def activity(client: str, **changes: Any) -> AgentActivity:  # noqa: ANN401
    """What is known of a tool's hook, but for these fields."""
    return replace(SILENT, client=client, **changes)
