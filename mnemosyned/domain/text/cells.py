"""The room that text takes at a terminal: East Asian characters take two cells, marks none.

Source: Unicode Standard Annex #11, East Asian Width.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator

_MARKS = frozenset({"Mn", "Me", "Cf"})
_WIDE = frozenset({"W", "F"})
_WORD = re.compile(r"(\s*)(\S+)")
_JOINER = "\u200d"
_EMOJI_STYLE = "\ufe0f"


def cell_count(text: str) -> int:
    """The number of cells of a text on one line."""
    return len(text) if text.isascii() else sum(_cells(text))


def _cells(text: str) -> Iterator[int]:
    """The cells of each character; those of one emoji count once."""
    before = ""
    for character in text:
        yield _cells_of(character, before)
        before = character


def _cells_of(character: str, before: str) -> int:
    if character.isascii():
        return 1
    if before == _JOINER:
        return 0
    if character == _EMOJI_STYLE:  # the character before is drawn as an emoji
        return int(bool(before) and not _is_wide(before))
    if unicodedata.category(character) in _MARKS:
        return 0
    return 2 if _is_wide(character) else 1


def _is_wide(character: str) -> bool:
    return unicodedata.east_asian_width(character) in _WIDE


def fitting(text: str, cells: int) -> int:
    """The number of characters at the beginning of a text that take up to so many cells."""
    if text.isascii():
        return min(cells, len(text))
    taken = 0
    for index, size in enumerate(_cells(text)):
        taken += size
        if taken > cells:
            return index
    return len(text)


def wrap(text: str, first: int, further: int) -> list[str]:
    """The lines of a paragraph of up to `first`, then `further`, cells; broken at blanks if possible.

    A word longer than a line, and a run of East Asian characters, is broken where the line ends.
    """
    lines: list[str] = []
    line, room = "", first
    for blanks, word in _WORD.findall(text):
        gap = " " * len(blanks) if line else ""
        remainder = word
        while remainder:
            size = _share(remainder, room - cell_count(line) - len(gap), further)
            if size:
                line += gap + remainder[:size]
                remainder = remainder[size:]
            if remainder:
                lines.append(line)
                line, room = "", further
            gap = ""
    return [*lines, line] if line or not lines else lines


def _share(word: str, space: int, whole_line: int) -> int:
    """The number of a word's characters that go into the space left on a line."""
    if space < 0:  # not even the blank before it fits
        return 0
    size = fitting(word, space)
    if size == len(word):
        return size
    is_breakable = cell_count(word) > whole_line or _is_wide(word[max(size - 1, 0)])
    if space >= whole_line:  # an empty line takes what it can, at least one character
        return max(size, 1)
    return size if is_breakable else 0
