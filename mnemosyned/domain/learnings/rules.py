"""Compiles the per-language rules that recognize instructions, preferences and names."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache

from mnemosyned.domain.learnings.learning import LearningKind
from mnemosyned.domain.learnings.rule_tables import LANGUAGES, PARTS

_PART = re.compile(r"(?<!\?P)<([a-z_]+)>")
"""A name to be replaced; `(?P<name>` is a group of the pattern."""


@dataclass(frozen=True, slots=True)
class Rules:
    """The compiled rules of a language."""

    each: Sequence[tuple[LearningKind, re.Pattern[str]]]
    """The first to match a clause from its start gives the kind."""
    any: re.Pattern[str]
    """Matches where one of them does, in a fifth of the time."""


@dataclass(frozen=True, slots=True)
class SharedPatterns:
    """The compiled patterns that apply whatever the language of a sentence."""

    request: re.Pattern[str]
    """Matches a question that asks for something lasting: "could you always …?"."""
    lead: re.Pattern[str]
    """Matches words before an instruction, such as "please" or "by the way"."""
    reported: re.Pattern[str]
    """Matches reported speech and the past: the clauses after it give no instruction."""
    attribution: re.Pattern[str]
    """Matches the end of a sentence that names another speaker or marks a joke."""
    to_agent: re.Pattern[str]
    """Matches an order about telling "the user", which no user gives: it is meant for the agent."""
    override: re.Pattern[str]
    """Matches an order to ignore what an agent was told before."""


@cache
def rules_of(language: str) -> Rules:
    """Return the rules of a language.

    Compiled on first use: English takes 20 ms, which would delay every start.
    """
    table = parse_table(LANGUAGES[language])
    return Rules(
        each=tuple((LearningKind(kind), _compile(rule)) for kind, rule in table),
        any=_compile("|".join(rule for _, rule in table)),
    )


@cache
def shared_patterns() -> SharedPatterns:
    """Return the shared patterns, compiled on first use."""
    parts = _parts()
    return SharedPatterns(
        request=_compile(parts["request"]),
        lead=_compile(parts["lead"]),
        reported=_compile(parts["reported"]),
        attribution=_compile(parts["attribution"]),
        to_agent=_compile(parts["to_agent"]),
        override=_compile(parts["override"]),
    )


@cache
def _parts() -> Mapping[str, str]:
    return dict(parse_table(PARTS))


def parse_table(table: str) -> list[tuple[str, str]]:
    """Parse the names and patterns of a table, joining indented lines to the line above."""
    joined = table.strip().replace("\n    ", "")
    if not joined:
        return []
    entries = (line.partition(": ") for line in joined.split("\n"))
    return [(name, pattern) for name, _, pattern in entries]


def _compile(pattern: str) -> re.Pattern[str]:
    """Compile a pattern with each `<name>` replaced by the part of that name."""
    return re.compile(substitute_parts(pattern, _parts()), re.IGNORECASE)


def substitute_parts(pattern: str, parts: Mapping[str, str]) -> str:
    """Return a pattern with each `<name>` replaced by the part of that name."""
    while _PART.search(pattern):
        pattern = _PART.sub(lambda part: f"(?:{parts[part[1]]})", pattern)
    return pattern
