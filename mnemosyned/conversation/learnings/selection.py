"""Selection of the learnings that a context shows: the ones relevant to the message, best first."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from datetime import datetime, timedelta
from functools import lru_cache

from mnemosyned.conversation.learnings.conflicts import remove_cues
from mnemosyned.memory.values import Learning, LearningKind
from mnemosyned.text.rule_files import read_tables
from mnemosyned.text.terms import gram_text
from mnemosyned.text.tokens import COMMONPLACE_KINDS, tokenize

FIELDS_CACHED_MAX = 2_000

ALWAYS = frozenset({"answers", "acts"})
"""Fields that concern every message: how to answer, and what not to do unasked."""


def _compile_field(words: str) -> re.Pattern[str]:
    """Return a pattern that matches any word of a field."""
    joined = re.sub(r"\n\s*\|", "|", words)
    alternatives = re.split(r"(?<!\\)\s+", joined.strip())
    unspaced = [word for word in alternatives if re.match(r"[\u3040-\ud7a3]", word)]
    spaced = [word for word in alternatives if word not in unspaced]
    return re.compile("|".join([rf"\b(?:{'|'.join(spaced)})\b", *unspaced]))


_FIELDS = {
    name: _compile_field(words)
    for name, words in read_tables(__file__, "fields.toml").items()
}


@lru_cache(maxsize=FIELDS_CACHED_MAX)
def find_fields(text: str) -> frozenset[str]:
    """Return the names of the fields that a text is about, such as code or food; cached."""
    low = text.casefold().replace("’", "'")
    return frozenset(name for name, words in _FIELDS.items() if words.search(low))


SHOWN_MAX = 5
"""Number of learnings in a context."""
WORTH_OF_WORD = 3
"""A keyword in common with the message."""
WORDS_MAX = 3
"""More words in common count no more."""
WORTH_OF_FIELD = 2
"""A field in common, such as code or food."""
WORTH_OF_NAME = 1
WORTH_OF_FRESH = 1
FRESH_FOR = timedelta(days=7)
PAIRS_MIN = 2
"""Character pairs in common that make a word, in scripts without spaces."""


def select_relevant(
    learnings: Iterable[Learning],
    *,
    question: str,
    now: datetime,
    budget_tokens: int,
    count: Callable[[str], int],
    limit: int = SHOWN_MAX,
) -> list[Learning]:
    """Return active learnings that matter to the question: most relevant first, then newest.

    A learning that exceeds the remaining `budget_tokens` is skipped, as a shorter one may fit.
    `count` counts tokens.
    """
    asked = _MessageTerms(question)
    ranks: dict[str, tuple[int, datetime]] = {}
    active: list[Learning] = []
    for learning in learnings:
        shared = asked.rate_shared_terms(learning)
        if learning.superseded_by is None and asked.concerns(learning, shared):
            named = WORTH_OF_NAME if learning.kind is LearningKind.NAME else 0
            is_fresh = now - learning.created_at <= FRESH_FOR
            fresh = WORTH_OF_FRESH if is_fresh else 0
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


class _MessageTerms:
    """Keywords and fields of a message, to find the learnings that concern it."""

    def __init__(self, text: str) -> None:
        self._stems = _find_keyword_stems(text)
        self._pairs = frozenset(gram_text(text).split())
        self._fields = find_fields(text) - ALWAYS

    def concerns(self, learning: Learning, shared: int) -> bool:
        """Tell whether a learning matters to the message, or to every message.

        `shared` is the worth of words and fields in common. A preference must share a word or a
        field. An instruction or a lesson matters unless its fields differ from the message's:
        "always use tabs" does not matter to a recipe.
        """
        if learning.kind is LearningKind.NAME or shared:
            return True
        fields = find_fields(learning.text)
        if fields & ALWAYS:
            return True
        about_another = bool(fields and self._fields)
        return learning.kind is not LearningKind.PREFERENCE and not about_another

    def rate_shared_terms(self, learning: Learning) -> int:
        """Return the worth of the words and fields that a learning shares with the message."""
        bare = remove_cues(learning.text)
        shared = len(self._stems & _find_keyword_stems(bare))
        shared += len(self._pairs & frozenset(gram_text(bare).split())) // PAIRS_MIN
        in_field = bool(self._fields & find_fields(learning.text))
        words = WORTH_OF_WORD * min(shared, WORDS_MAX)
        return words + (WORTH_OF_FIELD if in_field else 0)


def _find_keyword_stems(text: str) -> frozenset[str]:
    """Return the stems of a text's keywords."""
    return frozenset(
        token.stem for token in tokenize(text) if token.kind not in COMMONPLACE_KINDS
    )
