"""Lists of memories and summaries in the order of time: filters, cursors, totals of sessions and sources."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from enum import StrEnum
from typing import TYPE_CHECKING, NamedTuple

from mnemosyned import errors, instants
from mnemosyned.memory import values

if TYPE_CHECKING:
    from mnemosyned.text.terms import Terms

_WRITTEN = re.compile(r"(-?[0-9]{1,18})~([ms])([0-9]{1,19})")
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MICROSECOND = timedelta(microseconds=1)
SEQ_MAX = 2**62
"""A number above every row number that fits in a column of a database."""
SPELLINGS_MAX = 200
"""Maximum spellings of a prefix that are tried; few ids differ only in letter case."""


@dataclass(frozen=True, slots=True)
class ListLimits:
    """Bounds of one page's work."""

    few: int = 2_000
    """Maximum rows of a session or a prefix that are sorted; more are read in the order of time."""
    sessions: int = 1_000
    """Sessions of a project, the last used ones."""
    episodes_first: int = 16
    """Episodes read at first; each further step reads twice as many."""
    episodes_max: int = 1_024


LIST_LIMITS = ListLimits()


class ListOrder(StrEnum):
    """Direction of a list in time."""

    NEWEST = "newest"
    OLDEST = "oldest"


class RecordKind(StrEnum):
    """Kind of a record in a list; at the same time memories come first in this order."""

    MEMORY = "m"
    SUMMARY = "s"


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """A record's place in the order of a list: the keyset from which the next page begins."""

    moment: datetime
    kind: RecordKind
    seq: int

    def encode(self) -> str:
        """Return the place as a cursor: the text that a client sends to get the next page."""
        micros = (instants.in_zone(self.moment, UTC) - _EPOCH) // _MICROSECOND
        return f"{micros}~{self.kind.value}{self.seq}"

    def seq_among(self, kind: RecordKind) -> int:
        """Return the row number to continue after among records of `kind` that have the time of this place."""
        if kind is self.kind:
            return self.seq
        return SEQ_MAX if kind < self.kind else -1


def parse_cursor(cursor: str) -> Place:
    """Return the place that a cursor encodes. Raises `InvalidRequest` for any other text."""
    written = _WRITTEN.fullmatch(cursor)
    try:
        if written:
            return Place(
                moment=_EPOCH + int(written[1]) * _MICROSECOND,
                kind=RecordKind(written[2]),
                seq=min(int(written[3]), SEQ_MAX),
            )
    except OverflowError:
        pass  # a time that no calendar has
    raise errors.InvalidRequest(
        f"{cursor!r} is not a cursor; pass `next` of the page before as `after`",
        field="after",
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class LearningFilter:
    """Which learnings a page of a list shows; empty fields select all."""

    sources: Sequence[str | None] = ()
    """Only of these sources; None is no source."""
    kind: values.LearningKind | None = None
    ids: Sequence[str] = ()
    """Only those with these ids and those that they superseded, also if they are not in force."""
    words: Sequence[str] = ()
    """Only those whose text contains all of these, in upper or lower case."""
    superseded: bool = False
    """Also those that a newer learning superseded, or whose sentence a newer memory ended."""
    after: Place | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ListFilter(values.MemoryFilter):
    """Which records a page of a list shows; empty fields select all."""

    limit: int
    order: ListOrder = ListOrder.NEWEST
    after: Place | None = None
    tier: values.Tier | None = None
    level: int | None = None
    pinned: bool | None = None
    id_prefix: str = ""
    terms: Terms | None = None
    """Memories with all of these words."""
    project: str = ""
    """Only the last used sessions of this project of agents."""
    valid_at: datetime | None = None
    """Leaves out what was superseded, or had expired at this time; None shows both."""

    @property
    def selects_memories(self) -> bool:
        """Whether the filter may select memories, from working memory or the archive."""
        return self.level is None and self.tier is not values.Tier.EPISODIC

    @property
    def selects_summaries(self) -> bool:
        """Whether the filter may select summaries: it names a level, their tier, or an id prefix.

        A filter by role, tag, pin or words selects no summary.
        """
        if self.excludes_summaries or self.pinned is not None or self.terms:
            return False
        asked = self.level is not None or self.tier is values.Tier.EPISODIC
        return asked or (self.tier is None and bool(self.id_prefix))


@dataclass(frozen=True, slots=True)
class ListPage:
    """One page of a list."""

    memories: list[values.MemoryRecord]
    summaries: list[values.Episode]
    next: Place | None
    """The place of the last record, if more follow."""
    ended: dict[str, datetime] = field(default_factory=dict)
    """When newer memories ended statements of a memory, by its id: the last such time."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SessionTotals:
    """One session: how much it contains, and when."""

    session: str
    sources: tuple[str, ...]
    """Its sources, the names in order; a session without a source has none."""
    count: int
    first: datetime
    last: datetime
    project: str = ""
    """The project of an agent's session; empty where it is not known."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SourceTotals:
    """One source: how much came from it, and when."""

    source: str | None
    """None for memories without a source."""
    count: int
    sessions: int
    first: datetime
    last: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class ProjectTotals:
    """A project of agents, by its key: the size of its sessions, and the time of the last activity."""

    project: str
    count: int
    sessions: int
    last: datetime


class MemoryGroup(NamedTuple):
    """Memories of one session and source in one tier."""

    session: str
    source: str | None
    memories: int
    first: datetime
    last: datetime


def session_totals(
    groups: Iterable[MemoryGroup], projects: Mapping[str, str]
) -> list[SessionTotals]:
    """Return the totals of each session in these groups, the session with the newest memory first."""
    members: dict[str, list[MemoryGroup]] = {}
    for group in groups:
        members.setdefault(group.session, []).append(group)
    totals = [
        SessionTotals(
            session=session,
            sources=tuple(sorted({group.source for group in own if group.source})),
            count=sum(group.memories for group in own),
            first=min(group.first for group in own),
            last=max(group.last for group in own),
            project=projects.get(session, ""),
        )
        for session, own in members.items()
    ]
    return sorted(totals, key=lambda total: (total.last, total.session), reverse=True)


def source_totals(groups: Iterable[MemoryGroup]) -> list[SourceTotals]:
    """Return the totals of each source in these groups, the source with the newest memory first."""
    members: dict[str | None, list[MemoryGroup]] = {}
    for group in groups:
        members.setdefault(group.source, []).append(group)
    totals = [
        SourceTotals(
            source=source,
            count=sum(group.memories for group in own),
            sessions=len({group.session for group in own}),
            first=min(group.first for group in own),
            last=max(group.last for group in own),
        )
        for source, own in members.items()
    ]
    return sorted(totals, key=lambda total: total.last, reverse=True)


def stored_spellings(
    prefix: str, beginning: Callable[[Sequence[str]], list[str]]
) -> list[str]:
    """Return the upper- and lower-case spellings of an id prefix that begin a stored id.

    `beginning` returns the given texts that begin a stored id. The prefix is extended one letter at
    a time, so that few spellings are looked up at once; at most `SPELLINGS_MAX` are followed.
    """
    known = [""]
    for letter in prefix:
        cases = {letter, letter.lower(), letter.upper()}
        longer = [spelling + case for spelling in known for case in sorted(cases)]
        if len(cases) > 1:
            longer = beginning(longer)
        known = longer[:SPELLINGS_MAX]
    return beginning(known)
