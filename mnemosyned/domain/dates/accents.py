"""Puts the accents back into a time that was typed without: `manana`, `uebermorgen`, `fevrier`."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator
from functools import lru_cache

from mnemosyned.domain.languages import LANGUAGES
from mnemosyned.domain.languages.language import Language

_WORD = re.compile(r"[^\W\d_]{3,}")
_UMLAUTS = str.maketrans({"ä": "ae", "ö": "oe", "ü": "ue", "ß": "ss"})


def with_accents(words: str) -> str:
    """Return words in lower case with the accents of the words for times that they begin with."""
    pattern, accented = _table()
    return pattern.sub(lambda match: accented[match[0]], words)


@lru_cache(maxsize=1)
def _table() -> tuple[re.Pattern[str], dict[str, str]]:
    """Return the words with accents by their spellings without, and the pattern that finds them."""
    accented: dict[str, str] = {}
    for language in LANGUAGES:
        for word in _WORD.findall(" ".join(_texts(language))):
            if not word.isascii():
                accented.setdefault(_plain(word), word)
                accented.setdefault(_plain(word.translate(_UMLAUTS)), word)
    longest_first = sorted(filter(str.isascii, accented), key=len, reverse=True)
    return re.compile(rf"\b(?:{'|'.join(longest_first)})"), accented


def _texts(language: Language) -> Iterator[str]:
    """Yield the texts of a language in which words for times stand."""
    yield from (*language.months, *language.weekdays, *language.counts)
    if grammar := language.times:
        yield from (*grammar.phrases.values(), *grammar.units.values())
        yield from (grammar.last_before, grammar.last_after)
        yield from (grammar.next_before, grammar.next_after)


def _plain(word: str) -> str:
    decomposed = unicodedata.normalize("NFD", word)
    return "".join(char for char in decomposed if not unicodedata.combining(char))
