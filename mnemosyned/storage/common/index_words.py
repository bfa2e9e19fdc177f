"""The words of a text as FTS5 indexes them, with its tables of characters, and texts compared by them."""

from __future__ import annotations

import tomllib
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

from mnemosyned.text import terms

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


_STEMMED = character_table(all_accents=True)
_UNSTEMMED = character_table(all_accents=False)


def fold_words(text: str) -> list[str]:
    """Return a text's words in order, folded as they are before stemming."""
    return text.translate(_STEMMED).split()


def index_words(text: str) -> list[str]:
    """Return the stems of a text's words, in order, as the index stores them."""
    return list(map(index_stem, fold_words(text)))


def gram_words(parts: str) -> list[str]:
    """Return the space-separated terms in `parts`, folded as in the index of character pairs."""
    return parts.translate(_UNSTEMMED).split()


def index_stem(word: str) -> str:
    """Return the stem of a folded word as FTS5 computes it, on the word's UTF-8 bytes."""
    written = word.encode("utf-8", "surrogatepass").decode("latin-1")
    return terms.stem(word) if word.isascii() else terms.stem_bytes(written)


def term_matcher(asked: terms.Terms) -> Callable[[Sequence[str]], bool]:
    """Return a function that returns True if a memory's texts contain all of these terms.

    The function takes the texts, the content first. It compares them as the full-text indexes do: words by
    their stems, character pairs as they are.
    """
    wanted = []
    for term in (*asked.words, *asked.grams):
        texts = [term, *terms.accent_variants(term)]
        words = [] if term in asked.grams else list(map(index_words, texts))
        wanted.append((words, list(map(gram_words, texts))))

    def holds(texts: Sequence[str]) -> bool:
        stems = [index_words(text) for text in (*texts, *terms.glued_words(texts[0]))]
        parts = gram_words(terms.gram_text(texts[0]))
        return all(
            any(_has_phrase(phrase, text) for phrase in words for text in stems)
            or any(_has_phrase(phrase, parts) for phrase in grams)
            for words, grams in wanted
        )

    return holds


def _has_phrase(phrase: Sequence[str], words: Sequence[str]) -> bool:
    """Return True if the words of a phrase occur in sequence in `words`; False for an empty phrase."""
    length = len(phrase)
    if length < 2:
        return length == 1 and phrase[0] in words
    return any(
        words[start : start + length] == phrase
        for start, word in enumerate(words)
        if word == phrase[0]
    )
