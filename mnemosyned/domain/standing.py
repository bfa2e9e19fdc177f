"""The rules by which words are told that are to hold from now on, read from their tables."""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cache

from mnemosyned.domain.learnings import LearningKind
from mnemosyned.domain.standing_words import LANGUAGES, PARTS

_PART = re.compile(r"<([a-z_]+)>")


def _lines(table: str) -> list[tuple[str, str]]:
    """Names and patterns, with what is set in joined to the line it goes on from."""
    joined = table.strip().replace("\n    ", "")
    return [(name, text) for name, _, text in (line.partition(": ") for line in joined.split("\n"))]


@dataclass(frozen=True, slots=True)
class Standing:
    """The patterns, ready to be matched."""

    rules: tuple[tuple[LearningKind, re.Pattern[str]], ...]
    """Matched where a sentence or a clause begins; the first that fits tells the kind."""
    request: re.Pattern[str]
    """What asks for something standing although it ends in a question mark."""
    lead: re.Pattern[str]
    """What may stand before the words that bind."""
    told: re.Pattern[str]
    """What others said, or what once was: the clauses after it give no instruction."""
    told_after: re.Pattern[str]
    """What is said to be another's words, or a joke, at its end."""


@cache
def standing_rules() -> Standing:
    """Read the tables, on first use: it takes 70 ms, which no start should wait for."""
    parts = dict(_lines(PARTS))

    def whole(pattern: str) -> re.Pattern[str]:
        while _PART.search(pattern):
            pattern = _PART.sub(lambda part: f"(?:{parts[part[1]]})", pattern)
        return re.compile(pattern, re.IGNORECASE)

    return Standing(
        rules=tuple(
            (LearningKind(kind), whole(pattern))
            for language in LANGUAGES
            for kind, pattern in _lines(language)
        ),
        request=whole(parts["request"]),
        lead=whole(parts["lead"]),
        told=whole(parts["told"]),
        told_after=whole(parts["told_after"]),
    )
