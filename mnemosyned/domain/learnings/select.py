"""Which learnings a context shows, and in which order."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from datetime import datetime, timedelta

from mnemosyned.domain.learnings.learning import Learning, LearningKind
from mnemosyned.domain.learnings.subject import stems
from mnemosyned.domain.text.terms import Terms, terms

SHOWN_MAX = 5
"""How many learnings a context shows."""
FRESH = timedelta(days=7)
"""A learning this young is worth half a word in common with the question."""


def relevant(
    learnings: Iterable[Learning],
    *,
    question: Terms,
    now: datetime,
    budget_tokens: int,
    count: Callable[[str], int],
    limit: int = SHOWN_MAX,
) -> list[Learning]:
    """Those that hold, most relevant to the question first, then the most recent, in the budget.

    One that does not fit is passed over, as a shorter one further down may.
    """
    asked = stems(question)

    def rank(learning: Learning) -> tuple[int, datetime]:
        matches = len(asked & stems(terms(learning.text)))
        named = learning.kind is LearningKind.NAME
        fresh = now - learning.created_at <= FRESH
        return 2 * min(matches, 3) + named + fresh, learning.created_at

    holding = [learning for learning in learnings if learning.superseded_by is None]
    shown: list[Learning] = []
    left = budget_tokens
    for learning in sorted(holding, key=rank, reverse=True):
        size = count(learning.text)
        if size <= left and len(shown) < limit:
            shown.append(learning)
            left -= size
    return shown
