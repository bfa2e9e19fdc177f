"""The index terms of a text, as numbers that are an owner's own.

A term is the stem that SQLite's index has too, so that both engines find the same. It is hashed with
the owner: the postings of one owner's word are no other owner's, which keeps a question's cost a
matter of one owner's memories, and no word stands in an index.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable

from mnemosyned.domain.text.stemming import stem, stem_bytes
from mnemosyned.domain.text.terms import grams
from mnemosyned.domain.text.word_cache import WordCache
from mnemosyned.storage.postgres.fulltext.characters import character_table

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
    return _hashes(owner, text.translate(_STEMMED).split(), _STEM_HASHES)


def gram_hashes(owner: int, text: str) -> list[int] | None:
    """Hash the character pairs of a text and the parts of its names; None for most texts."""
    parts = grams(text)
    return gram_term_hashes(owner, parts) if parts else None


def gram_term_hashes(owner: int, parts: str) -> list[int]:
    """Hash terms of the second index, which are not stemmed."""
    return _hashes(owner, gram_words(parts), _HASHES)


def index_words(text: str) -> list[str]:
    """The words of a text as the index has them: stems, in order."""
    return list(map(index_stem, text.translate(_STEMMED).split()))


def gram_words(parts: str) -> list[str]:
    """Terms of the second index as that has them, in order."""
    return parts.translate(_UNSTEMMED).split()


def index_stem(word: str) -> str:
    """Return the stem that FTS5 has of a folded word: by its bytes, which are the characters here."""
    written = word.encode("utf-8", "surrogatepass").decode("latin-1")
    return stem(word) if word.isascii() else stem_bytes(written)


def _hashes(owner: int, words: Iterable[str], hashes: WordCache[int]) -> list[int]:
    salt = f"{owner}:"
    return [hashes[salt + word] for word in words]


def _stem_hash(salted: str) -> int:
    salt, _, word = salted.partition(":")
    return _hash(f"{salt}:{index_stem(word)}")


def _hash(term: str) -> int:
    """The first 32 bits of BLAKE2b, signed, and never `COLUMN_END`.

    Two of a thousand questions about a million memories meet another word of the same number; the
    words themselves are compared when a candidate is read.
    """
    digest = hashlib.blake2b(term.encode("utf-8", "surrogatepass"), digest_size=4)
    return int.from_bytes(digest.digest(), "big", signed=True) or 1


_HASHES = WordCache(_hash, entries_max=TERMS_KEPT_MAX)
_STEM_HASHES = WordCache(_stem_hash, entries_max=TERMS_KEPT_MAX)
_STEMMED = character_table(all_accents=True)
_UNSTEMMED = character_table(all_accents=False)
