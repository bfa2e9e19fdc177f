"""Pages of memories and summaries, and the totals of sessions and sources."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import datetime
from functools import partial
from typing import Any, NamedTuple

from mnemosyned.memory.listing import (
    ListFilter,
    ListOrder,
    ListPage,
    MemoryGroup,
    Place,
    RecordKind,
    SessionTotals,
    SourceTotals,
    session_totals,
    source_totals,
    stored_spellings,
)
from mnemosyned.memory.ports import ListStore
from mnemosyned.storage.common.episodes import episode_at
from mnemosyned.storage.common.rows import instant
from mnemosyned.storage.common.session import (
    CommonSession,
    EngineSession,
    Transactional,
    reads,
)
from mnemosyned.storage.common.surroundings import projects_of


class ListKey(NamedTuple):
    """A record's key in the order of a list."""

    moment: Any
    """The time of the record, as the engine stores it."""
    kind: RecordKind
    seq: int


PageKeys = Callable[[EngineSession, ListFilter, Sequence[str]], list[ListKey]]
KeptPrefixes = Callable[[EngineSession, Sequence[str]], list[str]]


class CommonLists(Transactional, ListStore):
    """A `ListStore` of either engine."""

    _groups: str
    """Session, source, count, first and last time of memories, by tier, session and source."""
    _count_since: str
    """The count of memories since `since`."""
    _prefixes_of_ids: KeptPrefixes
    """Returns the prefixes with which an id begins."""
    _memory_keys: PageKeys
    """Returns the first keys of memories, in order, one more than the page has."""
    _summary_keys: PageKeys
    """Returns the same of summaries."""

    @reads
    def page(self, session: CommonSession, wanted: ListFilter) -> ListPage:
        """Return one page of the memories and summaries that match a filter."""
        keys: list[ListKey] = []
        prefixes: list[str] = []
        if wanted.id_prefix:
            prefixes = stored_spellings(
                wanted.id_prefix, partial(self._prefixes_of_ids, session)
            )
        if prefixes or not wanted.id_prefix:
            if wanted.selects_memories:
                keys += self._memory_keys(session, wanted, prefixes)
            if wanted.selects_summaries:
                keys += self._summary_keys(session, wanted, prefixes)
        keys.sort(reverse=wanted.order is ListOrder.NEWEST)
        shown = keys[: wanted.limit]
        seqs = [key.seq for key in shown if key.kind is RecordKind.MEMORY]
        memories = session.memories_at(seqs)
        summaries = [
            episode_at(session, "seq", key.seq)
            for key in shown
            if key.kind is RecordKind.SUMMARY
        ]
        following = None
        if len(keys) > wanted.limit:
            last = shown[-1]
            following = Place(moment=instant(last.moment), kind=last.kind, seq=last.seq)
        return ListPage(
            [memories[seq] for seq in seqs],
            [summary for summary in summaries if summary],
            following,
        )

    @reads
    def sessions(self, session: CommonSession) -> list[SessionTotals]:
        """Return the totals of every session, the session with the newest memory first."""
        groups = self._memory_groups(session)
        names = list(dict.fromkeys(group.session for group in groups))
        return session_totals(groups, projects_of(session, names))

    @reads
    def sources(self, session: CommonSession) -> list[SourceTotals]:
        return source_totals(self._memory_groups(session))

    def _memory_groups(self, session: CommonSession) -> list[MemoryGroup]:
        """Return the count and the first and last time of memories by session and source."""
        return [
            MemoryGroup(name, source, memories, instant(first), instant(last))
            for name, source, memories, first, last in session.execute(self._groups)
        ]

    @reads
    def count_since(self, session: CommonSession, moment: datetime) -> int:
        """Return the number of memories created at or after a time."""
        count: int = session.scalar(self._count_since, since=moment)
        return count
