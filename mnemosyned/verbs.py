"""Every verb once: its request, its result and its help; all surfaces are read from here."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime
from typing import Annotated, Any, Concatenate, ParamSpec, Protocol, TypeVar

import msgspec
from msgspec import Meta

from mnemosyned.domain.consolidation import CycleReport, LogEntry, Progress
from mnemosyned.domain.forgetting import Foreseen
from mnemosyned.domain.learnings import Learning, LearningKind
from mnemosyned.domain.memory import (
    DEFAULT_SESSION,
    Acknowledged,
    Episode,
    Memory,
    Tier,
    TierTotals,
)
from mnemosyned.domain.ports import EmbedderStanding, Standing
from mnemosyned.domain.recall import Hit
from mnemosyned.requests import TEXT_MAX, Instant, Name, Names, PageSize, Request, Reveal
from mnemosyned.verbs_window import Compact, Context

R = TypeVar("R")
P = ParamSpec("P")

METADATA_BYTES_MAX = 64 * 1024
BATCH_MAX = 1_000
QUERY_CHARS_MAX = 4_096

Question = Annotated[str, Meta(min_length=1, max_length=QUERY_CHARS_MAX)]
Days = Annotated[float, Meta(gt=0, le=366_000)]
Characters = Annotated[int, Meta(ge=0)]
LEARNING_CHARS_MAX = 2_000

Lesson = Annotated[str, Meta(max_length=LEARNING_CHARS_MAX)]


# ------------------------------------------------------------------ remember


class Remember(Request[Acknowledged], frozen=True, forbid_unknown_fields=True):
    """Keep one memory. When this answers, it is on disk."""

    writes = True

    content: Annotated[str, Meta(description="the words to remember")]
    id: Annotated[Name | None, Meta(description="your own id; the same call may be repeated")] = (
        None
    )
    session: Annotated[Name, Meta(description="the conversation or run it belongs to")] = (
        DEFAULT_SESSION
    )
    source: Annotated[Name | None, Meta(description="where it comes from: an agent, a tool")] = None
    role: Annotated[
        str, Meta(description="who said it: user, assistant or a name", max_length=TEXT_MAX)
    ] = ""
    created_at: Annotated[
        Instant | None, Meta(description="when it happened: 2026-03-09T14:30:00Z; default: now")
    ] = None
    importance: Annotated[float, Meta(description="0 to 1, for its rank", ge=0, le=1)] = 0.5
    pinned: Annotated[bool, Meta(description="never leaves working memory")] = False
    metadata: Annotated[dict[str, Any], Meta(description="a JSON object of your own")] = (
        msgspec.field(default_factory=dict)
    )
    dedupe: Annotated[
        bool, Meta(description="if this session and source said it before, answer with that id")
    ] = False
    valid_until: Annotated[
        Instant | None, Meta(description="from then on it is not recalled; no summary speaks of it")
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
        list[Remember], Meta(description="up to 1,000", min_length=1, max_length=BATCH_MAX)
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
    since: Annotated[Instant | None, Meta(description="only what happened at or after")] = None
    until: Annotated[Instant | None, Meta(description="only what happened before")] = None
    asked_at: Annotated[
        Instant | None, Meta(description='when and where "yesterday" is asked; default: now, here')
    ] = None
    explain: Annotated[bool, Meta(description="show what each score is made of")] = False
    history: Annotated[
        bool, Meta(description="also what was superseded; each hit shows what it superseded")
    ] = False
    reveal: Reveal = False


class Got(msgspec.Struct, frozen=True):
    """One memory or episode, whole."""

    memory: Memory | None = None
    episode: Episode | None = None


class Get(Request[Got], frozen=True, forbid_unknown_fields=True):
    """Show one memory or episode, whole."""

    id: Annotated[Name, Meta(description="the id of a memory or an episode")]
    reveal: Reveal = False


class Expanded(msgspec.Struct, frozen=True):
    """A summary and the exact words it came from, oldest first."""

    episode: Episode
    originals: list[Memory]
    summaries: list[Episode] = msgspec.field(default_factory=list)
    """The summaries one level below, where only that was asked for."""


class Expand(Request[Expanded], frozen=True, forbid_unknown_fields=True):
    """Go from a summary back to its originals, word for word."""

    id: Annotated[Name, Meta(description="the id of an episode, day, week or month")]
    depth: Annotated[
        int, Meta(description="1: one level down; 0: all the way to the originals", ge=0, le=1)
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
    dry_run: Annotated[bool, Meta(description="show the plan; write nothing, call no model")] = (
        False
    )
    undo: Annotated[
        Name | None, Meta(description="take a cycle back: its originals return to working memory")
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


# -------------------------------------------------------------------- forget


class Forgotten(msgspec.Struct, frozen=True, kw_only=True):
    """The receipt: how much is gone. It holds no content, other than a preview's few lines."""

    dry_run: bool
    memories: int
    working: int
    archived: int
    details: int
    """Exact values that went with them."""
    episodes_removed: int
    episodes_rewritten: int
    """Summaries of every level, rewritten from what remains."""
    lines: list[Foreseen]
    """With `dry_run`, some of the memories that would go."""
    complete: bool
    """False while another program reads the file: its log is emptied when that program is done."""
    backups: list[str]
    """Files beside the database that look like copies of it: nothing was forgotten in them."""


class Forget(Request[Forgotten], frozen=True, forbid_unknown_fields=True):
    """Delete memories from every tier, index, summary and log.

    Name one by its id (an episode's takes its originals along), or say which: those for which
    everything said holds. The shell shows what would go and asks first, or needs --yes.
    """

    writes = True

    id: Annotated[Name | None, Meta(description="the id of a memory or an episode")] = None
    query: Annotated[Question | None, Meta(description="those with all of these words")] = None
    session: Annotated[Names, Meta(description="those of this session, or these")] = None
    source: Annotated[Names, Meta(description="those of this source, or these")] = None
    since: Annotated[Instant | None, Meta(description="those that happened at or after")] = None
    until: Annotated[Instant | None, Meta(description="those that happened before")] = None
    person: Annotated[
        Name | None, Meta(description="those that mention this name, or were said by that person")
    ] = None
    dry_run: Annotated[bool, Meta(description="show what would go; forget nothing")] = False


# ---------------------------------------------------------- keeping and pruning


class Pinned(msgspec.Struct, frozen=True):
    """A working memory that stays, or may go again."""

    id: str
    pinned: bool


class Pin(Request[Pinned], frozen=True, forbid_unknown_fields=True):
    """Keep a memory in working memory, whatever its age."""

    writes = True

    id: Annotated[Name, Meta(description="the id of a working memory")]
    off: Annotated[bool, Meta(description="let it go again")] = False


class Restored(msgspec.Struct, frozen=True, kw_only=True):
    """An original that is back in working memory, pinned."""

    id: str
    episode: str
    episode_removed: bool
    """True where nothing was left of the episode; else it was rewritten without this one."""


class Restore(Request[Restored], frozen=True, forbid_unknown_fields=True):
    """Bring an original back to working memory, pinned.

    Its episode is rewritten without it. `mnem pin --off` lets sleep take it again.
    """

    writes = True

    id: Annotated[Name, Meta(description="the id of an original")]


class Pruned(msgspec.Struct, frozen=True, kw_only=True):
    """What the archive's retention gave up, or would."""

    dry_run: bool
    memories: int
    characters: int
    oldest: datetime | None
    newest: datetime | None
    more: bool
    """Whether there is more than one call takes."""


class Prune(Request[Pruned], frozen=True, forbid_unknown_fields=True):
    """Delete the words of old originals.

    Which ones, the settings or the options say; by default the archive keeps everything.
    Summaries, exact details and provenance stay.
    """

    writes = True

    keep_days: Annotated[Days | None, Meta(description="older originals lose their words")] = None
    characters_max: Annotated[
        Characters | None, Meta(description="beyond so many characters in all, the oldest do")
    ] = None
    dry_run: Annotated[bool, Meta(description="show what would go; prune nothing")] = False


# ----------------------------------------------------------------- learnings


class Learned(msgspec.Struct, frozen=True):
    """The learning as it is kept."""

    learning: Learning
    superseded: list[str]
    """Ids of older learnings that it contradicts and takes the place of."""


class Learn(Request[Learned], frozen=True, forbid_unknown_fields=True):
    """Keep a lesson for good: it goes into every context of its source.

    What users say to hold ("always", "never", "call me") is kept without being asked.
    """

    writes = True

    content: Annotated[Lesson, Meta(description="the lesson, in one sentence")]
    kind: Annotated[LearningKind, Meta(description="what it is")] = LearningKind.LESSON
    session: Annotated[Name, Meta(description="where it was learned")] = DEFAULT_SESSION
    source: Annotated[Name | None, Meta(description="whose it is: an agent, a tool")] = None


class LearningList(msgspec.Struct, frozen=True):
    """What holds, newest first."""

    learnings: list[Learning]


class Learnings(Request[LearningList], frozen=True, forbid_unknown_fields=True):
    """Show what was learned for good, newest first; edit one, or remove it."""

    writes = True

    source: Annotated[Names, Meta(description="only of this source, or these")] = None
    kind: Annotated[LearningKind | None, Meta(description="only of this kind")] = None
    superseded: Annotated[bool, Meta(description="also what newer ones took the place of")] = False
    limit: Annotated[PageSize, Meta(description="how many at most")] = 100
    edit: Annotated[Name | None, Meta(description="the id of one to give other words")] = None
    text: Annotated[Lesson | None, Meta(description="the other words")] = None
    remove: Annotated[Name | None, Meta(description="the id of one to delete")] = None


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
    summarizer: Standing
    counter: str
    """Who counts the tokens of contexts."""
    embedder: EmbedderStanding
    pid: int
    uptime_s: float
    longest_write_ms: float
    """The longest that one commit kept other writers waiting since the start."""


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
    "status": Status,
    "log": Log,
    "learn": Learn,
    "learnings": Learnings,
    "context": Context,
    "compact": Compact,
}
ALIASES = {"consolidate": "sleep"}
