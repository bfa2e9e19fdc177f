"""Words that say little: stop words, function words and common words, in all languages."""

from __future__ import annotations

from collections.abc import Collection

from mnemosyned.text.languages.tables import LANGUAGES
from mnemosyned.text.rule_files import read_tables
from mnemosyned.text.stems import WORD, fold_case, stem
from mnemosyned.text.word_cache import WordCache

_WORDS = {
    name: frozenset(words.split())
    for name, words in read_tables(__file__, "words.toml").items()
}
FUNCTION_WORDS = _WORDS["function_words"]
"""English words that a search ignores, in lower case."""
STOP_WORDS = FUNCTION_WORDS | _WORDS["stop_words"]
"""English words without content: function words, further pronouns, adverbs and conversational fillers."""
COMMON_WORDS = _WORDS["common_words"]
"""English words with a meaning, yet too common to identify one text among many."""

_QUESTION_STOP_WORDS = tuple(
    frozenset(language.question_stop_words.split())
    for language in LANGUAGES
    if language.question_stop_words
)
FOREIGN_STOP_WORDS = frozenset().union(*_QUESTION_STOP_WORDS)
STOP_WORDS_MIN = 2
"""A single stop word may be a name, or have another meaning in English: `die`, `was`, `an`."""


def foreign_stop_words(words: Collection[str]) -> frozenset[str]:
    """Return the stop words in a question of another language than English; empty for English.

    `words` are the words of the question in lower case.
    """
    if FOREIGN_STOP_WORDS.isdisjoint(words):
        return frozenset()
    matches = (known.intersection(words) for known in _QUESTION_STOP_WORDS)
    best = max(matches, key=len)
    english = FUNCTION_WORDS.intersection(words)
    return best if len(best) >= max(STOP_WORDS_MIN, len(english) + 1) else frozenset()


_STOP_WORDS_FOLDED = STOP_WORDS | frozenset(map(fold_case, FOREIGN_STOP_WORDS))
_VAGUE = _STOP_WORDS_FOLDED | COMMON_WORDS


def is_stop_word(word: str) -> bool:
    """Return whether a folded word (lower case, no accents) is a stop word of any language."""
    return word in _STOP_WORDS_FOLDED


def is_vague(word: str) -> bool:
    """Return whether a folded word (lower case, no accents) is too common to identify a memory.

    Its stem counts as well.
    """
    return not _VAGUE.isdisjoint((word, stem(word)))


def stems_with_content(text: str) -> set[str]:
    """Return the stems of words that may identify a text, at most one per chunk between spaces.

    Splitting at spaces alone takes a third of the time.
    """
    return set(map(_CONTENT_STEMS.__getitem__, text.split())) - {""}


def _content_stem(word: str) -> str:
    """Return the stem of the first part of a word that is not vague, or an empty string.

    A word with a digit is returned as it is.
    """
    if not _DIGITS.isdisjoint(word):
        return word
    for part in WORD.findall(fold_case(word)):
        if _VAGUE.isdisjoint((part, stem(part))):
            return stem(part)
    return ""


_DIGITS = frozenset("0123456789")
_CONTENT_STEMS = WordCache(_content_stem, entries_max=20_000)
