"""How many tokens a text takes: who counts, and the two counters that need nothing but the text."""

from __future__ import annotations

import re
from typing import Protocol

CHARS_PER_TOKEN = 4


class TokenCounter(Protocol):
    """Says how many tokens a text takes; pure, offline, and never raising."""

    name: str
    """Who counted, as answers and benches show it."""

    def count(self, text: str) -> int:
        """The tokens of a text, 0 or more."""
        ...


class Chars4:
    """Four characters to a token, at least one: the rule of the documents this follows."""

    name = "chars4"

    def count(self, text: str) -> int:
        return max(1, len(text) // CHARS_PER_TOKEN)


class Estimated:
    """Weighs each run of a text by what kind of characters it is of."""

    name = "estimate"

    def count(self, text: str) -> int:
        words = sum(1 + (len(word) - 1) // 7 for word in _WORD.findall(text))
        wide = sum(1 for character in text if character > "\u2e80")
        marks = len(_MARKS.findall(text))
        return words + marks + wide


_WORD = re.compile(r"[^\W_\u2e80-\U0010ffff]+")
_MARKS = re.compile(r"[^\w\s\u2e80-\U0010ffff]|_|\n")
