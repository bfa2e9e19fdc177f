"""Memories forgotten with a grace time, as records and back as rows."""

from __future__ import annotations

from collections.abc import Iterator

import msgspec

from mnemosyned.domain.exchange import ExportedMemory, ExportedRevision
from mnemosyned.domain.memory import MemoryRecord
from mnemosyned.domain.ports.archive.moving import RecoverableRecord
from mnemosyned.storage.postgres.database.session import Session
from mnemosyned.storage.postgres.tables.forgetting.forgotten import (
    KEPT_FIELDS,
    Kept,
    KeptRevision,
    decode_kept,
)
from mnemosyned.storage.postgres.tables.rows import utc

_READ = (
    "SELECT id, call, final_at, data FROM forgotten WHERE owner = %(owner)s ORDER BY id"
)
_INSERT = (
    "INSERT INTO forgotten (owner, id, call, final_at, data) "
    "VALUES (%(owner)s, %(id)s, %(call)s, %(final_at)s, %(data)s) ON CONFLICT DO NOTHING"
)


def recoverable_records(session: Session) -> Iterator[RecoverableRecord]:
    """Read all that can be put back."""
    for id, call, final_at, data in session.stream(_READ):
        kept = decode_kept(data)
        yield RecoverableRecord(
            id=id,
            call=call,
            final_at=final_at,
            memory=_memory(kept) if kept.memory else None,
            superseded_by=kept.superseded_by,
            supersedes=tuple(kept.supersedes),
            learnings=tuple(kept.learnings),
        )


def restore_recoverable(session: Session, record: RecoverableRecord) -> bool:
    """Keep what can be put back, unless it is kept already."""
    kept = Kept(
        superseded_by=record.superseded_by,
        supersedes=list(record.supersedes),
        learnings=list(record.learnings),
    )
    if memory := record.memory:
        kept.seq = memory.seq
        kept.memory = {name: getattr(memory, name) for name in KEPT_FIELDS}
        kept.revisions = [
            KeptRevision(
                revision.changed_at,
                revision.content,
                revision.content_hash,
                msgspec.json.encode(revision.fields).decode(),
            )
            for revision in memory.revisions
        ]
    inserted = session.execute(
        _INSERT,
        id=record.id,
        call=record.call,
        final_at=utc(record.final_at),
        data=msgspec.json.encode(kept).decode(),
    )
    return bool(inserted.rowcount)


def _memory(kept: Kept) -> ExportedMemory:
    memory = msgspec.convert(kept.memory, MemoryRecord)
    return ExportedMemory(
        id=memory.id,
        seq=kept.seq,
        session=memory.session,
        source=memory.source,
        role=memory.role,
        content=memory.content,
        importance=memory.importance,
        pinned=memory.pinned,
        metadata=memory.metadata,
        tags=memory.tags,
        created_at=memory.created_at,
        valid_until=memory.valid_until,
        superseded_at=memory.superseded_at,
        revisions=tuple(
            ExportedRevision(
                changed_at=revision.changed_at,
                content=revision.content,
                content_hash=revision.content_hash,
                fields=msgspec.json.decode(revision.fields),
            )
            for revision in kept.revisions
        ),
    )
