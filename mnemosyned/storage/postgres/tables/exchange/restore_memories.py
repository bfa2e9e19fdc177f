"""Memories of an export as rows: words, place, state, tags, earlier words and exact values."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from mnemosyned.domain.content_hash import content_hash
from mnemosyned.domain.memory import MemoryRecord, Tier
from mnemosyned.domain.storing.restoring import PlacedMemory
from mnemosyned.storage.postgres.database.session import Session
from mnemosyned.storage.postgres.tables.changing.tags import add_tags
from mnemosyned.storage.postgres.tables.details import Values, written
from mnemosyned.storage.postgres.tables.insert import (
    INSERT_FRESH,
    INSERT_MEMORIES,
    columns,
)
from mnemosyned.storage.postgres.tables.owners.owner import (
    add_to_totals,
    note_rewording,
    take_numbers,
)
from mnemosyned.storage.postgres.tables.placement import INSERT_PLACED
from mnemosyned.storage.postgres.tables.rows import memory_values, utc

_STATES = {
    "memory_state": ("valid_until", "superseded_at", "pruned_at"),
    "working_state": ("held_until", "future_since"),
}
_INSERT_REVISION = (
    "INSERT INTO revision "
    "(owner, seq, memory_seq, changed_at, content, content_hash, fields) VALUES "
    "(%(owner)s, %(number)s, %(seq)s, %(changed_at)s, %(content)s, %(hash)s, %(fields)s)"
)


def insert_memories(session: Session, memories: Sequence[PlacedMemory]) -> None:
    """Insert memories with all that is kept of them."""
    if not memories:
        return
    session.execute(
        INSERT_MEMORIES,
        seq=[each.seq for each in memories],
        **columns([_values(session.owner, each) for each in memories]),
    )
    session.grown += len(memories)
    note_rewording(session)
    working = [each for each in memories if each.home is None]
    archived = [each for each in memories if each.home is not None]
    _place(session, working, archived)
    _insert_states(session, memories, working)
    _insert_changes(session, memories)


def _place(
    session: Session, working: Sequence[PlacedMemory], archived: Sequence[PlacedMemory]
) -> None:
    """Put memories into their tiers, and count them there."""
    session.execute(
        INSERT_FRESH,
        seq=[each.seq for each in working],
        created_at=[utc(each.memory.created_at) for each in working],
    )
    session.execute(
        INSERT_PLACED,
        seqs=[each.seq for each in archived],
        homes=[each.home for each in archived],
        **written(map(_details, archived))._asdict(),
    )
    for tier, members in ((Tier.WORKING, working), (Tier.ARCHIVE, archived)):
        characters = sum(len(each.memory.content) for each in members)
        add_to_totals(session, tier, count=len(members), characters=characters)


def _details(placed: PlacedMemory) -> Values:
    """The exact values of an original; of two alike the first one counts."""
    return {
        (kind, value): is_secret
        for kind, value, is_secret in reversed(placed.memory.details)
    }


def _values(owner: int, placed: PlacedMemory) -> dict[str, object]:
    """The values of a row; a pruned memory is found by no word, not even by its speaker's."""
    memory = placed.memory
    record = MemoryRecord(
        id=memory.id,
        session=memory.session,
        source=memory.source,
        role=memory.role,
        content=memory.content,
        importance=memory.importance,
        pinned=memory.pinned,
        metadata=memory.metadata,
        created_at=memory.created_at,
    )
    values = memory_values(record, owner)
    if not memory.content:
        known = memory.content_hash
        values["content_hash"] = content_hash("") if known is None else known
        values["words"], values["grams"] = [], None
    return values


def _insert_states(
    session: Session, memories: Sequence[PlacedMemory], working: Sequence[PlacedMemory]
) -> None:
    for table, members in (("memory_state", memories), ("working_state", working)):
        names = _STATES[table]
        rows = [
            {"seq": each.seq, **{name: getattr(each.memory, name) for name in names}}
            for each in members
            if any(getattr(each.memory, name) for name in names)
        ]
        session.execute_many(
            f"INSERT INTO {table} (owner, memory_seq, {', '.join(names)}) VALUES "
            f"(%(owner)s, %(seq)s, {', '.join(f'%({name})s' for name in names)})",
            rows,
        )


def _insert_changes(session: Session, memories: Sequence[PlacedMemory]) -> None:
    """Insert the tags of memories and what they were before they were edited."""
    for memory, seq, _ in memories:
        if memory.tags:
            add_tags(session, seq, memory.tags)
    revisions = [
        (seq, revision) for memory, seq, _ in memories for revision in memory.revisions
    ]
    numbers = take_numbers(session, "record", len(revisions))
    session.execute_many(
        _INSERT_REVISION,
        [
            {
                "number": number,
                "seq": seq,
                "changed_at": utc(revision.changed_at),
                "content": revision.content,
                "hash": revision.content_hash,
                "fields": msgspec.json.encode(revision.fields).decode(),
            }
            for number, (seq, revision) in zip(numbers, revisions, strict=True)
        ],
    )
