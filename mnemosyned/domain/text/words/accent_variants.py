"""Spellings of a word with and without accents, where the full-text index tells them apart."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import chain, islice

from mnemosyned.domain.text.stemming import fold_case

SPELLINGS_MAX = 32
_ACCENTED = dict(zip("αεηιουωϊϋ", "άέήίόύώΐΰ", strict=True))
_PARTED = {"ι": "ϊ", "υ": "ϋ"}
"""Vowels with a diaeresis, which occurs only after another vowel."""


def accent_variants(word: str) -> tuple[str, ...]:
    """Return the other spellings of a word: FTS5 removes the accents of Latin letters only.

    Greek has one accent in a word, and none in capitals; Russian mostly writes `е` for `ё`.
    """
    if word.isascii() or not word.isalpha():
        return ()
    lower = word.lower().replace("ς", "σ")  # the index treats them alike
    plain = fold_case(word)
    forms: Iterator[str]
    if _ACCENTED.keys().isdisjoint(plain):
        forms = _mark_each(lower.replace("ё", "е"), {"е": "ё"})
    else:
        parted = _with_diaeresis(plain)
        forms = chain.from_iterable(_mark_each(form, _ACCENTED) for form in parted)
    others = (form for form in forms if form != lower)
    return tuple(islice(others, SPELLINGS_MAX))


def _with_diaeresis(plain: str) -> Iterator[str]:
    yield plain
    for index in range(1, len(plain)):
        if plain[index] in _PARTED and plain[index - 1] in _ACCENTED:
            yield plain[:index] + _PARTED[plain[index]] + plain[index + 1 :]


def _mark_each(word: str, marked: dict[str, str]) -> Iterator[str]:
    """Yield the word, and the word with each of these letters marked in turn."""
    yield word
    for index, letter in enumerate(word):
        if letter in marked:
            yield word[:index] + marked[letter] + word[index + 1 :]
