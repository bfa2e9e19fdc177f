"""Verbs that store, find and change memories: remember, recall, get, expand, edit, tag and pin.

A verb selects memories by ids or by filters, with a preview of the change.
"""

from __future__ import annotations

from typing import Annotated, Any, TypeVar

import msgspec
from msgspec import Meta

from mnemosyned.memory import values
from mnemosyned.verbs.request import (
    NOT_EMPTY,
    TEXT_MAX,
    ById,
    ImportId,
    Instant,
    Name,
    Names,
    OnlySession,
    OnlySource,
    OnlyTag,
    ProjectKey,
    Question,
    Request,
    Reveal,
    RowList,
    Since,
    Until,
    doc,
)

R = TypeVar("R")


class SelectionPreview(msgspec.Struct, frozen=True, kw_only=True):
    """Fields that the result of every verb with a preview has."""

    dry_run: bool = False
    memories: int
    """Number of memories selected."""
    lines: list[values.PreviewLine] = msgspec.field(default_factory=list)
    """Memories selected, 10,000 at most; only with `dry_run`."""
    further: int = 0
    """Number of memories beyond those lines; `after`, with the last id, lists them."""
    mark: str = ""
    """What the preview saw: hand it in to change exactly that; only with `dry_run`."""


class TargetRequest(Request[R], frozen=True):
    """A call on memories, selected by ids or by filters."""

    id: Annotated[Names, doc("the id of a memory or an episode; repeatable")] = None


class Filtered(TargetRequest[R], frozen=True, kw_only=True):
    """A change of the memories selected by ids or by filters.

    These filters do not bear the name of a field to be changed.
    """

    writes = True
    takes_long = True

    query: Annotated[Question | None, doc("memories with all of these words")] = None
    tag: Annotated[Names, doc("memories with one of these tags; repeatable")] = None
    since: Annotated[
        Instant | None, doc("memories from this time on: 2026-03-09, 7d")
    ] = None
    until: Annotated[
        Instant | None, doc("memories until this time; a day is included")
    ] = None
    person: Annotated[
        Name | None, doc("memories that mention this name, or that this person said")
    ] = None
    project: Annotated[
        ProjectKey | None,
        doc("memories of agents' sessions in this project, by its key in `projects`"),
    ] = None
    dry_run: Annotated[bool, doc("show the preview; change nothing")] = False
    after: Annotated[
        Name | None, doc("with dry_run: list only what comes after this memory")
    ] = None
    mark: Annotated[
        Name | None, doc("change only what the preview with this mark showed")
    ] = None


class Selecting(Filtered[R], frozen=True, kw_only=True):
    """All filters."""

    session: Annotated[Names, doc("memories of this session; repeatable")] = None
    source: Annotated[Names, doc("memories of this source; repeatable")] = None


TAG_INPUT_CHARS_MAX = 2 * values.TAG_CHARS_MAX
TagName = Annotated[str, Meta(max_length=TAG_INPUT_CHARS_MAX)]
Label = Annotated[str, Meta(max_length=TEXT_MAX)]
Weight = Annotated[float, Meta(ge=0, le=1)]
Tags = Annotated[list[TagName], Meta(max_length=values.TAGS_MAX)]


class Edited(SelectionPreview, frozen=True, kw_only=True):
    """Memories that were edited."""

    id: str = ""
    """The id, where one was given."""
    changed: int = 0
    """Number of memories that are not as they were before."""
    restored: int = 0
    """Number of originals that are back in working memory: the next sleep consolidates them where
    they belong now."""
    kept: int = 0
    """Number of originals that were left as they are, as their summaries cannot be rewritten:
    others of their episodes were pruned."""
    secrets: str = ""
    """How secrets in the new text were treated: `kept` or `masked`; empty if it has none."""
    note: str = ""
    """What waits: summaries to be rewritten, or earlier words to be purged from the file."""


class EditMemory(Filtered[Edited], frozen=True, kw_only=True):
    """Change the text of a memory, or where it belongs.

    Index, exact values, learnings, vectors and summaries made from it are updated. The earlier version
    is kept: `get --history` shows it. Filters select several memories for a new session, source or
    tags. At a terminal, without a change on the command line, the text opens in your editor.

    Raises `NotFound`, `InvalidRequest`, `EmptyContent`, `ContentTooLarge`, `InvalidText`,
    `InvalidTime`, `SecretRefused`, `BatchChanged`, `WordsPruned` and `PartlyDone`.
    """

    verb = "edit"

    text: Annotated[str | None, doc("the new text")] = None
    session: Annotated[Name | None, doc("the session it belongs to from now on")] = None
    source: Annotated[Label | None, doc("its source from now on; empty for none")] = (
        None
    )
    role: Annotated[Label | None, doc("who said it; empty for nobody")] = None
    created_at: Annotated[
        Instant | None, doc("when it happened: yesterday, 2026-03-09")
    ] = None
    importance: Annotated[Weight | None, doc("weight in ranking, 0 to 1")] = None
    tags: Annotated[Tags | None, doc("all its tags from now on")] = None
    of_session: Annotated[Names, doc("memories of this session; repeatable")] = None
    of_source: Annotated[Names, doc("memories of this source; repeatable")] = None
    if_text: Annotated[
        str | None, doc("change it only if these are still its words")
    ] = None
    drop_history: Annotated[
        bool, doc("do not keep the earlier text, and delete earlier versions")
    ] = False


class Tagged(SelectionPreview, frozen=True, kw_only=True):
    """Memories that were given tags or lost them."""

    tags: list[str]
    """The tags as they are kept: in lower case, with single spaces."""
    tagged: bool = True
    """Whether the memories have these tags now, or have them no longer."""
    changed: int = 0
    """Number of memories that were not so before."""


class _TagChange(Selecting[R], frozen=True, kw_only=True):
    tags: Annotated[Tags, doc("the tags, in any letter case", min_length=1)]


class Tag(_TagChange[Tagged], frozen=True, kw_only=True):
    """Give memories tags.

    Select them by ids (an episode stands for its originals) or by filters, which all must match.
    With filters the shell shows a preview and asks first, or needs --yes.

    Raises `NotFound`, `InvalidRequest`, `InvalidText`, `InvalidTime`, `BatchChanged` and
    `PartlyDone`.
    """


class Untag(_TagChange[Tagged], frozen=True, kw_only=True):
    """Remove tags from memories.

    Select them as for `mnem tag`.

    Raises `NotFound`, `InvalidRequest`, `InvalidText`, `InvalidTime`, `BatchChanged` and
    `PartlyDone`.
    """


class Pinned(SelectionPreview, frozen=True, kw_only=True):
    """Whether working memories are pinned now."""

    id: str = ""
    """The id, where one was given."""
    pinned: bool
    archived: int = 0
    """Number of memories selected by filters that are archived and so cannot be pinned."""


class Pin(Selecting[Pinned], frozen=True, kw_only=True):
    """Keep memories in working memory, whatever their age.

    Select them by ids or by filters. With filters the shell shows a preview and asks first, or
    needs --yes.

    Raises `NotFound`, `InvalidText`, `InvalidTime`, `BatchChanged`, `PartlyDone`, and
    `InvalidRequest` for a memory that is archived.
    """


class Unpin(Selecting[Pinned], frozen=True, kw_only=True):
    """Let sleep consolidate pinned memories again.

    Select them as for `pin`.

    Raises `NotFound`, `InvalidText`, `InvalidTime`, `BatchChanged`, `PartlyDone`, and
    `InvalidRequest` for a memory that is archived.
    """


METADATA_BYTES_MAX = 64 * 1024
BATCH_MAX = 1_000


class _RememberContent(Request[R], frozen=True):
    content: Annotated[str, doc("the text to remember", extra_json_schema=NOT_EMPTY)]


class Remember(_RememberContent[values.Acknowledged], frozen=True, kw_only=True):
    """Store one memory. When the call returns, the memory is on disk.

    Raises `EmptyContent`, `ContentTooLarge`, `InvalidText`, `InvalidTime`, `SecretRefused`,
    `IdTaken`, and `NotFound` for an unknown memory in `supersedes`.
    """

    writes = True
    repeatable = True

    id: Annotated[
        Name | None, doc("your own id; repeating the call stores nothing twice")
    ] = None
    session: Annotated[Name, doc("the conversation or run it belongs to")] = (
        values.DEFAULT_SESSION
    )
    source: Annotated[Name | None, doc("source: an agent, a tool")] = None
    role: Annotated[
        str, doc("who said it: user, assistant or a name", max_length=TEXT_MAX)
    ] = ""
    created_at: Annotated[
        Instant | None,
        doc("when it happened: 2026-03-09, yesterday 14:30; default: now"),
    ] = None
    importance: Annotated[float, doc("weight in ranking, 0 to 1", ge=0, le=1)] = 0.5
    pinned: Annotated[bool, doc("keep it in working memory")] = False
    metadata: Annotated[dict[str, Any], doc("a JSON object of your own")] = (
        msgspec.field(default_factory=dict)
    )
    tags: Annotated[Tags, doc("tags, in any letter case")] = msgspec.field(
        default_factory=list
    )
    dedupe: Annotated[
        bool,
        doc("if this session and source have this text, return that memory's id"),
    ] = False
    valid_until: Annotated[
        Instant | None,
        doc("do not recall or summarize it after this time: tomorrow, 7d"),
    ] = None
    supersedes: Annotated[Name | None, doc("the id of the memory it replaces")] = None


class RememberedMany(RowList[values.Acknowledged], frozen=True):
    """The acknowledgement of a batch: all of it is on disk."""

    memories: list[values.Acknowledged]
    learned: int = 0
    """How many instructions, preferences and names in force were recognized in it."""
    would_learn: list[values.Learning] = msgspec.field(default_factory=list)
    """On a dry run, those that were recognized."""


class _Memories(Request[R], frozen=True):
    memories: Annotated[
        list[Remember], doc("up to 1,000", min_length=1, max_length=BATCH_MAX)
    ]


class RememberMany(_Memories[RememberedMany], frozen=True, kw_only=True):
    """Store a batch of memories, all or none.

    Raises what `remember` raises; the error's `field` names the memory at fault.
    """

    nested = {"memories": Remember}  # noqa: RUF012 a ClassVar of the base
    writes = True
    repeatable = True

    dry_run: Annotated[bool, doc("check the fields; store nothing")] = False
    import_id: ImportId = None


class Recalled(RowList[values.Hit], frozen=True):
    """The hits, best first; empty when nothing bears on the question for sure."""

    hits: list[values.Hit]
    note: str = ""
    """What the answer lacks: a time without a match, or an embedding model that was not ready."""
    matching: tuple[str, ...] = ()
    """How the words that were searched for begin, to highlight them in a text."""
    confidence: float = 0.0
    """Estimated probability that the best hit bears on the question, from 0 to 1."""
    nearest: list[values.Hit] = msgspec.field(default_factory=list)
    """What is nearest to the question, where nothing bears on it with confidence: no answers."""


class _Query(Request[R], frozen=True):
    query: Annotated[Question, doc("plain words; no operators")]


class Recall(_Query[Recalled], frozen=True, kw_only=True):
    """Search for memories; the best matches come first.

    A time in the query, such as "last week" or "in May 2023", ranks memories of that time first.

    Raises `InvalidText` and `InvalidTime`.
    """

    limit: Annotated[int, doc("maximum number of hits", ge=1, le=100)] = 10
    session: OnlySession = None
    source: OnlySource = None
    role: Annotated[Names, doc("only what this role said; repeatable")] = None
    tag: OnlyTag = None
    tier: Annotated[values.Tier | None, doc("only this tier")] = None
    since: Since = None
    until: Until = None
    asked_at: Annotated[
        Instant | None, doc('the time that "yesterday" refers to; default: now, here')
    ] = None
    explain: Annotated[bool, doc("show the parts of each score")] = False
    history: Annotated[
        bool, doc("include superseded memories; each hit lists what it replaced")
    ] = False
    reveal: Reveal = False


class Got(msgspec.Struct, frozen=True):
    """One memory or episode in full."""

    memory: values.MemoryRecord | None = None
    episode: values.Episode | None = None
    revisions: list[values.Revision] = msgspec.field(default_factory=list)
    """What the memory was before it was edited, the latest first; only with `history`."""
    ended: list[values.EndedStatement] = msgspec.field(default_factory=list)
    """Sentences of the memory that no longer apply, as newer memories ended them."""


class Get(ById[Got], frozen=True, kw_only=True):
    """Show one memory or episode in full.

    Raises `NotFound`.
    """

    history: Annotated[bool, doc("show what a memory was before it was edited")] = False
    reveal: Reveal = False


class Expanded(msgspec.Struct, frozen=True):
    """A summary and its originals, oldest first."""

    episode: values.Episode
    originals: list[values.MemoryRecord]
    summaries: list[values.Episode] = msgspec.field(default_factory=list)
    """The summaries one level below, where only that level was asked for."""


class Expand(ById[Expanded], frozen=True, kw_only=True):
    """Show the originals of a summary, word for word.

    The id is that of an episode, day, week or month, or one that `compact` returned.

    Raises `NotFound`, and `InvalidRequest` for an id that is not a summary's.
    """

    depth: Annotated[
        int, doc("1: one level down; 0: all the way to the originals", ge=0, le=1)
    ] = 0
    reveal: Reveal = False
