"""Verbs that change memories: edit, tag, untag, pin and unpin."""

from __future__ import annotations

from typing import Annotated

from msgspec import Meta

from mnemosyned.domain.tags import TAG_CHARS_MAX, TAGS_MAX
from mnemosyned.verbs.request import TEXT_MAX, Instant, Name, Names
from mnemosyned.verbs.selection import Filtered, Foreseen, Selecting

TAG_INPUT_CHARS_MAX = 2 * TAG_CHARS_MAX
TagName = Annotated[str, Meta(max_length=TAG_INPUT_CHARS_MAX)]
Label = Annotated[str, Meta(max_length=TEXT_MAX)]
Weight = Annotated[float, Meta(ge=0, le=1)]
Tags = Annotated[list[TagName], Meta(max_length=TAGS_MAX)]


# -------------------------------------------------------------------- edit


class Edited(Foreseen, frozen=True, kw_only=True):
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


class EditMemory(
    Filtered[Edited], frozen=True, forbid_unknown_fields=True, kw_only=True
):
    """Change the words of a memory, or where it belongs.

    Index, exact values, learnings, vectors and every summary made of it follow. What it was before
    is kept: `get --history` shows it. Filters select many for a new session, source or tags. At a
    terminal, without a change, the editor opens.

    Raises `NotFound`, `InvalidRequest`, `EmptyContent`, `ContentTooLarge`, `InvalidText`,
    `InvalidTime`, `SecretRefused`, `BatchChanged`, `WordsPruned` and `PartlyDone`.
    """

    verb = "edit"
    writes = True
    takes_long = True

    text: Annotated[str | None, Meta(description="the new words")] = None
    session: Annotated[
        Name | None, Meta(description="the session it belongs to from now on")
    ] = None
    source: Annotated[
        Label | None, Meta(description="its source from now on; empty for none")
    ] = None
    role: Annotated[Label | None, Meta(description="who said it; empty for nobody")] = (
        None
    )
    created_at: Annotated[
        Instant | None, Meta(description="when it happened: yesterday, 2026-03-09")
    ] = None
    importance: Annotated[
        Weight | None, Meta(description="weight in ranking, 0 to 1")
    ] = None
    tags: Annotated[Tags | None, Meta(description="all its tags from now on")] = None
    of_session: Annotated[
        Names, Meta(description="memories of this session; repeatable")
    ] = None
    of_source: Annotated[
        Names, Meta(description="memories of this source; repeatable")
    ] = None
    if_text: Annotated[
        str | None,
        Meta(description="change it only if these are still its words"),
    ] = None
    drop_history: Annotated[
        bool, Meta(description="keep no earlier words, and delete those kept before")
    ] = False


# ------------------------------------------------------------ tag and untag


class Tagged(Foreseen, frozen=True, kw_only=True):
    """Memories that were given tags or lost them."""

    tags: list[str]
    """The tags as they are kept: in lower case, with single spaces."""
    changed: int = 0
    """Number of memories that were not so before."""


class Tag(Selecting[Tagged], frozen=True, forbid_unknown_fields=True, kw_only=True):
    """Give memories tags.

    Select them by ids (an episode stands for its originals) or by filters, which all must match.
    With filters the shell shows a preview and asks first, or needs --yes.

    Raises `NotFound`, `InvalidRequest`, `InvalidText`, `InvalidTime`, `BatchChanged` and
    `PartlyDone`.
    """

    writes = True
    takes_long = True

    tags: Annotated[
        Tags,
        Meta(description="the tags, in any case", min_length=1),
    ]


class Untag(Selecting[Tagged], frozen=True, forbid_unknown_fields=True, kw_only=True):
    """Take tags from memories.

    Select them as for `tag`.

    Raises `NotFound`, `InvalidRequest`, `InvalidText`, `InvalidTime`, `BatchChanged` and
    `PartlyDone`.
    """

    writes = True
    takes_long = True

    tags: Annotated[
        Tags,
        Meta(description="the tags, in any case", min_length=1),
    ]


# ------------------------------------------------------------ pin and unpin


class Pinned(Foreseen, frozen=True, kw_only=True):
    """Whether working memories are pinned now."""

    id: str = ""
    """The id, where one was given."""
    pinned: bool
    archived: int = 0
    """Number of memories selected by filters that are archived and so cannot be pinned."""


class Pin(Selecting[Pinned], frozen=True, forbid_unknown_fields=True, kw_only=True):
    """Keep memories in working memory, whatever their age.

    Select them by ids or by filters. With filters the shell shows a preview and asks first, or
    needs --yes.

    Raises `NotFound`, `InvalidText`, `InvalidTime`, `BatchChanged`, `PartlyDone`, and
    `InvalidRequest` for a memory that is archived.
    """

    writes = True
    takes_long = True


class Unpin(Selecting[Pinned], frozen=True, forbid_unknown_fields=True, kw_only=True):
    """Let sleep consolidate pinned memories again.

    Select them as for `pin`.

    Raises `NotFound`, `InvalidText`, `InvalidTime`, `BatchChanged`, `PartlyDone`, and
    `InvalidRequest` for a memory that is archived.
    """

    writes = True
    takes_long = True
