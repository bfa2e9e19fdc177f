"""How a verb selects memories: by ids or by filters, with a preview of what it would change."""

from __future__ import annotations

from typing import Annotated, TypeVar

import msgspec
from msgspec import Meta

from mnemosyned.domain.preview_line import PreviewLine
from mnemosyned.verbs.request import Instant, Name, Names, Question, Request

R = TypeVar("R")


class Foreseen(msgspec.Struct, frozen=True, kw_only=True):
    """Fields that the result of every verb with a preview has."""

    dry_run: bool = False
    memories: int
    """Number of memories selected."""
    lines: list[PreviewLine] = msgspec.field(default_factory=list)
    """Memories selected, 10,000 at most; only with `dry_run`."""
    further: int = 0
    """Number of memories beyond those lines; `after`, with the last id, lists them."""
    mark: str = ""
    """What the preview saw: hand it in to change exactly that; only with `dry_run`."""


class Target(Request[R], frozen=True, forbid_unknown_fields=True):
    """A call that concerns the memories with these ids, or those that match filters."""

    id: Annotated[
        Names, Meta(description="the id of a memory or an episode; repeatable")
    ] = None


class Filtered(Target[R], frozen=True, forbid_unknown_fields=True, kw_only=True):
    """Filters that do not bear the name of a field to be changed."""

    query: Annotated[
        Question | None, Meta(description="memories with all of these words")
    ] = None
    tag: Annotated[
        Names, Meta(description="memories with one of these tags; repeatable")
    ] = None
    since: Annotated[
        Instant | None,
        Meta(description="what happened at or after this time: 2026-03-09, 7d"),
    ] = None
    until: Annotated[
        Instant | None,
        Meta(description="what happened until then; a day named is included"),
    ] = None
    person: Annotated[
        Name | None,
        Meta(description="memories that mention this name, or that this person said"),
    ] = None
    dry_run: Annotated[bool, Meta(description="show the preview; change nothing")] = (
        False
    )
    after: Annotated[
        Name | None,
        Meta(description="with dry_run: list only what comes after this memory"),
    ] = None
    mark: Annotated[
        Name | None, Meta(description="the mark of a preview: only what it showed")
    ] = None


class Selecting(Filtered[R], frozen=True, forbid_unknown_fields=True, kw_only=True):
    """All filters."""

    session: Annotated[
        Names, Meta(description="memories of this session; repeatable")
    ] = None
    source: Annotated[
        Names, Meta(description="memories of this source; repeatable")
    ] = None
