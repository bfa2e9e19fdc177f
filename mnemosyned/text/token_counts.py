"""Counts the tokens of a text: the counter port, and the counters that need no tokenizer."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from math import ceil
from typing import Protocol

from mnemosyned.text.languages.tables import count_stop_words
from mnemosyned.text.rule_files import compile_on_use, read_tables
from mnemosyned.text.word_cache import WordCache

CHARS_PER_TOKEN = 4
"""Rule of thumb for budgets: right for English, too high for other scripts."""
MARGIN = 0.2
"""Share that budgets add to the estimate: `make bench-tokens` needs 16% for its worst text. For lists of rare
words, such as the keywords of a grammar, up to 37% would be needed."""
PIECES_MAX = 1 << 13
"""Pieces whose weight is cached for the next text."""
LANGUAGE_CHARS = 2_000
"""Characters at the start of a text that decide its language."""
WORD_CHARS, WESTERN_CHARS, EASTERN_CHARS = 7, 5, 3
"""Letters of a word that its first token covers: in English, in German, in Polish."""
SPACES = 80
"""Blanks in a row that take one more token."""
RUN_CHARS = 20
"""Maximum letters of a word; a longer run is not a word."""
STOP_WORDS_MIN = 3
MARKED_SHARE = 0.02
"""Share of Latin letters unknown in French and German from which a text is in a language such as Polish."""


class TokenCounter(Protocol):
    """Counts the tokens of any text, offline."""

    @property
    def name(self) -> str:
        """The name of the counter in results and benchmarks, such as `estimate`."""
        ...

    def count(self, text: str) -> int:
        """Return the number of tokens of a text, 0 or more."""
        ...


def count_weighted_chars(text: str) -> int:
    """Return a text's number of characters, weighted so that `CHARS_PER_TOKEN` make a token.

    Only Chinese, Japanese and Korean characters have a weight other than 1, by `TokenEstimator`.
    """
    if text.isascii():
        return len(text)
    wide = _WIDE.findall(text)
    tokens = sum(map(_WEIGHTS["english"].__getitem__, wide))
    return len(text) - sum(map(len, wide)) + ceil(CHARS_PER_TOKEN * tokens)


_WIDE = compile_on_use(
    r"[\u3040-\u30ff]+|[\u3000-\u303f\u3400-\u9fff\uac00-\ud7af\uff00-\uffef]"
)


class Chars4:
    """A token counter that takes four characters for a token, the usual rule of thumb; at least 1.

    By `make bench-tokens` it finds a quarter of the tokens of Japanese, and half of those of logs.
    """

    name = "chars4"

    def count(self, text: str) -> int:
        """Return a quarter of the text's length in characters, at least 1."""
        return max(1, len(text) // CHARS_PER_TOKEN)


@dataclass(frozen=True, slots=True)
class CounterWithMargin:
    """A token counter that adds a margin to another counter's result, so that budgets suffice."""

    counter: TokenCounter
    margin: float = MARGIN

    @property
    def name(self) -> str:
        """The name of the counter inside and the margin, such as `estimate+20%`."""
        return f"{self.counter.name}+{self.margin:.0%}"

    def count(self, text: str) -> int:
        """Return the inner counter's number of tokens, increased by the share `margin`, rounded up."""
        return ceil(self.counter.count(text) * (1 + self.margin))


class TokenEstimator:
    """Estimates the cl100k tokens of a text by the kinds of characters in its pieces."""

    name = "estimate"

    def count(self, text: str) -> int:
        """Return the estimated number of tokens of a text; 0 for an empty text."""
        weights = _WEIGHTS[_find_language_group(text)]
        return ceil(sum(map(weights.__getitem__, _PIECE.findall(text))))


_TABLES = read_tables(__file__, "token_counts.toml")
WEIGHTS: Mapping[str, float] = _TABLES["weights"]
"""Tokens per unit; `make bench-tokens` fits them to half of its texts and shows the others."""

_PIECE = compile_on_use(
    # Base64 and hexadecimal digits, tried once at the start of a run.
    r"[ ]?(?<![A-Za-z0-9+/])(?=[A-Za-z+/]*[0-9])(?=[A-Z0-9+/]*[a-z])(?=[a-z0-9+/]*[A-Z])"
    r"[A-Za-z0-9+/]{20,}={0,2}"
    r"|[ ]?(?<![A-Za-z0-9])(?=[a-f]*[0-9])(?=[0-9]*[a-f])[0-9a-f]{4,}(?![A-Za-z0-9])"
    # Words with the one mark or space before them; digits.
    r"|[ -/:-@\[-`{-~]?(?:[A-Z]{2,}(?![a-z])|[A-ZÀ-Þ]?[a-zß-ɏḀ-ỿ]+|[A-ZÀ-Þ])|[ ]?[0-9]+"
    r"|[Ѐ-ԯ]+|[Ͱ-Ͽἀ-῿]+|[\u0590-\u05ff]+|[\u0600-\u077f]+"
    r"|[\u0900-\u097f]+|[\u0e00-\u0e7f]+|[\u3040-\u30ff]+|[\u3400-\u9fff]|[\uac00-\ud7af]"
    r"|[!-/:-@\[-`{-~]+|\s*\n|[^\S\n]{2,}|[\u2500-\u257f]+|[^ ]"
)
_COMMON = frozenset(_TABLES["common"])


def _find_language_group(text: str) -> str:
    """Return a text's group of languages with similar numbers of tokens per word.

    It is `eastern` for many letters with marks, as in Polish; else stop words decide between
    `english` and `western`.
    """
    head = text[:LANGUAGE_CHARS]
    if not head.isascii():
        letters = len(_LATIN.findall(head))
        marked = len(_MARKED.findall(head))
        if marked > MARKED_SHARE * letters:
            return "eastern"
    counts = count_stop_words(head)
    most = max(counts.values(), default=0)
    foreign = most >= STOP_WORDS_MIN and most > 2 * counts.get("en", 0)
    return "western" if foreign else "english"


_LATIN = re.compile("[A-Za-zÀ-ɏḀ-ỿ]")
_MARKED = re.compile("[Ā-ɏḀ-ỿ]")
_COVERED_CHARS = {
    "english": WORD_CHARS,
    "western": WESTERN_CHARS,
    "eastern": EASTERN_CHARS,
}


def _measure_piece(piece: str, group: str) -> list[tuple[str, float]]:
    """Return (unit, amount) pairs for a piece of text in a `group` of languages; units are in `WEIGHTS`."""
    bare = piece.removeprefix(" ")
    first, following = bare[:1], bare[1:]
    latin = first.isascii() or _LATIN.match(first)
    if not latin:
        return _measure_non_latin(bare, first)
    if bare.isalpha():
        return _measure_word(bare, group, joined=bare == piece)
    if bare.isdigit():
        return [("digits", -(-len(bare) // 3)), ("spaced digits", bare != piece)]
    if bare.isspace():
        unit = "line" if "\n" in bare else "space"
        odd = len(bare) - sum(map(bare.count, " \t\r\n"))
        return [(unit, 1 + len(bare) // SPACES + odd)]
    if following.isalpha() and not first.isalnum():
        mark = "underscore" if first == "_" else "mark"
        return [(mark, 1), *_measure_word(following, group, joined=True)]
    return _measure_marks(bare)


def _measure_marks(piece: str) -> list[tuple[str, float]]:
    """Return (unit, amount) pairs for a piece of base64, hexadecimal or punctuation.

    Units are keys of `WEIGHTS`. The amounts are characters of "base64" or "hexadecimal", or else the
    numbers of changes from mark to mark and of long runs of the same mark.
    """
    if _ENCODED.fullmatch(piece):
        hexadecimal = piece == piece.lower()
        return [("hexadecimal" if hexadecimal else "base64", len(piece))]
    repeats = sum(len(run[0]) // 16 for run in _RUN.finditer(piece))
    changes = len(_RUN.findall(piece)) - 1
    return [("marks", 1), ("mark change", changes), ("mark run", repeats)]


_ENCODED = re.compile(r"(?=.*[0-9])[A-Za-z0-9+/]{4,}={0,2}")
_RUN = re.compile(r"(.)\1*", re.DOTALL)


def _measure_non_latin(piece: str, first: str) -> list[tuple[str, float]]:
    """Return a (unit, length) pair for a non-Latin piece; its first character decides the unit."""
    if first in _COMMON:
        unit = "common han" if first < "\uac00" else "common hangul"
        return [(unit, len(piece))]
    for start, stop, unit in _TABLES["ranges"]:
        if start <= first <= stop:
            return [(unit, len(piece))]
    unit = "sign" if first <= "\u00bf" else "other"
    return [(unit, len(piece))]


def _measure_word(word: str, group: str, *, joined: bool) -> list[tuple[str, float]]:
    """Return (unit, amount) pairs for a Latin word in a `group` of languages; units are in `WEIGHTS`.

    `joined` says that no space precedes the word.
    """
    size = min(len(word), RUN_CHARS)
    endless = [("endless", len(word) - size)] if size < len(word) else []
    if size > 1 and word.isupper():
        return [("capitals", 1), ("capital", max(0, size - 2)), *endless]
    accents = sum(not letter.isascii() for letter in word)
    return [
        (f"{group} word", 1),
        (f"{group} letter", max(0, size - _COVERED_CHARS[group])),
        (f"{group} accent", accents),
        ("joined word", joined and size > 2 and group == "english"),
        *endless,
    ]


def _weigh_piece(piece: str, group: str) -> float:
    """Return the estimated tokens of a piece of text in a `group` of languages."""
    return sum(WEIGHTS[unit] * amount for unit, amount in _measure_piece(piece, group))


_WEIGHTS = {
    group: WordCache(partial(_weigh_piece, group=group), entries_max=PIECES_MAX)
    for group in _COVERED_CHARS
}
"""The weight of each piece, by the group of the languages of its text."""
