"""Records of an export, an exact import and a move, and the port that reads and writes them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from mnemosyned.memory import capture, clock, consolidation, injections, values
from mnemosyned.memory.endings import EndingRecord

Outcome = bool | str | None
"""True if a record was stored, False if it was known, the reason for a conflict, or None for neither."""
OTHER_WORDS = "something else has its id here, which was kept"
WORDS_PRUNED = "its words were pruned, and the summary of them is not here"


@dataclass(frozen=True, slots=True, kw_only=True)
class ExportedEpisode:
    """A summary of any level."""

    id: str
    seq: int
    """Its place in the order of storing; kept where an import finds it free."""
    session: str
    source: str | None = None
    level: int
    content: str
    item_count: int
    covers_from: datetime
    covers_until: datetime
    summarizer: str
    created_at: datetime
    period_from: datetime | None = None
    index_terms: str = ""
    stale: bool = False
    """Whether it waits to be composed again."""
    emptied: bool = False
    """Whether it was emptied, and waits to be written again."""
    originals: int = 0
    """How many originals follow it, at level 0."""
    summary_of: tuple[str, ...] = ()
    """Above level 0, the summaries it was made from."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ExportedRevision:
    """A memory as it was before it was edited."""

    changed_at: datetime
    content: str | None = None
    """None where the words stayed, or were to be dropped."""
    content_hash: int
    fields: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class ExportedMemory:
    """A memory in working memory or the archive; without its text if that was pruned."""

    id: str
    seq: int
    """Its place in the order of storing; kept where an import finds it free."""
    session: str
    source: str | None = None
    role: str = ""
    content: str
    content_hash: int | None = None
    """Of the words before they were pruned."""
    importance: float = 0.5
    pinned: bool = False
    metadata: Mapping[str, Any] = field(default_factory=dict)
    tags: tuple[str, ...] = ()
    created_at: datetime
    episode: str | None = None
    """The summary it went into; None in working memory."""
    valid_until: datetime | None = None
    superseded_at: datetime | None = None
    pruned_at: datetime | None = None
    held_until: datetime | None = None
    """Until when an undo keeps it in working memory."""
    future_since: datetime | None = None
    """Since when its time is known to lie ahead of the clock."""
    details: tuple[tuple[str, str, bool], ...] = ()
    """Exact values in it: kind, value, and whether it is a secret."""
    revisions: tuple[ExportedRevision, ...] = ()
    """What it was before, the oldest first."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ExportedSupersession:
    """A superseded memory and its successor."""

    memory: str
    superseded_by: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ExportedCompaction:
    """The ids of the messages that a compaction removed from a conversation, in order."""

    id: str
    session: str
    source: str | None = None
    policy: str
    text_hash: int
    created_at: datetime
    parts: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class ForgottenCapture:
    """The id of a captured message that was forgotten, so that it is not captured again."""

    id: str


@dataclass(frozen=True, slots=True, kw_only=True)
class RestoreConflict:
    """A record that was not restored, because another record has its id."""

    kind: str
    id: str
    reason: str


@dataclass(slots=True, kw_only=True)
class RestoreReport:
    """The outcome of restoring records."""

    stored: dict[str, int] = field(default_factory=dict)
    """By kind of record."""
    known: dict[str, int] = field(default_factory=dict)
    """Records that were there already, by kind."""
    working: int = 0
    """Originals put into working memory, as their summary could not be restored."""
    left_out: int = 0
    """Summaries that the next sleep writes, as some of what they were made from is not here."""
    conflicts: list[RestoreConflict] = field(default_factory=list)

    def count(self, kind: str, id: str, outcome: Outcome) -> None:
        """Count a record as stored (True) or known (False), or list a conflict with its reason; skip None."""
        if isinstance(outcome, str):
            self.conflicts.append(RestoreConflict(kind=kind, id=id, reason=outcome))
        elif outcome is not None:
            counts = self.stored if outcome else self.known
            counts[kind] = counts.get(kind, 0) + 1


@dataclass(slots=True, kw_only=True)
class ForgottenCopy:
    """A copy of a forgotten memory and its learnings, of learnings alone, or of data deleted by an edit."""

    seq: int = 0
    memory: dict[str, Any] = field(default_factory=dict)
    """The values of its `RECOVERABLE` fields, by name."""
    successor: str | None = None
    predecessors: dict[str, datetime] = field(default_factory=dict)
    """The ids of the memories that it had replaced, and since when."""
    revisions: list[tuple[datetime, str | None, int, str]] = field(default_factory=list)
    """Time of each edit, text before it or None, hash of that text, and other fields as JSON."""
    learnings: list[values.Learning] = field(default_factory=list)
    edits: list[injections.BriefingEdit] = field(default_factory=list)
    endings: list[EndingRecord] = field(default_factory=list)
    read: int = 0
    """The row number up to which memories had been read for endings."""
    revised: int = 0
    """The row number of the newest revision of any memory."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RecoverableRecord:
    """A memory or a learning in its grace period."""

    id: str
    """The key under which it is kept."""
    call: str
    final_at: datetime
    data: ForgottenCopy


@dataclass(frozen=True, slots=True, kw_only=True)
class FollowedFolder:
    """A folder that is followed."""

    path: str
    added_at: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class HookActivity:
    """Sums of the hook calls of one client for one event."""

    client: str
    event: str
    calls: int
    stored: int
    characters: int
    failures: int
    total_ms: float
    slowest_ms: float
    called_at: datetime
    stored_at: datetime | None = None
    informed_at: datetime | None = None
    failed_at: datetime | None = None
    failure: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class KeptVector:
    """The vector of a memory."""

    memory: str
    model: str
    """The name of the model that made it."""
    digest: str
    """The identity of that model."""
    vector: bytes


MovedRecord = (
    RecoverableRecord
    | injections.Injection
    | FollowedFolder
    | capture.WatchedFile
    | HookActivity
    | KeptVector
    | clock.Sighting
)
"""Anything that a move carries and an export leaves out."""


Record = (
    ExportedEpisode
    | ExportedMemory
    | ExportedSupersession
    | values.Learning
    | consolidation.LogEntry
    | ExportedCompaction
    | capture.AgentSession
    | ForgottenCapture
    | injections.BriefingEdit
    | EndingRecord
)
"""Anything an export holds."""
AnyRecord = Record | MovedRecord
KIND_NAMES: Mapping[type[AnyRecord], str] = {
    ExportedEpisode: "episode",
    ExportedMemory: "memory",
    ExportedSupersession: "supersession",
    values.Learning: "learning",
    consolidation.LogEntry: "log",
    ExportedCompaction: "compaction",
    capture.AgentSession: "agent_session",
    ForgottenCapture: "forgotten",
    injections.BriefingEdit: "briefing_line",
    EndingRecord: "ending",
    injections.Injection: "injection",
    RecoverableRecord: "recoverable",
    FollowedFolder: "watched_folder",
    capture.WatchedFile: "watched_file",
    HookActivity: "hook_activity",
    KeptVector: "vector",
    clock.Sighting: "clock",
}
