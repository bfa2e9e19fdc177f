"""Ranking: the best results for a question, one for each episode, as hits."""

from __future__ import annotations

import heapq
from collections import defaultdict
from collections.abc import Sequence, Set as AbstractSet
from datetime import datetime
from itertools import accumulate
from typing import NamedTuple

from mnemosyned.memory.values import Episode, MemoryRecord, Tier
from mnemosyned.search.dedup import best_level_only, collapse_repeats
from mnemosyned.search.hits import Hit, Line
from mnemosyned.search.placement import add_period_summary, place_by_time
from mnemosyned.search.query import (
    BEGINNING,
    Documents,
    Query,
    RankedResult,
    ScoreBreakdown,
    SearchCandidates,
)
from mnemosyned.search.scoring import add_similarity, candidate_scores
from mnemosyned.search.weights import WEIGHTS, RankingWeights
from mnemosyned.text.terms import cut_snippet


class _ScoredLine(NamedTuple):
    """An original of an episode with its score."""

    score: float
    position: int
    parts: ScoreBreakdown
    chars: int


class _RankKey(NamedTuple):
    """A result with its sort key: its score, and the later first among equals.

    An episode comes before the day with the same words, which has the higher number. No two have
    the same `number`, so that the results themselves are never compared.
    """

    score: float
    moment: datetime
    """Time of the latest memory in the result."""
    number: int
    result: RankedResult


def rank(
    query: Query, candidates: SearchCandidates, weights: RankingWeights = WEIGHTS
) -> list[RankedResult]:
    """Return the best results, best first: one for each episode, whatever matched in it."""
    if not candidates.memories and not candidates.episodes:
        return add_period_summary([], candidates, limit=query.limit)
    scores = candidate_scores(query, candidates, weights)
    if candidates.nearness.cosines:
        scores = add_similarity(scores, candidates.nearness, weights)
    if query.subject is not None:
        scores = place_by_time(query, scores, candidates)
    matches = {match.position: match for match in candidates.memories}
    ordered: list[_RankKey] = []
    lines: dict[int, list[_ScoredLine]] = defaultdict(list)
    for position, parts in scores.items():
        match = matches[position]
        score = sum(parts)
        if match.episode is not None and query.tier in (None, Tier.EPISODIC):
            line = _ScoredLine(score, position, parts, len(match.content))
            lines[match.episode].append(line)
        else:
            result = RankedResult(score, position, parts=parts)
            ordered.append(_RankKey(score, match.created_at, position, result))
    # If only episodes are asked for, their own words must match.
    matched = {} if query.tier is Tier.EPISODIC else lines
    if episodes := candidates.episodes.keys() | matched.keys():
        ranked = ((sum(parts), position) for position, parts in scores.items())
        best = {position for _, position in heapq.nlargest(query.limit, ranked)}
    for episode in episodes:
        own = candidates.episodes.get(episode, 0.0)
        result = _episode_result(own, lines.get(episode, ()), best, weights)
        moments = (matches[position].created_at for position, _ in result.lines)
        latest = max(moments, default=BEGINNING)
        result = result._replace(episode=episode)
        ordered.append(_RankKey(result.score, latest, -episode, result))
    ordered.sort(reverse=True)
    results = [place.result for place in ordered]
    if candidates.above:
        results = best_level_only(results, candidates.above)
    results = collapse_repeats(
        results, matches, limit=query.limit, lines_max=weights.lines_max
    )
    if candidates.summary is None:
        return results
    return add_period_summary(results, candidates, limit=query.limit)


def _episode_result(
    own: float,
    lines: Sequence[_ScoredLine],
    best: AbstractSet[int],
    weights: RankingWeights,
) -> RankedResult:
    """Rank an episode by its own score and its best lines, and choose the lines to show.

    All memories in `best` are shown: they would be results by themselves, so a memory shown before
    a sleep is shown after it. Further lines are shown while they are short, as the next episode may
    hold the answer.
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
        or line.position in best
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
    query: Query, results: Sequence[RankedResult], documents: Documents
) -> list[Hit]:
    """Return the hits of an answer, without results whose memory was forgotten meanwhile."""
    hits: list[Hit] = []
    for result in results:
        memory = documents.memories.get(result.memory or 0)
        shown = memory or documents.episodes.get(result.episode or 0)
        if shown is None:
            continue
        lines = tuple(
            _hit_line(line, score)
            for position, score in result.lines
            if (line := documents.memories.get(position))
        )
        explanation: dict[str, float] | None = None
        if query.explain:
            parts = result.parts._asdict()
            explanation = {name: part for name, part in parts.items() if part}
        hits.append(_make_hit(query, shown, result, lines, explanation))
    return hits


def _make_hit(
    query: Query,
    shown: MemoryRecord | Episode,
    result: RankedResult,
    lines: tuple[Line, ...],
    explanation: dict[str, float] | None,
) -> Hit:
    """Return one hit from a memory or episode, its rank, lines and explanation."""
    if isinstance(shown, MemoryRecord):
        return Hit(
            id=shown.id,
            tier=shown.tier,
            score=result.score,
            snippet=cut_snippet(shown.content, query.terms),
            content=shown.content,
            created_at=shown.created_at,
            session=shown.session,
            source=shown.source,
            role=shown.role,
            lines=lines,
            duplicates=result.duplicates,
            explanation=explanation,
            superseded_at=shown.superseded_at,
            tags=shown.tags,
        )
    best = lines[0].content if lines else shown.content
    return Hit(
        id=shown.id,
        tier=Tier.EPISODIC,
        score=result.score,
        snippet=cut_snippet(best, query.terms),
        content=shown.content,
        created_at=shown.covers_until,
        session=shown.session,
        source=shown.source,
        summary_of=shown.summary_of,
        lines=lines,
        duplicates=result.duplicates,
        explanation=explanation,
    )


def _hit_line(memory: MemoryRecord, score: float) -> Line:
    """Return an original as a line of its episode's hit."""
    return Line(
        id=memory.id,
        created_at=memory.created_at,
        role=memory.role,
        content=memory.content,
        score=score,
        superseded_at=memory.superseded_at,
        tags=memory.tags,
    )
