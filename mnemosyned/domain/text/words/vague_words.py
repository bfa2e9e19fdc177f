"""Words that say too little to identify a memory, in all languages."""

from __future__ import annotations

from mnemosyned.domain.text.stemming import WORD, fold_case, stem
from mnemosyned.domain.text.word_cache import WordCache
from mnemosyned.domain.text.words.foreign_stopwords import FOREIGN_STOP_WORDS
from mnemosyned.domain.text.words.stopwords import COMMON_WORDS, STOP_WORDS

_STOPPED = STOP_WORDS | frozenset(map(fold_case, FOREIGN_STOP_WORDS))
_VAGUE = _STOPPED | COMMON_WORDS


def is_stop_word(word: str) -> bool:
    """Tell whether a folded word has no content of its own."""
    return word in _STOPPED


def is_vague(word: str) -> bool:
    """Tell whether a folded word, or its stem, is too common to identify a memory."""
    return not _VAGUE.isdisjoint((word, stem(word)))


def stems_with_content(text: str) -> set[str]:
    """Return the stems of the words of a text that may identify it, one for each compound.

    Words are parted at spaces alone, which takes a third of the time.
    """
    stems = set(map(_CONTENT.__getitem__, text.split()))
    stems.discard(_NOTHING)
    return stems


def _content(word: str) -> str:
    """Return the stem of the first part of a word that is not too common, if there is one."""
    if not _DIGITS.isdisjoint(word):
        return word
    for part in WORD.findall(fold_case(word)):
        if not is_vague(part):
            return stem(part)
    return _NOTHING


_DIGITS = frozenset("0123456789")
_NOTHING = ""
_CONTENT = WordCache(_content, entries_max=20_000)
