"""Verbs of the ledger of injected context: what agents were given, why, and what it was good for."""

from __future__ import annotations

from typing import Annotated, Literal

import msgspec

from mnemosyned.memory.injections import (
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
    doc,
)

Project = Annotated[Name | None, doc("only in this project, by its key")]


class InjectionList(RowList[Injection], frozen=True):
    """Injections, the newest first, and sums over all that are kept."""

    injections: list[Injection]
    totals: InjectionTotals = InjectionTotals()


class Injections(Request[InjectionList], frozen=True, kw_only=True):
    """List what agents were given and why, newest first.

    Each line has the reason for which it was chosen. Also listed is what a user said again although
    it was known and not given (`said_again`).

    Raises `InvalidTime`.
    """

    session: Annotated[Name | None, doc("only in this session")] = None
    project: Project = None
    since: Since = None
    outcome: Annotated[InjectionOutcome | None, doc("only with this outcome")] = None
    limit: Annotated[PageSize, doc("maximum number of injections")] = 20


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
        doc("what it was good for; unknown takes a rating back"),
    ]
