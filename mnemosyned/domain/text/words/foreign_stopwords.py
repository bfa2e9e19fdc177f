"""Stop words of questions in other languages than English."""

from __future__ import annotations

from collections.abc import Collection

from mnemosyned.domain.languages import LANGUAGES
from mnemosyned.domain.text.words.stopwords import FUNCTION_WORDS

_LANGUAGES = tuple(
    frozenset(language.question_stop_words.split())
    for language in LANGUAGES
    if language.question_stop_words
)
FOREIGN_STOP_WORDS = frozenset().union(*_LANGUAGES)
STOP_WORDS_MIN = 2
"""A single one may be a name, or have another meaning in English: `die`, `was`, `an`."""


def foreign_stop_words(words: Collection[str]) -> frozenset[str]:
    """Return the stop words among lower-case words, in the language of the question."""
    if FOREIGN_STOP_WORDS.isdisjoint(words):
        return frozenset()
    matches = (known.intersection(words) for known in _LANGUAGES)
    best = max(matches, key=len)
    english = FUNCTION_WORDS.intersection(words)
    return best if len(best) >= max(STOP_WORDS_MIN, len(english) + 1) else frozenset()
