"""Compactions: the messages that they took out of conversations, in order."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import asdict

from mnemosyned.conversation.archived import ABOUT, list_archived_memory_ids
from mnemosyned.instants import shift
from mnemosyned.memory.exchange import ExportedCompaction
from mnemosyned.memory.intake import content_hash
from mnemosyned.memory.ports import ArchivedMessage, CompactionRecord, NewCompaction
from mnemosyned.memory.values import MemoryRecord
from mnemosyned.storage.common.records import IntakeTransaction
from mnemosyned.storage.common.rows import instant
from mnemosyned.storage.common.session import (
    UNLESS_KNOWN,
    CommonSession,
    EngineSession,
    Transactional,
    reads,
    writes,
)


def insert_compaction(session: CommonSession, compaction: ExportedCompaction) -> bool:
    """Insert a compaction with its parts in order, unless its id is stored; return if inserted."""
    inserted = session.insert(
        "compaction",
        UNLESS_KNOWN,
        id=compaction.id,
        session_id=compaction.session,
        source=compaction.source,
        policy=compaction.policy,
        text_hash=compaction.text_hash,
        created_at=compaction.created_at,
    )
    if not inserted.rowcount:
        return False
    session.insert_each(
        "compacted",
        [
            {"compaction": compaction.id, "position": position, "part": part}
            for position, part in enumerate(compaction.parts)
        ],
    )
    return True


class CompactionStore(Transactional):
    """Keeps the messages that compactions replaced by a summary."""

    _intake: Callable[[EngineSession], IntakeTransaction]
    """Makes the intake of a transaction."""
    _same: str
    """Selects the id of a memory with a text, session, source and role, of a time if it is given.

    Only memories with an id chosen by the agent count.
    """
    _parts_below: str
    """Compaction and part of all compactions from which `id` goes on, in order."""

    @writes
    def add(
        self, session: CommonSession, compactions: Sequence[NewCompaction]
    ) -> list[str]:
        """Store compactions with their new messages, all or none; return the ids of their memories."""
        messages = {
            part.draft.memory.id: part
            for compaction in compactions
            for part in compaction.parts
            if isinstance(part, ArchivedMessage)
        }
        known = {id: self._known_memory(session, messages[id]) for id in messages}
        homes = {id: home or id for id, home in known.items()}
        self._intake(session).remember(
            [messages[id].draft for id, home in known.items() if home is None]
        )
        for compaction in compactions:
            record = compaction.record
            parts = tuple(
                homes[part.draft.memory.id]
                if isinstance(part, ArchivedMessage)
                else part
                for part in compaction.parts
            )
            insert_compaction(
                session,
                ExportedCompaction(
                    **asdict(record),
                    text_hash=content_hash(compaction.text),
                    parts=parts,
                ),
            )
        return list(dict.fromkeys(homes.values()))

    def _known_memory(
        self, session: CommonSession, taken: ArchivedMessage
    ) -> str | None:
        """Return the id of a memory that already holds a message, by its id or, if it may, its text."""
        memory = taken.draft.memory
        if session.position_of(memory.id):
            return memory.id
        if not taken.may_reuse:
            return None
        earliest = latest = None
        if taken.has_timestamp:
            earliest = shift(memory.created_at, -ABOUT)
            latest = shift(memory.created_at, ABOUT)
        id: str | None = session.scalar(
            self._same,
            hash=content_hash(memory.content),
            content=memory.content,
            session=memory.session,
            source=memory.source,
            role=memory.role,
            earliest=earliest,
            latest=latest,
        )
        return id

    @reads
    def get(
        self, session: CommonSession, id: str
    ) -> tuple[CompactionRecord, list[MemoryRecord]] | None:
        """Return a compaction and its remaining messages in conversation order; None if unknown."""
        row = session.select(
            "compaction", "session_id, source, policy, created_at", id=id
        ).fetchone()
        if row is None:
            return None
        name, source, policy, created_at = row
        record = CompactionRecord(
            id=id,
            session=name,
            source=source,
            policy=policy,
            created_at=instant(created_at),
        )
        parts: dict[str, list[str]] = {}
        for compaction, part in session.execute(self._parts_below, id=id):
            parts.setdefault(compaction, []).append(part)
        ids = list(dict.fromkeys(list_archived_memory_ids(parts, id)))
        memories = session.memories(ids)
        return record, [memories[id] for id in ids if id in memories]

    def find_by_summary(
        self, text: str, *, session: str, source: str | None
    ) -> str | None:
        """Return the id of the newest compaction in a session and source with this summary, or None."""

        def find(snapshot: CommonSession) -> str | None:
            id: str | None = snapshot.scalar(
                "SELECT id FROM compaction WHERE owner = %(owner)s AND text_hash = %(hash)s "
                "AND session_id = %(session)s AND source IS NOT DISTINCT FROM %(source)s::text "
                "ORDER BY created_at DESC LIMIT 1",
                hash=content_hash(text),
                session=session,
                source=source,
            )
            return id

        return self._read(find)
