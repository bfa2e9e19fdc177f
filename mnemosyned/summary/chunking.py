"""Splitting of groups larger than a context window into parts that fit, in order and complete."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import datetime

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


@dataclass(frozen=True, slots=True)
class Piece:
    """A memory, or a part of a memory's text, as input for a model's prompt."""

    memory_id: str
    text: str
    created_at: datetime
    role: str = ""


def make_whole_piece(memory: MemoryRecord) -> Piece:
    """Return a memory as a prompt's piece, with its whole text, time and role."""
    return Piece(memory.id, memory.content, memory.created_at, memory.role)


def split_to_fit(
    memories: Iterable[MemoryRecord],
    *,
    count_tokens: Callable[[Piece], int],
    tokens_max: int,
) -> list[list[Piece]]:
    """Divide memories into lists of pieces of similar size, each of at most `tokens_max` tokens.

    The order is kept. A memory is split only if it alone exceeds the limit; a piece has at least
    one character. `count_tokens` counts a piece as it is in the prompt.
    """
    sized = [
        (piece, size)
        for original in map(make_whole_piece, memories)
        for piece, size in _split_piece(original, count_tokens, max(tokens_max, 1))
    ]
    return _pack_evenly(sized, max(tokens_max, 1))


def _pack_evenly(
    sized: Sequence[tuple[Piece, int]], tokens_max: int
) -> list[list[Piece]]:
    """Divide pieces, given with their token counts, into lists of at most `tokens_max` tokens.

    The order is kept, and the lists are of similar size, so that none is left with a single line.
    """
    total = sum(size for _, size in sized)
    fair = -(-total // max(-(-total // tokens_max), 1))
    parts: list[list[Piece]] = []
    filled = 0
    for piece, size in sized:
        if not parts or filled + size > tokens_max or filled >= fair:
            parts.append([])
            filled = 0
        parts[-1].append(piece)
        filled += size
    return parts


def _split_piece(
    piece: Piece, count_tokens: Callable[[Piece], int], tokens_max: int
) -> Iterator[tuple[Piece, int]]:
    """Yield a piece, or if it exceeds `tokens_max` its parts, each with its token count.

    `count_tokens` counts a piece as it stands in the prompt.
    """
    if len(piece.text) <= tokens_max * CHARS_PER_TOKEN_MAX:
        size = count_tokens(piece)
        if size <= tokens_max:
            yield piece, size
            return
    rest = piece.text.strip()
    if not rest:
        blank = replace(piece, text="")
        yield blank, count_tokens(blank)
    while rest:
        head = rest[: tokens_max * CHARS_PER_TOKEN_MAX]
        fitting = _count_fitting_chars(piece, head, count_tokens, tokens_max)
        stop = _find_cut_position(rest, fitting)
        part = replace(piece, text=rest[:stop].strip())
        yield part, count_tokens(part)
        rest = rest[stop:].lstrip()


def _count_fitting_chars(
    piece: Piece, text: str, count_tokens: Callable[[Piece], int], tokens_max: int
) -> int:
    """Return how many first characters of `text` fit in `tokens_max` tokens, at least one.

    The text is counted in place of the piece's own.
    """
    low, high = 1, len(text)
    while low < high:
        middle = (low + high + 1) // 2
        if count_tokens(replace(piece, text=text[:middle])) <= tokens_max:
            low = middle
        else:
            high = middle - 1
    return low


def _find_cut_position(text: str, stop: int) -> int:
    """Return where to cut a text, at most at index `stop`.

    That is after the last sentence if possible, or else after the last word or character.
    """
    if stop >= len(text):
        return len(text)
    for shape in (_SENTENCE, _SPACE):
        ends = [match.end() for match in shape.finditer(text, stop // EARLY, stop)]
        if ends:
            return ends[-1]
    while stop > 1 and (text[stop] in _JOINERS or unicodedata.combining(text[stop])):
        stop -= 1
    return stop
