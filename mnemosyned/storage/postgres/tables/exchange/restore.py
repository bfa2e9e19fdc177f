"""Records of an export stored again: each once, and no summary without what it was made of."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

from mnemosyned.domain.exchange import (
    ExportedEpisode,
    ExportedSupersession,
    Outcome,
)
from mnemosyned.domain.storing.intake import Known
from mnemosyned.domain.storing.restoring import Home, PlacedMemory, Restoring
from mnemosyned.storage.postgres.database.session import Session
from mnemosyned.storage.postgres.tables.changing.rewrites import mark_emptied
from mnemosyned.storage.postgres.tables.episodes import restore_episode
from mnemosyned.storage.postgres.tables.exchange.moved import MOVED
from mnemosyned.storage.postgres.tables.exchange.restore_memories import insert_memories
from mnemosyned.storage.postgres.tables.exchange.restore_single import SINGLE
from mnemosyned.storage.postgres.tables.insert import known_records
from mnemosyned.storage.postgres.tables.owners.owner import pass_number
from mnemosyned.storage.postgres.tables.rows import utc

_SUPERSEDE = (
    "UPDATE memory_state AS s SET superseded_by = n.seq FROM memory AS m, memory AS n "
    "WHERE m.owner = %(owner)s AND m.id = %(memory)s "
    "AND n.owner = %(owner)s AND n.id = %(newer)s "
    "AND s.owner = %(owner)s AND s.memory_seq = m.seq "
    "AND s.superseded_at IS NOT NULL AND s.superseded_by IS NULL"
)
_BOTH_HERE = (
    "SELECT count(*) FROM unnest(ARRAY[%(memory)s, %(newer)s]::text[]) AS r (id) "
    "JOIN memory AS m ON m.owner = %(owner)s AND m.id = r.id"
)


class PostgresRestoring(Restoring):
    """The restoring of records in one transaction."""

    def __init__(self, session: Session) -> None:
        kinds = {**SINGLE, **MOVED}.items()
        super().__init__({kind: partial(store, session) for kind, store in kinds})
        self._session = session

    def known_records(self, ids: Sequence[str]) -> dict[str, Known]:
        return known_records(self._session, ids)

    def homes(self, episodes: Sequence[str]) -> dict[str, Home]:
        rows = self._session.execute(
            "SELECT id, seq, item_count - (SELECT count(*) FROM placed AS p "
            "WHERE p.owner = %(owner)s AND p.episode_seq = e.seq) "
            "FROM episode AS e WHERE e.owner = %(owner)s AND level = 0 "
            "AND id = ANY(%(ids)s::text[])",
            ids=list(episodes),
        )
        return {id: Home(position, room) for id, position, room in rows.fetchall()}

    def taken_numbers(self, seqs: Sequence[int]) -> set[int]:
        rows = self._session.execute(
            "SELECT seq FROM memory WHERE owner = %(owner)s "
            "AND seq = ANY(%(seqs)s::bigint[])",
            seqs=list(seqs),
        )
        return {seq for (seq,) in rows}

    def last_number(self) -> int:
        last: int = self._session.scalar(
            "SELECT last_memory FROM owner WHERE owner = %(owner)s"
        )
        return last

    def insert_memories(
        self, memories: Sequence[PlacedMemory], *, last_number: int
    ) -> None:
        insert_memories(self._session, memories)
        pass_number(self._session, "memory", last_number)

    def insert_episode(self, episode: ExportedEpisode) -> None:
        seq = restore_episode(self._session, episode)
        if episode.emptied:
            mark_emptied(self._session, seq)

    def can_adopt(self, rollup: ExportedEpisode) -> bool:
        free = self._session.scalar(
            "SELECT count(*) FROM episode WHERE owner = %(owner)s AND parent_id IS NULL "
            "AND level < %(level)s AND id = ANY(%(below)s::text[])",
            level=rollup.level,
            below=list(rollup.summary_of),
        )
        taken = self._session.scalar(
            "SELECT 1 FROM episode WHERE owner = %(owner)s AND level = %(level)s "
            "AND period_from = %(period)s::timestamptz",
            level=rollup.level,
            period=utc(rollup.period_from) if rollup.period_from else None,
        )
        return not taken and free == len(rollup.summary_of)

    def adopt(self, rollup: ExportedEpisode) -> None:
        self._session.execute(
            "UPDATE episode SET parent_id = %(id)s "
            "WHERE owner = %(owner)s AND id = ANY(%(below)s::text[])",
            id=rollup.id,
            below=list(rollup.summary_of),
        )

    def link(self, supersession: ExportedSupersession) -> Outcome:
        ids = {
            "memory": supersession.memory,
            "newer": supersession.superseded_by,
        }
        changed = self._session.execute(_SUPERSEDE, **ids).rowcount
        if changed:
            return True
        return False if self._session.scalar(_BOTH_HERE, **ids) == len(ids) else None
