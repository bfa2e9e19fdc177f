"""Groups larger than a model's window: parts that fit, in order, with nothing left out."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import datetime

from mnemosyned.domain.memory import MemoryRecord

CHARS_PER_TOKEN_MAX = 16
"""More characters than this for each token of the window are not offered to the counter."""
EARLY = 4
"""A pause in the first fourth of what fits is too early to cut at."""

_SENTENCE = re.compile(r"[.!?…]+[\"'”’»)\]]*\s+|[。！？｡．]+[」』”’）】]*|\n+")
_SPACE = re.compile(r"\s+")
_JOINERS = "\u200d\ufe0e\ufe0f"


@dataclass(frozen=True, slots=True)
class Piece:
    """A memory as a model is shown it: whole, or a stretch of one too long for the window."""

    memory: str
    """The id of the memory it is of."""
    text: str
    created_at: datetime
    role: str = ""


def whole_piece(memory: MemoryRecord) -> Piece:
    """The piece that a memory makes where it need not be split."""
    return Piece(memory.id, memory.content, memory.created_at, memory.role)


def split_to_fit(
    memories: Iterable[MemoryRecord],
    *,
    count_tokens: Callable[[Piece], int],
    tokens_max: int,
) -> list[list[Piece]]:
    """The memories in their order, in parts of at most so many tokens and of like size.

    `count_tokens` says what a piece takes as it will be shown. A memory is split only where it
    alone exceeds a part; should not even one character of it fit, it goes character by character.
    """
    originals = [whole_piece(memory) for memory in memories]
    sized = [
        (piece, size)
        for one in originals
        for piece, size in _split_piece(one, count_tokens, max(tokens_max, 1))
    ]
    found = _pack(sized, max(tokens_max, 1))
    if not all_covered(originals, found):
        raise AssertionError("A part of the group would be left out of its summary.")
    return found


def all_covered(originals: Iterable[Piece], found: Iterable[Sequence[Piece]]) -> bool:
    """Whether every memory stands in the parts with all its text, in order."""
    texts: dict[str, list[str]] = {}
    for part in found:
        for piece in part:
            texts.setdefault(piece.memory, []).append(piece.text)
    return all(
        one.memory in texts
        and _without_space("".join(texts[one.memory])) == _without_space(one.text)
        for one in originals
    )


def _without_space(text: str) -> str:
    return "".join(text.split())


def _pack(sized: Sequence[tuple[Piece, int]], tokens_max: int) -> list[list[Piece]]:
    """Pieces side by side while they fit, evenly, as a last part of one line says little."""
    total = sum(size for _, size in sized)
    fair = -(-total // max(-(-total // tokens_max), 1))
    found: list[list[Piece]] = []
    filled = 0
    for piece, size in sized:
        if not found or filled + size > tokens_max or filled >= fair:
            found.append([])
            filled = 0
        found[-1].append(piece)
        filled += size
    return found


def _split_piece(
    piece: Piece, count_tokens: Callable[[Piece], int], tokens_max: int
) -> Iterator[tuple[Piece, int]]:
    """The piece with its size, or the stretches of it that fit."""
    size = (
        count_tokens(piece)
        if len(piece.text) <= tokens_max * CHARS_PER_TOKEN_MAX
        else None
    )
    if size is not None and size <= tokens_max:
        yield piece, size
        return
    rest = piece.text.strip()
    if not rest:
        blank = replace(piece, text="")
        yield blank, count_tokens(blank)
    while rest:
        head = rest[: tokens_max * CHARS_PER_TOKEN_MAX]
        stop = _cut_position(
            rest, _longest_prefix(piece, head, count_tokens, tokens_max)
        )
        one = replace(piece, text=rest[:stop].strip())
        yield one, count_tokens(one)
        rest = rest[stop:].lstrip()


def _longest_prefix(
    piece: Piece, text: str, count_tokens: Callable[[Piece], int], tokens_max: int
) -> int:
    """How many characters of a text fit, at least one."""
    low, high = 1, len(text)
    while low < high:
        middle = (low + high + 1) // 2
        if count_tokens(replace(piece, text=text[:middle])) <= tokens_max:
            low = middle
        else:
            high = middle - 1
    return low


def _cut_position(text: str, stop: int) -> int:
    """Where to cut at the latest: behind a sentence, else a word, else a whole character."""
    if stop >= len(text):
        return len(text)
    for shape in (_SENTENCE, _SPACE):
        ends = [at.end() for at in shape.finditer(text, stop // EARLY, stop)]
        if ends:
            return ends[-1]
    while stop > 1 and (text[stop] in _JOINERS or unicodedata.combining(text[stop])):
        stop -= 1
    return stop
