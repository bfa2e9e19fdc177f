"""Reports of sleep cycles, and the rows of the log."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum


class Trigger(StrEnum):
    """Cause of a sleep cycle."""

    EXPLICIT = "explicit"
    SCHEDULE = "schedule"
    AGE = "age"
    COUNT = "count"
    SIZE = "size"
    IDLE = "idle"
    TOKENS = "tokens"
    CAP = "cap"
    """Working memory holds more than `wm_max`, and whoever remembered something noticed."""
    SHUTDOWN = "shutdown"


class GroupStatus(StrEnum):
    """Outcome of one group."""

    PROMOTED = "promoted"
    VERBATIM = "verbatim"
    FAILED = "failed"
    PLANNED = "planned"
    UNDONE = "undone"
    """Its originals are back in working memory."""
    KEPT = "kept"
    """An undo left it as it is; `error` says why."""


class CycleStatus(StrEnum):
    """Outcome of one cycle."""

    DONE = "done"
    NOTHING_TO_DO = "nothing_to_do"
    UNDONE = "undone"
    STOPPED = "stopped"
    """Somebody stopped it; the rest waits for the next cycle."""
    NOT_RUNNING = "not_running"
    """Somebody wanted to stop a cycle, and none ran."""
    PAUSED = "paused"
    """No cycle: until `held_until` none starts in the background; null where a pause was ended."""
    PARTIAL = "partial"
    """Some groups failed or the deadline came; the rest waits for the next cycle. Of an undo:
    not all could be put back."""


@dataclass(frozen=True, slots=True)
class Progress:
    """How far a cycle is: memories dealt with, of those it found."""

    done: int
    total: int


@dataclass(frozen=True, slots=True, kw_only=True)
class LogEntry:
    """One row of `consolidation_log`: a group that a cycle tried."""

    id: int = 0
    """Given by the store; 0 until then."""
    cycle: str
    created_at: datetime
    session: str
    source: str | None
    trigger: str
    status: GroupStatus
    items_consolidated: int
    """Memories promoted; 0 where summaries were rolled up, so that the sum counts each once."""
    episode: str | None
    summarizer: str
    """Who wrote the summary as it reads now; empty where nothing was written."""
    summary_preview: str
    error: str | None = None
    duration_s: float
    chars_before: int
    chars_after: int
    fallback_reason: str | None = None
    """Why the summary is a fallback's."""
    model_share: float | None = None
    """Share of its characters that a model wrote; None where no model wrote any."""
    undone_at: datetime | None = None
    """When its originals were put back."""
    level: int = 0
    """0 where originals became an episode; above, summaries became a day, week or month."""


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupReport:
    """One group of a cycle: memories that become episodes, or summaries that are rolled up."""

    session: str
    source: str | None
    status: GroupStatus
    items: int
    covers_from: datetime
    covers_until: datetime
    episodes: tuple[str, ...] = ()
    chars_before: int
    chars_after: int = 0
    error: str | None = None
    fallback_reason: str | None = None
    level: int = 0
    """0 where memories became an episode; above, summaries became a day, week or month."""
    period: str = ""
    """That day, week or month; for an episode, the day it will be rolled up into."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CycleReport:
    """Report of a sleep cycle: its results, or with `dry_run` its plan."""

    cycle: str
    status: CycleStatus
    trigger: Trigger
    dry_run: bool
    candidates: int
    groups: tuple[GroupReport, ...]
    duration_s: float

    promoted: int
    """Episodes written."""
    evicted: int
    """Originals moved from working memory to the archive."""
    failed: int
    """Groups that failed and stay as they were."""
    rolled_up: int = 0
    """Days, weeks and months written."""
    remaining: int = 0
    """Memories that were to be consolidated and wait for the next cycle."""
    model_s: float | None = None
    """In a dry run, about how long a model would write; None where none is in force."""
    chars_before: int
    chars_after: int
    restored: int = 0
    """Originals that an undo put back into working memory."""
    held_until: datetime | None = None
    """Until then no cycle takes what an undo put back, but one with `force`; or, paused, until then
    no cycle starts in the background."""
    problem: str = ""
    """What ended it early, such as a full disk; what the report counts is on disk all the same."""
