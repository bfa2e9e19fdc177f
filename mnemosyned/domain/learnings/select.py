"""Selects the learnings that a context shows: those that matter to the message, best first."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from datetime import datetime, timedelta

from mnemosyned.domain.learnings.fields import ALWAYS, fields_of
from mnemosyned.domain.learnings.learning import Learning, LearningKind
from mnemosyned.domain.learnings.subject import without_cues
from mnemosyned.domain.text.terms import grams
from mnemosyned.domain.text.tokenizer import UNTELLING_KINDS, tokens


@dataclass(frozen=True, slots=True, kw_only=True)
class SelectionWeights:
    """Worth of a learning to a message."""

    shown_max: int = 5
    """How many learnings a context shows."""
    word: int = 3
    """A telling word in common with the message."""
    words_max: int = 3
    """More words in common count no more."""
    field: int = 2
    """A field in common, such as code or food."""
    name: int = 1
    fresh: int = 1
    fresh_for: timedelta = timedelta(days=7)
    pairs_min: int = 2
    """Character pairs in common that make a word, in scripts without spaces."""


WEIGHTS = SelectionWeights()


def select_relevant(
    learnings: Iterable[Learning],
    *,
    question: str,
    now: datetime,
    budget_tokens: int,
    count: Callable[[str], int],
    limit: int = WEIGHTS.shown_max,
) -> list[Learning]:
    """Select active learnings that matter to the question: most relevant first, then newest.

    A learning that does not fit the budget is skipped, as a shorter one further down may fit.
    """
    asked = _Message(question)
    ranks: dict[str, tuple[int, datetime]] = {}
    active: list[Learning] = []
    for learning in learnings:
        shared = asked.shared_worth(learning)
        if learning.superseded_by is None and asked.concerns(learning, shared):
            named = WEIGHTS.name if learning.kind is LearningKind.NAME else 0
            is_fresh = now - learning.created_at <= WEIGHTS.fresh_for
            fresh = WEIGHTS.fresh if is_fresh else 0
            ranks[learning.id] = (shared + named + fresh, learning.created_at)
            active.append(learning)
    shown: list[Learning] = []
    tokens_left = budget_tokens
    for learning in sorted(active, key=lambda each: ranks[each.id], reverse=True):
        size = count(learning.text)
        if size <= tokens_left and len(shown) < limit:
            shown.append(learning)
            tokens_left -= size
    return shown


class _Message:
    """The telling words and the fields of a message, and what shares them."""

    def __init__(self, text: str) -> None:
        self._stems = _telling_stems(text)
        self._pairs = frozenset(grams(text).split())
        self._fields = fields_of(text) - ALWAYS

    def concerns(self, learning: Learning, shared: int) -> bool:
        """Tell whether a learning matters to the message, or to every message.

        `shared` is what the words and fields in common are worth.
        A preference has to share a word or a field with it. An instruction or a lesson matters
        unless both are about fields that differ: "always use tabs" does not matter to a recipe.
        """
        if learning.kind is LearningKind.NAME or shared:
            return True
        fields = fields_of(learning.text)
        if fields & ALWAYS:
            return True
        about_another = bool(fields and self._fields)
        return learning.kind is not LearningKind.PREFERENCE and not about_another

    def shared_worth(self, learning: Learning) -> int:
        """Return what the words and fields in common are worth."""
        bare = without_cues(learning.text)
        shared = len(self._stems & _telling_stems(bare))
        shared += len(self._pairs & frozenset(grams(bare).split())) // WEIGHTS.pairs_min
        in_field = bool(self._fields & fields_of(learning.text))
        words = WEIGHTS.word * min(shared, WEIGHTS.words_max)
        return words + (WEIGHTS.field if in_field else 0)


def _telling_stems(text: str) -> frozenset[str]:
    return frozenset(
        token.stem for token in tokens(text) if token.kind not in UNTELLING_KINDS
    )
