"""Verbs of endings: statements that newer ones ended."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated

import msgspec

from mnemosyned.verbs.listing import After
from mnemosyned.verbs.request import ById, Name, PageSize, Request, Reveal, RowList, doc


class EndedLine(msgspec.Struct, frozen=True, kw_only=True):
    """A statement that a newer one ended."""

    id: str
    """The id of its memory."""
    by: str
    """The id of the newer memory."""
    reason: str
    """Why it ended: gone, changed, instead, now, corrected, or value for another value."""
    sentence: str
    successor: str
    """The newer sentence."""
    at: datetime
    """Until when it applied: the time of the newer memory."""
    found_at: datetime
    undone: bool = False
    """Whether a person said that it still applies."""


class EndingList(RowList[EndedLine], frozen=True):
    """Ended statements, the last found first."""

    endings: list[EndedLine]
    next: str | None = None
    """The cursor of the next page, for `after`; null on the last one."""


class Endings(Request[EndingList], frozen=True, kw_only=True):
    """List statements that newer ones ended, newest first.

    Endings are found in the background, when new memories are read. This call first reads the
    memories that are left, for a few seconds at most, or with `at_once` only some of them. Ended
    statements are kept, and recall shows what applies now.

    Raises `StorageFailed`, and `InvalidRequest` if `after` is no cursor.
    """

    id: Annotated[
        Name | None, doc("only statements of this memory, and statements that it ended")
    ] = None
    undone: Annotated[
        bool | None, doc("only those that were undone; false: only those that were not")
    ] = None
    at_once: Annotated[bool, doc("do not wait until all new memories are read")] = False
    limit: Annotated[PageSize, doc("maximum number of statements")] = 100
    after: After = None
    reveal: Reveal = False


class UndoneEnding(msgspec.Struct, frozen=True):
    """A memory whose statements apply again, or no longer."""

    id: str
    changed: int
    """Number of endings that were undone, or are in force again."""


class UndoEnding(ById[UndoneEnding], frozen=True, kw_only=True):
    """Say that an ended statement still applies.

    All endings of the memory are undone until `redo`: these newer memories end none of its
    statements; later ones may.

    Raises `NotFound` if it has no ended statement.
    """

    writes = True

    redo: Annotated[bool, doc("let the endings count again")] = False
