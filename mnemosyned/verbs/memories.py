"""Verbs that store and find memories: remember, recall, get and expand."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Annotated, Any, TypeVar

import msgspec
from msgspec import Meta

from mnemosyned.domain.learnings.learning import Learning
from mnemosyned.domain.memory import (
    DEFAULT_SESSION,
    Acknowledged,
    Episode,
    MemoryRecord,
    Revision,
    Tier,
)
from mnemosyned.domain.search.results import Hit
from mnemosyned.verbs.changes import Tags
from mnemosyned.verbs.request import (
    NOT_EMPTY,
    TEXT_MAX,
    ById,
    Instant,
    Name,
    OnlySession,
    OnlySource,
    OnlyTag,
    Question,
    Request,
    Reveal,
    Since,
    Until,
)

R = TypeVar("R")

METADATA_BYTES_MAX = 64 * 1024
BATCH_MAX = 1_000


# ------------------------------------------------------------------ remember


class _Content(Request[R], frozen=True, forbid_unknown_fields=True):
    content: Annotated[
        str, Meta(description="the text to remember", extra_json_schema=NOT_EMPTY)
    ]


class Remember(
    _Content[Acknowledged], frozen=True, forbid_unknown_fields=True, kw_only=True
):
    """Store one memory. When this returns, it is on disk.

    Raises `EmptyContent`, `ContentTooLarge`, `InvalidText`, `InvalidTime`, `SecretRefused`,
    `IdTaken`, and `NotFound` for an unknown memory in `supersedes`.
    """

    writes = True
    repeatable = True

    id: Annotated[
        Name | None,
        Meta(description="your own id; repeating the call stores nothing twice"),
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
        Meta(description="when it happened: 2026-03-09, yesterday 14:30; default: now"),
    ] = None
    importance: Annotated[
        float, Meta(description="weight in ranking, 0 to 1", ge=0, le=1)
    ] = 0.5
    pinned: Annotated[bool, Meta(description="keep it in working memory")] = False
    metadata: Annotated[
        dict[str, Any], Meta(description="a JSON object of your own")
    ] = msgspec.field(default_factory=dict)
    tags: Annotated[Tags, Meta(description="tags, in any case")] = msgspec.field(
        default_factory=list
    )
    dedupe: Annotated[
        bool,
        Meta(
            description="if this session and source has the same text, return that memory's id"
        ),
    ] = False
    valid_until: Annotated[
        Instant | None,
        Meta(description="do not recall or summarize it after this time: tomorrow, 7d"),
    ] = None
    supersedes: Annotated[
        Name | None, Meta(description="the id of the memory it replaces")
    ] = None


class RememberedMany(msgspec.Struct, frozen=True):
    """The acknowledgement of a batch: all of it is on disk."""

    memories: list[Acknowledged]
    learned: int = 0
    """How many instructions, preferences and names in force were recognized in it."""
    would_learn: list[Learning] = []
    """On a dry run, those that were recognized."""

    def __iter__(self) -> Iterator[Acknowledged]:
        return iter(self.memories)

    def __len__(self) -> int:
        return len(self.memories)


class _Memories(Request[R], frozen=True, forbid_unknown_fields=True):
    memories: Annotated[
        list[Remember],
        Meta(description="up to 1,000", min_length=1, max_length=BATCH_MAX),
    ]


class RememberMany(
    _Memories[RememberedMany], frozen=True, forbid_unknown_fields=True, kw_only=True
):
    """Store a batch of memories, all or none.

    Raises what `remember` raises; the error's `field` names the memory at fault.
    """

    writes = True
    repeatable = True

    dry_run: Annotated[bool, Meta(description="check the batch; store nothing")] = False


# -------------------------------------------------------------------- recall


class Recalled(msgspec.Struct, frozen=True):
    """The hits, best first; empty when nothing matches."""

    hits: list[Hit]
    note: str = ""
    """What the answer lacks: a time without a match, or an embedding model that was not ready."""
    matching: tuple[str, ...] = ()
    """How the words that were searched for begin, to highlight them in a text."""

    def __iter__(self) -> Iterator[Hit]:
        return iter(self.hits)

    def __len__(self) -> int:
        return len(self.hits)


class _Query(Request[R], frozen=True, forbid_unknown_fields=True):
    query: Annotated[Question, Meta(description="plain words; no operators")]


class Recall(_Query[Recalled], frozen=True, forbid_unknown_fields=True, kw_only=True):
    """Search for memories; the best matches come first.

    A time in the query, such as "last week" or "in May 2023", ranks memories of that time first.

    Raises `InvalidText` and `InvalidTime`.
    """

    limit: Annotated[int, Meta(description="maximum number of hits", ge=1, le=100)] = 10
    session: OnlySession = None
    source: OnlySource = None
    tag: OnlyTag = None
    tier: Annotated[Tier | None, Meta(description="only this tier")] = None
    since: Since = None
    until: Until = None
    asked_at: Annotated[
        Instant | None,
        Meta(description='the time that "yesterday" refers to; default: now, here'),
    ] = None
    explain: Annotated[bool, Meta(description="show the parts of each score")] = False
    history: Annotated[
        bool,
        Meta(
            description="include superseded memories; each hit lists what it replaced"
        ),
    ] = False
    reveal: Reveal = False


# ----------------------------------------------------------- get and expand


class Got(msgspec.Struct, frozen=True):
    """One memory or episode in full."""

    memory: MemoryRecord | None = None
    episode: Episode | None = None
    revisions: list[Revision] = msgspec.field(default_factory=list)
    """What the memory was before it was edited, the latest first; only with `history`."""


class Get(ById[Got], frozen=True, forbid_unknown_fields=True, kw_only=True):
    """Show one memory or episode in full.

    Raises `NotFound`.
    """

    history: Annotated[
        bool, Meta(description="show what a memory was before it was edited")
    ] = False
    reveal: Reveal = False


class Expanded(msgspec.Struct, frozen=True):
    """A summary and its originals, oldest first."""

    episode: Episode
    originals: list[MemoryRecord]
    summaries: list[Episode] = msgspec.field(default_factory=list)
    """The summaries one level below, where only that level was asked for."""


class Expand(ById[Expanded], frozen=True, forbid_unknown_fields=True, kw_only=True):
    """Show the originals of a summary, word for word.

    The id is that of an episode, day, week or month, or one that `compact` returned.

    Raises `NotFound`, and `InvalidRequest` for an id that is not a summary's.
    """

    depth: Annotated[
        int,
        Meta(
            description="1: one level down; 0: all the way to the originals", ge=0, le=1
        ),
    ] = 0
    reveal: Reveal = False
