"""Verbs that list memories and summaries, sessions, sources and days."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import date, datetime
from typing import Annotated, Literal

import msgspec
from msgspec import Meta

from mnemosyned.memory import listing, values
from mnemosyned.verbs import request

After = Annotated[
    Annotated[str, Meta(min_length=1, max_length=100)] | None,
    request.doc("continue after a page: the value `next` of that page"),
]
LEVELS = ("episode", "day", "week", "month")


class Listed(msgspec.Struct, frozen=True):
    """One page of a list, in the order asked for."""

    memories: list[values.MemoryRecord]
    episodes: list[values.Episode] = msgspec.field(default_factory=list)
    """Summaries, where a level, the episodic tier or the beginning of an id was asked for."""
    next: str | None = None
    """The cursor of the next page, for `after`; null on the last one."""
    ended: dict[str, datetime] = msgspec.field(default_factory=dict)
    """When newer memories ended statements of a memory, by its id: the last such time."""

    def __iter__(self) -> Iterator[values.MemoryRecord | values.Episode]:
        """Iterate over the memories, then the summaries, of the page."""
        yield from self.memories
        yield from self.episodes

    def __len__(self) -> int:
        """Return the number of memories and summaries in the page."""
        return len(self.memories) + len(self.episodes)


class ListMemories(request.Request[Listed], frozen=True, kw_only=True):
    """List memories, the newest first; no question is needed.

    With a level, list the summaries of that level. If memories change between two pages, none is
    repeated or left out.

    Raises `InvalidTime`.
    """

    verb = "list"

    limit: Annotated[
        request.PageSize, request.doc("maximum number of memories or summaries")
    ] = 50
    query: Annotated[
        request.Question | None, request.doc("only with all of these words")
    ] = None
    project: Annotated[
        request.ProjectKey | None,
        request.doc(
            "only sessions of agents in this project, by its key in `projects`"
        ),
    ] = None
    order: Annotated[listing.ListOrder, request.doc("newest or oldest first")] = (
        listing.ListOrder.NEWEST
    )
    after: After = None
    session: request.OnlySession = None
    source: request.OnlySource = None
    role: Annotated[request.Names, request.doc("only this role; repeatable")] = None
    tag: request.OnlyTag = None
    tier: Annotated[values.Tier | None, request.doc("only this tier")] = None
    level: Annotated[
        Literal["episode", "day", "week", "month"] | None,
        request.doc("summaries of this level instead of memories"),
    ] = None
    since: request.Since = None
    until: request.Until = None
    pinned: Annotated[
        bool | None, request.doc("only pinned memories; false: only those that are not")
    ] = None
    id_prefix: Annotated[
        request.Name | None,
        request.doc("only ids that begin with this, in any letter case; summaries too"),
    ] = None
    history: Annotated[bool, request.doc("include superseded and expired memories")] = (
        False
    )
    reveal: request.Reveal = False


class SessionList(request.RowList[listing.SessionTotals], frozen=True):
    """Sessions, the last used first."""

    sessions: list[listing.SessionTotals]
    total: int
    """Number of all sessions."""


class Sessions(request.Request[SessionList], frozen=True, kw_only=True):
    """List sessions with their counts, the last used first.

    Raises `StorageFailed`.
    """

    limit: Annotated[request.PageSize, request.doc("maximum number of sessions")] = 50
    prefix: Annotated[
        request.Name | None, request.doc("only names that begin with this")
    ] = None


class SourceList(request.RowList[listing.SourceTotals], frozen=True):
    """Sources, the last used first."""

    sources: list[listing.SourceTotals]
    total: int
    """Number of all sources."""


class Sources(request.Request[SourceList], frozen=True, kw_only=True):
    """List sources with their counts, the last used first.

    Raises `StorageFailed`.
    """

    limit: Annotated[request.PageSize, request.doc("maximum number of sources")] = 50
    prefix: Annotated[
        request.Name | None, request.doc("only names that begin with this")
    ] = None


class ProjectList(request.RowList[listing.ProjectTotals], frozen=True):
    """Projects of agents, the last seen first."""

    projects: list[listing.ProjectTotals]


class Projects(request.Request[ProjectList], frozen=True, kw_only=True):
    """List the projects of agents, the last seen first.

    Raises `StorageFailed`.
    """

    limit: Annotated[request.PageSize, request.doc("maximum number of projects")] = 50


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


class DayList(request.RowList[DayTotals], frozen=True):
    """Days, hours or months, the oldest first, those without anything included."""

    days: list[DayTotals]
    by: PeriodUnit = "day"


class Days(request.Request[DayList], frozen=True, kw_only=True):
    """Count memories by day, hour or month.

    Texts given to agents are counted, too. Without `since`, the last 30 days, 24 hours or 12
    months. A memory of any tier is counted at the time at which it happened. Days in the daemon's
    time zone also show how many recalls there were, how long they took, and the size of the database.

    Raises `InvalidTime`, and `InvalidRequest` for more than 400 days, hours or months, and for an
    unknown zone.
    """

    since: request.Since = None
    until: request.Until = None
    by: Annotated[PeriodUnit, request.doc("the length of each period")] = "day"
    zone: Annotated[
        request.Name | None,
        request.doc(
            "time zone of days and named times: Asia/Tokyo; default: the daemon's zone"
        ),
    ] = None
