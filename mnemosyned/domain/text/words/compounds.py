"""Compounds: words that are written joined, with a hyphen or apart, as `oncall` and `on-call`."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from itertools import pairwise

from mnemosyned.domain.text.stemming import fold_case
from mnemosyned.domain.text.words.stopwords import FUNCTION_WORDS
from mnemosyned.domain.text.words.vague_words import is_vague

PART_CHARS_MIN = 2
COMPOUND_CHARS_MIN, COMPOUND_CHARS_MAX = 4, 16
JOINS_MAX = 8
"""Joined forms that are looked for in a question."""
_PARTICLES = frozenset("on in up out off over down back by after under through".split())
"""Words without content that a compound may begin or end with: `on-call`, `check-in`."""
_EDGE_MARKS = "\"'“”‘’«»()[]{}<>,.;:!?¿¡…"


def splits(word: str) -> tuple[str, ...]:
    """Return every form in two parts of a word that may be a compound: `wi fi` for `wifi`."""
    if not _may_be_joined([word]) or is_vague(fold_case(word)):
        return ()
    last = len(word) - PART_CHARS_MIN
    halves = [(word[:cut], word[cut:]) for cut in range(PART_CHARS_MIN, last + 1)]
    return tuple(
        f"{first} {second}"
        for first, second in halves
        if _may_be_part(first) and _may_be_part(second)
    )


def joins(text: str, content: Iterable[str]) -> tuple[tuple[str, str], ...]:
    """Return words of a question with the form in which they join a neighbor of theirs.

    `content` are the words that are searched for.
    """
    searched = {word.lower(): word for word in content}
    words = [raw.strip(_EDGE_MARKS) for raw in text.split()]
    found = (*_hyphened(words, searched), *_neighboring(words, searched))
    return tuple(dict.fromkeys(found))[:JOINS_MAX]


def _hyphened(
    words: Iterable[str], searched: Mapping[str, str]
) -> Iterator[tuple[str, str]]:
    for word in words:
        parts = word.split("-")
        if len(parts) > 1 and word.lower() in searched and _may_be_joined(parts):
            yield searched[word.lower()], "".join(parts)


def _neighboring(
    words: Iterable[str], searched: Mapping[str, str]
) -> Iterator[tuple[str, str]]:
    for pair in pairwise(words):
        lower = [word.lower() for word in pair]
        content = [searched[word] for word in lower if word in searched]
        others = set(lower) - searched.keys() - _PARTICLES
        if content and not others and _may_be_joined(pair):
            yield content[-1], "".join(pair)


def _may_be_joined(parts: Iterable[str]) -> bool:
    """Tell whether parts are letters, and together neither too short nor too long."""
    lengths = [len(part) if part.isalpha() else 0 for part in parts]
    return (
        min(lengths) >= PART_CHARS_MIN
        and COMPOUND_CHARS_MIN <= sum(lengths) <= COMPOUND_CHARS_MAX
    )


def _may_be_part(word: str) -> bool:
    """Tell whether a word may be part of a compound: `on` may, `of` may not."""
    lower = word.lower()
    return lower in _PARTICLES or lower not in FUNCTION_WORDS
