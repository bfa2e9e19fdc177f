"""Memories forgotten with a grace time, as records and back as rows."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from typing import Any

import msgspec

from mnemosyned.domain.content_hash import content_hash
from mnemosyned.domain.exchange import ExportedMemory, ExportedRevision
from mnemosyned.domain.learnings.learning import Learning
from mnemosyned.domain.ports.archive.moving import RecoverableRecord
from mnemosyned.storage.sqlite.tables.forgetting.forgotten import Kept, decode_kept
from mnemosyned.storage.sqlite.tables.learnings import learning_from
from mnemosyned.storage.sqlite.tables.rows import (
    instant,
    instant_text,
    optional_instant,
)


def recoverable_records(connection: sqlite3.Connection) -> Iterator[RecoverableRecord]:
    """Read all that can be put back."""
    rows = connection.execute(
        "SELECT id, call, final_at, data FROM forgotten ORDER BY id"
    )
    for id, call, final_at, data in rows:
        kept = decode_kept(data)
        superseded_by = kept.state[2] if kept.state else None
        yield RecoverableRecord(
            id=id,
            call=call,
            final_at=instant(final_at),
            memory=_memory(kept) if kept.row else None,
            superseded_by=superseded_by,
            supersedes=tuple(kept.supersedes),
            learnings=tuple(map(learning_from, kept.learnings)),
        )


def restore_recoverable(
    connection: sqlite3.Connection, record: RecoverableRecord
) -> bool:
    """Keep what can be put back, unless it is kept already."""
    kept = Kept(
        supersedes=list(record.supersedes),
        learnings=list(map(_learning_row, record.learnings)),
    )
    if record.memory:
        _fill(kept, record.memory, record.superseded_by)
    inserted = connection.execute(
        "INSERT OR IGNORE INTO forgotten (id, call, final_at, data) VALUES (?, ?, ?, ?)",
        (
            record.id,
            record.call,
            instant_text(record.final_at),
            msgspec.json.encode(kept).decode(),
        ),
    )
    return bool(inserted.rowcount)


def _memory(kept: Kept) -> ExportedMemory:
    seq, id, session, source, role, content, importance, pinned = kept.row[:8]
    metadata, created_at, _ = kept.row[8:]
    valid_until, superseded_at, _ = kept.state or (None, None, None)
    return ExportedMemory(
        id=id,
        seq=seq,
        session=session,
        source=source,
        role=role,
        content=content,
        importance=importance,
        pinned=bool(pinned),
        metadata=msgspec.json.decode(metadata),
        tags=tuple(kept.tags),
        created_at=instant(created_at),
        valid_until=optional_instant(valid_until),
        superseded_at=optional_instant(superseded_at),
        revisions=tuple(
            ExportedRevision(
                changed_at=instant(changed_at),
                content=content,
                content_hash=content_hash,
                fields=msgspec.json.decode(fields),
            )
            for changed_at, content, content_hash, fields in kept.revisions
        ),
    )


def _fill(kept: Kept, memory: ExportedMemory, superseded_by: int | None) -> None:
    kept.row = [
        memory.seq,
        memory.id,
        memory.session,
        memory.source,
        memory.role,
        memory.content,
        memory.importance,
        int(memory.pinned),
        msgspec.json.encode(memory.metadata).decode(),
        instant_text(memory.created_at),
        content_hash(memory.content),
    ]
    if memory.valid_until or memory.superseded_at:
        kept.state = [
            memory.valid_until and instant_text(memory.valid_until),
            memory.superseded_at and instant_text(memory.superseded_at),
            superseded_by,
        ]
    kept.tags = list(memory.tags)
    kept.revisions = [
        [
            instant_text(revision.changed_at),
            revision.content,
            revision.content_hash,
            msgspec.json.encode(revision.fields).decode(),
        ]
        for revision in memory.revisions
    ]


def _learning_row(learning: Learning) -> list[Any]:
    return [
        learning.id,
        str(learning.kind),
        learning.text,
        learning.session,
        learning.source,
        learning.memory,
        instant_text(learning.created_at),
        learning.superseded_by,
    ]
