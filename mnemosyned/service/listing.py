"""How lists are made: a page of memories or summaries, sessions and sources."""

from __future__ import annotations

from datetime import datetime, time

from tzlocal import get_localzone

from mnemosyned.domain.errors import InvalidRequest
from mnemosyned.domain.instants import in_zone
from mnemosyned.domain.listing import ListFilter, read_place
from mnemosyned.domain.memory import Tier
from mnemosyned.domain.ports.clock import Clock
from mnemosyned.domain.ports.listing import ListStore
from mnemosyned.domain.secrets.exact_values import mask_episode, without_superseded
from mnemosyned.domain.secrets.masking import mask_memory
from mnemosyned.domain.tags import tag_names
from mnemosyned.service.intake import to_utc
from mnemosyned.verbs.listing import (
    LEVELS,
    Listed,
    ListMemories,
    SessionList,
    Sessions,
    SourceList,
    Sources,
)
from mnemosyned.verbs.request import names


class ListService:
    """The verbs that list what is kept."""

    def __init__(self, *, store: ListStore, clock: Clock) -> None:
        self._store = store
        self._clock = clock

    def list_memories(self, request: ListMemories) -> Listed:
        page = self._store.page(self._filter(request))
        memories, summaries = page.memories, page.summaries
        if not request.reveal:
            memories = [mask_memory(memory) for memory in memories]
            summaries = [mask_episode(summary) for summary in summaries]
        return Listed(
            memories,
            [without_superseded(summary) for summary in summaries],
            page.next.written() if page.next else None,
        )

    def sessions(self, request: Sessions) -> SessionList:
        prefix = request.prefix or ""
        totals = [
            total
            for total in self._store.sessions()
            if total.session.startswith(prefix)
        ]
        return SessionList(totals[: request.limit], len(totals))

    def sources(self, request: Sources) -> SourceList:
        prefix = request.prefix or ""
        totals = [
            total
            for total in self._store.sources()
            if (total.source or "").startswith(prefix)
        ]
        return SourceList(totals[: request.limit], len(totals))

    def count_today(self) -> int:
        """Count the memories since midnight, by this machine's zone."""
        zone = get_localzone()
        today = in_zone(self._clock.now(), zone).date()
        return self._store.count_since(datetime.combine(today, time(), zone))

    def _filter(self, request: ListMemories) -> ListFilter:
        if request.level and request.tier not in (None, Tier.EPISODIC):
            raise InvalidRequest(
                f"level is for summaries, and {request.tier} has none; leave tier out",
                field="level",
            )
        return ListFilter(
            limit=request.limit,
            order=request.order,
            after=read_place(request.after) if request.after else None,
            sessions=names(request.session),
            sources=names(request.source),
            roles=names(request.role),
            tags=tag_names(names(request.tag), field="tag"),
            tier=request.tier,
            level=LEVELS.index(request.level) if request.level else None,
            since=to_utc(request.since, field="since") if request.since else None,
            until=to_utc(request.until, field="until") if request.until else None,
            pinned=request.pinned,
            id_prefix=request.id_prefix or "",
            valid_at=None if request.history else self._clock.now(),
        )
