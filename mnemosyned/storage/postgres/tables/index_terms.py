"""The index terms of a text, as numbers that are an owner's own.

A term is the stem that SQLite's index has too, so that both engines find the same. It is hashed with
the owner: the postings of one owner's word are no other owner's, which keeps a question's cost a
matter of one owner's memories, and no word stands in an index.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable

from mnemosyned.domain.text.stemming import WORD, fold_case, stem
from mnemosyned.domain.text.terms import grams
from mnemosyned.domain.text.word_cache import WordCache

TERMS_KEPT_MAX = 20_000
"""Hashes that are kept, of all owners together."""
COLUMN_END = 0
"""Stands between two texts of one row: no phrase goes across."""


def word_hashes(owner: int, *texts: str) -> list[int]:
    """Hash the words of a row's texts, in order and as often as they occur."""
    hashes: list[int] = []
    for text in texts:
        words = phrase_hashes(owner, text)
        if words:
            hashes += [COLUMN_END, *words] if hashes else words
    return hashes


def phrase_hashes(owner: int, text: str) -> list[int]:
    """Hash the words of one text, in order: one for a word, several for a code."""
    return _hashes(owner, map(stem, WORD.findall(fold_case(text))))


def gram_hashes(owner: int, text: str) -> list[int] | None:
    """Hash the character pairs of a text and the parts of its names; None for most texts."""
    parts = grams(text)
    return gram_term_hashes(owner, parts) if parts else None


def gram_term_hashes(owner: int, parts: str) -> list[int]:
    """Hash terms of the second index, which are not stemmed."""
    return _hashes(owner, WORD.findall(fold_case(parts)))


def _hashes(owner: int, terms: Iterable[str]) -> list[int]:
    salt = f"{owner}:"
    return [_HASHES[salt + term] for term in terms]


def _hash(term: str) -> int:
    """The first 32 bits of BLAKE2b, signed, and never `COLUMN_END`.

    Two of a thousand questions about a million memories meet another word of the same number; the
    words themselves are compared when a candidate is read.
    """
    digest = hashlib.blake2b(term.encode("utf-8", "surrogatepass"), digest_size=4)
    return int.from_bytes(digest.digest(), "big", signed=True) or 1


_HASHES = WordCache(_hash, entries_max=TERMS_KEPT_MAX)
