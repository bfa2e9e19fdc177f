"""Hits: ranked results with the memories they refer to."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from mnemosyned.domain.memory import Episode, MemoryRecord, Tier
from mnemosyned.domain.search.query import Documents, Query, RankedResult
from mnemosyned.domain.search.results import Hit, Line
from mnemosyned.domain.text.snippets import snippet


def hits(query: Query, places: Sequence[RankedResult], shown: Documents) -> list[Hit]:
    """Return the hits of an answer; results whose memory was forgotten meanwhile are left out."""
    answer: list[Hit] = []
    for place in places:
        memory = shown.memories.get(place.memory or 0)
        episode = shown.episodes.get(place.episode or 0)
        if memory:
            answer.append(_memory_hit(memory, place, shown.memories, query))
        elif episode:
            answer.append(_episode_hit(episode, place, shown.memories, query))
    return answer


def _explanation(place: RankedResult, query: Query) -> dict[str, float] | None:
    """The parts of a score that count, in the order in which they came about."""
    if not query.explain:
        return None
    return {name: part for name, part in place.parts._asdict().items() if part}


def _memory_hit(
    memory: MemoryRecord,
    place: RankedResult,
    memories: Mapping[int, MemoryRecord],
    query: Query,
) -> Hit:
    return Hit(
        id=memory.id,
        tier=memory.tier,
        score=place.score,
        snippet=snippet(memory.content, query.terms),
        content=memory.content,
        created_at=memory.created_at,
        session=memory.session,
        source=memory.source,
        role=memory.role,
        lines=_lines(place, memories),
        duplicates=place.duplicates,
        explanation=_explanation(place, query),
        superseded_at=memory.superseded_at,
        tags=memory.tags,
    )


def _episode_hit(
    episode: Episode,
    place: RankedResult,
    memories: Mapping[int, MemoryRecord],
    query: Query,
) -> Hit:
    lines = _lines(place, memories)
    return Hit(
        id=episode.id,
        tier=Tier.EPISODIC,
        score=place.score,
        snippet=snippet(lines[0].content if lines else episode.content, query.terms),
        content=episode.content,
        created_at=episode.covers_until,
        session=episode.session,
        source=episode.source,
        summary_of=episode.summary_of,
        lines=lines,
        duplicates=place.duplicates,
        explanation=_explanation(place, query),
    )


def _lines(
    place: RankedResult, memories: Mapping[int, MemoryRecord]
) -> tuple[Line, ...]:
    return tuple(
        Line(
            id=memory.id,
            created_at=memory.created_at,
            role=memory.role,
            content=memory.content,
            score=score,
            superseded_at=memory.superseded_at,
            tags=memory.tags,
        )
        for position, score in place.lines
        if (memory := memories.get(position))
    )
