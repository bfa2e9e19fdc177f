"""Single memories and episodes: remembered, and read by id."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from mnemosyned.domain.errors import NotFound
from mnemosyned.domain.memory import Episode, MemoryRecord, Tier
from mnemosyned.domain.ports.records import Draft, RecordStore, Remembered
from mnemosyned.domain.storing.rows import EPISODE_COLUMNS, episode_from
from mnemosyned.domain.storing.supersession import HISTORY_MAX
from mnemosyned.storage.postgres.database.session import Session
from mnemosyned.storage.postgres.database.transactions import Transactional, reads
from mnemosyned.storage.postgres.tables.changing.state import position_of
from mnemosyned.storage.postgres.tables.hierarchy import BELOW
from mnemosyned.storage.postgres.tables.insert import PostgresIntake
from mnemosyned.storage.postgres.tables.memories import (
    episode_at,
    memories_at,
    memory_with,
)
from mnemosyned.storage.postgres.tables.owners.owner import totals
from mnemosyned.storage.postgres.tables.rows import (
    MEMORY_FIELDS,
    MEMORY_TABLES,
    OF_IDS,
    WORKING_TABLES,
    memory_from,
)

THOSE_WITH_IDS = f"WHERE m.owner = %(owner)s AND {OF_IDS} ORDER BY m.created_at, m.seq"


class PostgresRecords(Transactional, RecordStore):
    """A `RecordStore` of one owner in PostgreSQL."""

    def remember(self, drafts: Sequence[Draft]) -> Remembered:
        with self._pool.writing_at_once(self._owner) as session:
            intake = PostgresIntake(session)
            remembered = intake.remember(drafts)
        return replace(remembered, working=intake.working)

    @reads
    def get(self, session: Session, id: str) -> MemoryRecord | Episode:
        record = memory_with(session, id) or episode_at(session, "id", id, details=True)
        if record is None:
            raise NotFound(
                f"nothing has the id {id!r}; `recall` shows the ids that exist",
                field="id",
            )
        return record

    @reads
    def originals(self, session: Session, episode: str) -> list[MemoryRecord]:
        rows = session.execute(
            f"{BELOW} SELECT {MEMORY_FIELDS} FROM {MEMORY_TABLES} "
            "WHERE m.owner = %(owner)s AND p.episode_seq IN (SELECT seq FROM below) "
            "ORDER BY m.created_at, m.seq",
            summary=episode,
        )
        return list(map(memory_from, rows))

    @reads
    def summaries(self, session: Session, ids: Sequence[str]) -> list[Episode]:
        rows = session.execute(
            f"SELECT {EPISODE_COLUMNS} FROM episode "
            "WHERE owner = %(owner)s AND id = ANY(%(ids)s)",
            ids=list(ids),
        )
        return sorted(
            map(episode_from, rows),
            key=lambda summary: (summary.covers_from, summary.id),
        )

    @reads
    def working(self, session: Session, ids: Sequence[str]) -> list[MemoryRecord]:
        rows = session.execute(
            f"SELECT {MEMORY_FIELDS} FROM {WORKING_TABLES} {THOSE_WITH_IDS}",
            ids=list(ids),
        )
        return list(map(memory_from, rows))

    @reads
    def existing(self, session: Session, ids: Sequence[str]) -> list[MemoryRecord]:
        rows = session.execute(
            f"SELECT {MEMORY_FIELDS} FROM {MEMORY_TABLES} {THOSE_WITH_IDS}",
            ids=list(ids),
        )
        return list(map(memory_from, rows))

    @reads
    def working_count(self, session: Session) -> int:
        count, _ = totals(session)[Tier.WORKING]
        return count

    @reads
    def history(self, session: Session, id: str) -> list[MemoryRecord]:
        position = position_of(session, id)
        older: list[MemoryRecord] = []
        waiting: Sequence[int] = [position[0]] if position else []
        while waiting and len(older) < HISTORY_MAX:
            rows = session.execute(
                "SELECT memory_seq FROM memory_state WHERE owner = %(owner)s "
                "AND superseded_by = ANY(%(seqs)s) ORDER BY superseded_at DESC, memory_seq DESC "
                "LIMIT %(most)s",
                seqs=list(waiting),
                most=HISTORY_MAX,
            )
            waiting = [seq for (seq,) in rows]
            found = memories_at(session, waiting)
            older += [found[seq] for seq in waiting]
        return older[:HISTORY_MAX]
