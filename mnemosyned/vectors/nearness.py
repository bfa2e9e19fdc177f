"""Adds the similarity of vectors to the candidates of a question, whoever compares them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from mnemosyned.domain.ports.vectors import (
    ComparisonTooSlow,
    VectorSearch,
    VectorStore,
)
from mnemosyned.domain.search.query import Match, Nearness, Query, SearchCandidates

NEAREST = 200
"""Before the question's filters, which may leave few of them."""
NEAREST_SHOWN = 20
BUSY = "found by words alone: the embedding model was not ready in time"
NOT_READY = "found by words alone: the embedding model is {state}"
TOO_SLOW = "found by words alone: the database did not compare the vectors in time"


def with_nearness(
    query: Query,
    candidates: SearchCandidates,
    vector: bytes,
    *,
    search: VectorSearch,
    store: VectorStore,
    least: float,
) -> tuple[SearchCandidates, str]:
    """Add similarities to candidates, and the nearest that the words did not find.

    `least` is the similarity from which a memory without a word in common is a candidate. Where
    vectors were not compared in time, the candidates stay as they are, and a note says so.
    """
    positions = [match.position for match in candidates.memories]
    try:
        cosines = search.cosines(vector, positions)
        nearest = search.nearest(vector, NEAREST, least=least)
    except ComparisonTooSlow:
        return candidates, TOO_SLOW
    unseen = [position for position in nearest if position not in cosines]
    more = _filtered(store, query, unseen)
    cosines |= {match.position: nearest[match.position] for match in more}
    nearness = Nearness(cosines, vector_only_min=least)
    memories = [*candidates.memories, *more]
    return replace(candidates, memories=memories, nearness=nearness), ""


def _filtered(store: VectorStore, query: Query, nearest: Sequence[int]) -> list[Match]:
    """The nearest, in their order, as far as the question's filters let them through."""
    if not nearest:
        return []
    order = {position: rank for rank, position in enumerate(nearest)}
    within = store.candidates(query, nearest)
    return sorted(within, key=lambda match: order[match.position])[:NEAREST_SHOWN]
