"""Words that say too little to identify a memory, in all languages."""

from __future__ import annotations

from mnemosyned.domain.text.stemming import fold_case, stem
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
