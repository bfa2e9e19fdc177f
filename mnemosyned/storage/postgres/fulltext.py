"""The index terms of a text, hashed for one owner.

A term is the stem that SQLite's index has too, so that both engines find the same. It is hashed with
the owner: postings are never shared between owners, which keeps a question's cost a matter of one
owner's memories, and no word is in an index.
"""

from __future__ import annotations

import hashlib

from mnemosyned.storage.common.index_words import fold_words, gram_words, index_stem
from mnemosyned.text import terms, word_cache

TERMS_KEPT_MAX = 20_000
"""Number of hashes that are cached for all owners together."""
COLUMN_END = 0
"""Number between two texts of a row, so that no phrase matches across them."""


def word_hashes(owner: int, *texts: str) -> list[int]:
    """Return the hashes of the stemmed words in a row's texts, in order, repeated words included.

    The number `COLUMN_END` is between two texts. The owner's number salts the hashes.
    """
    hashes: list[int] = []
    for text in texts:
        words = phrase_hashes(owner, text)
        if words:
            hashes += [COLUMN_END, *words] if hashes else words
    return hashes


def phrase_hashes(owner: int, text: str) -> list[int]:
    """Return the salted hashes of a text's stemmed words: one for a word, several for a code."""
    return [_STEM_HASHES[f"{owner}:{word}"] for word in fold_words(text)]


def gram_hashes(owner: int, text: str) -> list[int] | None:
    """Return the hashes of a text's terms for the index of character pairs; None without such terms."""
    parts = terms.gram_text(text)
    return gram_term_hashes(owner, parts) if parts else None


def gram_term_hashes(owner: int, parts: str) -> list[int]:
    """Return the salted hashes of the folded terms in `parts`, a text with spaces between terms."""
    return [_HASHES[f"{owner}:{word}"] for word in gram_words(parts)]


def _stem_hash(salted: str) -> int:
    """Return the hash of the stem of a word that has the owner's number as salt before it."""
    salt, _, word = salted.partition(":")
    return _hash_term(f"{salt}:{index_stem(word)}")


def _hash_term(term: str) -> int:
    """Return a 32-bit signed BLAKE2b hash of a term, never 0, as 0 separates texts.

    Different words may have the same hash, so the words themselves are compared when a row is read.
    """
    digest = hashlib.blake2b(term.encode("utf-8", "surrogatepass"), digest_size=4)
    return int.from_bytes(digest.digest(), "big", signed=True) or 1


_HASHES = word_cache.WordCache(_hash_term, entries_max=TERMS_KEPT_MAX)
_STEM_HASHES = word_cache.WordCache(_stem_hash, entries_max=TERMS_KEPT_MAX)
