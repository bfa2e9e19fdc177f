"""Neighbors: lines next to a match in its conversation, and what a match lends to them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import takewhile

from mnemosyned.domain.memory import DEFAULT_SESSION
from mnemosyned.domain.search.query import Match
from mnemosyned.domain.search.scores.weights import WEIGHTS, RankingWeights

MATCHES_MAX = 24
"""Neighbors are looked up for this many of the best matches."""
SCORE_SHARE_MIN = 0.5
"""Share of the best score that a match needs for that."""
_QUESTION_MARKS = ("?", "？")
REACH = 8
"""Distance in the order of arrival, as memories of several sessions may interleave."""


def with_neighbors(matches: Sequence[Match]) -> Iterator[Match]:
    """Return the matches whose neighbors are to be looked up; `matches` are best first."""
    best = matches[:MATCHES_MAX]
    least = SCORE_SHARE_MIN * best[0].score if best else 0.0
    strong = takewhile(lambda match: match.score >= least, best)
    # Memories without a session of their own belong to no conversation.
    return (match for match in strong if match.session != DEFAULT_SESSION)


def nearest(positions: Sequence[int], position: int) -> list[tuple[int, int]]:
    """Return indexes of the next to a position, and how far off they are, nearest first.

    `positions` are those of one session and source, ascending.
    """
    index = positions.index(position)
    return [
        (neighbor, distance)
        for distance in range(1, len(WEIGHTS.neighbors) + 1)
        for neighbor in (index - distance, index + distance)
        if 0 <= neighbor < len(positions)
    ]


def lent_scores(
    matches: Mapping[int, Match],
    terms: Mapping[int, Sequence[float]],
    beside: Mapping[int, Sequence[tuple[int, int]]],
    weights: RankingWeights,
) -> dict[int, list[float]]:
    """Return for each candidate the best its neighbors say of each term, at their share.

    `beside` are the neighbors that were looked up; for others, those of adjoining positions.
    """
    lent: dict[int, list[float]] = {}
    for position, match in matches.items():
        if match.score <= 0:
            continue
        pairs = beside.get(position)
        if pairs is None:
            pairs = _adjoining(position, len(weights.neighbors))
        for neighbor, distance in pairs:
            other = matches.get(neighbor)
            if other and in_one_conversation(match, other, weights):
                share = weights.neighbors[distance - 1]
                if neighbor > position and _asks(match):
                    share *= weights.reply
                shared = [score * share for score in terms[position]]
                lent[neighbor] = list(map(max, lent.get(neighbor, shared), shared))
    return lent


def _adjoining(position: int, reach: int) -> list[tuple[int, int]]:
    """Return the positions before and after one, and how far off they are, nearest first."""
    return [
        (position + step * distance, distance)
        for distance in range(1, reach + 1)
        for step in (-1, 1)
    ]


def _asks(match: Match) -> bool:
    return any(mark in match.content for mark in _QUESTION_MARKS)


def in_one_conversation(
    match: Match, other: Match, weights: RankingWeights = WEIGHTS
) -> bool:
    """Tell whether two memories next to each other belong together."""
    return (
        match.session == other.session != DEFAULT_SESSION
        and match.source == other.source
        and abs(match.created_at - other.created_at) <= weights.neighbors_within
    )
