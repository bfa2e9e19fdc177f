"""Selects the learnings that a context shows, most relevant first."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from datetime import datetime, timedelta

from mnemosyned.domain.learnings.learning import Learning, LearningKind
from mnemosyned.domain.learnings.subject import content_words
from mnemosyned.domain.text.terms import Terms, terms

SHOWN_MAX = 5
"""How many learnings a context shows."""
FRESH = timedelta(days=7)
"""A learning this recent ranks as if it shared half a word with the question."""


def select_relevant(
    learnings: Iterable[Learning],
    *,
    question: Terms,
    now: datetime,
    budget_tokens: int,
    count: Callable[[str], int],
    limit: int = SHOWN_MAX,
) -> list[Learning]:
    """Select active learnings within the budget: most relevant to the question, then newest.

    A learning that does not fit is skipped, as a shorter one further down may fit.
    """
    question_words = content_words(question)

    def rank(learning: Learning) -> tuple[int, datetime]:
        matches = len(question_words & content_words(terms(learning.text)))
        named = learning.kind is LearningKind.NAME
        fresh = now - learning.created_at <= FRESH
        return 2 * min(matches, 3) + named + fresh, learning.created_at

    active = [learning for learning in learnings if learning.superseded_by is None]
    shown: list[Learning] = []
    tokens_left = budget_tokens
    for learning in sorted(active, key=rank, reverse=True):
        size = count(learning.text)
        if size <= tokens_left and len(shown) < limit:
            shown.append(learning)
            tokens_left -= size
    return shown
