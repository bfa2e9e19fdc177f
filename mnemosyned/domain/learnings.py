"""Learnings: what holds from now on, which takes the place of which, and which to show."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime, timedelta

from mnemosyned.domain.meaning import OF_SOMETHING, Meaning, alike, meaning, stems
from mnemosyned.domain.standing import LearningKind
from mnemosyned.domain.terms import Terms, terms
from mnemosyned.domain.tokens import TokenCounter

SHOWN_MAX = 5
"""How many learnings a context shows."""
FRESH = timedelta(days=7)
"""Of two that match a question alike, one a week younger comes first, whatever kind it is of."""

_WORD = re.compile(r"\w+")


@dataclass(frozen=True, slots=True, kw_only=True)
class Learning:
    """A lesson, instruction or preference, in the words it was stated in."""

    id: str
    kind: LearningKind
    text: str
    created_at: datetime
    session: str
    source: str | None = None
    """Whose learning it is: it holds in every session of this source."""
    memory: str | None = None
    """The memory whose words they are; none where an agent stated them."""
    superseded_by: str | None = None
    """The newer learning that contradicts it."""


def supersedes(new: Learning, old: Learning) -> bool:
    """Whether an older learning no longer holds, as a newer one says otherwise.

    Decided by rule and with reserve: of two that may both hold, both do.
    """
    if LearningKind.LESSON in (new.kind, old.kind) and new.kind is not old.kind:
        return False
    if new.kind is old.kind is LearningKind.NAME:
        return True
    ours, theirs = meaning(new.text), meaning(old.text)
    opposed = ours.negative != theirs.negative and alike(ours.about, theirs.about)
    turned = bool(ours.chosen & theirs.refused and ours.refused & theirs.chosen)
    return (
        opposed
        or turned
        or bool(ours.slot and ours.slot == theirs.slot)
        or any(_differ(ours, theirs, group) for group in ours.choices.keys() & theirs.choices)
    )


def _differ(ours: Meaning, theirs: Meaning, group: int) -> bool:
    """Whether they choose otherwise among the same few, for the same thing."""
    agree = ours.choices[group] == theirs.choices[group]
    if agree != (ours.negative != theirs.negative):
        return False
    left, right = (one.about - one.choosing for one in (ours, theirs))
    return alike(left, right) or (group not in OF_SOMETHING and not left and not right)


def same(one: str, other: str) -> bool:
    """Whether two texts say the same in the same words."""
    return _WORD.findall(one.casefold()) == _WORD.findall(other.casefold())


def relevant(
    learnings: Iterable[Learning],
    *,
    question: Terms,
    now: datetime,
    budget_tokens: int,
    counter: TokenCounter,
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
        size = counter.count(learning.text)
        if size <= left and len(shown) < limit:
            shown.append(learning)
            left -= size
    return shown
