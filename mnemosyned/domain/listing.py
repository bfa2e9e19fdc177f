"""Values of lists: what one selects, where a page begins, and what sessions and sources hold."""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from enum import StrEnum

from mnemosyned.domain.errors import InvalidRequest
from mnemosyned.domain.instants import in_zone
from mnemosyned.domain.memory import Episode, MemoryRecord, Tier

_WRITTEN = re.compile(r"(-?[0-9]{1,18})~([ms])([0-9]{1,19})")
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MICROSECOND = timedelta(microseconds=1)
SEQ_MAX = 2**62
"""More than any row's number, and within what SQLite takes."""


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

    def written(self) -> str:
        """Return the place as a cursor."""
        micros = (in_zone(self.moment, UTC) - _EPOCH) // _MICROSECOND
        return f"{micros}~{self.kind.value}{self.seq}"


def read_place(cursor: str) -> Place:
    """Read a cursor. Raises `InvalidRequest`."""
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
    raise InvalidRequest(
        f"{cursor!r} is not a cursor; pass `next` of the page before as `after`",
        field="after",
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class ListFilter:
    """Which records a page of a list shows; empty fields select all."""

    limit: int
    order: ListOrder = ListOrder.NEWEST
    after: Place | None = None
    sessions: tuple[str, ...] = ()
    sources: tuple[str, ...] = ()
    roles: tuple[str, ...] = ()
    tags: tuple[str, ...] = ()
    """Memories with one of these; summaries have none."""
    tier: Tier | None = None
    level: int | None = None
    since: datetime | None = None
    until: datetime | None = None
    pinned: bool | None = None
    id_prefix: str = ""
    valid_at: datetime | None = None
    """Leaves out what was superseded, or had expired at this time; None shows both."""

    @property
    def selects_memories(self) -> bool:
        """Whether memories may match, in working memory or in the archive."""
        return self.level is None and self.tier is not Tier.EPISODIC

    @property
    def selects_summaries(self) -> bool:
        """Whether summaries may match: where asked for, or where an id may be any record's."""
        if self.roles or self.tags or self.pinned is not None:
            return False
        asked = self.level is not None or self.tier is Tier.EPISODIC
        return asked or (self.tier is None and bool(self.id_prefix))


@dataclass(frozen=True, slots=True)
class ListPage:
    """One page of a list."""

    memories: list[MemoryRecord]
    summaries: list[Episode]
    next: Place | None
    """The place of the last record, if more follow."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SessionTotals:
    """One session: how much it holds, and when."""

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
