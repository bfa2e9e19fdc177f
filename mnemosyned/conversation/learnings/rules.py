"""Rules that recognize learnings, in a TOML file for each language here, and their compilation.

A rule is a kind and a pattern, matched at the start of a sentence or a clause. `<name>` is replaced
by the part of that name, `"_"` is quoted text.

A rule of preferences said in passing has the learned form, too: `states: i prefer => Prefers`. Its
pattern is in lower case and is at the start of a clause; the form is followed by the words up to
the end of the clause. `asks` is a constraint, `inside` a rule that may match anywhere. In a form,
`{v}` is the pattern's verb in the third person, any other name a group of the pattern.

A line break followed by four spaces is left out. A new language is a new file and a new name in
`LANGUAGES`; `english.toml` explains each table.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from mnemosyned.memory.values import LearningKind
from mnemosyned.text.rule_files import fill_parts

LANGUAGES = """
    english german french spanish italian portuguese dutch swedish polish russian chinese japanese
    korean
""".split()
"""Languages in the order in which their rules are tried."""
_GROUP_NAME = re.compile(r"\(\?P<\w+>")


@dataclass(frozen=True, slots=True)
class LearningRules:
    """The compiled rules of a language for instructions, names and preferences."""

    each: Sequence[tuple[LearningKind, re.Pattern[str]]]
    """Rules in order: the first that matches a clause from its start gives the kind."""
    any: re.Pattern[str]
    """Pattern of all rules together, which takes a fifth of the time."""
    convention: re.Pattern[str] | None
    """Pattern of rules that are stated as facts: "money is integer cents, never floats"."""
    alone: Sequence[re.Pattern[str]]
    """What a preference that is a whole message begins with, has, and has not; empty without a rule."""


@dataclass(frozen=True, slots=True)
class PassingRule:
    """A rule for preferences said in passing, with the form of the learning."""

    name: str
    pattern: re.Pattern[str]
    form: str


@dataclass(frozen=True, slots=True)
class PassingRules:
    """The compiled rules and words of a language for preferences said in passing."""

    at_starts: Sequence[PassingRule]
    any_at_start: re.Pattern[str]
    """Pattern of all `at_starts` together, in the time of a few of them."""
    inside: Sequence[PassingRule]
    start: re.Pattern[str]
    lead: re.Pattern[str]
    end: re.Pattern[str]
    next_clause: re.Pattern[str]
    """Matches a comma before another clause."""
    guard: re.Pattern[str]
    unclear: re.Pattern[str]
    once: re.Pattern[str]
    third_person: Sequence[tuple[re.Pattern[str], str]]
    own_words: Mapping[str, str]
    own_word: re.Pattern[str] | None

    @property
    def rules(self) -> Sequence[PassingRule]:
        """All rules, in the order in which they are tried."""
        return [*self.at_starts, *self.inside]


@cache
def load_table(language: str) -> Mapping[str, Any]:
    """Return the tables of a language's TOML file, or of the file shared by all for "shared".

    `language` is a code such as "en".
    """
    text = Path(__file__).with_name(f"{language}.toml").read_text("utf-8")
    return tomllib.loads(text.replace("\n    ", ""))


@cache
def load_rules(language: str) -> LearningRules:
    """Return a language's rules for instructions, names and preferences.

    They are compiled on first use: English takes 20 ms, which would delay every start.
    """
    table = load_table(language)
    rules = _parse_pairs(table["rules"])
    facts = table.get("conventions", "").splitlines()
    return LearningRules(
        each=tuple((LearningKind(kind), compile_pattern(rule)) for kind, rule in rules),
        any=compile_pattern("|".join(rule for _, rule in rules)),
        convention=compile_pattern("|".join(facts)) if facts else None,
        alone=[
            compile_pattern(rf"\b{line}" if number else line)
            for number, line in enumerate(table.get("alone", "").splitlines())
        ],
    )


@cache
def load_shared_pattern(name: str) -> re.Pattern[str]:
    """Return the compiled pattern of the shared part `name`, made for all languages.

    The parts are in `shared.toml`, which says what the patterns match: `request`, `lead`,
    `reported`, `attribution`, `to_agent` and `override`.
    """
    return compile_pattern(f"<{name}>")


@cache
def load_passing_rules(language: str) -> PassingRules:
    """Return a language's rules for preferences said in passing, compiled on first use."""
    table = load_table(language)["passing"]
    parts = _parse_parts(table.get("parts", ""))
    rules: list[PassingRule] = []
    for name, rule in _parse_pairs(table["rules"]):
        pattern, _, form = rule.partition(" =>")
        whole = re.compile(fill_parts(pattern, parts) + ",? ?")
        rules.append(PassingRule(name, whole, form.strip()))
    at_starts = [rule for rule in rules if rule.name != "inside"]
    nameless = (_GROUP_NAME.sub("(?:", rule.pattern.pattern) for rule in at_starts)
    joined = table["conjunctions"]
    starts = rf"(?:{table['starters']})\b"
    listed = rf"\s[^,.;:!?]{{1,30}}(?:,\s[^,.;:!?]{{1,30}}){{0,4}},?\s(?:{joined})\s"
    comma = rf",(?=\s{starts})|,(?!{listed})(?!\s(?:{table['negations']})\b)"
    own_words = dict(table.get("own_words", ()))
    own = "|".join(map(re.escape, sorted(own_words, key=len, reverse=True)))
    return PassingRules(
        at_starts=at_starts,
        any_at_start=re.compile("|".join(nameless)),
        inside=[rule for rule in rules if rule.name == "inside"],
        start=re.compile(rf"^[\s*•-]*|[,;:(.!?]\s+|\s[–—-]\s|\b(?:{joined}),?\s(?=\S)"),
        lead=re.compile(rf"(?:{table['leads']})\b[\s,:–—-]+"),
        end=re.compile(
            rf"[;!?…()\n]|[.:](?=\s|$)|\s[–—-]+\s|,?\s(?:{table['reasons']})\b"
            rf"|{comma}|\s(?:{joined})\s(?={starts})"
        ),
        next_clause=re.compile(rf",\s{starts}"),
        guard=re.compile(table["guards"]),
        unclear=re.compile(table["unclear"]),
        once=re.compile(table["once"]),
        third_person=[
            (re.compile(ending), form) for ending, form in table.get("third_person", ())
        ],
        own_words=own_words,
        own_word=re.compile(rf"\b(?:{own})\b(?!')", re.IGNORECASE) if own else None,
    )


def _parse_pairs(table: str) -> list[tuple[str, str]]:
    """Return (name, pattern) for each line of a table, in order."""
    lines = (line.partition(": ") for line in table.splitlines())
    return [(name, pattern) for name, _, pattern in lines]


def compile_pattern(pattern: str) -> re.Pattern[str]:
    """Compile a pattern, ignoring case, with each `<name>` replaced by the shared part `name`."""
    return re.compile(fill_parts(pattern, _load_shared_parts()), re.IGNORECASE)


@cache
def _load_shared_parts() -> Mapping[str, str]:
    """Return {name: pattern} of the parts of patterns that rules have in common."""
    return _parse_parts(load_table("shared")["parts"])


def _parse_parts(table: str) -> dict[str, str]:
    """Return {name: pattern} of the parts in a table, each pattern as a group of its own."""
    return {name: f"(?:{pattern})" for name, pattern in _parse_pairs(table)}
