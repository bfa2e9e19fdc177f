"""Broad questions: for an order, a summary or everything about a subject, answered over all time."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from mnemosyned.search.query import Match, RankedResult
from mnemosyned.search.scoring import USER_ROLES
from mnemosyned.text.rule_files import read_tables

POOL_PER_RESULT = 4
"""Results ranked for each one shown of a broad question."""
RANKED_MAX = 100
SAME_SESSION = 0.7
"""Worth of a result, for each one chosen before of its session."""
SIDE_BY_SIDE = 0.7
"""The same for a result within `SIDE_BY_SIDE_POSITIONS` of a chosen one in its session."""
SIDE_BY_SIDE_POSITIONS = 2
USER = 1.5
"""Worth of a user's words: an assistant's answers repeat those of the subject."""
_RULES = read_tables(__file__, "broad.toml")
_ASKS = re.compile(rf"\b(?:{'|'.join(_RULES['asks'])})\b", re.IGNORECASE)
_FRAME = frozenset(_RULES["frame"].split())
_WORD = re.compile(r"[^\W_][\w'’-]*")


def broad_topic(question: str) -> str | None:
    """Return the words that name the subject of a broad question, or None for another question.

    They are empty for a question about everything, such as "summarize how it went".
    """
    if not _ASKS.search(question):
        return None
    words = _WORD.findall(question)
    return " ".join(word for word in words if word.lower() not in _FRAME)


class _Spot(NamedTuple):
    """A result, and its best memory."""

    result: RankedResult
    match: Match


def spread_results(
    results: Sequence[RankedResult], memories: Sequence[Match], *, limit: int
) -> list[RankedResult]:
    """Return up to `limit` results over many sessions and times, in the order of time.

    `results` are best first; `memories` are the candidates that they consist of. A result is worth
    less for each one of its session that was chosen before, most of all next to it. A summary that
    matched by its own words alone comes after those with exact words.
    """
    matches: Mapping[int, Match] = {match.position: match for match in memories}
    spots = [
        _Spot(result, matches[result.positions[0]])
        for result in results
        if result.positions and result.positions[0] in matches
    ]
    chosen: list[_Spot] = []
    while spots and len(chosen) < limit:
        best = max(spots, key=lambda spot: _worth(spot, chosen))
        spots.remove(best)
        chosen.append(best)
    chosen.sort(key=lambda spot: (spot.match.created_at, spot.match.position))
    alone = [result for result in results if not result.positions]
    return [*(spot.result for spot in chosen), *alone[: limit - len(chosen)]]


def _worth(spot: _Spot, chosen: Sequence[_Spot]) -> float:
    """Return the score of a result, reduced by its likeness to the chosen results."""
    match = spot.match
    worth = spot.result.score * (USER if match.role.lower() in USER_ROLES else 1.0)
    for other in chosen:
        if other.match.session == match.session:
            worth *= SAME_SESSION
            if abs(other.match.position - match.position) <= SIDE_BY_SIDE_POSITIONS:
                worth *= SIDE_BY_SIDE
    return worth
