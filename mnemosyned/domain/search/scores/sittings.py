"""Sittings: the lines of a session without a long pause, and what they say together."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import timedelta
from operator import attrgetter

from mnemosyned.domain.search.query import Match
from mnemosyned.domain.search.scores.weights import RankingWeights

_CREATED_AT = attrgetter("created_at")


def sittings(matches: Iterable[Match], pause: timedelta) -> Iterator[list[Match]]:
    """Return the matches of each sitting of more than one, in order of time."""
    sessions: dict[tuple[str, str | None], list[Match]] = defaultdict(list)
    for match in matches:
        sessions[match.session, match.source].append(match)
    for session in sessions.values():
        if len(session) > 1:
            session.sort(key=_CREATED_AT)
            yield from _parted(session, pause)


def _parted(session: Sequence[Match], pause: timedelta) -> Iterator[list[Match]]:
    """Part a session at its long pauses."""
    sitting = [session[0]]
    for match in session[1:]:
        if match.created_at - sitting[-1].created_at > pause:
            if len(sitting) > 1:
                yield sitting
            sitting = []
        sitting.append(match)
    if len(sitting) > 1:
        yield sitting


def sitting_scores(
    matches: Iterable[Match],
    terms: Mapping[int, Sequence[float]],
    sums: Mapping[int, float],
    *,
    weights: RankingWeights,
) -> dict[int, float]:
    """Return for each match the sum of the best that its sitting says of each term.

    `terms` are the scores of each match for each term, `sums` their sums: alone, a match has its
    own. A sitting with much text counts less.
    """
    scores = dict(sums)
    for sitting in sittings(matches, weights.sitting_pause):
        positions = [match.position for match in sitting]
        best = map(max, *(terms[position] for position in positions))
        size = sum(len(match.content) for match in sitting)
        share = weights.sitting_chars / max(size, weights.sitting_chars)
        scores.update(dict.fromkeys(positions, share * sum(best)))
    return scores
