"""Splitting of groups larger than a context window into parts that fit, in order and complete."""

from __future__ import annotations

import re
import unicodedata
from bisect import bisect_right
from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace

from mnemosyned.memory.values import MemoryRecord
from mnemosyned.text.sentences import (
    CLOSING_QUOTES,
    CLOSING_WIDE,
    HALF_WIDTH_ENDS,
    SPACED_ENDS,
    UNSPACED_ENDS,
)

CHARS_PER_TOKEN_MAX = 16
"""Characters per token of the window above which a text is too long to be counted."""
EARLY = 4
"""Divisor of the fitting text: no cut is made in the first quarter."""

_SENTENCE = re.compile(
    rf"[{SPACED_ENDS}]+[{CLOSING_QUOTES}\]]*\s+"
    rf"|[{UNSPACED_ENDS}{HALF_WIDTH_ENDS}]+[{CLOSING_WIDE}]*|\n+"
)
_SPACE = re.compile(r"\s+")
_JOINERS = "\u200d\ufe0e\ufe0f"


def split_to_fit(
    memories: Iterable[MemoryRecord],
    *,
    count_tokens: Callable[[MemoryRecord], int],
    tokens_max: int,
) -> list[list[MemoryRecord]]:
    """Divide memories into lists of pieces of similar size, each of at most `tokens_max` tokens.

    The order is kept. A memory is split only if it alone exceeds the limit; a piece has at least
    one character. `count_tokens` counts a piece as it is in the prompt.
    """
    tokens_max = max(tokens_max, 1)
    sized = [
        (piece, size)
        for memory in memories
        for piece, size in _split_piece(memory, count_tokens, tokens_max)
    ]
    total = sum(size for _, size in sized)
    # The size of a list if all are alike, so that none is left with a single line.
    fair = -(-total // max(-(-total // tokens_max), 1))
    parts: list[list[MemoryRecord]] = []
    filled = 0
    for piece, size in sized:
        if not parts or filled + size > tokens_max or filled >= fair:
            parts.append([])
            filled = 0
        parts[-1].append(piece)
        filled += size
    return parts


def _split_piece(
    piece: MemoryRecord, count_tokens: Callable[[MemoryRecord], int], tokens_max: int
) -> Iterator[tuple[MemoryRecord, int]]:
    """Yield a piece, or the parts of a piece of more than `tokens_max`, each with a token count.

    `count_tokens` counts a piece as it stands in the prompt.
    """
    if len(piece.content) <= tokens_max * CHARS_PER_TOKEN_MAX:
        size = count_tokens(piece)
        if size <= tokens_max:
            yield piece, size
            return
    rest = piece.content.strip()

    def count_head(size: int) -> int:
        """Return the tokens of the first `size` characters that are left."""
        return count_tokens(replace(piece, content=rest[:size]))

    if not rest:
        blank = replace(piece, content="")
        yield blank, count_tokens(blank)
    while rest:
        sizes = range(2, min(len(rest), tokens_max * CHARS_PER_TOKEN_MAX) + 1)
        further = bisect_right(sizes, tokens_max, key=count_head)
        stop = _find_cut_position(rest, 1 + further)
        part = replace(piece, content=rest[:stop].strip())
        yield part, count_tokens(part)
        rest = rest[stop:].lstrip()


def _find_cut_position(text: str, stop: int) -> int:
    """Return where to cut a text, up to index `stop`: after a sentence, or else a word or character."""
    if stop >= len(text):
        return len(text)
    for shape in (_SENTENCE, _SPACE):
        ends = [match.end() for match in shape.finditer(text, stop // EARLY, stop)]
        if ends:
            return ends[-1]
    while stop > 1 and (text[stop] in _JOINERS or unicodedata.combining(text[stop])):
        stop -= 1
    return stop
