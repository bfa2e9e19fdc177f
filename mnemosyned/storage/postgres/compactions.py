"""Compactions: the messages they took out of conversations, in order."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial

from mnemosyned.conversation.archived import ABOUT, archived_memory_ids
from mnemosyned.instants import shift
from mnemosyned.memory.ports import (
    ArchivedMessage,
    CompactionRecord,
    CompactionStore,
    NewCompaction,
    places_of,
)
from mnemosyned.memory.values import MemoryRecord, content_hash
from mnemosyned.storage.postgres.insert import SAID, PostgresIntake
from mnemosyned.storage.postgres.pool import Transactional, reads, writes
from mnemosyned.storage.postgres.rows import (
    MEMORY_FIELDS,
    MEMORY_TABLES,
    OF_IDS,
    memory_from,
    utc,
)
from mnemosyned.storage.postgres.session import Session

IDS_PER_QUERY = 5_000
# Ids that the product gave are no agent's own.
_SAME = (
    f"SELECT m.id FROM memory AS m WHERE m.owner = %(owner)s AND {SAID} "
    "AND m.session_id = %(session)s AND m.content = %(content)s "
    "AND m.source IS NOT DISTINCT FROM %(source)s::text AND m.role = %(role)s "
    "AND NOT starts_with(m.id, 'm-') AND (%(earliest)s::timestamptz IS NULL "
    "OR m.created_at BETWEEN %(earliest)s::timestamptz AND %(latest)s::timestamptz) "
    "ORDER BY EXISTS (SELECT 1 FROM placed AS p WHERE p.owner = %(owner)s AND p.seq = m.seq), "
    "m.seq LIMIT 1"
)
_BELOW = (
    'WITH RECURSIVE below (id) AS (SELECT %(id)s::text COLLATE "C" UNION '
    "SELECT c.part FROM below "
    "JOIN compacted AS c ON c.owner = %(owner)s AND c.compaction = below.id) "
    "SELECT c.compaction, c.part FROM below "
    "JOIN compacted AS c ON c.owner = %(owner)s AND c.compaction = below.id "
    "ORDER BY c.compaction, c.position"
)


class PostgresCompactions(Transactional, CompactionStore):
    """A `CompactionStore` of one owner in PostgreSQL."""

    @writes
    def add(self, session: Session, compactions: Sequence[NewCompaction]) -> list[str]:
        places, drafts = places_of(compactions, partial(_home, session))
        PostgresIntake(session).remember(drafts)
        for compaction in compactions:
            _insert(session, compaction, places)
        return list(dict.fromkeys(places.values()))

    @reads
    def get(
        self, session: Session, id: str
    ) -> tuple[CompactionRecord, list[MemoryRecord]] | None:
        row = session.execute(
            "SELECT session_id, source, policy, created_at FROM compaction "
            "WHERE owner = %(owner)s AND id = %(id)s",
            id=id,
        ).fetchone()
        if row is None:
            return None
        name, source, policy, created_at = row
        compacted = CompactionRecord(
            id=id, session=name, source=source, policy=policy, created_at=created_at
        )
        ids = list(dict.fromkeys(archived_memory_ids(_below(session, id), id)))
        memories = _memories(session, ids)
        return compacted, [memories[id] for id in ids if id in memories]

    # The port's name of a conversation is that of a transaction here.
    @reads
    def _find(
        self, session: Session, text: str, name: str, source: str | None
    ) -> str | None:
        id: str | None = session.scalar(
            "SELECT id FROM compaction WHERE owner = %(owner)s AND text_hash = %(hash)s "
            "AND session_id = %(name)s AND source IS NOT DISTINCT FROM %(source)s::text "
            "ORDER BY created_at DESC LIMIT 1",
            hash=content_hash(text),
            name=name,
            source=source,
        )
        return id

    def find_by_summary(
        self, text: str, *, session: str, source: str | None
    ) -> str | None:
        return self._find(text, session, source)


def _home(session: Session, taken: ArchivedMessage) -> str | None:
    """The memory that holds this message already, by its id or as the agent remembered it.

    What a compaction took out before is another message, although it may say the same.
    """
    memory = taken.draft.memory
    home: str | None = session.scalar(
        "SELECT id FROM memory WHERE owner = %(owner)s AND id = %(id)s", id=memory.id
    )
    if home is None and taken.may_reuse:
        earliest = latest = None
        if taken.has_timestamp:
            earliest = utc(shift(memory.created_at, -ABOUT))
            latest = utc(shift(memory.created_at, ABOUT))
        home = session.scalar(
            _SAME,
            session=memory.session,
            content=memory.content,
            source=memory.source,
            role=memory.role,
            earliest=earliest,
            latest=latest,
        )
    return home


def _insert(
    session: Session, compaction: NewCompaction, places: Mapping[str, str]
) -> None:
    record = compaction.record
    new = session.execute(
        "INSERT INTO compaction (owner, id, session_id, source, policy, text_hash, created_at) "
        "VALUES (%(owner)s, %(id)s, %(session)s, %(source)s, %(policy)s, %(hash)s, "
        "%(created_at)s) ON CONFLICT DO NOTHING",
        id=record.id,
        session=record.session,
        source=record.source,
        policy=record.policy,
        hash=content_hash(compaction.text),
        created_at=utc(record.created_at),
    ).rowcount
    if new:
        session.execute(
            "INSERT INTO compacted (owner, compaction, position, part) "
            "SELECT o.owner, %(id)s, r.number - 1, r.part FROM owner AS o "
            "CROSS JOIN unnest(%(parts)s::text[]) WITH ORDINALITY AS r (part, number) "
            "WHERE o.owner = %(owner)s",
            id=record.id,
            parts=compaction.part_ids(places),
        )


def _below(session: Session, id: str) -> dict[str, list[str]]:
    """The parts of a compaction and of all those it goes on from, each in its order."""
    parts: dict[str, list[str]] = {}
    for compaction, part in session.execute(_BELOW, id=id):
        parts.setdefault(compaction, []).append(part)
    return parts


def _memories(session: Session, ids: Sequence[str]) -> dict[str, MemoryRecord]:
    memories: dict[str, MemoryRecord] = {}
    for start in range(0, len(ids), IDS_PER_QUERY):
        rows = session.execute(
            f"SELECT {MEMORY_FIELDS} FROM {MEMORY_TABLES} "
            f"WHERE m.owner = %(owner)s AND {OF_IDS}",
            ids=list(ids[start : start + IDS_PER_QUERY]),
        )
        memories |= {memory.id: memory for memory in map(memory_from, rows)}
    return memories
