"""Every verb once: its request, its result and its help; all surfaces are read from here."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime
from typing import Annotated, Any, Concatenate, ParamSpec, Protocol, TypeVar

import msgspec
from msgspec import Meta

from mnemosyned.domain.consolidation import CycleReport, LogEntry, Progress
from mnemosyned.domain.memory import (
    DEFAULT_SESSION,
    Acknowledged,
    Episode,
    MemoryRecord,
    Tier,
    TierTotals,
)
from mnemosyned.domain.ports.models import EmbedderStatus, SummarizerStatus
from mnemosyned.domain.search.query import Hit
from mnemosyned.verbs.conversation import Compact, Context, Learn, Learnings
from mnemosyned.verbs.request import (
    TEXT_MAX,
    Instant,
    Name,
    Names,
    PageSize,
    Question,
    Request,
    Reveal,
    prepare,
)
from mnemosyned.verbs.retention import Backup, Forget, Pin, Prune, Restore

R = TypeVar("R")
P = ParamSpec("P")

METADATA_BYTES_MAX = 64 * 1024
BATCH_MAX = 1_000
Hours = Annotated[float, Meta(gt=0, le=366 * 24)]


# ------------------------------------------------------------------ remember


class Remember(Request[Acknowledged], frozen=True, forbid_unknown_fields=True):
    """Keep one memory. When this answers, it is on disk."""

    writes = True

    content: Annotated[str, Meta(description="the words to remember")]
    id: Annotated[
        Name | None, Meta(description="your own id; the same call may be repeated")
    ] = None
    session: Annotated[
        Name, Meta(description="the conversation or run it belongs to")
    ] = DEFAULT_SESSION
    source: Annotated[
        Name | None, Meta(description="where it comes from: an agent, a tool")
    ] = None
    role: Annotated[
        str,
        Meta(description="who said it: user, assistant or a name", max_length=TEXT_MAX),
    ] = ""
    created_at: Annotated[
        Instant | None,
        Meta(description="when it happened: 2026-03-09T14:30:00Z; default: now"),
    ] = None
    importance: Annotated[
        float, Meta(description="0 to 1, for its rank", ge=0, le=1)
    ] = 0.5
    pinned: Annotated[bool, Meta(description="never leaves working memory")] = False
    metadata: Annotated[
        dict[str, Any], Meta(description="a JSON object of your own")
    ] = msgspec.field(default_factory=dict)
    dedupe: Annotated[
        bool,
        Meta(
            description="if this session and source said it before, answer with that id"
        ),
    ] = False
    valid_until: Annotated[
        Instant | None,
        Meta(description="from then on it is not recalled; no summary speaks of it"),
    ] = None
    supersedes: Annotated[
        Name | None, Meta(description="the id of the memory whose place it takes")
    ] = None


class RememberedMany(msgspec.Struct, frozen=True):
    """The acknowledgement of a batch: all of it is on disk."""

    memories: list[Acknowledged]


class RememberMany(Request[RememberedMany], frozen=True, forbid_unknown_fields=True):
    """Keep a batch of memories, all or none."""

    writes = True

    memories: Annotated[
        list[Remember],
        Meta(description="up to 1,000", min_length=1, max_length=BATCH_MAX),
    ]
    dry_run: Annotated[bool, Meta(description="check the batch; keep nothing")] = False


# -------------------------------------------------------------------- recall


class Recalled(msgspec.Struct, frozen=True):
    """What was found, best first; empty when nothing matches."""

    hits: list[Hit]
    note: str = ""
    """What limited the search, such as an embedding model that was not ready."""


class Recall(Request[Recalled], frozen=True, forbid_unknown_fields=True):
    """Find what is known: a question in, the best memories out.

    A time in the question, such as "last week" or "in May 2023", prefers what happened then.
    """

    query: Annotated[Question, Meta(description="plain words; no operators")]
    limit: Annotated[int, Meta(description="how many hits at most", ge=1, le=100)] = 10
    session: Annotated[Names, Meta(description="only this session, or these")] = None
    source: Annotated[Names, Meta(description="only this source, or these")] = None
    tier: Annotated[Tier | None, Meta(description="only this tier")] = None
    since: Annotated[
        Instant | None, Meta(description="only what happened at or after")
    ] = None
    until: Annotated[Instant | None, Meta(description="only what happened before")] = (
        None
    )
    asked_at: Annotated[
        Instant | None,
        Meta(description='when and where "yesterday" is asked; default: now, here'),
    ] = None
    explain: Annotated[bool, Meta(description="show what each score is made of")] = (
        False
    )
    history: Annotated[
        bool,
        Meta(description="also what was superseded; each hit shows what it superseded"),
    ] = False
    reveal: Reveal = False


class Got(msgspec.Struct, frozen=True):
    """One memory or episode, whole."""

    memory: MemoryRecord | None = None
    episode: Episode | None = None


class Get(Request[Got], frozen=True, forbid_unknown_fields=True):
    """Show one memory or episode, whole."""

    id: Annotated[Name, Meta(description="the id of a memory or an episode")]
    reveal: Reveal = False


class Expanded(msgspec.Struct, frozen=True):
    """A summary and the exact words it came from, oldest first."""

    episode: Episode
    originals: list[MemoryRecord]
    summaries: list[Episode] = msgspec.field(default_factory=list)
    """The summaries one level below, where only that was asked for."""


class Expand(Request[Expanded], frozen=True, forbid_unknown_fields=True):
    """Go from a summary back to its originals, word for word."""

    id: Annotated[Name, Meta(description="the id of an episode, day, week or month")]
    depth: Annotated[
        int,
        Meta(
            description="1: one level down; 0: all the way to the originals", ge=0, le=1
        ),
    ] = 0
    reveal: Reveal = False


# --------------------------------------------------------------------- sleep


class Sleep(Request[CycleReport], frozen=True, forbid_unknown_fields=True):
    """Run a sleep cycle now, or take one back.

    Old memories become episodes; the originals move to the archive. The log says what and why.
    """

    writes = True

    session: Annotated[Name | None, Meta(description="only this session")] = None
    force: Annotated[bool, Meta(description="ignore the age rule")] = False
    dry_run: Annotated[
        bool, Meta(description="show the plan; write nothing, call no model")
    ] = False
    undo: Annotated[
        Name | None,
        Meta(
            description="take a cycle back, or the last: its originals return to working memory"
        ),
    ] = None
    keep_hours: Annotated[
        Hours | None,
        Meta(
            description="with undo: let them stay so long; default: to the next scheduled cycle"
        ),
    ] = None


class Logged(msgspec.Struct, frozen=True):
    """Rows of the consolidation log, newest first."""

    rows: list[LogEntry]


class Log(Request[Logged], frozen=True, forbid_unknown_fields=True):
    """Show what was consolidated, newest first.

    The rows of a cycle stand under its id, each with the id of what was written.
    """

    limit: Annotated[PageSize, Meta(description="how many rows at most")] = 20
    session: Annotated[Name | None, Meta(description="only this session")] = None
    cycle: Annotated[Name | None, Meta(description="only this sleep cycle")] = None


# -------------------------------------------------------------------- status


class SleepStatus(msgspec.Struct, frozen=True, kw_only=True):
    """When the daemon slept, and when it will."""

    auto: bool
    schedule: str
    last_cycle: datetime | None
    next_cycle: datetime | None
    running: bool
    due: int
    """Memories old enough for the next cycle."""
    progress: Progress | None = None
    """How far the running cycle is; null where none runs."""
    waits_for: str = ""
    """Why the last scheduled cycle was put off; empty where it was not."""


class Stats(msgspec.Struct, frozen=True, kw_only=True):
    """The state of the store and the daemon."""

    version: str
    schema_version: int
    database: str
    bytes_on_disk: int
    tiers: dict[Tier, TierTotals]
    wm_max: int
    sleep: SleepStatus
    summarizer: SummarizerStatus
    counter: str
    """Who counts the tokens of contexts."""
    embedder: EmbedderStatus
    pid: int
    uptime_s: float
    longest_write_ms: float
    """The longest that one commit kept other writers waiting since the start."""
    purge_due: bool = False
    """Whether words of forgotten memories are still to be purged from the file."""
    problems: list[str] = msgspec.field(default_factory=list)
    """What is wrong now, and what to do about it. The watchdog restarts a daemon that has some."""
    warnings: list[str] = msgspec.field(default_factory=list)
    """What the owner should know about the database file; empty where all is well."""
    clock: str = ""
    """Why the clock is not believed, so that nothing is pruned by age; empty where it is."""


class Status(Request[Stats], frozen=True, forbid_unknown_fields=True):
    """Show counts, sizes, cycles, and what writes the summaries."""


# -------------------------------------------------------------------- facade


class Caller(Protocol):
    """Whatever can carry a request to the service and bring back its result."""

    def call(self, request: Request[R], /) -> R:
        """Run one verb."""
        ...


def verb(request: Callable[P, Request[R]]) -> Callable[Concatenate[Caller, P], R]:
    """Turn a request type into a method with that request's signature and result."""

    def method(self: Caller, /, *args: P.args, **kwargs: P.kwargs) -> R:
        return self.call(request(*args, **kwargs))

    method.__doc__ = request.__doc__
    return method


class Verbs:
    """Every verb as a method; `Client` and `Memory` inherit them and bring `call`."""

    remember = verb(Remember)
    remember_many = verb(RememberMany)
    recall = verb(Recall)
    get = verb(Get)
    expand = verb(Expand)
    sleep = verb(Sleep)
    consolidate = verb(Sleep)
    forget = verb(Forget)
    pin = verb(Pin)
    restore = verb(Restore)
    prune = verb(Prune)
    backup = verb(Backup)
    status = verb(Status)
    log = verb(Log)
    learn = verb(Learn)
    learnings = verb(Learnings)
    context = verb(Context)
    compact = verb(Compact)


VERBS: dict[str, type[Request[Any]]] = {
    "remember": Remember,
    "remember_many": RememberMany,
    "recall": Recall,
    "get": Get,
    "expand": Expand,
    "sleep": Sleep,
    "forget": Forget,
    "pin": Pin,
    "restore": Restore,
    "prune": Prune,
    "backup": Backup,
    "status": Status,
    "log": Log,
    "learn": Learn,
    "learnings": Learnings,
    "context": Context,
    "compact": Compact,
}
ALIASES = {"consolidate": "sleep"}
for _verb in VERBS.values():  # at import, which no two threads do at once
    prepare(_verb)
