"""Verbs of the ledger of injected context: what agents were given, why, and how useful it was."""

from __future__ import annotations

from typing import Annotated, Literal

import msgspec
from msgspec import Meta

from mnemosyned.memory.injections import (
    BriefingEdit,
    InjectedLine,
    Injection,
    InjectionOutcome,
    InjectionTotals,
)
from mnemosyned.verbs.request import (
    ById,
    Name,
    PageSize,
    Request,
    RowList,
    Since,
    Until,
    doc,
)

Words = Annotated[str, Meta(max_length=2_000)]
Project = Annotated[Name | None, doc("only in this project, by its key")]


class InjectionList(RowList[Injection], frozen=True):
    """Injections, the newest first, and sums over all that are kept."""

    injections: list[Injection]
    totals: InjectionTotals = InjectionTotals()


class Injections(Request[InjectionList], frozen=True, kw_only=True):
    """List what agents were given and why, newest first.

    Each line has the reason for which it was chosen. Also listed is what a user said again although
    it was known and not given (`said_again`).

    Raises `InvalidTime`, and `InvalidRequest` if `after` is no id of an injection.
    """

    session: Annotated[Name | None, doc("only in this session")] = None
    project: Project = None
    since: Since = None
    until: Until = None
    outcome: Annotated[InjectionOutcome | None, doc("only with this outcome")] = None
    limit: Annotated[PageSize, doc("maximum number of injections")] = 20
    after: Annotated[
        Name | None, doc("go on after a page: the `id` of its last injection")
    ] = None


class Briefed(RowList[InjectedLine], frozen=True):
    """The briefing of an agent at the start of a session, line by line."""

    lines: list[InjectedLine]
    text: str = ""
    """The whole text as it is given."""
    tokens: int = 0
    """Its estimated tokens."""
    edits: list[BriefingEdit] = msgspec.field(default_factory=list)
    """The lines that were pinned, dropped or reworded, of every project."""


class Briefing(Request[Briefed], frozen=True, kw_only=True):
    """Show what agents are given at a session's start, and why.

    Without a project, that is what applies everywhere.

    Raises `StorageFailed`.
    """

    project: Annotated[
        Name | None, doc("the project, by its key, as `mnem injections` shows it")
    ] = None


class EditBriefing(ById[BriefingEdit], frozen=True, kw_only=True):
    """Pin, drop or reword a line of briefings.

    A pinned line comes first. A dropped line is left out of starts and prompts. A reworded line has
    your text, with the id of its memory or learning. Fields that are not given do not change. The
    answer has the text only if it was given.

    Raises `NotFound`, `InvalidRequest`, `EmptyContent`, `InvalidText` and `SecretRefused`.
    """

    writes = True

    pin: Annotated[bool | None, doc("pin it, or take that back")] = None
    drop: Annotated[bool | None, doc("drop it, or take that back")] = None
    text: Annotated[
        Words | None, doc("the words to show; an empty text takes them back")
    ] = None


class RatedInjection(msgspec.Struct, frozen=True):
    """An injection that was rated."""

    id: str
    outcome: InjectionOutcome
    totals: InjectionTotals


class RateInjection(ById[RatedInjection], frozen=True, kw_only=True):
    """Say whether an injection was useful.

    The share of useful ones among the rated is the precision.

    Raises `NotFound`.
    """

    writes = True

    outcome: Annotated[
        Literal["useful", "not_useful", "unknown"],
        doc("how useful it was; unknown removes the rating"),
    ]
