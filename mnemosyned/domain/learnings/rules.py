"""The rules by which words are told that are to hold from now on, read from their tables."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache

from mnemosyned.domain.learnings.learning import LearningKind
from mnemosyned.domain.learnings.rule_tables import LANGUAGES, PARTS

_PART = re.compile(r"<([a-z_]+)>")


def _lines(table: str) -> list[tuple[str, str]]:
    """Names and patterns, with what is set in joined to the line it goes on from."""
    joined = table.strip().replace("\n    ", "")
    return [
        (name, text)
        for name, _, text in (line.partition(": ") for line in joined.split("\n"))
    ]


Rules = Sequence[tuple[LearningKind, re.Pattern[str]]]


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
    """Matched where a sentence or a clause begins; the first that fits tells the kind.

    Read on first use: English takes 20 ms, which no start should wait for.
    """
    return tuple(
        (LearningKind(kind), _whole(rule)) for kind, rule in _lines(LANGUAGES[language])
    )


@cache
def common_rules() -> Common:
    """Read on first use too."""
    parts = _parts()
    return Common(
        request=_whole(parts["request"]),
        lead=_whole(parts["lead"]),
        told=_whole(parts["told"]),
        told_after=_whole(parts["told_after"]),
    )


@cache
def _parts() -> Mapping[str, str]:
    return dict(_lines(PARTS))


def _whole(pattern: str) -> re.Pattern[str]:
    parts = _parts()
    while _PART.search(pattern):
        pattern = _PART.sub(lambda part: f"(?:{parts[part[1]]})", pattern)
    return re.compile(pattern, re.IGNORECASE)
