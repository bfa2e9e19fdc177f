"""The history of recalled facts: what each hit superseded, shown under it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from mnemosyned.domain.ports.records import RecordStore
from mnemosyned.domain.search.results import Hit, Line
from mnemosyned.domain.secrets.masking import mask_memory


def with_history(
    memories: RecordStore, hits: Sequence[Hit], *, reveal: bool
) -> list[Hit]:
    """Add to each hit what it superseded, and drop hits that are shown under another.

    Secrets are masked unless `reveal`.
    """
    dated = [
        replace(hit, history=_history(memories, hit, reveal=reveal)) for hit in hits
    ]
    older = {line.id for hit in dated for line in hit.history}
    return [hit for hit in dated if not older.issuperset(_memories(hit))]


def _history(memories: RecordStore, hit: Hit, *, reveal: bool) -> tuple[Line, ...]:
    older = {
        memory.id: memory for id in _memories(hit) for memory in memories.history(id)
    }
    return tuple(
        Line(
            id=memory.id,
            created_at=memory.created_at,
            role=memory.role,
            content=memory.content if reveal else mask_memory(memory).content,
            score=0.0,
            superseded_at=memory.superseded_at,
        )
        for memory in older.values()
    )


def _memories(hit: Hit) -> list[str]:
    """The ids of the memories that a hit shows: an episode's lines, or itself."""
    return [line.id for line in hit.lines] or [hit.id]
