"""Marks the words of a text that a question searched for."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Sequence

import click

from mnemosyned.domain.text.sentence_marks import UNSPACED, WORD_END, WORD_START

GRAM_CHARS = 2
"""Characters of a part of a script without spaces, which matches anywhere."""
SHORT_CHARS = 4
"""Words of up to so many letters match with a common ending alone: `tea` is not `team`."""


def highlighted(text: str, matching: Sequence[str]) -> str:
    """A text whose words with these beginnings stand out."""
    if not matching:
        return text
    pattern = re.compile("|".join(map(_pattern, map(_folded, matching))))
    parts: list[str] = []
    end = 0
    for match in pattern.finditer(_folded(text)):
        word = click.style(text[match.start() : match.end()], bold=True, underline=True)
        parts += [text[end : match.start()], word]
        end = match.end()
    return "".join([*parts, text[end:]])


def _pattern(word: str) -> str:
    if len(word) <= GRAM_CHARS and not word.isascii():
        return re.escape(word)
    if not word.isalpha():
        return f"{WORD_START}{re.escape(word)}{WORD_END}"
    ending = (
        r"(?:s|e[sd]?|ing|y|ies)?"
        if len(word) <= SHORT_CHARS
        else f"[^\\W{UNSPACED}]{{0,6}}"
    )
    return f"{WORD_START}{re.escape(word)}{ending}{WORD_END}"


def _folded(text: str) -> str:
    """A text in lower case without accents, with a character for each of its own."""
    if text.isascii():
        return text.lower()
    return "".join(
        unicodedata.normalize("NFD", character.lower()[0])[0] for character in text
    )
