"""Verbs that list memories and summaries, sessions, sources and days."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import date, datetime
from typing import Annotated, Literal

import msgspec
from msgspec import Meta

from mnemosyned.memory import listing
from mnemosyned.memory.values import Episode, MemoryRecord, Tier
from mnemosyned.verbs.request import (
    Name,
    Names,
    OnlySession,
    OnlySource,
    OnlyTag,
    PageSize,
    Question,
    Request,
    Reveal,
    RowList,
    Since,
    Until,
    doc,
)

After = Annotated[
    Annotated[str, Meta(min_length=1, max_length=100)] | None,
    doc("continue after a page: the value `next` of that page"),
]
LEVELS = ("episode", "day", "week", "month")


class Listed(msgspec.Struct, frozen=True):
    """One page of a list, in the order asked for."""

    memories: list[MemoryRecord]
    episodes: list[Episode] = msgspec.field(default_factory=list)
    """Summaries, where a level, the episodic tier or the beginning of an id was asked for."""
    next: str | None = None
    """The cursor of the next page, for `after`; null on the last one."""
    ended: dict[str, datetime] = msgspec.field(default_factory=dict)
    """When newer memories ended statements of a memory, by its id: the last such time."""

    def __iter__(self) -> Iterator[MemoryRecord | Episode]:
        """Iterate over the memories, then the summaries, of the page."""
        yield from self.memories
        yield from self.episodes

    def __len__(self) -> int:
        """Return the number of memories and summaries in the page."""
        return len(self.memories) + len(self.episodes)


class ListMemories(Request[Listed], frozen=True, kw_only=True):
    """List memories, the newest first; no question is needed.

    With a level, list the summaries of that level. If memories change between two pages, none is
    repeated or left out.

    Raises `InvalidTime`.
    """

    verb = "list"

    limit: Annotated[PageSize, doc("maximum number of memories or summaries")] = 50
    query: Annotated[Question | None, doc("only with all of these words")] = None
    project: Annotated[
        Name | None, doc("only sessions of agents in this project, named by its key")
    ] = None
    order: Annotated[listing.ListOrder, doc("newest or oldest first")] = (
        listing.ListOrder.NEWEST
    )
    after: After = None
    session: OnlySession = None
    source: OnlySource = None
    role: Annotated[Names, doc("only this role; repeatable")] = None
    tag: OnlyTag = None
    tier: Annotated[Tier | None, doc("only this tier")] = None
    level: Annotated[
        Literal["episode", "day", "week", "month"] | None,
        doc("summaries of this level instead of memories"),
    ] = None
    since: Since = None
    until: Until = None
    pinned: Annotated[
        bool | None, doc("only pinned memories; false: only those that are not")
    ] = None
    id_prefix: Annotated[
        Name | None,
        doc("only ids that begin with this, in any letter case; summaries too"),
    ] = None
    history: Annotated[bool, doc("include superseded and expired memories")] = False
    reveal: Reveal = False


class SessionList(RowList[listing.SessionTotals], frozen=True):
    """Sessions, the last used first."""

    sessions: list[listing.SessionTotals]
    total: int
    """Number of all sessions."""


class Sessions(Request[SessionList], frozen=True, kw_only=True):
    """List sessions with their counts, the last used first.

    Raises `StorageFailed`.
    """

    limit: Annotated[PageSize, doc("maximum number of sessions")] = 50
    prefix: Annotated[Name | None, doc("only names that begin with this")] = None


class SourceList(RowList[listing.SourceTotals], frozen=True):
    """Sources, the last used first."""

    sources: list[listing.SourceTotals]
    total: int
    """Number of all sources."""


class Sources(Request[SourceList], frozen=True, kw_only=True):
    """List sources with their counts, the last used first.

    Raises `StorageFailed`.
    """

    limit: Annotated[PageSize, doc("maximum number of sources")] = 50
    prefix: Annotated[Name | None, doc("only names that begin with this")] = None


class ProjectList(RowList[listing.ProjectTotals], frozen=True):
    """Projects of agents, the last seen first."""

    projects: list[listing.ProjectTotals]


class Projects(Request[ProjectList], frozen=True, kw_only=True):
    """List the projects of agents, the last seen first.

    Raises `StorageFailed`.
    """

    limit: Annotated[PageSize, doc("maximum number of projects")] = 50


DAYS_MAX = 400
PeriodUnit = Literal["day", "hour", "month"]


class DayTotals(msgspec.Struct, frozen=True):
    """One day, hour or month: counts of memories, injections and recalls, and the size."""

    day: date
    """Of a month, its first day."""
    memories: int
    given: int
    """Texts that agents were given, of those that are kept."""
    hour: int | None = None
    """The hour of the day, from 0; null unless hours are counted."""
    recalls: int | None = None
    """Of a day, as are the following; null of an hour or month, where they are not known."""
    recall_p50_ms: float | None = None
    """The time in ms that half of the recalls needed at most, to within 9%; null without any."""
    recall_p95_ms: float | None = None
    bytes_on_disk: int = 0
    """The last known size of the database; 0 if none is known, or others share it."""


class DayList(RowList[DayTotals], frozen=True):
    """Days, hours or months, the oldest first, those without anything included."""

    days: list[DayTotals]
    by: PeriodUnit = "day"


class Days(Request[DayList], frozen=True, kw_only=True):
    """Count memories by day, hour or month.

    Texts given to agents are counted, too. Without `since`, the last 30 days, 24 hours or 12
    months. A memory of any tier is counted at the time at which it happened. Days in the daemon's
    time zone also show how many recalls there were, how long they took, and the size of the database.

    Raises `InvalidTime`, and `InvalidRequest` for more than 400 days, hours or months, and for an
    unknown zone.
    """

    since: Since = None
    until: Until = None
    by: Annotated[PeriodUnit, doc("the length of each period")] = "day"
    zone: Annotated[
        Name | None,
        doc(
            "time zone of days and named times: Asia/Tokyo; default: the daemon's zone"
        ),
    ] = None
