"""The rules by which words are told that are to hold from now on, read from their tables."""

from __future__ import annotations

import re

from mnemosyned.domain.learnings import LearningKind
from mnemosyned.domain.standing_words import LANGUAGES, PARTS

_PART = re.compile(r"<([a-z_]+)>")


def _lines(table: str) -> list[tuple[str, str]]:
    """Names and patterns, with what is set in joined to the line it goes on from."""
    joined = table.strip().replace("\n    ", "")
    return [(name, text) for name, _, text in (line.partition(": ") for line in joined.split("\n"))]


def _whole(pattern: str) -> str:
    while _PART.search(pattern):
        pattern = _PART.sub(lambda part: f"(?:{_PARTS[part[1]]})", pattern)
    return pattern


def _compiled(pattern: str) -> re.Pattern[str]:
    return re.compile(_whole(pattern), re.IGNORECASE)


_PARTS = dict(_lines(PARTS))

RULES = tuple(
    (LearningKind(kind), _compiled(pattern))
    for language in LANGUAGES
    for kind, pattern in _lines(language)
)
"""Matched where a sentence or a clause begins; the first that fits tells the kind."""
REQUEST = _compiled(_PARTS["request"])
"""What asks for something standing although it ends in a question mark."""
LEAD = _compiled(_PARTS["lead"])
"""What may stand before the words that bind."""
TOLD = _compiled(_PARTS["told"])
"""Who tells what others said, or what once was, gives no instruction in the clauses after it."""
TOLD_AFTER = _compiled(_PARTS["told_after"])
"""What is said to be another's words, or a joke, at its end."""
CLAUSE = _compiled(r"[;；,，、]\s*|\s[–—-]\s|\b(?:and|but) (?=please|call me|don't|do not)")
