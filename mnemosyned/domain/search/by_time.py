"""Selects among all memories of a time, for a question that asks for nothing else."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from datetime import UTC, datetime
from operator import itemgetter
from typing import TYPE_CHECKING, NamedTuple

from mnemosyned.domain.memory import Tier
from mnemosyned.domain.search.query import Query

if TYPE_CHECKING:
    from mnemosyned.domain.dates.spans import TimeSpan

FIRST_SCORE = 0.01
"""Score of the first memory of a time: negligible compared with a matching word."""
SCORE_STEP = 0.05
COMPARED_CHARS = 120
"""Characters by which texts are compared; up to here, the longer text is preferred."""
WALKED_MAX = 10_000
"""Rows read of a tier, the earliest of the time."""
EPISODES_MAX = 500
"""Episodes read, the latest that had begun when the time was over."""
ORDERED_MAX = 60
"""Rows of an order in time, the first of it."""
_DIGITS = re.compile(r"\d+")


class TimedMemory(NamedTuple):
    """A memory of the time in question."""

    importance: float
    created_at: datetime
    position: int
    source: str | None
    beginning: str
    """The first `COMPARED_CHARS` characters of the text."""


def asked_at(query: Query) -> datetime:
    """Return when a question is asked; after all times if it does not say."""
    return query.now or datetime.max.replace(tzinfo=UTC)


def only_time(query: Query) -> TimeSpan | None:
    """Return the time that a question asks for, if it is one, over, and narrowed by nothing."""
    is_narrowed = (
        query.sessions or query.sources or query.tags or query.since or query.until
    )
    is_over = len(query.spans) == 1 and query.spans[0].until <= asked_at(query)
    if not is_over or is_narrowed or query.tier not in (None, Tier.EPISODIC):
        return None
    return query.spans[0]


def scores_by_time(
    memories: Sequence[TimedMemory], *, shown: int, limit: int
) -> dict[int, float]:
    """Return scores by position: the most important memories first, then the earliest.

    Among equally important memories, those shown are taken from each source in turn.
    """
    turns = _by_source_in_turn(memories)
    ordered = sorted(turns[:shown], key=_chronologically) + turns[shown:limit]
    return {
        memory.position: FIRST_SCORE / (1 + SCORE_STEP * rank)
        for rank, memory in enumerate(ordered)
    }


def _chronologically(memory: TimedMemory) -> tuple[float, datetime, int]:
    return -memory.importance, memory.created_at, memory.position


def _by_source_in_turn(memories: Sequence[TimedMemory]) -> list[TimedMemory]:
    """Take equally important memories from each source in turn, repetitions last.

    A day has forty notices for each entry of its calendar, and most of them say the same. Within a
    source longer texts go first, as they say more.
    """
    seen: set[tuple[str | None, str]] = set()
    turns: Counter[tuple[float, str | None]] = Counter()
    placed: list[tuple[tuple[float, bool, int], TimedMemory]] = []
    for memory in sorted(memories, key=_longest_first):
        importance, _, _, source, text = memory
        says = (source, _DIGITS.sub("0", text.casefold()))
        repeats = says in seen
        placed.append(((-importance, repeats, turns[importance, source]), memory))
        turns[importance, source] += not repeats
        seen.add(says)
    return [memory for _, memory in sorted(placed, key=itemgetter(0))]


def _longest_first(memory: TimedMemory) -> tuple[float, int, datetime, int]:
    importance, created_at, position, _, text = memory
    return -importance, -len(text), created_at, position
