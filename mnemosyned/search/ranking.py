"""Ranking: the best results for a question, one for each episode, as hits."""

from __future__ import annotations

import heapq
from collections import defaultdict
from collections.abc import Mapping, Sequence, Set as AbstractSet
from datetime import datetime
from itertools import accumulate
from typing import NamedTuple

from mnemosyned.memory.values import Episode, MemoryRecord, Tier
from mnemosyned.search.dedup import best_level_only, collapse_repeats
from mnemosyned.search.hits import Hit, Line
from mnemosyned.search.placement import place_by_time
from mnemosyned.search.query import (
    BEGINNING,
    Documents,
    Match,
    Query,
    RankedResult,
    ScoreBreakdown,
    SearchCandidates,
)
from mnemosyned.search.scoring import add_similarity, candidate_scores
from mnemosyned.search.weights import WEIGHTS, RankingWeights
from mnemosyned.text.terms import snippet


class _ScoredLine(NamedTuple):
    """An original of an episode with its score."""

    score: float
    position: int
    parts: ScoreBreakdown
    chars: int


class _RankKey(NamedTuple):
    """A result in its order: by score, and the later first among equals.

    An episode comes before the day that says the same, which has the higher number. No two have
    the same `number`, so that the results themselves are never compared.
    """

    score: float
    moment: datetime
    """Time of the latest of what is shown."""
    number: int
    result: RankedResult


def rank(
    query: Query, candidates: SearchCandidates, weights: RankingWeights = WEIGHTS
) -> list[RankedResult]:
    """Return the best results, best first: one for each episode, whatever matched in it."""
    if not candidates.memories and not candidates.episodes:
        return []
    scores = add_similarity(
        candidate_scores(query, candidates, weights), candidates.nearness, weights
    )
    scores = place_by_time(query, scores, candidates)
    matches = {match.position: match for match in candidates.memories}
    ordered, lines = _memory_results(query, scores, matches)
    episodes = _matching_episodes(query, candidates, lines)
    if episodes:
        deserving = _own_place_memories(scores, query.limit)
    for episode in episodes:
        own = candidates.episodes.get(episode, 0.0)
        result = _episode_result(
            own, lines.get(episode, ()), deserving, weights
        )._replace(episode=episode)
        moments = (matches[position].created_at for position, _ in result.lines)
        latest = max(moments, default=BEGINNING)
        ordered.append(_RankKey(result.score, latest, -episode, result))
    ordered.sort(reverse=True)
    results = best_level_only([place.result for place in ordered], candidates.above)
    return collapse_repeats(
        results, matches, limit=query.limit, lines_max=weights.lines_max
    )


def _memory_results(
    query: Query,
    scores: Mapping[int, ScoreBreakdown],
    matches: Mapping[int, Match],
) -> tuple[list[_RankKey], dict[int, list[_ScoredLine]]]:
    """Part candidates into results of their own and lines of episodes."""
    grouped = query.tier in (None, Tier.EPISODIC)
    ordered: list[_RankKey] = []
    lines: dict[int, list[_ScoredLine]] = defaultdict(list)
    for position, parts in scores.items():
        match = matches[position]
        score = sum(parts)
        if match.episode is not None and grouped:
            lines[match.episode].append(
                _ScoredLine(score, position, parts, len(match.content))
            )
        else:
            result = RankedResult(score, position, parts=parts)
            ordered.append(_RankKey(score, match.created_at, position, result))
    return ordered, lines


def _matching_episodes(
    query: Query,
    candidates: SearchCandidates,
    lines: Mapping[int, Sequence[_ScoredLine]],
) -> AbstractSet[int]:
    """Return the episodes that match in their own words or in those of their originals.

    If only episodes are asked for, their own words must match.
    """
    if query.tier is Tier.EPISODIC:
        return candidates.episodes.keys()
    return candidates.episodes.keys() | lines.keys()


def _own_place_memories(
    scores: Mapping[int, ScoreBreakdown], limit: int
) -> AbstractSet[int]:
    """Return the memories that would be results if each was ranked by itself."""
    return set(
        heapq.nlargest(
            limit, scores, key=lambda position: (sum(scores[position]), position)
        )
    )


def _episode_result(
    own: float,
    lines: Sequence[_ScoredLine],
    deserving: AbstractSet[int],
    weights: RankingWeights,
) -> RankedResult:
    """Return an episode with its best lines, and with all that deserve a place by themselves.

    A memory shown before a sleep is shown after it, too, however many of them one episode holds.
    Further lines are shown while they are short: the next episode may hold the answer.
    """
    if not lines:
        parts = ScoreBreakdown(summary=weights.summary_alone * own)
        return RankedResult(sum(parts), parts=parts)
    ranked = sorted(lines, reverse=True)
    chars = list(accumulate(line.chars for line in ranked))
    shown = [
        line
        for rank, line in enumerate(ranked)
        if rank == 0
        or line.position in deserving
        or (rank < weights.lines_max and chars[rank] <= weights.lines_chars_max)
    ]
    further = sum(line.score for line in ranked[1 : weights.lines_max])
    parts = ranked[0].parts._replace(
        summary=weights.summary * own, further=weights.further_lines * further
    )
    return RankedResult(
        sum(parts),
        lines=tuple((line.position, line.score) for line in shown),
        parts=parts,
    )


def make_hits(
    query: Query, places: Sequence[RankedResult], shown: Documents
) -> list[Hit]:
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
        lines=_hit_lines(place, memories),
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
    lines = _hit_lines(place, memories)
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


def _hit_lines(
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
