"""Verbs that change memories: edit, tag, untag, pin and unpin."""

from __future__ import annotations

from typing import Annotated

from msgspec import Meta

from mnemosyned.domain.tags import TAG_CHARS_MAX, TAGS_MAX
from mnemosyned.verbs.selection import Foreseen, Selecting

TAG_INPUT_CHARS_MAX = 2 * TAG_CHARS_MAX
TagName = Annotated[str, Meta(max_length=TAG_INPUT_CHARS_MAX)]
Tags = Annotated[list[TagName], Meta(max_length=TAGS_MAX)]


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
