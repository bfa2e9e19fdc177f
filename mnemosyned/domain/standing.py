"""The rules by which words are told that are to hold from now on, read from their tables."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
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
class Rules:
    """All rules of a language as one pattern, which takes a fourth of the time of one by one."""

    kinds: Sequence[LearningKind]
    pattern: re.Pattern[str]

    def kind(self, clause: str) -> LearningKind | None:
        """What the words say, from the first of the rules that fits."""
        found = self.pattern.match(clause)
        return self.kinds[found.lastindex - 1] if found and found.lastindex else None


@dataclass(frozen=True, slots=True)
class Common:
    """The patterns that all languages have in common, ready to be matched."""

    request: re.Pattern[str]
    """What asks for something standing although it ends in a question mark."""
    lead: re.Pattern[str]
    """What may stand before the words that bind."""
    told: re.Pattern[str]
    """What others said, or what once was: the clauses after it give no instruction."""
    told_after: re.Pattern[str]
    """What is said to be another's words, or a joke, at its end."""


@cache
def rules_of(language: str) -> Rules:
    """To be matched where a sentence or a clause begins.

    Read on first use: English takes 20 ms, which no start should wait for.
    """
    kinds, patterns = zip(*written_rules(language), strict=True)
    one = re.compile("|".join(f"({pattern})" for pattern in patterns), re.IGNORECASE)
    return Rules(kinds, one)


def written_rules(language: str) -> list[tuple[LearningKind, str]]:
    """The rules one by one; there is no group in them that counts."""
    return [(LearningKind(kind), _whole(rule)) for kind, rule in _lines(LANGUAGES[language])]


@cache
def common_rules() -> Common:
    """Read on first use too."""
    parts = _parts()
    return Common(
        **{
            name: re.compile(_whole(parts[name]), re.IGNORECASE)
            for name in ("request", "lead", "told", "told_after")
        }
    )


@cache
def _parts() -> Mapping[str, str]:
    return dict(_lines(PARTS))


def _whole(pattern: str) -> str:
    """The pattern with the parts that it names."""
    parts = _parts()
    while _PART.search(pattern):
        pattern = _PART.sub(lambda part: f"(?:{parts[part[1]]})", pattern)
    return pattern
