"""Which matches have their neighbors looked up, and which of those are near enough."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import takewhile

from mnemosyned.domain.memory import DEFAULT_SESSION
from mnemosyned.domain.search.query import Match
from mnemosyned.domain.search.ranking import NEIGHBOR_SHARES

MATCHES_MAX = 24
"""Neighbors are looked up for this many of the best matches."""
SCORE_SHARE_MIN = 0.5
"""Share of the best score that a match needs for that."""
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
        for distance in range(1, len(NEIGHBOR_SHARES) + 1)
        for neighbor in (index - distance, index + distance)
        if 0 <= neighbor < len(positions)
    ]
