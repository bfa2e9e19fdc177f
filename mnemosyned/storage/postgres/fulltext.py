"""The index terms of a text, hashed for one owner, with FTS5's tables of characters.

A term is the stem that SQLite's index has too, so that both engines find the same. It is hashed with
the owner: postings are never shared between owners, which keeps a question's cost a matter of one
owner's memories, and no word stands in an index.
"""

from __future__ import annotations

import hashlib
import tomllib
from collections.abc import Iterable, Iterator
from pathlib import Path

from mnemosyned.text.stems import stem, stem_bytes
from mnemosyned.text.terms import gram_text
from mnemosyned.text.word_cache import WordCache

_TABLES = tomllib.loads(Path(__file__).with_suffix(".toml").read_text(encoding="utf-8"))
"""Characters that are separators, marks, or folded to others; the file says how they are written."""


def character_table(*, all_accents: bool) -> dict[int, int | str | None]:
    """Return a table for `str.translate` that folds letters and turns separators into spaces.

    It removes combining marks. With `all_accents` it removes accents like FTS5's `remove_diacritics
    2`, else like `remove_diacritics 1`.
    """
    table: dict[int, int | str | None] = dict(_parse_folds(_TABLES["folds"]))
    if not all_accents:
        table.update(_parse_folds(_TABLES["folds_1"]))
    for written, becomes in ((_TABLES["separators"], " "), (_TABLES["marks"], None)):
        for span in written.split():
            table.update(dict.fromkeys(_code_points(span), becomes))
    return table


def _parse_folds(written: str) -> Iterator[tuple[int, int]]:
    """Yield pairs of a code point and the code point to which it is folded.

    `written` has spans of hexadecimal code points, each with the difference, such as `41-5a+20`.
    """
    for fold in written.split():
        at = max(fold.rfind("+"), fold.rfind("-"))
        yield from (
            (number, number + int(fold[at:], 16)) for number in _code_points(fold[:at])
        )


def _code_points(span: str) -> range:
    """Return the code points of a hexadecimal span: `41-5a`, or with steps of two `100-12e/2`."""
    span, _, step = span.partition("/")
    first, _, last = span.partition("-")
    return range(int(first, 16), int(last or first, 16) + 1, int(step or 1))


TERMS_KEPT_MAX = 20_000
"""Hashes that are kept, of all owners together."""
COLUMN_END = 0
"""Stands between two texts of one row: no phrase goes across."""


def word_hashes(owner: int, *texts: str) -> list[int]:
    """Return the hashes of the stemmed words in a row's texts, in order, repeated words included.

    The number `COLUMN_END` stands between two texts. The owner's number salts the hashes.
    """
    hashes: list[int] = []
    for text in texts:
        words = phrase_hashes(owner, text)
        if words:
            hashes += [COLUMN_END, *words] if hashes else words
    return hashes


def phrase_hashes(owner: int, text: str) -> list[int]:
    """Return the hashes of a text's stemmed words in order: one for a word, several for a code.

    The owner's number salts the hashes.
    """
    return _cached_hashes(owner, text.translate(_STEMMED).split(), _STEM_HASHES)


def gram_hashes(owner: int, text: str) -> list[int] | None:
    """Return the hashes of a text's terms in the second index: character pairs and parts of names.

    None if the text has no such terms, as most texts.
    """
    parts = gram_text(text)
    return gram_term_hashes(owner, parts) if parts else None


def gram_term_hashes(owner: int, parts: str) -> list[int]:
    """Return the hashes of terms for the second index, salted with the owner's number.

    `parts` has the terms, separated by spaces; they are folded but not stemmed.
    """
    return _cached_hashes(owner, gram_words(parts), _HASHES)


def index_words(text: str) -> list[str]:
    """Return the stems of a text's words, in order, as the index stores them."""
    return list(map(index_stem, text.translate(_STEMMED).split()))


def gram_words(parts: str) -> list[str]:
    """Return the folded terms for the second index in `parts`, a text of terms between spaces."""
    return parts.translate(_UNSTEMMED).split()


def index_stem(word: str) -> str:
    """Return the stem of a folded word as FTS5 computes it, on the word's UTF-8 bytes."""
    written = word.encode("utf-8", "surrogatepass").decode("latin-1")
    return stem(word) if word.isascii() else stem_bytes(written)


def _cached_hashes(
    owner: int, words: Iterable[str], hashes: WordCache[int]
) -> list[int]:
    """Return the hash of each word, salted with the owner's number, from the cache `hashes`.

    The cache computes hashes that it lacks.
    """
    salt = f"{owner}:"
    return [hashes[salt + word] for word in words]


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


_HASHES = WordCache(_hash_term, entries_max=TERMS_KEPT_MAX)
_STEM_HASHES = WordCache(_stem_hash, entries_max=TERMS_KEPT_MAX)
_STEMMED = character_table(all_accents=True)
_UNSTEMMED = character_table(all_accents=False)
