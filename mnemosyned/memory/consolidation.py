"""Consolidation: the plan of a sleep cycle, its reports, and the rows of the consolidation log."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import StrEnum
from math import ceil
from typing import NamedTuple

from mnemosyned.memory.values import Episode, MemoryRecord
from mnemosyned.text.details import Detail

VERBATIM = "verbatim"
"""Name in the log, in place of a summarizer's, for groups too small to summarize."""
BY_RULE = "aaak"
"""Name in the log for the extractive summarizer."""
UNSPOKEN = "Memories that are superseded or will expire are not summarized; their words are kept."
"""Text of an episode that summarizes nothing."""
WORDLESS = "The words of its originals were pruned, and no summary of them is left."
"""Text of an episode whose summary was deleted with a forgotten original after the others were pruned."""
SILENT_TEXTS = (
    UNSPOKEN,
    WORDLESS,
    "Kept word for word: what no summary speaks of, as it is superseded or will expire.",
)
"""Texts of episodes without content; the last one is what `UNSPOKEN` was in earlier versions."""
PREVIEW_CHARS = 200


@dataclass(frozen=True, slots=True, kw_only=True)
class Pending:
    """A working memory that waits for consolidation, without its words."""

    id: str
    session: str
    source: str | None
    created_at: datetime
    chars: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Selection:
    """Conditions for the working memories that a cycle takes; it never takes pinned ones."""

    before: datetime | None = None
    """Only what was created strictly before this."""
    session: str | None = None
    sources: tuple[str | None, ...] = ()
    """Only these sources, None being no source; all where empty."""
    oldest: int | None = None
    """At most so many, the oldest."""
    now: datetime | None = None
    """The present: what an undo holds back beyond it is left out. None ignores that."""

    @property
    def everywhere(self) -> bool:
        """Whether the selection has no limit except one by age."""
        return self.session is None and not self.sources and self.oldest is None


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkingActivity:
    """Activity in working memory, for triggers to judge."""

    rows: int
    movable: int
    """Without those that are pinned."""
    bytes: int
    """Of UTF-8, the words alone."""
    oldest: datetime | None
    """Of those that are not pinned."""
    by_source: Mapping[str | None, int]
    """Movable memories by source, those of the last few minutes left out."""
    by_session: Mapping[str, tuple[int, int]]
    """Movable memories by session, and their characters."""
    quiet: timedelta = timedelta()
    """So long nothing was asked or remembered; by a clock that nobody sets."""


class ActivityGroup(NamedTuple):
    """Movable or immovable memories of one session and source."""

    session: str
    source: str | None
    stays: bool
    memories: int
    characters: int
    bytes: int
    oldest: datetime
    seasoned: int
    """How many are older than the last few minutes."""


def activity_of(groups: Iterable[ActivityGroup]) -> WorkingActivity:
    """Return the totals of all groups, with the memories that are not pinned by session and by source."""
    rows = movable = size = 0
    oldest: list[datetime] = []
    by_source: dict[str | None, int] = defaultdict(int)
    by_session: dict[str, tuple[int, int]] = {}
    for group in groups:
        rows += group.memories
        size += group.bytes
        if group.stays:
            continue
        movable += group.memories
        oldest.append(group.oldest)
        by_source[group.source] += group.seasoned
        count, characters = by_session.get(group.session, (0, 0))
        by_session[group.session] = (
            count + group.memories,
            characters + group.characters,
        )
    return WorkingActivity(
        rows=rows,
        movable=movable,
        bytes=size,
        oldest=min(oldest, default=None),
        by_source=dict(by_source),
        by_session=by_session,
    )


@dataclass(frozen=True, slots=True)
class Batch:
    """Memories of one session and source, oldest first, for one episode."""

    members: tuple[Pending, ...]

    @property
    def session(self) -> str:
        """The session that all memories of the batch belong to."""
        return self.members[0].session

    @property
    def source(self) -> str | None:
        """The source that all memories of the batch have; None for no source."""
        return self.members[0].source

    @property
    def scope(self) -> tuple[str, str | None]:
        """The session and the source (or None) that all memories of the batch share."""
        return self.session, self.source

    @property
    def ids(self) -> tuple[str, ...]:
        """The ids of the memories, in order of time."""
        return tuple(member.id for member in self.members)

    @property
    def chars(self) -> int:
        """The total number of characters in the texts of the memories."""
        return sum(member.chars for member in self.members)

    @property
    def covers_from(self) -> datetime:
        """The time of the oldest memory."""
        return self.members[0].created_at

    @property
    def covers_until(self) -> datetime:
        """The time of the newest memory."""
        return self.members[-1].created_at


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupLimits:
    """Limits of an episode (a batch never mixes sessions or sources)."""

    entries_max: int = 30
    chars_max: int = 8_000
    pause: timedelta = timedelta(hours=6)
    """A silence at least this long starts a new episode."""
    summarize_min: int = 3
    """Smaller groups are promoted word for word, each memory by itself, while they are short."""
    verbatim_chars_max: int = 600
    """Characters from which a smaller group is summarized too."""

    def are_summarized(self, count: int, chars: int) -> bool:
        """Return True if memories of this count and length are summarized, False if kept word for word."""
        return count >= self.summarize_min or chars > self.verbatim_chars_max


def plan(pending: Sequence[Pending], *, limits: GroupLimits) -> list[Batch]:
    """Return batches of the memories, one for each episode to be made, the oldest first.

    A batch has memories of one session and source, without a pause of `limits.pause` between them, and stays
    within the limits. Every memory is in exactly one batch.
    """
    groups: dict[tuple[str, str | None], list[Pending]] = {}
    for memory in sorted(pending, key=lambda memory: memory.created_at):
        groups.setdefault((memory.session, memory.source), []).append(memory)
    batches: list[Batch] = []
    for group in groups.values():
        runs = [[group[0]]]
        for memory in group[1:]:
            if memory.created_at - runs[-1][-1].created_at >= limits.pause:
                runs.append([])
            runs[-1].append(memory)
        for run in runs:
            parts = _split_by_size(run, limits)
            batches.extend(Batch(tuple(part)) for part in parts)
    return sorted(batches, key=lambda batch: batch.covers_from)


def closed_batches(
    batches: Sequence[Batch], *, until: datetime, limits: GroupLimits
) -> list[Batch]:
    """Return the batches that no memory created after `until` could join.

    If there are none, return all batches except those of the session and source with the latest memory, or
    all batches if there is only one session and source, so that a plan always makes progress.
    """
    latest: dict[tuple[str, str | None], datetime] = {}
    for batch in batches:
        scope = batch.scope
        latest[scope] = max(latest.get(scope, batch.covers_until), batch.covers_until)
    closed: list[Batch] = []
    for batch in batches:
        followed = batch.covers_until < latest[batch.scope]
        paused = until - batch.covers_until >= limits.pause
        if followed or paused:
            closed.append(batch)
    if closed or not batches:
        return closed
    last = max(reversed(batches), key=lambda batch: batch.covers_until)
    others = [batch for batch in batches if batch.scope != last.scope]
    return others or list(batches)


def _split_by_size(run: list[Pending], limits: GroupLimits) -> Iterator[list[Pending]]:
    """Yield the memories in parts of about equal length that are within the limits of an episode."""
    size, chars = len(run), sum(memory.chars for memory in run)
    parts = max(ceil(size / limits.entries_max), ceil(chars / limits.chars_max))
    parts = min(parts, size)
    if parts <= 1:
        yield run
        return
    middle = size * (parts // 2) // parts
    yield from _split_by_size(run[:middle], limits)
    yield from _split_by_size(run[middle:], limits)


def make_episode(
    memories: Sequence[MemoryRecord],
    *,
    id: str,
    content: str,
    summarizer: str,
    now: datetime,
    details: tuple[Detail, ...] = (),
) -> Episode:
    """Return an episode of these memories, given oldest first, with `content` as its summary."""
    return Episode(
        id=id,
        content=content,
        created_at=now,
        session=memories[0].session,
        source=memories[0].source,
        level=0,
        item_count=len(memories),
        covers_from=memories[0].created_at,
        covers_until=memories[-1].created_at,
        summarizer=summarizer,
        summary_of=tuple(memory.id for memory in memories),
        details=details,
    )


def log_preview(content: str) -> str:
    """Return the first `PREVIEW_CHARS` characters of a summary on one line, for the log."""
    line = " ".join(content[: PREVIEW_CHARS * 2].split())
    return line if len(line) <= PREVIEW_CHARS else line[: PREVIEW_CHARS - 1] + "…"


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
    """How far a cycle is: number of memories processed, and number found."""

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
    """Result of one group in a cycle: of memories, or of summaries that were rolled up."""

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
