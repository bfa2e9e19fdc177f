"""Adds the similarity of vectors to scores by words, never most of a score."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from mnemosyned.domain.search.query import NO_SCORE, Nearness, ScoreBreakdown
from mnemosyned.domain.search.scores.weights import RankingWeights


def spoken(role: str, content: str) -> str:
    """Return the text that a vector is made of; the speaker is part of the meaning.

    By vectors alone, ten results hold 0.45 of LoCoMo's evidence with the speaker, 0.28 without.
    """
    return f"{role}: {content}" if role else content


def with_similarity(
    scores: Mapping[int, ScoreBreakdown], nearness: Nearness, weights: RankingWeights
) -> dict[int, ScoreBreakdown]:
    """Add to each score the share of its similarity, and candidates that are similar alone."""
    if not nearness.cosines:
        return dict(scores)
    cosines = {
        position: cosine
        for position, cosine in nearness.cosines.items()
        if position in scores or cosine >= nearness.vector_only_min
    }
    nearest = max(cosines.values(), default=0.0)
    if nearest <= 0:
        return dict(scores)
    best = max(map(sum, scores.values()), default=0.0) or 1.0
    most = weights.meaning * best
    unknown = _average(cosines[position] for position in scores if position in cosines)
    return {
        position: scores.get(position, NO_SCORE)._replace(
            meaning=most * (max(0.0, cosines.get(position, unknown)) / nearest)
        )
        for position in (*scores, *(cosines.keys() - scores.keys()))
    }


def _average(cosines: Iterable[float]) -> float:
    """Return the similarity of a candidate without a vector: it must not sink for that."""
    known = [max(0.0, cosine) for cosine in cosines]
    return sum(known) / max(1, len(known))
